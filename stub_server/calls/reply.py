"""Builds response bodies: stored records are inserted as the JSON they are stored as, the rest is serialised."""

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from ..kernel.page import Page


class Reply:
    """A status, a body in parts, and headers.

    `shape` names the constant JSON around stored records. A shape is checked against the contract when it first occurs,
    and records when they are written. A body without a shape is checked every time.
    """

    __slots__ = ("headers", "media", "parts", "shape", "status")

    def __init__(
        self,
        status: int,
        parts: Sequence[bytes],
        shape: object = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        media: bytes = b"application/json",
    ) -> None:
        self.status, self.parts, self.shape, self.headers, self.media = status, parts, shape, headers, media

    def located(self, path: str) -> "Reply":
        """Add a Location header; returns the reply itself."""
        self.headers = (*self.headers, (b"location", path.encode()))
        return self


class Streamed(Reply):
    """A 200 whose body goes on: `chunks` are sent as they come. An async operation alone may answer with it."""

    __slots__ = ("chunks",)

    def __init__(
        self, chunks: AsyncIterator[bytes], media: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(200, (), None, ((b"cache-control", b"no-store"), *headers), media)
        self.chunks = chunks


@lru_cache(maxsize=512)
def _head(message: str, member: str) -> bytes:
    return orjson.dumps({"error": False, "message": message})[:-1] + b',"' + member.encode() + b'":'


@lru_cache(maxsize=512)
def _tail(message: str) -> bytes:
    return b',"message":' + orjson.dumps(message) + b"}"


def enveloped(message: str, member: str, record: bytes, status: int = 200) -> Reply:
    """`{error, message, <member>: record}`."""
    head = _head(message, member)
    return Reply(status, (head, record, b"}"), head)


def nested(message: str, member: str, record: bytes, status: int = 200) -> Reply:
    """`{error, data: {<member>: record}, message}`: the envelope of the Projects group."""
    tail = _tail(message)
    return Reply(status, (b'{"error":false,"data":{"', member.encode(), b'":', record, b"}", tail), tail)


def bare(record: bytes, status: int = 200) -> Reply:
    """The record itself, as in the Orders group."""
    return Reply(status, (record,), "bare")


def listed(message: str, member: str, records: Iterable[bytes], page: Page) -> Reply:
    """`{error, message, <member>: [...], pagination}`."""
    head = _head(message, member)
    rows = _separated(records)
    return Reply(200, (head, b"[", *rows, b'],"pagination":', page.json(), b"}"), head if rows else None)


def nested_list(message: str, member: str, records: Iterable[bytes], page: Page) -> Reply:
    """`{error, data: {<member>: [...], pagination}, message}`."""
    tail = _tail(message)
    rows = _separated(records)
    head = b'{"error":false,"data":{"' + member.encode() + b'":['
    return Reply(200, (head, *rows, b'],"pagination":', page.json(), b"}", tail), tail if rows else None)


def _separated(records: Iterable[bytes]) -> list[bytes]:
    """Records with commas between them, not joined: the journal keeps the parts, which the store has anyway."""
    rows = list(records)
    parts = [b","] * max(0, 2 * len(rows) - 1)
    parts[::2] = rows
    return parts


def value(body: Any, status: int = 200) -> Reply:
    """A body that is serialised for this response."""
    return Reply(status, (orjson.dumps(body),))


def members(body: dict[str, Any]) -> bytes:
    """The members of an object without its braces, to be joined with stored records."""
    return orjson.dumps(body)[1:-1]


def message(text: str, **members: Any) -> Reply:
    """`{error: false, message, ...members}`."""
    return value({"error": False, "message": text, **members})
