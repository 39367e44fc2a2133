"""uvicorn's response, whose head goes out together with its body: one system call and one packet instead of two."""

from functools import lru_cache
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent

_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})  # what no value of a header may hold
_LINE_END = len(b"\r\n")


class Response(RequestResponseCycle):
    """One request and its response. Pieces, HEAD, a connection's last response and what is wrong are uvicorn's."""

    _head: "HTTPResponseStartEvent | None" = None  # until its body comes
    _length = -1  # the place of its content-length

    async def send(self, message: "ASGISendEvent") -> None:
        """Send a part of the response, its head with the first piece of its body."""
        head = self._head
        if head is not None:
            self._head = None
            if self._send_whole(head, message):
                return
            await super().send(head)
        elif message["type"] == "http.response.start" and not self.response_started:
            self._length = place = _place_of_length(tuple([name for name, _ in message["headers"]]))
            if place >= 0 and self.scope["method"] != "HEAD":  # its body comes at once
                self._head = message
                return
        await super().send(message)

    def _send_whole(self, head: "HTTPResponseStartEvent", message: "ASGISendEvent") -> bool:
        """Send head and body in one go; False, with nothing sent, where uvicorn has more to do or to refuse."""
        if message["type"] != "http.response.body" or message.get("more_body"):
            return False
        if self.disconnected or self.flow.write_paused or not self.keep_alive:
            return False
        headers, body = head["headers"], message["body"]
        if headers[self._length][1] != b"%d" % len(body):  # type: ignore[index]  # ours are lists
            return False
        lines = [STATUS_LINE[head["status"]]]
        for name, value in (*self.default_headers, *headers):
            lines += (name, b": ", value, b"\r\n")
        lines.append(b"\r\n")
        text = b"".join(lines)
        if len(text.translate(None, _CONTROLS)) != len(text) - _LINE_END * (len(lines) // 4 + 2):
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.writelines((text, body))
        self.message_event.set()
        self.on_response()
        return True


@lru_cache(maxsize=256)
def _place_of_length(names: tuple[bytes, ...]) -> int:
    """Where content-length stands; -1 where it doesn't, or where the names say that uvicorn has more to do."""
    others = {b"connection", b"transfer-encoding"}.intersection(names)
    if others or names.count(b"content-length") != 1 or any(HEADER_RE.search(n) or n != n.lower() for n in names):
        return -1
    return names.index(b"content-length")
