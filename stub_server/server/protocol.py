"""uvicorn's HTTP protocol with bounds: a connection, what it waits for and how it ends, and the
monitor of all connections.

uvicorn takes a class by its setting `http`. This one overrides methods of `asyncio.Protocol` and
callbacks of httptools, calls `super()`, and uses nothing else of uvicorn's class. It gives the
parser a head in one piece, and the next request once the one before it is answered: so a head can
be measured and changed before it is parsed, and it is known what a connection waits for. The
monitor checks that once a second, instead of by a timer per request.
"""

import asyncio
import re
import secrets
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from math import inf
from time import monotonic
from typing import Any, ClassVar, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..core.problem import Refusal
from ..engine.kept import Trace
from .reply import CONNECTION, Connection, Written, left, render

LARGEST_HEAD = 65_536
"""The most bytes of a head, and between two pieces of a chunked body (extensions, trailers)."""
# bytes from a refused client that are read and dropped, so that it receives the response
_MOST_DROPPED = 1_048_576
_END = b"\r\n\r\n"
_OFFER = re.compile(rb"\nupgrade:", re.IGNORECASE)
_HIDDEN = b"upgrad~"
# what comes next on a connection: a head, which is collected until it is whole; the head that the
# parser is given; a body; bytes that are dropped, as the connection is closed after the answer
NOTHING, HEAD, BODY, OVER = range(4)
_IDLE, _SLOW = ("head", "keep_alive", "end"), ("body", "unread")
"""What connections wait for that have no request which goes on, and whose clients are slow."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for clients. Times are seconds, exact to two sweeps, of a second or less each.

    A connection waits for a head, a body, a further request, a client that does not read its
    answer, and one that is to close after a refusal. It may wait for the application for ever,
    because of delays and streams.
    """

    connections: int = 512
    head: float = 10
    body: float = 30
    keep_alive: float = 60
    unread: float = 30
    end: float = 2

    @property
    def sweep(self) -> float:
        """The seconds between two sweeps."""
        return min(4.0, self.head, self.body, self.keep_alive, self.unread, self.end) / 4


class HttpProtocol(Connection, HttpToolsProtocol):
    """What arrives on one connection."""

    monitor: ClassVar["ConnectionMonitor"]

    rested = 0.0  # when it was opened or its last request was answered: monotonic seconds
    part = NOTHING
    begun = 0  # requests
    is_answering = False
    is_refused = False
    has_begun_answer = False
    unread = b""  # bytes that the parser has not been given
    expects = False  # whether the client waits for "100 Continue" before it sends the body
    _body_left = 0  # bytes of a body with Content-Length; 0 for a chunked one
    _framing = 0  # bytes of a chunked body since its last piece
    _dropped = 0
    _state: dict[str, Any]  # what the scope of each request has from the server

    def __init__(self, *, app_state: dict[str, Any], **given: Any) -> None:
        self._state = {**app_state, CONNECTION: self}
        super().__init__(app_state=self._state, **given)  # which copies it into each scope

    # -- what a connection does

    def refuse(self, refusal: Refusal) -> None:
        """Answer what never became a whole request, and wait for the client to close."""
        self.is_refused, self.part = True, OVER
        trace = Trace("req_" + secrets.token_hex(12), 0, "", "", b"")
        answer = render(refusal, trace)
        answer.headers += [
            (b"date", formatdate(usegmt=True).encode()),
            (b"x-request-id", trace.id.encode()),
            (b"connection", b"close"),
        ]
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}".encode()]
        lines += [b"%b: %b" % header for header in answer.headers]
        self.link.write(b"\r\n".join([*lines, b"", answer.body]))
        self.link.write_eof()

    # -- for the application

    def receiver(self, receive: Receive) -> Receive:
        """How the application receives a body that is still to come: if it is refused, as if the
        client had left.
        """

        async def receive_unless_refused() -> Message:
            message = await receive()
            if self.is_refused:
                return {"type": "http.disconnect"}
            return message

        return receive_unless_refused

    def sender(self, send: Send) -> Send:
        """How it answers such a request, or the last one: what comes after it may or may
        not be a request.
        """
        self.has_begun_answer = False

        async def send_unless_refused(message: Message) -> None:
            if self.is_refused:
                return
            if message["type"] == "http.response.start":
                self.has_begun_answer = True
                if self.part is OVER or (self.part is BODY and self.expects):
                    message = {
                        **message,
                        "headers": [*message["headers"], (b"connection", b"close")],
                    }
            await send(message)

        return send_unless_refused

    def answered(self) -> None:
        """Go on with the next request."""
        self.is_answering, self.rested = False, monotonic()
        if self.part is OVER:
            self.link.close()
        elif self.unread and not self.link.is_closing():
            self.link.resume_reading()
            self.read_on()

    # -- for the monitor

    def waits_for(self) -> tuple[str, int]:
        """What it waits for, as `Limits` has it, and a number that changes whenever it makes
        progress.
        """
        if unsent := self.link.get_write_buffer_size():
            return "unread", unsent
        if self.is_refused:
            return "end", self.begun
        # not while the application is slow to read it
        if self.part is BODY and self.link.is_reading():
            return "body", self.begun
        if self.is_answering:
            return "answer", self.begun
        if self.begun and not self.unread:
            return "keep_alive", self.begun
        return "head", -bool(self.unread)

    def give_up(self, wait: str) -> None:
        """Refuse the request that has begun, with 408, or close."""
        is_late_body = wait == "body" and self.is_answering and not self.has_begun_answer
        if is_late_body:
            self.on_message_complete()
        if is_late_body or (wait == "head" and self.unread):
            limit = getattr(self.monitor.limits, wait)
            self.refuse(
                Refusal(
                    f"The rest of the request's {wait} did not arrive within {limit:g} seconds.",
                    status=408,
                    code="request_timeout",
                )
            )
        elif wait in ("head", "keep_alive", "body"):
            self.link.close()
        else:
            self.link.abort()

    # -- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.link, self.rested = transport, monotonic()
        self.written = Written(transport)
        super().connection_made(cast(asyncio.Transport, self.written))
        self.monitor.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.part, self.unread = OVER, b""
        self._state.clear()
        self.monitor.closed(self)
        # of one that was reset uvicorn would keep a timer, and with it all of this, for an hour
        super().connection_lost(None)

    def data_received(self, data: bytes) -> None:
        begin = max(0, len(self.unread) - len(_END))
        self.unread += data
        self.read_on(begin)

    def read_on(self, begin: int = 0) -> None:
        """Give the parser what it may read now. What comes before `begin` has no end of a head."""
        while self.unread:
            if self.part is OVER:
                self._drop()
            elif self.part is BODY:
                self._feed_body()
            elif self.is_answering:
                self.link.pause_reading()
                return
            elif not self._feed_head(begin):
                return
            begin = 0

    def _feed_head(self, begin: int) -> bool:
        """Whether there is one, or what cannot become one."""
        unread = self.unread = self.unread.lstrip(b"\r\n")
        end = unread.find(_END, begin)
        size = len(unread) if end < 0 else end + len(_END)
        if size > LARGEST_HEAD:
            self.refuse(
                Refusal(
                    f"Target and headers are larger than {LARGEST_HEAD} bytes, the most that is"
                    " read.",
                    status=431,
                    code="headers_too_large",
                )
            )
            return True
        if end < 0 and (not unread or unread[:1].isalpha()):
            return False
        self.part, self.unread = HEAD, unread[size:]
        head = unread[:size]
        # the parser would leave the body to the protocol that is offered
        if b"\nupgrade:" in head.lower():
            head = _OFFER.sub(b"\n" + _HIDDEN + b":", head)
        self._feed(head)
        if unread.startswith(b"CONNECT "):  # here too, and it has no name to hide
            self.part = OVER
        return True

    def _feed_body(self) -> None:
        if self._body_left:
            piece = self.unread[: self._body_left]
            self._body_left -= len(piece)
        else:
            piece = self.unread
            self._framing += len(piece)
        self.unread = self.unread[len(piece) :]
        self._feed(piece)
        if self._framing > LARGEST_HEAD:
            self.link.abort()

    def _feed(self, piece: bytes) -> None:
        super().data_received(piece)
        if self.link.is_closing():  # it is no HTTP: uvicorn has answered 400
            self.part = OVER

    def _drop(self) -> None:
        """Read on after a refusal: closing while a client still sends would reset the
        connection.
        """
        self._dropped += len(self.unread)
        self.unread = b""
        if self._dropped > _MOST_DROPPED:
            self.link.abort()

    # -- httptools

    def on_message_begin(self) -> None:
        """Begin a request, unless it came in one packet with a chunked body: then the client has to
        send it again.
        """
        if self.part is not HEAD:
            self.part = OVER
            return
        self._body_left, self._framing, self.expects = 0, 0, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Trailers, which come after the body, are none."""
        if self.part is not HEAD:
            return
        lower = name.lower()
        if lower == b"content-length":
            self._body_left = int(value)
        elif lower == b"expect":
            self.expects = True
        elif lower == _HIDDEN:
            lower = b"upgrade"
        super().on_header(lower, value)

    def on_headers_complete(self) -> None:
        if self.part is HEAD:
            super().on_headers_complete()
            self.part, self.is_answering = BODY, True
            self.begun += 1

    def on_body(self, body: bytes) -> None:
        if self.part is BODY:
            self._framing = 0
            super().on_body(body)

    def on_chunk_complete(self) -> None:
        self._framing = 0

    def on_message_complete(self) -> None:
        if self.part is BODY:
            self.part = NOTHING
            super().on_message_complete()


class ConnectionMonitor:
    """The connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # what each connection waited for at the last sweep, and how long it has done so
        self._open: dict[HttpProtocol, tuple[tuple[str, int], float]] = {}
        self._is_sweeping = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether no connection has a request, or a stream, that goes on."""
        return all(connection.waits_for()[0] in _IDLE for connection in self._open)

    def opened(self, connection: HttpProtocol) -> None:
        """Register a connection: free a place for it, or refuse it."""
        while len(self._open) >= self.limits.connections:
            if not self._make_room():
                connection.refuse(
                    Refusal(
                        f"All {self.limits.connections} connections are in use.",
                        status=503,
                        code="too_many_connections",
                        headers={"Retry-After": "1"},
                    )
                )
                break
        self._open[connection] = ("", 0), 0.0
        if not self._is_sweeping:
            self._sweep_later()

    def closed(self, connection: HttpProtocol) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def _sweep_later(self) -> None:
        self._is_sweeping = True
        asyncio.get_running_loop().call_later(self.limits.sweep, self._sweep, monotonic())

    def _sweep(self, before: float) -> None:
        # Time in which the loop was blocked does not count: data that arrived meanwhile is still
        # unread.
        passed = min(monotonic() - before, 2 * self.limits.sweep)
        for connection, (waited, lasted) in list(self._open.items()):
            waits = connection.waits_for()
            lasted = lasted + passed if waits == waited else 0.0
            self._open[connection] = waits, lasted
            if lasted >= getattr(self.limits, waits[0], inf):
                connection.give_up(waits[0])
        self._is_sweeping = False
        if self._open:
            self._sweep_later()

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest; if none is idle, one that
        sends or reads slowly.
        """
        for waits in (_IDLE, _SLOW):
            found = [connection for connection in self._open if connection.waits_for()[0] in waits]
            if found:
                oldest = min(found, key=lambda connection: connection.rested)
                del self._open[oldest]
                oldest.link.abort()
                return True
        return False


def protocol(monitor: ConnectionMonitor) -> type[HttpToolsProtocol]:
    """The protocol class of one server, whose connections the monitor watches."""
    return type("BoundedHttpProtocol", (HttpProtocol,), {"monitor": monitor})


def bounded(app: ASGIApp) -> ASGIApp:
    """Tell each connection when its request has been answered, and the application when
    it has been refused.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        connection: HttpProtocol = scope["state"][CONNECTION]
        try:
            if connection.part is NOTHING:  # the whole request has come
                await app(scope, receive, send)
            else:
                await app(scope, connection.receiver(receive), connection.sender(send))
            if connection.is_refused:
                await left(receive)
        finally:
            del scope["state"][CONNECTION]  # they would hold each other
            connection.answered()

    return answer
