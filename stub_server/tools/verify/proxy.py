"""A proxy between a client and a backend that passes everything on, and hands each exchange to a callback.

Bytes are passed on unchanged, piece by piece in both directions at once: chunks with their extensions, trailers,
`100 Continue`, compressed bodies, the case of header names. Only `Host` is replaced, and the hop-by-hop fields of
RFC 9110 are removed, except `TE`, `Trailer` and `Transfer-Encoding`. An ASGI server and an HTTP client would decode
and encode each body again, without trailers, at ten times the cost.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from time import perf_counter, time
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson
from httptools import HttpParserError, HttpRequestParser

from ...core.text import is_local
from .exchange import Answer, Exchange, Headers, Request, base_of
from .http1 import HEAD, PIECE, Broken, Head, Raw, Side, Target, body_of, joined, reason_of

JUDGED = 2 * 1024 * 1024  # bytes of a body that are kept to be judged
MOST_CONNECTIONS = 256
OWN = "/_proxy/"
"""Paths below it are answered by the proxy itself."""
_FAREWELL = 2.0  # seconds that requests have to end
_LINGERS = 1.0  # seconds in which a client may read an answer that came before its request was whole
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"upgrade")
)
_KEPT = frozenset((b"te", b"trailer", b"transfer-encoding"))
_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))


class Passed(NamedTuple):
    """An exchange that was passed on, with its bodies as they were transferred, cut after `JUDGED` bytes.

    `at` is its moment in seconds since 1970, `unread` why it cannot be judged. With status 0 there was no whole answer,
    and the body says why.
    """

    exchange: Exchange
    at: float
    unread: str | None = None


class Proxy:
    """One per target."""

    def __init__(
        self,
        target: str,
        passed: Callable[[Passed], None],
        own: Callable[[str, str], Awaitable[tuple[int, bytes]]],
    ) -> None:
        """`passed` is called with each exchange; `own` answers requests below `OWN`, by path and query."""
        parts = urlsplit(target)
        self._base = base_of(parts.path)
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if tls else 80)
        self._new_target = partial(Target, str(parts.hostname), port, tls)
        self._netloc = parts.netloc.rpartition("@")[2].encode()
        self._passed, self._own = passed, own
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=HEAD)
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def stop(self) -> None:
        """Stop listening. Requests under way have two seconds."""
        if self._server is not None:
            self._server.close()
        for task in self._idle:
            task.cancel()
        if self._connections:
            _, pending = await asyncio.wait([*self._connections], timeout=_FAREWELL)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        await asyncio.sleep(0)  # lets the loop end the transports that were closed

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
        target = self._new_target()
        try:
            while (asked := await self._next(client)) is not None:
                if asked.method == "CONNECT":
                    raise HttpParserError("CONNECT is not supported")
                if asked.target.startswith(OWN):
                    await self._answer_own(client, asked)
                    return
                course = Course(asked, client, target, self._base, self._netloc)
                try:
                    await course.run()
                finally:
                    if (done := course.done()) is not None:
                        self._passed(done)
                if not course.may_stay or self._server is None or not self._server.is_serving():
                    return
        except HttpParserError as error:
            await _refuse(client, 400, f"This is not an HTTP request: {error}.")
        finally:
            target.close()

    async def _next(self, client: Side) -> Head | None:
        task = asyncio.current_task()
        assert task is not None
        self._idle.add(task)
        try:
            data = (await client.head()).lstrip(b"\r\n")
            return Head(HttpRequestParser, data) if data else None
        finally:
            self._idle.discard(task)

    async def _answer_own(self, client: Side, asked: Head) -> None:
        """Answer programs on this machine only. A foreign Host would be a web page whose name was rebound to it."""
        address = client.writer.get_extra_info("peername")[0]
        host = asked.named(b"host").decode("latin-1")
        name = urlsplit(f"//{host}").hostname
        if not is_local(address) or not is_local(name) or asked.named(b"origin"):
            await _refuse(client, 403, "Only programs on this machine may ask this. Use the address 127.0.0.1.")
            return
        path, _, query = asked.target.partition("?")
        status, body = await self._own(path, query)
        await _answer(client, status, body)


class Course:
    """One request to the target, and its answer on the way back."""

    _is_early = False  # whether the answer came before the whole request
    may_stay = False
    """Whether both connections can carry another request."""

    def __init__(self, asked: Head, client: Side, target: Target, base: str, netloc: bytes) -> None:
        self._asked, self._client, self._target = asked, client, target
        self._base, self._netloc = base, netloc
        self._sent, self._said, self._is_bodiless = Body(), Body(), asked.ends
        self._answer: Head | None = None
        self._failure = ""
        self._has_client = True
        self._at, self._began, self._took = time(), perf_counter(), 0.0

    async def run(self) -> None:
        """Pass both on, over a new connection where the one that was kept had ended."""
        try:
            while True:
                side = await self._target.connect()
                try:
                    await self._pass(side)
                    return
                except Broken:
                    if not side.is_used or not self._may_be_repeated():
                        raise
        except (Broken, OSError) as error:
            await self._fail(error)
        finally:
            self._took = perf_counter() - self._began

    def _may_be_repeated(self) -> bool:
        is_over = self._answer is not None or self._asked.is_begun
        return not is_over and self._asked.method in _REPEATABLE and self._has_client

    async def _pass(self, side: Side) -> None:
        """Send the request while the answer may already be read."""
        upload = asyncio.create_task(self._pass_on(side))
        try:
            await self._pass_back(side, upload)
        except BaseException:
            side.abort()
            raise
        finally:
            self._is_early = not upload.done()
            upload.cancel()
            await asyncio.wait((upload,))
        if self._is_early:
            await _linger(self._client)
        self._target.keep(side)

    async def _pass_on(self, side: Side) -> None:
        try:
            await side.send(self._head())
            async for piece in body_of(self._asked, self._client, self._sent.add):
                await side.send(piece)
        except Broken:
            self._has_client = False
            side.abort()
        except OSError:
            return  # it may have answered

    def _head(self) -> bytes:
        asked = self._asked
        method, _, rest = asked.first.partition(b" ")
        version = rest.rpartition(b" ")[2]
        where = asked.target
        if not where.startswith(("/", "*")):  # the absolute form, which clients send to proxies
            parts = urlsplit(where)
            where = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = [(n, self._netloc if n.lower() == b"host" else v) for n, v in _passed_on(asked)]
        return joined(b"%b %b %b" % (method, (self._base + where).encode("latin-1"), version), headers)

    async def _pass_back(self, side: Side, upload: asyncio.Task[None]) -> None:
        answer = self._answer = await side.answer(self._asked.method, self._to_client)
        headers = _passed_on(answer)
        ends = not answer.stays or not self._asked.stays or self._asked.is_old
        # After an answer that comes before the whole request, the connection cannot be used again.
        if ends or not (upload.done() or self._is_bodiless):
            ends = True
            headers.append((b"Connection", b"close"))
        await self._to_client(joined(answer.first, headers))
        async for data in body_of(answer, side, self._said.add):
            await self._to_client(data)
        self.may_stay = answer.stays and not ends

    async def _to_client(self, data: bytes) -> None:
        try:
            await self._client.send(data)
        except OSError:
            self._has_client = False
            raise

    async def _fail(self, error: Exception) -> None:
        """Tell the client that the target failed, unless the client has left."""
        if not self._has_client:
            return
        self._failure = reason_of(error)
        if self._answer is not None:  # its rest will not come
            self._client.abort()
            return
        message = f"The backend did not answer: {self._failure}. Is it running, and is the address right?"
        await _refuse(self._client, 502, message, "target_unreachable")
        if self._is_early:
            await _linger(self._client)

    def done(self) -> Passed | None:
        """The exchange; None if the client has left."""
        asked, said, answer = self._asked, self._said, self._answer
        if not self._has_client:
            return None
        path, _, query = asked.target.partition("?")
        request = Request(asked.method, path, query, _pairs(asked.headers), bytes(self._sent))
        if answer is None or self._failure:
            return Passed(Exchange(request, Answer(0, (), self._failure.encode(), self._took)), self._at)
        unread = (
            f"a body of more than {JUDGED // 1024 // 1024} MB" if max(said.size, self._sent.size) > JUDGED else None
        )
        return Passed(
            Exchange(request, Answer(answer.status, _pairs(answer.headers), bytes(said), self._took)), self._at, unread
        )


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


def _passed_on(head: Head) -> Raw:
    """The headers without those of the connection."""
    listed = {
        each.strip().lower()
        for key, value in head.headers
        if key.lower() == b"connection"
        for each in value.split(b",")
    }
    left_out = (_HOP_BY_HOP | listed) - _KEPT
    return [(name, value) for name, value in head.headers if name.lower() not in left_out]


def _pairs(headers: Raw) -> Headers:
    """Headers as text."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


async def _answer(client: Side, status: int, body: bytes) -> None:
    """Answer a request of the proxy's own, as the last one of the connection."""
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
    await client.send(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)


async def _refuse(client: Side, status: int, message: str, code: str = "malformed_request") -> None:
    """Answer with an error in the contract's shape."""
    body = {"error": True, "message": message, "code": code, "status": status, "request_id": "", "details": []}
    await _answer(client, status, orjson.dumps(body))


async def _linger(client: Side) -> None:
    """Read on for a moment: closing with unread data would reset the connection before the answer is read."""
    with suppress(OSError):
        if client.writer.can_write_eof():
            client.writer.write_eof()
        async with asyncio.timeout(_LINGERS):
            while await client.reader.read(PIECE):
                pass
