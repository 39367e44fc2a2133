"""HTTP/1.1 that is passed on, as a server of a store and the proxy of `verify` do it.

Heads are parsed, bodies are passed as they come, and a request is written while its answer is read. A pool of
httpcore's reads no answer before a request is written whole: a rejected upload would be sent to its end, and
`Expect: 100-continue` would have no effect. Begin with `Passage`.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import suppress
from time import monotonic

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

HEAD = 65_536  # bytes of the head of a message
PIECE = 65_536  # bytes of a body that are read at a time
KEPT = 32  # idle connections to a server
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}(?=[;\s])").match
Raw = list[tuple[bytes, bytes]]


class Broken(Exception):
    """The sender hung up within a message, or sent something else than HTTP. A receiver that left is an OSError."""


class Head:
    """The head of a message, and where its body ends.

    `left` is how many bytes are to come, of the whole body or of a chunk with its line end; None between chunks, and
    where the body ends with the connection. The parser reads the head alone: it knows neither the request of an answer
    nor that a body follows an offer of another protocol.
    """

    def __init__(self, parser: type[HttpRequestParser] | type[HttpResponseParser], data: bytes) -> None:
        """Raises HttpParserError."""
        self.headers: Raw = []
        self.target, self.is_read, self.stays = "", False, False
        self.is_begun = self.is_last = False  # whether its body is being read, and its last chunk was
        found = self._parser = parser(self)
        with suppress(HttpParserUpgrade):  # an offer of another protocol is not passed on
            found.feed_data(data)
        if not self.is_read or found.get_http_version() not in ("1.0", "1.1"):
            raise HttpParserError("its head is incomplete, or not HTTP/1")
        self.first = data.partition(b"\r\n")[0]
        self.is_old = found.get_http_version() == "1.0"
        self.method = found.get_method().decode("latin-1") if isinstance(found, HttpRequestParser) else ""
        self.status = found.get_status_code() if isinstance(found, HttpResponseParser) else 0
        codings = [value.lower() for name, value in self.headers if name.lower() == b"transfer-encoding"]
        self.is_chunked = any(b"chunked" in coding for coding in codings)
        length = b"" if self.is_chunked else self.named(b"content-length") or (b"0" if self.method else b"")
        self.left = int(length) if length else None
        self.ends = self.left == 0 or self.status in (204, 304)

    # httptools calls these.

    def on_url(self, url: bytes) -> None:
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.is_read, self.stays = True, self._parser.should_keep_alive()

    def named(self, name: bytes) -> bytes:
        """The first value of a header, by its name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), b"")


class Side:
    """One connection: to the client, or to the server that a message is passed on to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """`reader` has the limit `HEAD`."""
        self.reader, self.writer = reader, writer
        self.rested = monotonic()
        self.is_used = False  # whether it has carried a request

    async def may_be_used(self, rests: float) -> bool:
        """Whether another request can be sent: the other end closes a connection that was idle for long."""
        if self.writer.is_closing() or monotonic() - self.rested >= rests:
            return False
        try:
            async with asyncio.timeout(0):
                await self.reader.read(1)  # its end, or an answer to no question
        except TimeoutError:
            return True
        except OSError:
            pass
        return False

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

    async def answer(self, method: str, inform: Callable[[bytes], Awaitable[None]]) -> Head:
        """The head of an answer; `inform` is called with each one of a status below 200 before it. Raises Broken."""
        while data := await self.head():
            try:
                head = Head(HttpResponseParser, data)
            except HttpParserError as error:
                raise Broken(f"its answer is not HTTP, {error}") from None
            if head.status >= 200:
                head.ends = head.ends or method == "HEAD"  # the parser does not know the request
                return head
            await inform(data)
        raise Broken("it hung up")

    async def body(self, head: Head) -> tuple[bytes, bytes]:
        """The next bytes of a message that has not ended, and what they have of its body; both are empty at its end.

        It reads nothing of a message that follows. Raises Broken.
        """
        head.is_begun = True
        try:
            if head.is_chunked and head.left is None:
                return self._begun(head, await self.reader.readuntil(b"\r\n")), b""
            data = await self.reader.read(PIECE if head.left is None else min(head.left, PIECE))
        except OSError as error:
            raise Broken(reason_of(error)) from None
        except asyncio.IncompleteReadError:
            raise Broken("a body ends in the middle of its chunks") from None
        except asyncio.LimitOverrunError:
            raise Broken("a body has a line that is too long") from None
        if head.left is None:
            return data, data
        if not data:
            where = "in the middle of a chunk" if head.is_chunked else f"{head.left:,} bytes too early"
            raise Broken(f"a body ends {where}")
        content = data[: max(head.left - 2, 0)] if head.is_chunked else data
        head.left -= len(data)
        if not head.left and head.is_chunked:
            head.left = None
        head.ends = head.left == 0
        return data, content

    def _begun(self, head: Head, line: bytes) -> bytes:
        """A line of a chunked body: the size of the next chunk, a trailer, or the empty one at the end."""
        if head.is_last:
            head.ends = not line.strip()
            return line
        found = _SIZE(line)
        if found is None:
            raise Broken("a chunk of a body has no size")
        if size := int(found[0], 16):
            head.left = size + 2
        head.is_last = not size
        return line

    async def send(self, data: bytes) -> None:
        """Send, as fast as the other side reads. Raises OSError."""
        self.writer.write(data)
        await self.writer.drain()

    def close(self) -> None:
        """Hang up after all data was sent."""
        self.writer.close()

    def abort(self) -> None:
        """Hang up at once, so that the other side sees that the message is incomplete."""
        self.writer.transport.abort()


class Pool:
    """Connections to one server: those that have carried a request are kept for the next one."""

    def __init__(self, host: str, port: int, within: float, rests: float, tls: ssl.SSLContext | None = None) -> None:
        """In seconds: `within` is the time for a new connection, `rests` for how long an idle one is kept."""
        self._host, self._port, self._within, self._rests, self._tls = host, port, within, rests, tls
        self._idle: list[Side] = []

    async def connect(self) -> Side:
        """A connection. Raises OSError."""
        while self._idle:
            side = self._idle.pop()
            if await side.may_be_used(self._rests):
                return side
            side.abort()
        try:
            async with asyncio.timeout(self._within):
                return Side(*await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=HEAD))
        except TimeoutError:
            raise OSError(f"no connection within {self._within:.0f} s") from None
        except UnicodeError:
            raise OSError(f"{self._host[:80]} is not a host name") from None

    def keep(self, side: Side) -> None:
        """Keep a connection whose answer has ended."""
        if len(self._idle) >= KEPT:
            side.abort()
            return
        side.rested, side.is_used = monotonic(), True
        self._idle.append(side)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().abort()


class Passage:
    """A request on its way to a server, while its answer may already be read."""

    answer: Head | None = None
    is_sent = False  # whether the request has been sent whole
    is_lost = False  # whether this end has given the connection up
    has_left = False  # whether the client has left

    def __init__(self, side: Side, head: bytes, pieces: AsyncIterable[bytes]) -> None:
        """Begin to send. `pieces` are those of the body as they come; they raise Broken when the client leaves."""
        self.side = side
        self.upload = asyncio.create_task(self._send(head, pieces))

    async def _send(self, head: bytes, pieces: AsyncIterable[bytes]) -> None:
        try:
            await self.side.send(head)
            async for piece in pieces:
                await self.side.send(piece)
            self.is_sent = True
        except Broken:
            self.has_left = True
            self.lose()
        except OSError:
            return  # it may have answered

    def lose(self) -> None:
        """Give the connection up, so that the other end sees it."""
        self.is_lost = True
        self.side.abort()

    async def stop(self) -> None:
        """Send no more of the request."""
        self.upload.cancel()
        with suppress(asyncio.CancelledError):
            await self.upload


async def body_of(head: Head, side: Side, keep: Callable[[bytes], None]) -> AsyncGenerator[bytes]:
    """A body as it comes. `keep` is called with what each piece has of it. Raises Broken."""
    while not head.ends:
        data, content = await side.body(head)
        if not data:  # the end of the connection ends it
            return
        keep(content)
        yield data


def joined(first: bytes, headers: Raw) -> bytes:
    return b"\r\n".join((first, *(b"%b: %b" % header for header in headers), b"", b""))


def reason_of(error: Exception) -> str:
    """Why there is no answer, without addresses of this machine."""
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(getattr(error, "strerror", None) or error)
