"""HTTP/1.1 messages that are passed on: heads that are parsed, and bodies that are passed as they come."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

HEAD = 65_536  # bytes of the head of a message
PIECE = 65_536  # bytes of a body that are read at a time
Raw = list[tuple[bytes, bytes]]


class Broken(Exception):
    """The sender hung up within a message, or sent something else than HTTP. A receiver that left is an OSError."""


class Head:
    """The head of a message, and what the parser knows of its body."""

    def __init__(self, parser: type[HttpRequestParser] | type[HttpResponseParser], data: bytes) -> None:
        """Raises HttpParserError."""
        self.headers: Raw = []
        self.target, self.is_read, self.stays = "", False, False
        self.is_begun = self.ends = False  # whether some of its body has been read, and the whole message
        self._pieces: list[bytes] = []
        found = self._parser = parser(self)
        found.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)  # some servers pad it
        with suppress(HttpParserUpgrade):  # an offer of another protocol is not passed on
            found.feed_data(data)
        if not self.is_read or found.get_http_version() not in ("1.0", "1.1"):
            raise HttpParserError("its head is incomplete, or not HTTP/1")
        self.first = data.partition(b"\r\n")[0]
        self.is_old = found.get_http_version() == "1.0"
        self.method = found.get_method().decode("latin-1") if isinstance(found, HttpRequestParser) else ""
        self.status = found.get_status_code() if isinstance(found, HttpResponseParser) else 0
        length = self.named(b"content-length")
        is_chunked = b"chunked" in self.named(b"transfer-encoding").lower()
        self.left = int(length) if length and not is_chunked else None  # bytes of the body, if it says how many
        self.is_open = not (self.ends or length or is_chunked)  # whether the body ends with the connection

    # httptools calls these.

    def on_message_begin(self) -> None:
        if self.ends:
            raise HttpParserError("nothing was asked")

    def on_url(self, url: bytes) -> None:
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_read:  # else it is a trailer
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.is_read, self.stays = True, self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.ends = True

    def named(self, name: bytes) -> bytes:
        """The first value of a header, by its name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def body(self, data: bytes) -> bytes:
        """The part of the body in the bytes of the message that come next. Raises Broken."""
        self.is_begun = True
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if self.method or not self.ends:
                raise Broken(f"a body is not HTTP, {error}") from None
            self.stays = False  # an answer to no question came with it
        if self.left is not None:
            self.left -= len(data)
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class Side:
    """One connection: to the client, or to the server that a message is passed on to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """`reader` has the limit `HEAD`."""
        self.reader, self.writer = reader, writer
        self.rested = monotonic()

    def may_be_used(self, rests: float) -> bool:
        """Whether another request can be sent: the other end closes a connection that was idle for long."""
        is_over = self.reader.at_eof() or self.writer.is_closing()
        return not is_over and monotonic() - self.rested < rests

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

        Raises Broken.
        """
        try:
            # Of a client's bytes no more than are of this request: the next one may come behind it.
            data = await self.reader.read(min(head.left, PIECE) if head.left is not None and head.method else PIECE)
        except OSError as error:
            raise Broken(reason_of(error)) from None
        if head.left is not None and len(data) > head.left:
            data, head.stays = data[: head.left], False
        if not data and not head.is_open:
            where = "in the middle of its chunks" if head.left is None else f"{head.left:,} bytes too early"
            raise Broken(f"a body ends {where}")
        return data, head.body(data)

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


async def connected(host: str, port: int, within: float, tls: ssl.SSLContext | None = None) -> Side:
    """A connection within some seconds. Raises OSError."""
    try:
        async with asyncio.timeout(within):
            return Side(*await asyncio.open_connection(host, port, ssl=tls, limit=HEAD))
    except TimeoutError:
        raise OSError(f"no connection within {within:.0f} s") from None
    except UnicodeError:
        raise OSError(f"{host[:80]} is not a host name") from None


def joined(first: bytes, headers: Raw) -> bytes:
    return b"\r\n".join((first, *(b"%b: %b" % header for header in headers), b"", b""))


def reason_of(error: Exception) -> str:
    """Why there is no answer, without addresses of this machine."""
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(getattr(error, "strerror", None) or error)
