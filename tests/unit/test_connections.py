"""Connections to receivers: kept and used again, to the address that was checked, for the name that was asked for."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stub_server.domain.deliveries import AttemptOutcome
from stub_server.events import network
from stub_server.events.sender import Delivery, Sender
from stub_server.events.signing import new_key

from ..support.authority import server_context

KEY = new_key(b"s" * 32)
NAME = "loja.example"


def delivery(url: str, body: bytes = b"{}") -> Delivery:
    """Something to send."""
    return Delivery(url, "evt_1", body, (), (KEY,))


class Server:
    """A receiver on the test's own event loop, which counts connections and answers each request of one."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") -> None:
        self.connections = self.requests = 0
        self.answer = answer

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(int(length.partition(b":")[2]))
                self.requests += 1
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def with_server(
    server: Server, use: Callable[[int], Awaitable[list[AttemptOutcome]]], tls: ssl.SSLContext | None = None
) -> list[AttemptOutcome]:
    """Use a server that listens on a free port of this machine."""

    async def run() -> list[AttemptOutcome]:
        listening = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls)
        try:
            return await use(listening.sockets[0].getsockname()[1])
        finally:
            listening.close()

    return asyncio.run(run())


def test_a_kept_connection_is_used_again() -> None:
    """One after the other through one connection; several at once through several, and these again."""
    server, sender = Server(), Sender(local=True)

    async def use(port: int) -> list[AttemptOutcome]:
        sender.open()
        url = f"http://127.0.0.1:{port}/"
        found = [await sender.attempt(delivery(url), 5) for _ in range(5)]
        assert 1 == server.connections
        for _ in range(3):
            found += await asyncio.gather(*(sender.attempt(delivery(url), 5) for _ in range(8)))
        await sender.aclose()
        return found

    assert {(200, None, "ok")} == {(o.status, o.error, o.body) for o in with_server(server, use)}
    assert (8, 29) == (server.connections, server.requests)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n" + b"x" * 9000,
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
    ],
    ids=["too long", "closing", "old"],
)
def test_a_connection_that_cannot_be_used_again_is_not(answer: bytes) -> None:
    """An answer that is not read to its end, or that ends with the connection."""
    server, sender = Server(answer), Sender(local=True)

    async def use(port: int) -> list[AttemptOutcome]:
        sender.open()
        # The old one says nothing of its end: the limit ends it, with what has come until then.
        found = [await sender.attempt(delivery(f"http://127.0.0.1:{port}/"), 0.3) for _ in range(2)]
        await sender.aclose()
        return found

    assert {(200, None)} == {(outcome.status, outcome.error) for outcome in with_server(server, use)}
    assert 2 == server.connections


def test_a_name_that_changes_its_meaning_reaches_nothing_that_was_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection goes on to the address that was checked; a new one is checked anew, and blocked."""
    meant = ["127.0.0.1"]

    async def resolve(host: str, port: int) -> list[str]:
        return list(meant)

    monkeypatch.setattr(network, "resolve", resolve)
    server, sender = Server(), Sender(local=True)

    async def use(port: int) -> list[AttemptOutcome]:
        sender.open()
        url = f"http://{NAME}:{port}/"
        found = [await sender.attempt(delivery(url), 5)]
        meant[:] = ["169.254.169.254"]
        found.append(await sender.attempt(delivery(url), 5))
        await sender.aclose()
        sender.open()
        found.append(await sender.attempt(delivery(url), 5))
        await sender.aclose()
        return found

    assert [None, None, "blocked"] == [outcome.error for outcome in with_server(server, use)]
    assert (1, 2) == (server.connections, server.requests)


def test_only_so_many_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more, the one longest unused is let go."""
    monkeypatch.setattr(network, "KEPT", 2)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(network, "resolve", resolve)
    server, sender = Server(), Sender(local=True)

    async def use(port: int) -> list[AttemptOutcome]:
        sender.open()
        names = ("a", "b", "c", "b", "c", "a")
        found = [await sender.attempt(delivery(f"http://{name}.example:{port}/"), 5) for name in names]
        await sender.aclose()
        return found

    assert {200} == {outcome.status for outcome in with_server(server, use)}
    assert 4 == server.connections


def test_a_certificate_is_checked_for_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though an address is connected to; and a connection of one name is not used for another at that address."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(network, "resolve", resolve)
    certificate, authority = server_context(tmp_path, NAME)
    server, sender = Server(), Sender(local=True, cacert=authority)

    async def use(port: int) -> list[AttemptOutcome]:
        sender.open()
        hosts = (NAME, NAME, "outra.example", "localhost")
        found = [await sender.attempt(delivery(f"https://{host}:{port}/"), 5) for host in hosts]
        await sender.aclose()
        return found

    outcomes = with_server(server, use, certificate)
    assert [(200, None), (200, None), (None, "tls"), (None, "tls")] == [(o.status, o.error) for o in outcomes]
    assert 2 == server.requests


def test_a_connection_that_ended_meanwhile_is_not_used_again() -> None:
    """The receiver was restarted: the next delivery goes through a new connection."""
    first, second, sender = Server(), Server(), Sender(local=True)

    async def run() -> list[AttemptOutcome]:
        sender.open()
        listening = await asyncio.start_server(first, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        found = [await sender.attempt(delivery(f"http://127.0.0.1:{port}/"), 5)]
        first.answer = b""
        listening.close()
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0.05)
        again = await asyncio.start_server(second, "127.0.0.1", port)
        found.append(await sender.attempt(delivery(f"http://127.0.0.1:{port}/"), 5))
        again.close()
        await sender.aclose()
        return found

    assert [200, 200] == [outcome.status for outcome in asyncio.run(run())]
    assert (1, 1) == (first.requests, second.requests)
