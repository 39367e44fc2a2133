"""uvicorn's response, which also takes head and body at once: one system call and one packet instead of two."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, RequestResponseCycle

WHOLE = "stub_server.whole"
"""The extension of a scope by which a whole response is sent."""
Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]
SendWhole: TypeAlias = Callable[[int, Pairs, bytes], bytes | None]
"""Takes status, headers and body; answers the headers as they were sent, a line each, None where it sent nothing."""
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})  # what no value of a header may hold
_LINE_END = len(b"\r\n")
_FRAMING = frozenset((b"connection", b"transfer-encoding"))


class _Form(NamedTuple):
    """Headers without their values: where content-length stands among them, and how many control characters it has."""

    text: bytes
    length: int
    controls: int


class Response(RequestResponseCycle):
    """One request and its response. Pieces, HEAD, a connection's last response and what is wrong are uvicorn's."""

    async def send(self, message: Any) -> None:
        """Send a message of a response that comes in pieces."""
        if self.waiting_for_100_continue and self.more_body:
            self.keep_alive = False  # close afterwards: whether the body that was announced comes is unknown
        await super().send(message)

    def send_whole(self, status: int, headers: Pairs, body: bytes) -> bytes | None:
        """Send head and body in one go; None, with nothing sent, where uvicorn has more to do or to refuse."""
        if self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive or not headers:
            return None
        if self.waiting_for_100_continue and self.more_body:
            return None
        names, values = zip(*headers, strict=True)
        form, start = _form(names), _start(status, tuple(self.default_headers))
        if form is None or start is None or values[form.length] != b"%d" % len(body) or self.scope["method"] == "HEAD":
            return None
        lines = form.text % values
        if len(lines.translate(None, _CONTROLS)) != len(lines) - form.controls:
            return None
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.writelines((start, lines, b"\r\n", body))
        self.message_event.set()
        self.on_response()
        return lines


def sent_lines(headers: Pairs) -> bytes:
    """Headers, a line each."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


@lru_cache(maxsize=256)
def _form(names: tuple[bytes, ...]) -> _Form | None:
    """The form of these headers; None where their names say that uvicorn has more to do."""
    if _FRAMING.intersection(names) or names.count(b"content-length") != 1:
        return None
    if any(HEADER_RE.search(name) or name != name.lower() for name in names):
        return None
    text = b"".join([name.replace(b"%", b"%%") + b": %b\r\n" for name in names])
    return _Form(text, names.index(b"content-length"), _LINE_END * len(names))


@lru_cache(maxsize=64)
def _start(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes | None:
    """The status line and the headers of every response; None where these frame the body."""
    if any(name in _FRAMING or name == b"content-length" for name, _ in headers):
        return None
    return STATUS_LINE[status] + sent_lines([(name.lower(), value) for name, value in headers])
