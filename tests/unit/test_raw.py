"""Deliveries that no client library sends: guarded like every other, and never more than they should be."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock, patch

import orjson
import pytest
from standardwebhooks.webhooks import Webhook

from stub_server.certify import receiver as certifying
from stub_server.certify.receiver import Session
from stub_server.events.sender import Delivery, Failed, Sender

from ..support.receiver import receiving

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HERE, ELSEWHERE = Sender(local=True), Sender(local=False)
SAMPLE = {"id": "evt_1", "type": "order.paid"}
BODY = orjson.dumps(SAMPLE)


def to(url: str, sender: Sender) -> Session:
    """A session whose deliveries have a header of the merchant's own."""
    return Session(Mock(), Delivery(url, "", b"", (("x-loja", "matriz"),), (KEY,)), sender, Mock())


def together(url: str, sender: Sender = HERE) -> list[int | None]:
    """The answers to three copies."""
    return asyncio.run(to(url, sender).send_together(SAMPLE, 3))


def half(url: str, sender: Sender = HERE) -> None:
    """Half of a delivery."""
    asyncio.run(to(url, sender).send_half(SAMPLE))


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers every connection with the same bytes as soon as it may, and keeps what it was sent."""
    taken: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        data = b""
        with connection:
            while part := connection.recv(65_536):
                data += part
                if data.endswith(BODY):
                    connection.sendall(answer)
                    break
            taken.append(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook?a=1", taken
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_copies_are_whole_signed_and_alike() -> None:
    with receiving() as receiver:
        assert [200] * 3 == together(receiver.url)
    assert 3 == len(receiver.requests)
    for request in receiver.requests:
        assert ("/hook", BODY, "matriz") == (request.path, request.body, request.headers["x-loja"])
        assert Webhook(KEY).verify(request.body.decode(), request.headers)
    assert 1 == len({request.headers["webhook-signature"] for request in receiver.requests})


def test_half_a_delivery_is_half_of_its_body() -> None:
    with answering(b"") as (url, taken):
        half(url)
        deadline = time.monotonic() + 5
        while not taken and time.monotonic() < deadline:
            time.sleep(0.01)
    (sent,) = taken
    head, _, body = sent.partition(b"\r\n\r\n")
    assert BODY[: len(BODY) // 2] == body
    assert head.startswith(b"POST /hook?a=1 HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"content-length: %d\r\n" % len(BODY) in head


@pytest.mark.parametrize("send", [half, together])
def test_what_a_delivery_may_not_reach_these_do_not_reach_either(send: object) -> None:
    assert callable(send)
    with answering(b"") as (url, taken):
        for address in (url, "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/"):
            route = ELSEWHERE if address == url else HERE
            with pytest.raises(Failed, match="blocked"):
                send(address, route)
    assert [] == taken


@pytest.mark.parametrize("send", [half, together])
def test_why_nothing_could_be_sent_is_said(send: object) -> None:
    assert callable(send)
    for url, error in (("http://127.0.0.1:9/", "connection_refused"), ("http://nowhere.invalid/", "dns")):
        with pytest.raises(Failed, match=error):
            send(url)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.0 500\r\n\r\n", 500),
        (b"", None),
        (b"SSH-2.0-x\r\n", None),
        (b"HTTP/1.1 abc\r\n", None),
        (b"HTTP/1.1 2000 OK\r\n", None),
        (b"a" * 10_000, None),
    ],
)
def test_an_answer_is_its_status_or_none(answer: bytes, status: int | None) -> None:
    with answering(answer) as (url, _):
        assert [status] * 3 == together(url)


def test_who_does_not_answer_is_not_waited_for_for_ever() -> None:
    with receiving() as receiver:
        receiver.delay = 3.0
        begun = time.monotonic()
        with patch.object(certifying, "ANSWER_TIME", 0.5):
            assert [None] * 3 == together(receiver.url)
        assert time.monotonic() - begun < 2
