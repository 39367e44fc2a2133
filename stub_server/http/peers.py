"""Connections to the other servers of a store. A request is written while its answer is read, each as it comes.

A pool of httpcore's reads no answer before a request is written whole: an upload that is refused would be sent to its
end, and `Expect: 100-continue` would ask nobody.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial
from time import monotonic
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

CONNECT = 2.0  # seconds
KEPT, KEPT_FOR = 32, 30.0  # idle connections to a server, and seconds, less than a server keeps them
UNREAD = 262_144  # bytes of an answer that wait for its reader


class Connection(asyncio.Protocol):
    """One connection, and the answer that is coming."""

    transport: asyncio.Transport
    is_lost = False
    rested = 0.0
    _parser: HttpResponseParser | None = None

    def __init__(self, idle: list[Connection]) -> None:
        """`idle` has those to the same server that no request uses."""
        self.idle = idle
        self.changed, self.continues, self._writable = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writable.set()

    def begin(self, method: str) -> None:
        """A request is about to be written."""
        self._parser, self._is_head = HttpResponseParser(self), method == "HEAD"
        self.status, self.headers = 0, list[tuple[bytes, bytes]]()
        self._pieces, self._unread, self.is_whole, self._stays = list[bytes](), 0, False, False
        self.changed.clear()
        self.continues.clear()

    def write(self, data: bytes) -> None:
        """Send a part of the request."""
        if not self.is_lost:
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the other side has read enough of what was written."""
        await self._writable.wait()

    def take(self) -> bytes:
        """What has come of the body since the last time."""
        pieces, self._pieces = self._pieces, []
        if self._unread > UNREAD and not self.is_lost:
            self.transport.resume_reading()
        self._unread = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def may_stay(self) -> bool:
        """Whether another request can be written, now that the answer is whole."""
        return self.is_whole and self._stays and not self.is_lost

    def abort(self) -> None:
        """Close it at once."""
        self.is_lost = True
        self.transport.abort()

    # -- asyncio's

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is there."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """It is no more."""
        self.is_lost = True
        if self in self.idle:
            self.idle.remove(self)
        self._writable.set()
        self.changed.set()

    def data_received(self, data: bytes) -> None:
        """Something has come of the answer."""
        try:
            if self._parser is None or self.is_whole:
                raise HttpParserError("nothing was asked")
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.abort()
        self.changed.set()

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._writable.set()

    # -- the parser's

    def on_message_begin(self) -> None:
        """An answer begins, which is to be the only one."""
        if self.is_whole:
            raise HttpParserError("nothing was asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; one of a status below 200 says that there is another one to come."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = []
            self.continues.set()
            return
        self.status, self._stays = status, self._parser.should_keep_alive()
        self.is_whole = self._is_head  # the parser knows nothing of the request

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(body)
        if self._unread <= UNREAD < self._unread + len(body):
            self.transport.pause_reading()
        self._unread += len(body)

    def on_message_complete(self) -> None:
        """That was all."""
        self.is_whole = self.status != 0


class Peers:
    """Connections to other servers, kept for the next request."""

    def __init__(self) -> None:
        self._idle: defaultdict[str, list[Connection]] = defaultdict(list)

    async def connect(self, address: str) -> Connection:
        """A connection to `http://host:port`. Raises OSError."""
        idle = self._idle[address]
        while idle:
            connection = idle.pop()
            if monotonic() - connection.rested < KEPT_FOR:
                return connection
            connection.abort()
        parts, loop = urlsplit(address), asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT):
            _, made = await loop.create_connection(partial(Connection, idle), str(parts.hostname), parts.port or 80)
        return made

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, if it can have one."""
        if connection.may_stay and len(connection.idle) < KEPT:
            connection.rested = monotonic()
            connection.idle.append(connection)
        else:
            connection.abort()

    def close(self) -> None:
        """Close those that are kept."""
        for idle in self._idle.values():
            for connection in [*idle]:
                connection.abort()
        self._idle.clear()
