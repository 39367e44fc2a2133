"""Deliveries go where they may, say what came of them, and carry nothing further."""

import asyncio
import socket
from pathlib import Path

import pytest
from anyio.abc import ByteStream

from stub_server.core.signing import new_key, sign
from stub_server.domain.deliveries import AttemptOutcome, Delivery, error_of
from stub_server.version import __version__
from stub_server.webhooks import network
from stub_server.webhooks.network import allowed
from stub_server.webhooks.sender import Sender

from ..support.authority import server_context
from ..support.receiver import Receiver

KEY = new_key(b"s" * 32)
NAME = "loja.example"
BODY = '{"olá":1}'.encode()


def attempt(
    url: str,
    *,
    local: bool = True,
    timeout: float = 4.0,
    to: list[str] | None = None,
    header: str | None = None,
) -> AttemptOutcome:
    """One attempt; `to` replaces what the host's name resolves to."""

    async def pinned(host: str, port: int) -> list[str]:
        return to or []

    delivery = Delivery(url, "evt_1", BODY, (("X-Loja", header),) if header else (), (KEY,))
    with pytest.MonkeyPatch.context() as patch:
        if to is not None:
            patch.setattr(network, "resolve", pinned)
        return asyncio.run(Sender(local=local).attempt(delivery, timeout))


@pytest.mark.promise("metadata-never-called")
@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "100.100.100.200",
    ],
)
def test_link_local_and_metadata_addresses_are_never_open(address: str) -> None:
    """Neither a loopback bind nor another way of writing them opens these."""
    assert not allowed(address, local=True)
    assert not allowed(address, local=False)


@pytest.mark.promise("no-private-webhooks")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "fd12::1",
        "0.0.0.0",  # noqa: S104 - a target, not an address to bind to
        "::",
        "100.64.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "224.0.0.1",
        "ff02::1",
    ],
)
def test_private_addresses_are_open_only_to_a_server_of_this_machine(address: str) -> None:
    """This machine and private networks can be reached when the server is bound to loopback, and
    only then.
    """
    assert allowed(address, local=True)
    assert not allowed(address, local=False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]
)
def test_a_blocked_address_is_never_connected_to(receiver: Receiver, host: str) -> None:
    """However this machine is written, a server reachable from outside does not post to it."""
    outcome = attempt(receiver.url.replace("127.0.0.1", host), local=False)
    assert (outcome.error, outcome.status) == ("blocked", None)
    assert receiver.requests == []


def test_the_address_that_was_checked_is_the_one_connected_to(receiver: Receiver) -> None:
    """The name is resolved once; the request still carries the name."""
    port = receiver.url.split(":")[2].split("/")[0]
    outcome = attempt(f"http://loja.example:{port}/hook?a=1", to=["169.254.169.254", "127.0.0.1"])
    assert (outcome.error, outcome.status) == (None, 200)
    (request,) = receiver.requests
    assert request.headers["host"] == f"loja.example:{port}"
    assert request.path == "/hook?a=1"


def test_what_is_sent(receiver: Receiver) -> None:
    """Body byte for byte, the headers of Standard Webhooks, the merchant's own, and
    nothing of the environment.
    """
    outcome = attempt(receiver.url, header="matriz")
    (request,) = receiver.requests
    assert request.body == BODY
    stamp = int(request.headers["webhook-timestamp"])
    assert request.headers == {
        "host": receiver.url.split("/")[2],
        "content-length": str(len(BODY)),
        "content-type": "application/json",
        "user-agent": f"membership-sandbox/{__version__}",
        "webhook-id": "evt_1",
        "webhook-timestamp": str(stamp),
        "webhook-signature": sign(KEY, "evt_1", stamp, BODY),
        "x-loja": "matriz",
    }
    assert outcome.signature == request.headers["webhook-signature"]
    assert outcome.request_headers.items() <= request.headers.items()


def test_proxies_of_the_environment_are_ignored(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deliveries go straight to the address that was checked."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert attempt(receiver.url).status == 200


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    """A redirect is a failure, and its target is left alone."""
    receiver.status = 302
    receiver.headers = {"location": receiver.url}
    outcome = attempt(receiver.url)
    assert (outcome.error, outcome.status) == ("redirect", 302)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (101, "connection_failed"),
        (200, None),
        (300, "redirect"),
        (400, "http_4xx"),
        (500, "http_5xx"),
        (799, "http_5xx"),
    ],
)
def test_every_status_is_success_or_has_a_reason(status: int, error: str | None) -> None:
    """2xx succeeds, everything else fails for the reason its class gives."""
    assert error_of(status) == error


def test_a_receiver_that_does_not_answer_times_out(receiver: Receiver) -> None:
    """The limit is for the whole attempt."""
    receiver.delay = 2.0
    outcome = attempt(receiver.url, timeout=0.2)
    assert (outcome.error, outcome.status, outcome.body) == ("timeout", None, None)
    assert 200 <= outcome.duration_ms < 1500


def test_nobody_listening_is_a_refused_connection() -> None:
    """A port without a listener refuses."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert attempt(f"http://127.0.0.1:{port}/").error == "connection_refused"


def test_an_answer_that_is_no_http_is_a_failed_connection() -> None:
    """Something that answers, but not in HTTP."""

    async def run() -> AttemptOutcome:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"SSH-2.0-whatever\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            return await Sender(local=True).attempt(Delivery(url, "evt_1", BODY, (), (KEY,)), 2.0)

    assert asyncio.run(run()).error == "connection_failed"


def test_a_certificate_is_checked_for_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though an address is connected to."""
    certificate, authority = server_context(tmp_path, NAME)
    sender = Sender(local=True, cacert=authority)
    served = list[bytes]()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await reader.readuntil(BODY))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def run() -> list[str | None]:
        listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificate)
        port = listening.sockets[0].getsockname()[1]
        urls = [f"https://{host}:{port}/" for host in (NAME, "outra.example", "localhost")]
        deliveries = [Delivery(url, "evt_1", BODY, (), (KEY,)) for url in urls]
        async with listening:
            return [(await sender.attempt(each, 5)).error for each in deliveries]

    monkeypatch.setattr(network, "resolve", resolve)
    assert [None, "tls", "tls"] == asyncio.run(run())
    assert 1 == len(served)


@pytest.mark.parametrize(
    "url", ["http://a b/", "http://%zz/", "http://" + "a" * 70 + "/", "http://:80/"]
)
def test_a_name_that_names_nothing_is_a_dns_failure(url: str) -> None:
    """The contract takes these addresses; an attempt says that nothing is there."""
    assert attempt(url).error == "dns"


class Interim(ByteStream):
    """A receiver's connection, on which interim answers never end."""

    def __init__(self) -> None:
        self.read_at_once: list[int] = []

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        self.read_at_once.append(max_bytes)
        return (b"HTTP/1.1 100 Continue\r\n\r\n" * max_bytes)[:max_bytes]

    async def send(self, item: bytes) -> None:
        pass

    async def send_eof(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.mark.promise("silent-receivers-delay-nobody")
def test_interim_answers_are_read_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are parsed without a pause: 16 receivers with thousands kept others waiting for 270 ms
    again and again.
    """
    stream = Interim()

    async def connected(*_: object) -> Interim:
        return stream

    monkeypatch.setattr(network, "connect_tcp", connected)
    outcome = attempt("http://127.0.0.1/")
    assert "connection_failed" == outcome.error
    assert max(stream.read_at_once) <= 512
    assert sum(stream.read_at_once) <= 131_072
