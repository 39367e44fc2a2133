"""uvicorn's response, which also takes head and body at once: one system call and one packet instead of two."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, RequestResponseCycle

WHOLE = "stub_server.whole"
"""The extension of a scope by which a whole response is sent."""
SendWhole: TypeAlias = Callable[[int, Sequence[tuple[bytes, bytes]], bytes], bool]
"""Takes status, headers and body; False where it has sent nothing."""
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})  # what no value of a header may hold
_LINE_END = len(b"\r\n")


class _Form(NamedTuple):
    """A head without its values: where content-length stands among them, and how many control characters it has."""

    text: bytes
    length: int
    controls: int


class Response(RequestResponseCycle):
    """One request and its response. Pieces, HEAD, a connection's last response and what is wrong are uvicorn's."""

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send head and body in one go; False, with nothing sent, where uvicorn has more to do or to refuse."""
        if self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive:
            return False
        names, values = zip(*self.default_headers, *headers, strict=True)
        form = _form(status, names)
        if form is None or values[form.length] != b"%d" % len(body) or self.scope["method"] == "HEAD":
            return False
        head = form.text % values
        if len(head.translate(None, _CONTROLS)) != len(head) - form.controls:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.writelines((head, body))
        self.message_event.set()
        self.on_response()
        return True


@lru_cache(maxsize=256)
def _form(status: int, names: tuple[bytes, ...]) -> _Form | None:
    """The form of a head; None where its names say that uvicorn has more to do."""
    others = {b"connection", b"transfer-encoding"}.intersection(names)
    if others or names.count(b"content-length") != 1 or any(HEADER_RE.search(n) or n != n.lower() for n in names):
        return None
    lines = [STATUS_LINE[status], *[name.replace(b"%", b"%%") + b": %b\r\n" for name in names], b"\r\n"]
    return _Form(b"".join(lines), names.index(b"content-length"), _LINE_END * len(lines))
