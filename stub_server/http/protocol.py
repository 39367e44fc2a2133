"""uvicorn's HTTP protocol, with limits on how much clients send and how slowly, and with answers in one packet."""

import asyncio
import re
import secrets
from functools import lru_cache, partial
from http import HTTPMethod
from time import monotonic
from typing import Any, ClassVar
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserInvalidURLError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ..engine.journal import Trace
from ..kernel.problem import BadRequest, NotBuilt, Refusal
from .answers import REFUSED, TRANSPORT, WHOLE, Pairs, render, sent_lines
from .monitor import ConnectionMonitor, Limits, Wait

LARGEST_HEAD = 65_536
"""The most bytes until a request's headers are complete, and again between two pieces of its body (trailers)."""
_MOST_DROPPED = 1_048_576  # bytes from a refused client that are read and dropped, so that it receives the response
_NO_METHOD = (
    "The request does not begin with an HTTP method, such as GET or POST in capital letters. "
    "The Content-Length of the request before it may be too small."
)
_NO_TARGET = (
    "The request's target cannot be read. It begins with / or http://, and what is not ASCII in it must be "
    "percent-encoded, as must spaces and control characters."
)
# Messages of the parser that say too little, and ours.
_UNREADABLE = {
    "Expected HTTP/, RTSP/ or ICE/": "After method and target there must be HTTP/1.1. A space in the target is %20.",
    "Pause on PRI/Upgrade": "HTTP/2 is not supported. Send the request as HTTP/1.1.",
}
_VERSION = partial(
    Refusal,
    "Requests are HTTP/1.1 or HTTP/1.0. Send this one as HTTP/1.1.",
    status=505,
    code="http_version_not_supported",
)
_SPOKEN = frozenset(("1.1", "1.0"))
_METHODS = frozenset((*HTTPMethod, "QUERY"))
_PERCENT = ord("%")  # a number is found in bytes much faster than a byte
_ABSOLUTE = re.compile(rb"[a-z][a-z0-9+.-]*://([^/?]*)(.*)", re.IGNORECASE).fullmatch
_REQUEST_LINES = re.compile(rb"^([!#$%&'*+.^_`|~0-9A-Za-z-]+) [^ \r\n]+ HTTP/\d\.\d\r?$", re.MULTILINE).findall
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})  # not allowed in the value of a header
_PLAIN_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch
_FRAMING = frozenset((b"connection", b"transfer-encoding"))
_NO_BODY = "A request with a body cannot change the protocol. Send it without the Upgrade header."


def protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol class of one server: its connections share the limits."""
    return type("BoundedHttpProtocol", (HttpProtocol,), {"monitor": ConnectionMonitor(limits)})


class HttpProtocol(HttpToolsProtocol):
    """One connection. What is not HTTP is refused here, in the shape of every refusal."""

    monitor: ClassVar[ConnectionMonitor]

    rested = 0.0  # when it was opened or its last response was sent: monotonic seconds, finer than the loop's
    _refused = False
    _waits_for_reader = False  # whether the next request in the pipeline waits until the last answer has been read
    _earlier: tuple[RequestResponseCycle, ...] = ()  # requests before the newest one that may be unanswered
    _room = LARGEST_HEAD  # bytes that may come before the headers or a chunk must be complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}  # uvicorn copies it into each scope
        self.rested = monotonic()
        self.monitor.opened(self, self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        self.monitor.closed(self)
        for cycle in self._earlier:  # uvicorn ends only the newest one
            cycle.disconnected = True
            cycle.message_event.set()
        self._earlier = ()
        super().connection_lost(exc)

    # -- what comes in

    def data_received(self, data: bytes) -> None:
        """Feed the parser at most `_room` bytes."""
        room = self._room - len(data)
        if room >= 0:
            self._room = room
            self._parse(data)
        else:
            self._receive_in_pieces(memoryview(data))

    def _receive_in_pieces(self, data: memoryview) -> None:
        while data and not self._refused:
            if not self._room:
                self._refuse(self._too_large())
                break
            piece, data = data[: self._room], data[self._room :]
            self._room -= len(piece)
            self._parse(bytes(piece))
        if self._refused:  # closing while a client still sends resets the connection: the response may be lost
            self._dropped += len(data)
            if self._dropped > _MOST_DROPPED:
                self.transport.abort()

    def _too_large(self) -> Refusal:
        if self.scope is not None and len(self.url) > LARGEST_HEAD // 2:
            message = f"The request's target makes its head larger than {LARGEST_HEAD} bytes."
            return Refusal(message, status=414, code="uri_too_long")
        message = f"The headers are larger than {LARGEST_HEAD} bytes, the most that is read."
        return Refusal(message, status=431, code="headers_too_large")

    def _parse(self, data: bytes) -> None:
        """As uvicorn, without its warnings, and reading on after a request to change the protocol."""
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserError as error:
                self._refuse(_what_is_wrong(error, data))
                return
            except HttpParserUpgrade as asked:
                self._stay()
                data = b"" if self._refused else data[asked.args[0] :]

    def _stay(self) -> None:
        """Continue in HTTP/1.1 after a request for another protocol, unless it is for WebSockets or has a body.

        The parser leaves such a body to the other protocol: its bytes would be read as the next request.
        """
        assert self.cycle is not None
        scope = self.cycle.scope
        headers = {name: value.lower() for name, value in scope["headers"]}
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            scope[REFUSED] = refusal = BadRequest(_NO_BODY, code="malformed_request")  # type: ignore[literal-required]
            self._refuse(refusal)  # whatever comes after it
        elif headers.get(b"upgrade") == b"websocket":
            scope[REFUSED] = BadRequest(  # type: ignore[literal-required]
                "WebSockets are not supported. Send a plain HTTP request.",
                advice="GET /_sandbox/stream sends events as they happen.",
                code="malformed_request",
            )

    def on_headers_complete(self) -> None:
        """Start the request. Trailers, which come later, are not headers and are dropped."""
        before = self.cycle
        if self.url[:1] != b"/":
            self._take_authority()
        super().on_headers_complete()
        if _PERCENT in self.url:
            self._keep_slashes()
        if self.scope["http_version"] not in _SPOKEN:
            self.scope[REFUSED] = _VERSION()  # type: ignore[literal-required]
        if before is not None and not before.response_complete:  # pipelined
            self._earlier = (*[cycle for cycle in self._earlier if not cycle.response_complete], before)
        cycle = self.cycle
        cycle.__class__ = Response  # uvicorn has no place to name one
        self.scope["extensions"] = {WHOLE: cycle.send_whole}  # type: ignore[attr-defined]
        self.headers = []
        self._room = LARGEST_HEAD

    def _take_authority(self) -> None:
        """Use the authority of an absolute target as the Host, and the rest as the target (RFC 9112, 3.2.2)."""
        absolute = _ABSOLUTE(self.url)
        if absolute is None:
            return
        authority, rest = absolute[1].rpartition(b"@")[2], absolute[2]
        self.url = rest if rest.startswith(b"/") else b"/" + rest
        self.headers[:] = [(name, authority if name == b"host" else value) for name, value in self.headers]

    def _keep_slashes(self) -> None:
        """Decode the path except `%2F`, which is a character of a segment and separates none."""
        raw = self.scope["raw_path"].decode("ascii")
        if "%2f" in raw.lower():
            self.scope["path"] = unquote(raw.replace("%2f", "%2F").replace("%2F", "%252F"))

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._room = LARGEST_HEAD

    def on_chunk_complete(self) -> None:
        """Allow as many bytes again after a chunk, or after the trailers."""
        self._room = LARGEST_HEAD

    def on_response_complete(self) -> None:
        """Continue with the next request in the pipeline.

        Without one uvicorn would set a timer; the monitor closes idle connections without a timer per response.
        """
        self.rested = monotonic()
        if self.pipeline and self.flow.write_paused:
            self._waits_for_reader = True
        elif self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._waits_for_reader:
            self._waits_for_reader = False
            super().on_response_complete()

    # -- deadlines and room

    def waits_for(self) -> tuple[Wait, object]:
        """What it waits for, and a mark that changes whenever it makes progress: from uvicorn's state, at no cost."""
        cycle, scope = self.cycle, self.scope
        if unread := self.transport.get_write_buffer_size():
            return Wait.READER, unread
        is_answering = bool(self.pipeline) or (cycle and not cycle.response_complete and not cycle.disconnected)
        if self.transport.is_closing() or (self._refused and not is_answering):
            return Wait.END, self
        if self._refused or self.flow.read_paused:  # reading is paused while an earlier request is served
            return Wait.ANSWER, cycle
        if scope is not None and (cycle is None or cycle.scope is not scope):
            return Wait.HEAD, scope
        if cycle is None:
            return Wait.REQUEST, None
        if cycle.more_body:
            return Wait.BODY, cycle
        return (Wait.NEXT if cycle.response_complete else Wait.ANSWER), cycle

    def give_up(self, wait: Wait) -> None:
        """Send 408 if a request has begun, and close."""
        if wait in (Wait.HEAD, Wait.BODY):
            what = "headers" if wait is Wait.HEAD else "body"
            limit = self.monitor.limits.allowed(wait)
            message = f"The rest of the request's {what} did not arrive within {limit:g} seconds."
            self._refuse(Refusal(message, status=408, code="request_timeout"))
        elif wait in (Wait.REQUEST, Wait.NEXT):
            self.transport.close()
        else:
            self.transport.abort()

    def drop(self) -> None:
        self.transport.abort()

    def turn_away(self) -> None:
        most = self.monitor.limits.connections
        message = f"All {most} connections are in use (--max-connections)."
        self._refuse(Refusal(message, status=503, code="too_many_connections", headers={"Retry-After": "1"}))

    # -- refusals

    def _refuse(self, refusal: Refusal) -> None:
        """Send a refusal without the application and close, unless a response of the application is still to come."""
        self._refused, self._room, self._dropped = True, 0, 0
        self.flow.resume_reading()
        cycle = self.cycle
        in_its_body = cycle is not None and cycle.scope is self.scope and cycle.more_body
        if cycle is not None and not cycle.response_complete:
            if not in_its_body:  # the error is in what came after it
                cycle.keep_alive = False  # uvicorn closes after the responses to earlier requests
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if self.pipeline:  # earlier responses are still to come; the monitor closes
                return
        if in_its_body and cycle.response_started:
            self.transport.close()
        if self.transport.is_closing():
            return
        self.transport.write(self._message(refusal))
        self.transport.write_eof()

    def _message(self, refusal: Refusal) -> bytes:
        trace = Trace("req_" + secrets.token_hex(12), 0, "", "", b"", "")
        status, headers, body = render(refusal, trace)
        headers += [*self.server_state.default_headers, (b"x-request-id", trace.id.encode()), (b"connection", b"close")]
        return STATUS_LINE[status] + sent_lines(headers) + b"\r\n" + body


def _what_is_wrong(error: HttpParserError, data: bytes) -> Refusal:
    """Why the parser refused the data. An error about the target is its context: the parser raises it anew."""
    if isinstance(error, HttpParserInvalidMethodError):
        unknown = [method for method in map(bytes.decode, _REQUEST_LINES(data)) if method not in _METHODS]
        if unknown:
            return NotBuilt(f"Unknown method {unknown[0][:20]}. Methods are written in capital letters.")
        return BadRequest(_NO_METHOD, code="malformed_request")
    if isinstance(error, HttpParserInvalidURLError) or isinstance(error.__context__, HttpParserInvalidURLError):
        return BadRequest(_NO_TARGET, code="malformed_request")
    if str(error) == "Invalid HTTP version":
        return _VERSION()
    text = _UNREADABLE.get(str(error), f"This cannot be read as HTTP/1.1: {error}.")
    return BadRequest(text, code="malformed_request")


class Response(RequestResponseCycle):
    """One request and its response. uvicorn sends pieces, answers to HEAD, and a connection's last response."""

    async def send(self, message: Any) -> None:
        """Send a message of a response that comes in pieces."""
        if self.waiting_for_100_continue and self.more_body:
            self.keep_alive = False  # close afterwards: the announced body may or may not come
        await super().send(message)

    def send_whole(self, status: int, headers: Pairs, body: bytes) -> bytes | None:
        """Send head and body in one go. Returns None, with nothing sent, where uvicorn has more to do or to refuse."""
        if self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive:
            return None
        if self.scope["method"] == "HEAD" or (self.waiting_for_100_continue and self.more_body):
            return None
        lines = sent_lines(headers)
        if (
            (b"content-length", b"%d" % len(body)) not in headers
            or not _are_plain(tuple([name for name, _ in headers]))
            or len(lines.translate(None, _CONTROLS)) != len(lines) - len(b"\r\n") * len(headers)
        ):
            return None
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        default = _default_lines(tuple(self.default_headers))
        self.transport.writelines((STATUS_LINE[status], default, lines, b"\r\n", body))
        self.message_event.set()
        self.on_response()
        return lines


_default_lines = lru_cache(maxsize=2)(sent_lines)  # they have the date: new ones every second


@lru_cache(maxsize=256)
def _are_plain(names: tuple[bytes, ...]) -> bool:
    """Whether headers of these names are sent as they are, and say no more of the body than its length, once."""
    return names.count(b"content-length") == 1 and _FRAMING.isdisjoint(names) and all(map(_PLAIN_NAME, names))
