"""The other servers of a store: connections to them, and the signed header of the requests that are forwarded.

A request is written while its answer is read. A pool of httpcore's reads no answer before a request is written whole:
a rejected upload would be sent to its end, and `Expect: 100-continue` would have no effect.
"""

import asyncio
import hmac
from collections import defaultdict
from enum import Enum
from time import monotonic, time
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from starlette.types import Scope

CONNECT = 2.0  # seconds
KEPT, KEPT_FOR = 32, 30.0  # idle connections to a server, and seconds, fewer than the server leaves them open
PIECE = 65_536  # bytes of an answer that are read at a time
HOP = b"x-sandbox-hop"  # the last header of a forwarded request; in an answer to one it is one of the words below
VALID = 30  # seconds by which the clocks of two servers may differ


class Connection:
    """One connection, and the answer that is coming."""

    is_lost = False
    rested = 0.0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: "list[Connection]") -> None:
        """`idle` has the connections to the same server that no request uses."""
        self._reader, self._writer, self.idle = reader, writer, idle

    def begin(self, method: str) -> None:
        """Prepare for the answer to another request."""
        self._parser, self._is_head = HttpResponseParser(self), method == "HEAD"
        self.status, self.headers = 0, list[tuple[bytes, bytes]]()
        self._pieces, self.is_whole, self.stays = list[bytes](), False, False
        self.continues = asyncio.Event()

    def write(self, data: bytes) -> None:
        if not self.is_lost:
            self._writer.write(data)

    async def drain(self) -> None:
        """Wait until the other server has read enough of what was written."""
        try:
            await self._writer.drain()
        except OSError:
            self.abort()

    async def more(self) -> None:
        try:
            data = await self._reader.read(PIECE)
            if data:
                self._parser.feed_data(data)
            else:
                self.is_lost = True
        except (OSError, HttpParserError, HttpParserUpgrade):
            self.abort()

    def take(self) -> bytes:
        """What has been read of the body since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    @property
    def is_closed(self) -> bool:
        """Whether the other server has closed it while it was idle."""
        return self._writer.is_closing() or self._reader.at_eof()

    def abort(self) -> None:
        self.is_lost = True
        self._writer.transport.abort()

    # -- the parser's

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise HttpParserError("nothing was asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Store the status; after one below 200 the head of the answer follows."""
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = []
            self.continues.set()
            return
        self.status, self.stays = status, self._parser.should_keep_alive()
        self.is_whole = self._is_head  # the parser does not know the request

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = self.status != 0


class Word(Enum):
    """What a server answers to another one, and to no client."""

    ELSEWHERE = b"elsewhere"  # nothing was done: the server does not have the sandbox, or is about to stop
    DROPPED = b"dropped"  # a fault rule drops the client's connection without an answer


class Hops:
    """Requests from server to server of one store, which share the secret: connections, and the signed header."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, HOP, "sha256")
        self._idle: defaultdict[str, list[Connection]] = defaultdict(list)  # kept open for the next request
        self.said = {word: hmac.digest(self._key, word.value, "sha256").hex().encode() for word in Word}
        """The words as they are sent. They are secret: a fault rule may add any header to an answer."""
        self.words = {said: word for word, said in self.said.items()}

    async def connect(self, address: str) -> Connection:
        """A connection to `http://host:port`. Raises OSError."""
        idle = self._idle[address]
        while idle:
            connection = idle.pop()
            if monotonic() - connection.rested < KEPT_FOR and not connection.is_closed:
                return connection
            connection.abort()
        parts = urlsplit(address)
        async with asyncio.timeout(CONNECT):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
        return Connection(reader, writer, idle)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, if it can have one."""
        may_stay = connection.is_whole and connection.stays and not connection.is_lost
        if may_stay and len(connection.idle) < KEPT:
            connection.rested = monotonic()
            connection.idle.append(connection)
        else:
            connection.abort()

    def close(self) -> None:
        """Close the idle connections."""
        for idle in self._idle.values():
            while idle:
                idle.pop().abort()

    def header(self, scope: Scope) -> tuple[bytes, bytes]:
        """The header of a request that is forwarded: the time, its client, and the signature of both and the target."""
        host, port = scope.get("client") or ("-", 0)
        claim = b"%d %b %d" % (time(), host.encode(), port)
        return HOP, b"%b %b" % (claim, self._signature(scope, claim))

    def take(self, scope: Scope) -> tuple[str, int] | None:
        """Remove the header of another server from a request; returns the client's address and port.

        A header that is not the last one, or is forged or old, stays and is ignored here.
        """
        headers = scope["headers"]
        if not headers or headers[-1][0] != HOP:
            return None
        claim, _, signature = headers[-1][1].rpartition(b" ")
        if not hmac.compare_digest(self._signature(scope, claim), signature):
            return None
        at, host, port = claim.decode().split(" ")
        if abs(time() - int(at)) > VALID:
            return None
        scope["headers"] = headers[:-1]
        return host, int(port)

    def _signature(self, scope: Scope, claim: bytes) -> bytes:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        signed = (scope["method"].encode(), target_of(scope), host, claim)
        return hmac.digest(self._key, b"\n".join(signed), "sha256").hex().encode()


def target_of(scope: Scope) -> Any:
    """Path and query of a request as they were sent; a layer may have changed them in the scope."""
    query = scope["query_string"]
    return scope["raw_path"] + (b"?" + query if query else b"")
