"""A response as it leaves: the same bytes as uvicorn's own, in one write where the body follows the head at once."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from stub_server.http.protocol import Response

Headers = list[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")
DATE = (b"date", b"Fri, 20 Nov 2026 14:32:05 GMT")


class Connection(asyncio.Transport):
    """Takes down what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """One write."""
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Also one."""
        self.writes.append(b"".join(list_of_data))

    def close(self) -> None:
        """End it."""
        self.is_closed = True

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self.is_closed


def start(headers: Headers, status: int = 200) -> dict[str, Any]:
    """The first message of a response."""
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    """One of those that follow."""
    return {"type": "http.response.body", "body": data, "more_body": more}


def is_whole(messages: list[Any]) -> bool:
    """Whether they are a head and all of its body."""
    return [message["type"].rpartition(".")[2] for message in messages] == ["start", "body"] and not messages[1].get(
        "more_body"
    )


def parts_of(messages: list[Any]) -> tuple[int, Headers, bytes]:
    """Status, headers and body."""
    return messages[0]["status"], messages[0]["headers"], messages[1]["body"]


def sent(kind: type[RequestResponseCycle], messages: list[Any], *, method: str, keep_alive: bool) -> tuple[Any, ...]:
    """What is written, in how many writes, and how it ends."""

    async def send() -> tuple[Any, ...]:
        connection, ended = Connection(), []
        logger = logging.getLogger("nobody")
        scope: Any = {"type": "http", "method": method}
        cycle = kind(
            scope, connection, FlowControl(connection), logger, logger, False, [DATE], asyncio.Event(), False,
            keep_alive, lambda: ended.append(True),
        )  # fmt: skip
        error = ""
        try:
            first, rest = messages[:2], messages[2:]
            if not (isinstance(cycle, Response) and is_whole(first) and cycle.send_whole(*parts_of(first)) is not None):
                rest = messages
            for message in rest:
                await cycle.send(message)
        except RuntimeError as refused:
            error = str(refused)
        state = cycle.response_complete, cycle.message_event.is_set(), connection.is_closed, len(ended), error
        return b"".join(connection.writes), state, len(connection.writes)

    return asyncio.run(send())


def of_length(length: int, *more: tuple[bytes, bytes]) -> Headers:
    """Headers of a response with a body of so many bytes."""
    return [JSON, (b"content-length", b"%d" % length), *more]


CASES: dict[str, tuple[list[Any], int | None]] = {
    "whole": ([start(of_length(2)), body(b"{}")], 1),
    "of nothing": ([start(of_length(0)), body(b"")], 1),
    "refused": ([start(of_length(2, (b"retry-after", b"7")), 429), body(b"{}")], 1),
    "large": ([start(of_length(200_000)), body(b"x" * 200_000)], 1),
    "a tab in a value": ([start(of_length(2, (b"x-note", b"a\tb"))), body(b"{}")], 1),
    "in pieces of known length": ([start(of_length(4)), body(b"ab", more=True), body(b"cd")], None),
    "in chunks": ([start([JSON]), body(b"ab", more=True), body(b"", more=True), body(b"cd")], None),
    "without a body": ([start([], 204), body(b"")], None),
    "too short": ([start(of_length(3)), body(b"{}")], None),
    "too long": ([start(of_length(1)), body(b"{}")], None),
    "two lengths": ([start(of_length(2, (b"content-length", b"2"))), body(b"{}")], None),
    "the last one": ([start(of_length(2, (b"connection", b"close"))), body(b"{}")], None),
    "chunked by a header": ([start(of_length(2, (b"transfer-encoding", b"chunked"))), body(b"{}")], None),
    "capitals": ([start([(b"Content-Length", b"2")]), body(b"{}")], None),
    "a line break in a value": ([start(of_length(2, (b"x-note", b"a\r\nset-cookie: b"))), body(b"{}")], None),
    "percent signs": ([start(of_length(2, (b"x-100%", b"%s %b 100%"))), body(b"{}")], 1),
    "no headers": ([start([]), body(b"{}")], None),
    "a NUL in a value": ([start(of_length(2, (b"x-note", b"a\x00b"))), body(b"{}")], None),
    "a space in a name": ([start(of_length(2, (b"x note", b"a"))), body(b"{}")], None),
    "begun twice": ([start(of_length(2)), start(of_length(2))], None),
    "a body alone": ([body(b"{}")], None),
    "more than there is": ([start(of_length(2)), body(b"{}"), body(b"{}")], None),
}


@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("case", CASES)
def test_the_bytes_are_those_of_uvicorn(case: str, method: str, keep_alive: bool) -> None:
    """Refusals too, with what was written before."""
    messages, writes = CASES[case]
    theirs = sent(RequestResponseCycle, messages, method=method, keep_alive=keep_alive)
    ours = sent(Response, messages, method=method, keep_alive=keep_alive)
    assert theirs[:2] == ours[:2]
    if writes is not None and method == "GET" and keep_alive:
        assert (2, writes) == (theirs[2], ours[2])
