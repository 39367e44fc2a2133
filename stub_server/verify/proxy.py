"""Stands between a client and a backend, passes everything on, and hands each exchange to somebody who looks at it.

What is sent is passed on as bytes, piece by piece in both directions at once: chunks with their extensions, trailers,
`100 Continue`, compressed bodies, names of headers in their case. Only `Host` is another, and what RFC 9110 calls
hop-by-hop fields is left out, but for `TE`, `Trailer` and `Transfer-Encoding`: the transfer is passed on as it is. An
ASGI server and an HTTP client would each read and write the transfer anew, without trailers, at ten times the cost.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from time import monotonic, perf_counter, time
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import orjson
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

from ..kernel.text import is_local
from .exchange import Answer, Exchange, Headers, Request

JUDGED = 2 * 1024 * 1024  # bytes of a body that is looked at
MOST_CONNECTIONS = 256
OWN = "/_proxy/"
"""The paths below it are the proxy's own."""
_HEAD = 64 * 1024  # bytes of the head of a message, and of a line of a chunk
_PIECE = 64 * 1024
_CONNECT = 10.0  # seconds
_RESTS = 2.0  # seconds for which a connection to the target is kept
_LINGERS = 1.0  # seconds in which a client may read an answer that came before its request was whole
_FAREWELL = 2.0  # seconds that requests have at the end
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"upgrade")
)
_KEPT = frozenset((b"te", b"trailer", b"transfer-encoding"))

_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}(?=[;\s])").match
_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))

Framing = int | Literal["chunked", "close"]
Raw = list[tuple[bytes, bytes]]


class Passed(NamedTuple):
    """An exchange that was passed on, bodies as they were transferred.

    `at` is its moment in seconds since 1970, `unread` why it cannot be judged. Of a body that is too long the beginning
    is here. Status 0 is no whole answer, whose body says why.
    """

    exchange: Exchange
    at: float
    unread: str | None = None


class Broken(Exception):
    """Who sends ended in the middle of a message, or sends what is no HTTP. Who receives and has left is an OSError."""


class Proxy:
    """One per target."""

    def __init__(
        self,
        target: str,
        passed: Callable[[Passed], None],
        own: Callable[[str, str], Awaitable[tuple[int, bytes]]],
    ) -> None:
        """`passed` takes each exchange; `own` answers requests below `OWN` from this machine, by path and query."""
        parts = urlsplit(target)
        self._host, self._base = str(parts.hostname), parts.path.rstrip("/").removesuffix("/v2")
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._netloc = parts.netloc.rpartition("@")[2].encode()
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._passed, self._own = passed, own
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; answers the port. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=_HEAD)
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def stop(self) -> None:
        """Listen no more. Requests under way have two seconds."""
        if self._server is not None:
            self._server.close()
        for task in self._idle:
            task.cancel()
        if self._connections:
            _, pending = await asyncio.wait([*self._connections], timeout=_FAREWELL)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        await asyncio.sleep(0)  # the transports that were closed take leave of the loop

    async def _connect(self) -> Side:
        """A connection to the target. Raises OSError."""
        try:
            async with asyncio.timeout(_CONNECT):
                return Side(*await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=_HEAD))
        except UnicodeError:
            raise OSError(f"{self._host[:80]} is no name of a host") from None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        client = Side(reader, writer)
        if len(self._connections) >= MOST_CONNECTIONS:
            client.close()
            return
        self._connections.add(task)
        try:
            await self._converse(client)
        except (Broken, OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            client.close()

    async def _converse(self, client: Side) -> None:
        """The requests of a connection, one after the other, over one connection to the target as long as it lasts."""
        target: Side | None = None
        try:
            while (asked := await self._next(client)) is not None:
                if asked.method == "CONNECT":
                    raise HttpParserError("a tunnel is not made here")
                if asked.target.startswith(OWN):
                    await self._tell(client, asked)
                    return
                passage = Passage(asked, client, self._base, self._netloc)
                try:
                    target = await passage.run(target, self._connect)
                finally:
                    if (done := passage.done()) is not None:
                        self._passed(done)
                if not passage.may_stay or self._server is None or not self._server.is_serving():
                    return
        except HttpParserError as error:
            await client.refuse(400, f"This is no HTTP request: {error}.")
        finally:
            if target is not None:
                target.close()

    async def _next(self, client: Side) -> Head | None:
        task = asyncio.current_task()
        assert task is not None
        self._idle.add(task)
        try:
            return await client.request()
        finally:
            self._idle.discard(task)

    async def _tell(self, client: Side, asked: Head) -> None:
        """Answer from this machine alone. A name of another machine would be a page that had itself called so."""
        address = client.writer.get_extra_info("peername")[0]
        host = asked.named(b"host").decode("latin-1")
        name = urlsplit(f"//{host}").hostname
        if not is_local(address) or not is_local(name) or asked.named(b"origin"):
            await client.refuse(403, "This page is for programs on this machine. Ask it by the address 127.0.0.1.")
            return
        path, _, query = asked.target.partition("?")
        status, body = await self._own(path, query)
        await client.answer(status, body)


class Head:
    """The head of a message."""

    def __init__(self, parser: type[HttpRequestParser] | type[HttpResponseParser], data: bytes) -> None:
        """Raises HttpParserError."""
        self.headers: Raw = []
        self.target, self.is_whole = "", False
        found = parser(self)
        with suppress(HttpParserUpgrade):  # another protocol is offered: the offer is not passed on
            found.feed_data(data)
        if not self.is_whole or found.get_http_version() not in ("1.0", "1.1"):
            raise HttpParserError("its head is not whole, or not of HTTP/1")
        self.first = data.partition(b"\r\n")[0]
        self.stays = found.should_keep_alive()
        self.is_old = found.get_http_version() == "1.0"
        self.method = found.get_method().decode("latin-1") if isinstance(found, HttpRequestParser) else ""
        self.status = found.get_status_code() if isinstance(found, HttpResponseParser) else 0

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self.is_whole = True

    def named(self, name: bytes) -> bytes:
        """The first value of a header, by its name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def passed_on(self) -> Raw:
        """The headers that are not of the connection."""
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
        """How the body ends, by the headers alone."""
        if b"chunked" in self.named(b"transfer-encoding").lower():
            return "chunked"
        length = self.named(b"content-length")
        return int(length) if length else "close" if self.status else 0

    def pairs(self) -> Headers:
        """The headers as text."""
        return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers)


class Body:
    """A body that passes: its beginning, and whether that is all."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        """A piece has passed."""
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
        """Whether another request can be sent: the other end closes it when it has rested for long."""
        is_over = self.reader.at_eof() or self.writer.is_closing()
        return not is_over and monotonic() - self.rested < _RESTS

    async def head(self) -> bytes:
        """The bytes of a head; none if nothing comes any more. Raises Broken."""
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except OSError as error:
            raise Broken(_words(error)) from None
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise Broken("the head of a message ends too early") from None
            return b""
        except asyncio.LimitOverrunError:
            raise Broken(f"the head of a message has more than {_HEAD:,} bytes") from None

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
                raise Broken("a body has a chunk without size")
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
            raise Broken(_words(error)) from None

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
        """Read on for a moment: hanging up on what was not read would take back what was answered."""
        with suppress(OSError):
            if self.writer.can_write_eof():
                self.writer.write_eof()
            async with asyncio.timeout(_LINGERS):
                while await self.reader.read(_PIECE):
                    pass

    def close(self) -> None:
        """Hang up. What was sent still goes."""
        self.writer.close()

    def abort(self) -> None:
        """Hang up at once, so that the other side sees that a message is not whole."""
        self.writer.transport.abort()


class Passage:
    """One request on its way to the target, and its answer on the way back."""

    _is_early = False  # the answer came before the request was whole
    may_stay = False
    """Whether both connections can have another request."""

    def __init__(self, asked: Head, client: Side, base: str, netloc: bytes) -> None:
        self._asked, self._client = asked, client
        self._base, self._netloc = base, netloc
        self._sent, self._said = Body(), Body()
        self._answer: Head | None = None
        self._failure = ""
        self._has_client = True
        self._at, self._began, self._took = time(), perf_counter(), 0.0

    async def run(self, kept: Side | None, connect: Callable[[], Awaitable[Side]]) -> Side | None:
        """Pass both on. `kept` is a connection to the target that may have ended. Answers one for the next request."""
        target = kept
        try:
            if target is not None and target.may_be_used:
                try:
                    return await self._pass(target)
                except Broken:
                    is_over = self._answer is not None or self._sent.size > 0
                    if is_over or self._asked.method not in _REPEATABLE or not self._has_client:
                        raise
            if target is not None:
                target.abort()
            target = await connect()
            return await self._pass(target)
        except (Broken, OSError) as error:
            if target is not None:
                target.abort()
            await self._fail(error)
            return None
        except asyncio.CancelledError:
            if target is not None:
                target.abort()
            raise
        finally:
            self._took = perf_counter() - self._began

    async def _pass(self, target: Side) -> Side:
        upload = asyncio.create_task(self._send(target))
        try:
            await self._pass_back(target, upload)
        finally:
            self._is_early = not upload.done()
            upload.cancel()
            with suppress(asyncio.CancelledError):
                await upload
        if self._is_early:
            await self._client.linger()
        target.rested = monotonic()
        return target

    async def _send(self, target: Side) -> None:
        """Send the request. If the client leaves, the target is left too; if the target does, it may have answered."""
        asked = self._asked
        method, _, rest = asked.first.partition(b" ")
        version = rest.rpartition(b" ")[2]
        where = asked.target
        if not where.startswith(("/", "*")):  # the absolute form, as proxies are asked
            parts = urlsplit(where)
            where = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = [(n, self._netloc if n.lower() == b"host" else v) for n, v in asked.passed_on()]
        line = b"%b %b %b" % (method, (self._base + where).encode("latin-1"), version)
        try:
            await target.send(_joined(line, headers))
            await self._client.pass_body(asked.framing, target, self._sent)
        except Broken:
            self._has_client = False
            target.abort()
        except OSError:
            return

    async def _pass_back(self, target: Side, upload: asyncio.Task[None]) -> None:
        while True:
            data = await target.head()
            if not data:
                raise Broken("it hung up")
            try:
                answer = Head(HttpResponseParser, data)
            except HttpParserError as error:
                raise Broken(f"it sends no HTTP, {error}") from None
            if answer.status >= 200:
                break
            await self._to_client(data)
        self._answer = answer
        headers = answer.passed_on()
        is_empty = self._asked.method == "HEAD" or answer.status in (204, 304)
        framing: Framing = 0 if is_empty else answer.framing
        ends = framing == "close" or not answer.stays or not self._asked.stays or self._asked.is_old
        # An answer that comes before the request is whole is the last one too.
        if ends or not (upload.done() or self._asked.framing == 0):
            ends = True
            headers.append((b"Connection", b"close"))
        await self._to_client(_joined(answer.first, headers))
        try:
            await target.pass_body(framing, self._client, self._said)
        except OSError:
            self._has_client = False
            raise
        self.may_stay = not ends

    async def _to_client(self, data: bytes) -> None:
        try:
            await self._client.send(data)
        except OSError:
            self._has_client = False
            raise

    async def _fail(self, error: Exception) -> None:
        """The target failed, or the client has left: say so to the one that is there."""
        if not self._has_client:
            return
        self._failure = _words(error)
        if self._answer is not None:  # whose rest does not come
            self._client.abort()
            return
        message = f"The target did not answer: {self._failure}. Is it running, and is the address right?"
        await self._client.refuse(502, message, "target_unreachable")
        if self._is_early:
            await self._client.linger()

    def done(self) -> Passed | None:
        """What there is to judge; None if the client has left."""
        asked, said, answer = self._asked, self._said, self._answer
        if not self._has_client:
            return None
        path, _, query = asked.target.partition("?")
        request = Request(asked.method, path, query, asked.pairs(), bytes(self._sent))
        if answer is None or self._failure:
            return Passed(Exchange(request, Answer(0, (), self._failure.encode(), self._took)), self._at)
        unread = (
            f"a body of more than {JUDGED // 1024 // 1024} MB" if max(said.size, self._sent.size) > JUDGED else None
        )
        return Passed(
            Exchange(request, Answer(answer.status, answer.pairs(), bytes(said), self._took)), self._at, unread
        )


def _joined(first: bytes, headers: Raw) -> bytes:
    return b"\r\n".join((first, *(b"%b: %b" % header for header in headers), b"", b""))


def _words(error: Exception) -> str:
    """Why a target has no answer, without an address of this process."""
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT:.0f} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(getattr(error, "strerror", None) or error)
