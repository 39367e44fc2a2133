"""HTTP/1.1 that the proxy passes on: heads are parsed, bodies are passed as they come."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from time import monotonic

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

HEAD = 65_536  # bytes of the head of a message
PIECE = 65_536  # bytes of a body that are read at a time
CONNECT = 10.0  # seconds
RESTS = 2.0  # seconds for which an idle connection is kept
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

    async def may_be_used(self) -> bool:
        """Whether another request can be sent; if not, it is closed."""
        try:
            async with asyncio.timeout(0):
                await self.reader.read(1)  # its end, or an answer to no question
        except TimeoutError:
            if monotonic() - self.rested < RESTS:  # the other end closes a connection that is idle for long
                return True
        except OSError:
            pass
        self.abort()
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


class Target:
    """The server that requests are passed on to, and the connection that has carried one and may carry the next."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._kept: Side | None = None

    async def connect(self) -> Side:
        """A connection. Raises OSError."""
        side, self._kept = self._kept, None
        if side is not None and await side.may_be_used():
            return side
        try:
            async with asyncio.timeout(CONNECT):
                return Side(*await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=HEAD))
        except TimeoutError:
            raise OSError(f"no connection within {CONNECT:.0f} s") from None
        except UnicodeError:
            raise OSError(f"{self._host[:80]} is not a host name") from None

    def keep(self, side: Side) -> None:
        """Keep a connection whose answer has ended."""
        side.rested, side.is_used = monotonic(), True
        self._kept = side

    def close(self) -> None:
        if self._kept is not None:
            self._kept.abort()


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
