"""HTTP/1.1 as the proxy passes it on: heads that are parsed, and bodies that are only measured."""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import suppress
from http import HTTPStatus
from time import monotonic
from typing import Literal

import orjson
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

from .exchange import Headers

JUDGED = 2 * 1024 * 1024  # bytes of a body that are kept to be judged
HEAD = 64 * 1024  # bytes of the head of a message, and of a line of a chunk
CONNECT = 10.0  # seconds
_PIECE = 64 * 1024
_RESTS = 2.0  # seconds for which a connection to the target is kept
_LINGERS = 1.0  # seconds in which a client may read an answer that came before its request was whole
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"upgrade")
)
_KEPT = frozenset((b"te", b"trailer", b"transfer-encoding"))
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}(?=[;\s])").match

Framing = int | Literal["chunked", "close"]
Raw = list[tuple[bytes, bytes]]


class Broken(Exception):
    """The sender hung up within a message, or sent something else than HTTP. A receiver that left is an OSError."""


class Head:
    """The head of a message."""

    def __init__(self, parser: type[HttpRequestParser] | type[HttpResponseParser], data: bytes) -> None:
        """Raises HttpParserError."""
        self.headers: Raw = []
        self.target, self.is_whole = "", False
        found = parser(self)
        with suppress(HttpParserUpgrade):  # an offer of another protocol is not passed on
            found.feed_data(data)
        if not self.is_whole or found.get_http_version() not in ("1.0", "1.1"):
            raise HttpParserError("its head is incomplete, or not HTTP/1")
        self.first = data.partition(b"\r\n")[0]
        self.stays = found.should_keep_alive()
        self.is_old = found.get_http_version() == "1.0"
        self.method = found.get_method().decode("latin-1") if isinstance(found, HttpRequestParser) else ""
        self.status = found.get_status_code() if isinstance(found, HttpResponseParser) else 0

    # httptools calls these.

    def on_url(self, url: bytes) -> None:
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.is_whole = True

    def named(self, name: bytes) -> bytes:
        """The first value of a header, by its name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def passed_on(self) -> Raw:
        """The headers without those of the connection."""
        listed = {
            each.strip().lower()
            for key, value in self.headers
            if key.lower() == b"connection"
            for each in value.split(b",")
        }
        left_out = (_HOP_BY_HOP | listed) - _KEPT
        return [(name, value) for name, value in self.headers if name.lower() not in left_out]

    @property
    def framing(self) -> Framing:
        """How the body ends, by its headers."""
        if b"chunked" in self.named(b"transfer-encoding").lower():
            return "chunked"
        length = self.named(b"content-length")
        return int(length) if length else "close" if self.status else 0

    def pairs(self) -> Headers:
        """The headers as text."""
        return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers)


class Body:
    """A body that passes: its beginning, and its size."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Count a piece, and keep it while there is room."""
        if self.size <= JUDGED:
            self.pieces.append(piece[: JUDGED - self.size])
        self.size += len(piece)

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


class Side:
    """One connection: to the client, or to the target."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.rested = monotonic()

    @property
    def may_be_used(self) -> bool:
        """Whether another request can be sent: the other end closes a connection that was idle for long."""
        is_over = self.reader.at_eof() or self.writer.is_closing()
        return not is_over and monotonic() - self.rested < _RESTS

    async def head(self) -> bytes:
        """The bytes of a head; empty at the end of the connection. Raises Broken."""
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except OSError as error:
            raise Broken(reason_of(error)) from None
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise Broken("the head of a message ends too early") from None
            return b""
        except asyncio.LimitOverrunError:
            raise Broken(f"the head of a message has more than {HEAD:,} bytes") from None

    async def request(self) -> Head | None:
        """The head of the next request; None if there is none. Raises HttpParserError, Broken, OSError."""
        data = (await self.head()).lstrip(b"\r\n")
        return Head(HttpRequestParser, data) if data else None

    async def send(self, data: bytes) -> None:
        """Send, as fast as the other side reads. Raises OSError."""
        self.writer.write(data)
        await self.writer.drain()

    async def pass_body(self, framing: Framing, sink: Side, body: Body) -> None:
        """Pass a body on as it comes. Raises Broken for this side, OSError for the sink."""
        if framing == "chunked":
            await self._pass_chunks(sink, body)
        elif framing == "close":
            while piece := await self._read(_PIECE):
                body.add(piece)
                await sink.send(piece)
        else:
            await self._pass_bytes(framing, sink, body)

    async def _pass_bytes(self, left: int, sink: Side, body: Body) -> None:
        while left > 0:
            piece = await self._read(min(left, _PIECE))
            if not piece:
                raise Broken(f"a body ends {left:,} bytes too early")
            left -= len(piece)
            body.add(piece)
            await sink.send(piece)

    async def _pass_chunks(self, sink: Side, body: Body) -> None:
        while True:
            line = await self._line()
            found = _SIZE(line)
            if found is None:
                raise Broken("a chunk of a body has no size")
            size = int(found[0], 16)
            if size == 0:
                break
            if size <= _PIECE:
                chunk = await self._exactly(size + 2)
                body.add(chunk[:-2])
                await sink.send(line + chunk)
            else:
                await sink.send(line)
                await self._pass_bytes(size, sink, body)
                await sink.send(await self._exactly(2))
        while line.strip():  # the last chunk, trailers, and an empty line
            sink.writer.write(line)
            line = await self._line()
        await sink.send(line)

    async def _read(self, most: int) -> bytes:
        try:
            return await self.reader.read(most)
        except OSError as error:
            raise Broken(reason_of(error)) from None

    async def _exactly(self, size: int) -> bytes:
        try:
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            raise Broken("a body ends in the middle of a chunk") from None

    async def _line(self) -> bytes:
        try:
            return await self.reader.readuntil(b"\r\n")
        except (asyncio.IncompleteReadError, OSError):
            raise Broken("a body ends in the middle of its chunks") from None
        except asyncio.LimitOverrunError:
            raise Broken("a body has a line that is too long") from None

    async def answer(self, status: int, body: bytes) -> None:
        """Answer a request of the proxy's own, as the last one of the connection."""
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        await self.send(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)

    async def refuse(self, status: int, message: str, code: str = "malformed_request") -> None:
        """Answer with an error in the contract's shape."""
        body = {"error": True, "message": message, "code": code, "status": status, "request_id": "", "details": []}
        await self.answer(status, orjson.dumps(body))

    async def linger(self) -> None:
        """Read on for a moment: closing with unread data would reset the connection before the answer is read."""
        with suppress(OSError):
            if self.writer.can_write_eof():
                self.writer.write_eof()
            async with asyncio.timeout(_LINGERS):
                while await self.reader.read(_PIECE):
                    pass

    def close(self) -> None:
        """Hang up after all data was sent."""
        self.writer.close()

    def abort(self) -> None:
        """Hang up at once, so that the other side sees that the message is incomplete."""
        self.writer.transport.abort()


def joined(first: bytes, headers: Raw) -> bytes:
    return b"\r\n".join((first, *(b"%b: %b" % header for header in headers), b"", b""))


def reason_of(error: Exception) -> str:
    """Why there is no answer, without addresses of this machine."""
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT:.0f} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(getattr(error, "strerror", None) or error)
