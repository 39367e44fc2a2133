"""Slow clients and too many of them: half a request has a deadline, and a full server
makes room.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import pytest

from stub_server.server.protocol import Limits

from ..support.live import FROZEN, Live, running, serving
from ..support.refusal import refused
from ..support.wire import Answer, Door, answer_on, connect, rest_of
from .conftest import door_to

pytestmark = pytest.mark.check

SOON = Limits(connections=8, head=0.3, body=0.3, keep_alive=0.6, unread=0.3, end=0.3)
"""Deadlines that a test waits for. None but these expire in a test, however slow the machine is."""
FEW = Limits(connections=4)
HEALTH = b"GET /_sandbox/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def hasty() -> Iterator[Live]:
    """A server with short deadlines."""
    with running(FROZEN, SOON) as server:
        yield server


@pytest.fixture(scope="module")
def small() -> Iterator[Live]:
    """A server with few connections, whose deadlines are those of the product."""
    with running(FROZEN, FEW) as server:
        yield server


def post(door: Door) -> bytes:
    """The headers of a request whose body is awaited, and half of the body."""
    lines = [
        f"POST {door.prefix}/v2/customers HTTP/1.1", "Host: localhost", f"Authorization: Bearer {door.token}",
        "Content-Type: application/json", "Content-Length: 20",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + b'\r\n\r\n{"name":'


# -- deadlines


@pytest.mark.parametrize(
    "sent", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half"]
)
@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first", "second"])
def test_half_a_head_is_408(hasty: Live, sent: bytes, before: bytes) -> None:
    with connect(hasty.port) as connection:
        if before:
            connection.sendall(before)
            assert answer_on(connection).status == 200
        connection.sendall(sent)
        body = refused(answer_on(connection), 408, "request_timeout")
        assert "head did not arrive within 0.3 seconds" in body["message"]
        assert rest_of(connection) == b""


@pytest.mark.promise("body")
def test_half_a_body_is_408_and_the_request_is_not_done(hasty: Live) -> None:
    door = door_to(hasty)
    total = door.ask("GET", "/v2/customers?limit=1").json()["pagination"]["total"]
    with connect(hasty.port) as connection:
        connection.sendall(post(door))
        body = refused(answer_on(connection), 408, "request_timeout")
        assert "body did not arrive within 0.3 seconds" in body["message"]
        assert rest_of(connection) == b""
    assert total == door.ask("GET", "/v2/customers?limit=1").json()["pagination"]["total"]


async def respond(send: Any, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """An answer of an ASGI application."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def lifespan(receive: Any, send: Any) -> None:
    """Start and stop."""
    for _ in range(2):
        message = await receive()
        await send({"type": message["type"] + ".complete"})


@pytest.mark.parametrize(("unread", "whole"), [(0.3, False), (30, True)])
@pytest.mark.parametrize("last", [b"keep-alive", b"close"])
def test_who_does_not_read_an_answer_in_time_does_not_get_all_of_it(
    unread: float, whole: bool, last: bytes
) -> None:
    """Its bytes would be kept for as long as the client likes.

    That nothing else comes after it is no hurry.
    """
    size = 64 * 1024 * 1024

    async def large(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await lifespan(receive, send)
        await respond(send, bytes(size), (b"connection", last))
        return None

    with serving(large, replace(SOON, unread=unread)) as port, connect(port) as connection:
        connection.sendall(HEALTH)
        # The server has looked at its connections often enough once it has given up silent ones,
        # one by one.
        for _ in range(3):
            with connect(port) as silent:
                assert rest_of(silent) == b""
        received = 0
        with suppress(ConnectionError):
            while received < size and (data := connection.recv(1_048_576)):
                received += len(data)
        assert whole == (received >= size)


# -- room


def ask(connection: socket.socket) -> Answer:
    """A request on a connection that stays open."""
    connection.sendall(HEALTH)
    return answer_on(connection)


@pytest.mark.promise("connections")
def test_the_one_that_is_idle_longest_makes_room(small: Live) -> None:
    """Counted from the last answer, not from the beginning."""
    with ExitStack() as stack:
        first, second, third, fourth = (stack.enter_context(connect(small.port)) for _ in range(4))
        for connection in (second, third, fourth, first):
            assert ask(connection).status == 200
        newcomer = stack.enter_context(connect(small.port))
        assert ask(newcomer).status == 200
        assert rest_of(second) == b""
        assert [200] * 3 == [ask(connection).status for connection in (first, third, fourth)]


def test_when_every_connection_is_being_answered_the_next_is_503() -> None:
    release = threading.Event()
    asked = threading.Semaphore(0)

    async def holding(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await lifespan(receive, send)
        asked.release()
        while not release.is_set():
            await asyncio.sleep(0.01)
        await respond(send, b"done")
        return None

    with serving(holding, Limits(connections=3)) as port, ExitStack() as stack:
        held = [stack.enter_context(connect(port)) for _ in range(3)]
        for connection in held:
            connection.sendall(HEALTH)
            assert asked.acquire(timeout=30)
        for _ in range(5):
            newcomer = stack.enter_context(connect(port))
            answer = answer_on(newcomer)
            refused(answer, 503, "too_many_connections")
            assert answer.header("retry-after") == "1"
        release.set()
        assert [b"done"] * 3 == [answer_on(connection).body for connection in held]
