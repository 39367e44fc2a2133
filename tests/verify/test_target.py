"""The backend over HTTP: it is waited for, no redirect is followed, and three requests without an
answer end a run.
"""

import asyncio
import socket
import threading
import time

import pytest

from stub_server.tools.verify.exchange import Answer, Request
from stub_server.tools.verify.options import Options
from stub_server.tools.verify.target import AT_ONCE, Target

from .bad import Speak, speaking
from .scripted import received

GET = Request("GET", "/v2/things", "a=1")


def say(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def sent(url: str, *requests: Request, proxy: str | None = None) -> list[Answer]:
    """The answers to requests that are sent at once."""

    async def send() -> list[Answer]:
        target = Target(Options(url, "", proxy=proxy), lambda _: None)
        try:
            return [*await asyncio.gather(*(target.send(request) for request in requests))]
        finally:
            await target.close()

    return asyncio.run(send())


def test_at_most_four_requests_are_under_way() -> None:
    lock, under_way, most = threading.Lock(), 0, 0

    def act(connection: socket.socket) -> None:
        nonlocal under_way, most
        while received(connection):
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.05)
            with lock:
                under_way -= 1
            say(connection)

    with speaking(act) as url:
        answers = sent(url, *([GET] * 12))
    assert {200} == {answer.status for answer in answers}
    assert all(answer.seconds >= 0.05 for answer in answers)
    assert AT_ONCE == most


def test_a_proxy_of_the_environment_is_used_unless_another_one_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []

    def noting(name: str) -> Speak:
        def act(connection: socket.socket) -> None:
            while line := received(connection):
                asked.append((name, line.split()[1].decode()))
                say(connection)

        return act

    backend = "http://backend.invalid"
    with speaking(noting("environment")) as usual, speaking(noting("given")) as other:
        monkeypatch.setenv("HTTP_PROXY", usual)
        monkeypatch.setenv("http_proxy", usual)
        assert [200] == [each.status for each in sent(backend, GET)]
        assert [200] == [each.status for each in sent(backend, GET, proxy=other)]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert [200] == [each.status for each in sent(other, GET)]
    where = f"{backend}/v2/things?a=1"
    assert [("environment", where), ("given", where), ("given", "/v2/things?a=1")] == asked
