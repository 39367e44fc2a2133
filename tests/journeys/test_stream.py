"""What happens in a sandbox, as it happens: the stream, its readers, and that nobody
waits for them.
"""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import httpx2
import orjson
import pytest

from stub_server.operations.control import sandbox_stream
from stub_server.server import reply
from stub_server.testing import Sandbox

from ..conftest import Serve
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import created, done
from ..support.wire import connect
from .steps import refused

Message = tuple[str, str, Any]


class Reader:
    """One who follows a sandbox, over a socket of his own."""

    def __init__(self, live: Live, name: str, last: str | None = None) -> None:
        self._socket = connect(live.port)
        head = f"GET /s/{name}/_sandbox/stream HTTP/1.1\r\nHost: localhost\r\n"
        self._socket.sendall(
            (head + (f"Last-Event-ID: {last}\r\n" if last else "") + "\r\n").encode()
        )
        self._socket.settimeout(10)
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline() not in (b"\r\n", b""):
            pass
        self._text = b""
        if self.status == 200:
            assert b"retry: 1000\n\n" == self._chunk()

    def _chunk(self) -> bytes:
        """A piece of the body; none at the end of it."""
        size = int(self._file.readline() or b"0", 16)
        data = self._file.read(size)
        self._file.readline()
        return data

    def __iter__(self) -> Iterator[Message]:
        """Kind, id and data of each message, up to the end of the stream."""
        while chunk := self._chunk():
            self._text += chunk
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                fields = dict(
                    line.split(b": ", 1) for line in block.splitlines() if not line.startswith(b":")
                )
                if fields:
                    yield (
                        fields[b"event"].decode(),
                        fields[b"id"].decode(),
                        orjson.loads(fields[b"data"]),
                    )

    def until(self, kind: str) -> list[Message]:
        """The messages up to the next one of a kind."""
        found = []
        for message in self:
            found.append(message)
            if message[0] == kind:
                return found
        raise AssertionError(f"the stream ended without {kind}")

    def until_request(self, operation: str) -> list[Message]:
        """The messages up to the next request of an operation."""
        found = []
        for message in self:
            found.append(message)
            if message[0] == "request" and message[2]["operationId"] == operation:
                return found
        raise AssertionError(f"the stream ended without {operation}")

    def close(self) -> None:
        """Leave."""
        self._file.close()
        self._socket.close()


@contextmanager
def stalled(live: Live, name: str) -> Iterator[None]:
    """One who follows a sandbox and reads nothing."""
    followers = live.app.server.underway.followers
    before = len(followers)
    with socket.socket() as his:
        his.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        his.connect(("127.0.0.1", live.port))
        his.sendall(f"GET /s/{name}/_sandbox/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until = time.monotonic() + 10
        while len(followers) == before and time.monotonic() < until:
            time.sleep(0.01)
        yield


@pytest.fixture
def read(live: Live, sandbox: Sandbox) -> Iterator[Callable[..., Reader]]:
    """`read()`: a new reader of the sandbox; `read(last)` one that was there before."""
    with ExitStack() as stack:
        yield lambda last=None: stack.enter_context(closing(Reader(live, sandbox.name, last)))


def test_a_request_its_step_its_event_and_its_delivery_are_told(
    sandbox: Sandbox, read: Callable[..., Reader]
) -> None:
    created(
        sandbox.api.post(
            "/v2/webhooks", json={"url": "https://receiver.example/hooks", "events": ["customer.*"]}
        )
    )
    reader = read()
    customer = sandbox.customer()
    told = reader.until("request")
    assert ["step", "delivery"] == [kind for kind, _, _ in told[:2]]
    by_kind = {kind: data for kind, _, data in told}
    log = done(sandbox.api.get("/v2/webhooks/logs"))["logs"][0]
    assert {"resource": "customers", "id": customer["id"], "change": "created"} in told[0][2][
        "changes"
    ]
    assert ("customer.created", customer["id"]) == (
        by_kind["event"]["type"],
        by_kind["event"]["data"]["customer"]["id"],
    )
    assert (log["id"], log["event_id"]) == (told[1][2]["id"], by_kind["event"]["id"])
    assert ("createCustomer", 201) == (
        by_kind["request"]["operationId"],
        by_kind["request"]["status"],
    )
    assert done(sandbox.control.get("/requests", params={"operationId": "createCustomer"}))[
        "requests"
    ] == [by_kind["request"]]


def test_the_last_id_resumes_after_its_message(
    sandbox: Sandbox, read: Callable[..., Reader]
) -> None:
    """Nothing is lost, and nothing told twice."""
    reader = read()
    first = sandbox.customer()
    told = reader.until("request")
    reader.close()
    second = sandbox.customer()
    again = read(told[0][1])
    resumed = again.until("request") + again.until("request")
    rest = [data for kind, _, data in resumed if kind == "event"]
    assert [first["id"], second["id"]] == [event["data"]["customer"]["id"] for event in rest]
    assert ["createCustomer"] * 2 == [
        data["operationId"] for kind, _, data in resumed if kind == "request"
    ]
    (step,) = [data for kind, _, data in resumed if kind == "step"]
    assert told[0][2]["step"] + 1 == step["step"]


def test_a_stream_ends_when_the_server_stops() -> None:
    with running(FROZEN) as server:
        reader = Reader(server, "default")
        server.app.server.closing.set()
        assert [] == list(reader)
        reader.close()


@pytest.mark.promise("leaving-frees-the-place")
def test_only_so_many_read_at_once(serve: Serve) -> None:
    """`--max-streams` in all, and an eighth of them of one sandbox, so that no key takes the places
    of others.
    """
    server = serve(max_streams=16)
    for number in range(10):
        answer = httpx2.get(
            f"{server.url}/s/s{number}/_sandbox/credentials", timeout=30, verify=NO_TLS
        )
        assert 200 == answer.status_code
    with ExitStack() as stack:
        readers = [
            stack.enter_context(closing(Reader(server, f"s{number // 2}"))) for number in range(16)
        ]
        for sandbox, what in (("s0", "sandbox"), ("s9", "server")):
            with httpx2.stream(
                "GET", f"{server.url}/s/{sandbox}/_sandbox/stream", verify=NO_TLS
            ) as answer:
                assert 429 == answer.status_code
                answer.read()
                refused(answer, 429, "rate_limited")
                assert f"This {what} already has " in answer.json()["message"]
            assert "5" == answer.headers["Retry-After"]
        readers[0].close()
        until = time.monotonic() + 10
        while len(server.app.server.underway.followers) == 16 and time.monotonic() < until:
            time.sleep(0.05)
        assert 200 == stack.enter_context(closing(Reader(server, "s9"))).status


@pytest.mark.promise("stream-readers")
def test_so_many_read_at_once_whenever_they_begin_to_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind large answers of the same connection a stream begins late, and 60 of one sandbox were
    admitted before the first did.
    """
    begun = threading.Barrier(2)
    follow = sandbox_stream.Place.followed

    async def waiting(*arguments: Any) -> AsyncGenerator[bytes, None]:
        await asyncio.to_thread(begun.wait, 30)
        async for piece in follow(*arguments):
            yield piece

    monkeypatch.setattr(sandbox_stream.Place, "followed", waiting)
    live = serve(seed=68, scenario="empty", max_streams=8)
    address = f"{live.url}/_sandbox/stream"
    with ThreadPoolExecutor(2) as readers:
        read = [readers.submit(httpx2.get, address, verify=NO_TLS, timeout=60) for _ in range(2)]
        try:
            refused_late = next(as_completed(read, timeout=20)).result()
        finally:
            httpx2.post(f"{live.url}/_sandbox/reset", verify=NO_TLS)  # which ends the other
    assert (200, "") == (refused_late.status_code, refused_late.text)
    assert {"", "retry: 1000\n\n"} <= {each.result().text[:13] for each in read}


@pytest.mark.promise("stalled-reader-costs-nothing")
@pytest.mark.promise("stream-readers")
def test_a_reader_beside_a_stalled_one_misses_nothing(
    live: Live,
    sandbox: Sandbox,
    read: Callable[..., Reader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One takes nothing and is cut off; the other is told each request, step and event
    once and in order.
    """
    monkeypatch.setattr(reply, "PATIENCE", 0.5)
    followers = live.app.server.underway.followers
    others = set(followers)
    with stalled(live, sandbox.name), ThreadPoolExecutor(1) as beside:
        (his,) = followers - others
        reader = read()
        told = beside.submit(reader.until_request, "listPlans")
        metadata = {f"key_{number}": "v" * 400 for number in range(15)}
        customer = sandbox.customer()
        asked: list[str] = []
        until = time.monotonic() + 30
        while his in followers and time.monotonic() < until:
            body = {"metadata": metadata | {"number": str(len(asked))}}
            answer = sandbox.api.put(f"/v2/customers/{customer['id']}", json=body)
            assert 200 == answer.status_code
            asked.append(answer.headers["x-request-id"])
        assert his not in followers
        done(sandbox.api.get("/v2/plans"))
        found = told.result(30)
    by_kind = {
        kind: [data for name, _, data in found if name == kind]
        for kind in ("request", "step", "event")
    }
    assert asked == [
        row["id"] for row in by_kind["request"] if row["operationId"] == "updateCustomer"
    ]
    numbers = [step["step"] for step in by_kind["step"]]
    assert list(range(1, len(numbers) + 1)) == numbers
    assert ["customer.created"] + ["customer.updated"] * len(asked) == [
        event["type"] for event in by_kind["event"]
    ]
