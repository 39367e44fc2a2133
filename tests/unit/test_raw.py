"""Deliveries that no client library sends: guarded like every other, and never more than they
should be.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import orjson
import pytest

from stub_server.domain.deliveries import Delivery, Failed
from stub_server.webhooks.receiver import Session
from stub_server.webhooks.sender import Sender

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
    """A server that answers every connection with the same bytes as soon as it may, and keeps what
    it was sent.
    """
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


@pytest.mark.parametrize("send", [half, together])
def test_what_a_delivery_may_not_reach_these_do_not_reach_either(send: object) -> None:
    assert callable(send)
    with answering(b"") as (url, taken):
        for address in (url, "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/"):
            route = ELSEWHERE if address == url else HERE
            with pytest.raises(Failed, match="blocked"):
                send(address, route)
    assert [] == taken
