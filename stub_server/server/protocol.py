"""uvicorn's HTTP protocol with bounds.

uvicorn takes a class by its setting `http`. This one overrides methods of `asyncio.Protocol` and
callbacks of httptools, calls `super()`, and uses nothing else of uvicorn's class. It gives the
parser a head in one piece, and the next request once the one before it is answered: so a head can
be measured and changed before it is parsed, and it is known what a connection waits for.
"""

import asyncio
import re
import secrets
from email.utils import formatdate
from http import HTTPStatus
from time import monotonic
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..core.problem import Refusal
from ..engine.kept import Trace
from .connection import BODY, HEAD, NOTHING, OVER, Connection, ConnectionMonitor, Written
from .reply import CONNECTION, left, render

LARGEST_HEAD = 65_536
"""The most bytes of a head, and between two pieces of a chunked body (extensions, trailers)."""
# bytes from a refused client that are read and dropped, so that it receives the response
_MOST_DROPPED = 1_048_576
_END = b"\r\n\r\n"
_OFFER = re.compile(rb"\nupgrade:", re.IGNORECASE)
_HIDDEN = b"upgrad~"


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
        connection: Connection = scope["state"][CONNECTION]
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


class HttpProtocol(Connection, HttpToolsProtocol):
    """What arrives on one connection."""

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

    # -- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.link, self.rested = transport, monotonic()
        self.written = Written(transport)
        super().connection_made(cast(asyncio.Transport, self.written))
        self.monitor.opened(self, asyncio.get_running_loop())

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
            message = (
                f"Target and headers are larger than {LARGEST_HEAD} bytes, the most that is read."
            )
            self.refuse(Refusal(message, status=431, code="headers_too_large"))
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

    def on_url(self, url: bytes) -> None:
        if self.part is HEAD:
            super().on_url(url)

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

    def end_body(self) -> None:
        self.on_message_complete()
