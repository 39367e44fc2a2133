"""The backend over HTTP: it is waited for, no redirect is followed, and three requests without an answer end a run."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stub_server.tools.verify.exchange import Answer, Exchange, Request
from stub_server.tools.verify.target import AT_ONCE, Target

Act = Callable[[BaseHTTPRequestHandler], None]
GET = Request("GET", "/v2/things", "a=1")


@contextmanager
def answering(act: Act) -> Iterator[str]:
    """A server whose every answer a test writes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            act(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(10)


def say(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"{}", **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def sent(
    url: str, *requests: Request, told: Callable[[Exchange], None] = lambda _: None, proxy: str | None = None
) -> list[Answer]:
    """The answers to requests that are sent at once."""

    async def send() -> list[Answer]:
        target = Target(url, (("X-Team", "qa"),), None, told, proxy)
        try:
            return [*await asyncio.gather(*(target.send(request) for request in requests))]
        finally:
            await target.close()

    return asyncio.run(send())


def test_path_query_and_headers_are_sent_and_the_exchange_is_told() -> None:
    seen, told = list[tuple[str, str | None]](), list[Exchange]()

    def act(handler: BaseHTTPRequestHandler) -> None:
        seen.append((handler.path, handler.headers["X-Team"]))
        say(handler, 200, b'{"ok": true}', X_Request_Id="r1")

    with answering(act) as url:
        (answer,) = sent(f"{url}/shop/v2/", GET, told=told.append)
    assert [("/shop/v2/things?a=1", "qa")] == seen
    assert (200, b'{"ok": true}', "r1") == (answer.status, answer.body, answer.header("x-request-id"))
    assert [Exchange(GET, answer)] == told


def test_at_most_four_requests_are_under_way() -> None:
    lock, under_way, most = threading.Lock(), 0, 0

    def act(handler: BaseHTTPRequestHandler) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        with lock:
            under_way -= 1
        say(handler, 200)

    with answering(act) as url:
        answers = sent(url, *([GET] * 12))
    assert {200} == {answer.status for answer in answers}
    assert all(answer.seconds >= 0.05 for answer in answers)
    assert AT_ONCE == most


def test_a_proxy_of_the_environment_is_used_unless_another_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def noting(name: str) -> Act:
        def act(handler: BaseHTTPRequestHandler) -> None:
            asked.append((name, handler.path))
            say(handler, 200)

        return act

    backend = "http://backend.invalid"
    with answering(noting("environment")) as usual, answering(noting("given")) as other:
        monkeypatch.setenv("HTTP_PROXY", usual)
        monkeypatch.setenv("http_proxy", usual)
        assert [200] == [each.status for each in sent(backend, GET)]
        assert [200] == [each.status for each in sent(backend, GET, proxy=other)]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert [200] == [each.status for each in sent(other, GET)]
    where = f"{backend}/v2/things?a=1"
    assert [("environment", where), ("given", where), ("given", "/v2/things?a=1")] == asked
