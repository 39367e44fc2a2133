"""Connections to receivers: one for each attempt, to the address that was checked, for the name
that was asked for.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
import uvloop

from stub_server.core.signing import new_key
from stub_server.domain.deliveries import AttemptOutcome, Delivery
from stub_server.webhooks import network
from stub_server.webhooks.sender import Sender

from ..support.authority import server_context

KEY = new_key(b"s" * 32)
NAME = "loja.example"


def delivery(url: str, body: bytes = b"{}") -> Delivery:
    """Something to send."""
    return Delivery(url, "evt_1", body, (), (KEY,))


class Server:
    """A receiver on the test's own event loop, which counts and answers requests."""

    def __init__(self) -> None:
        self.requests = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    line
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(int(length.partition(b":")[2]))
                self.requests += 1
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def with_server(
    server: Server,
    use: Callable[[int], Awaitable[list[AttemptOutcome]]],
    tls: ssl.SSLContext | None = None,
) -> list[AttemptOutcome]:
    """Use a server that listens on a free port of this machine."""

    async def run() -> list[AttemptOutcome]:
        listening = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls)
        try:
            return await use(listening.sockets[0].getsockname()[1])
        finally:
            listening.close()

    return asyncio.run(run())


def test_a_name_that_changes_its_meaning_reaches_nothing_that_was_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt checks the address anew."""
    meant = ["127.0.0.1"]

    async def resolve(host: str, port: int) -> list[str]:
        return list(meant)

    monkeypatch.setattr(network, "resolve", resolve)
    server, sender = Server(), Sender(local=True)

    async def use(port: int) -> list[AttemptOutcome]:
        url = f"http://{NAME}:{port}/"
        found = [await sender.attempt(delivery(url), 5)]
        meant[:] = ["169.254.169.254"]
        return [*found, await sender.attempt(delivery(url), 5)]

    assert [None, "blocked"] == [outcome.error for outcome in with_server(server, use)]
    assert 1 == server.requests


def test_a_certificate_is_checked_for_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though an address is connected to."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(network, "resolve", resolve)
    certificate, authority = server_context(tmp_path, NAME)
    server, sender = Server(), Sender(local=True, cacert=authority)

    async def use(port: int) -> list[AttemptOutcome]:
        hosts = (NAME, NAME, "outra.example", "localhost")
        return [await sender.attempt(delivery(f"https://{host}:{port}/"), 5) for host in hosts]

    outcomes = with_server(server, use, certificate)
    assert [(200, None), (200, None), (None, "tls"), (None, "tls")] == [
        (o.status, o.error) for o in outcomes
    ]
    assert 2 == server.requests


def test_a_receiver_that_resets_connections_is_a_failed_attempt_and_no_defect() -> None:
    """uvloop has no socket of such a connection, and looking at it was a defect now and then."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        Thread(target=_reset, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"

        async def errors() -> set[str | None]:
            sender = Sender(local=True)
            return {(await sender.attempt(delivery(url), timeout=5)).error for _ in range(200)}

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert {"connection_failed"} == runner.run(errors())


def _reset(listening: socket.socket) -> None:
    """Reset each connection, until no more come."""
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
