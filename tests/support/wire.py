"""Requests byte by byte over a socket: what an HTTP client would refuse to send, or would
tidy up first.
"""

import json
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

Header = tuple[str, str | bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are lower case."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name.lower()]

    def header(self, name: str) -> str | None:
        """A header that stands once; None when it is absent."""
        found = self.all(name)
        assert len(found) <= 1, f"{name} stands {len(found)} times: {found}"
        return found[0] if found else None

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


def connect(port: int) -> socket.socket:
    """A connection to a server on this machine; whoever waits on it longer than half a
    minute fails.
    """
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def answer_on(connection: socket.socket, method: str = "GET") -> Answer:
    """Read one answer; the connection stays open."""
    response = HTTPResponse(connection, method=method)
    response.begin()
    headers = [(name.lower(), value) for name, value in response.getheaders()]
    return Answer(response.status, headers, response.read())


def rest_of(connection: socket.socket) -> bytes:
    """All that still comes, until the server hangs up, in whichever way."""
    received = bytearray()
    try:
        while data := connection.recv(65_536):
            received += data
    except ConnectionError:
        pass
    return bytes(received)


def exchange(port: int, method: str, request: bytes) -> Answer:
    """Send bytes, read one answer."""
    with connect(port) as connection:
        connection.sendall(request)
        return answer_on(connection, method)


@dataclass(frozen=True, slots=True)
class Door:
    """One sandbox of a server, with a credential that may do everything."""

    port: int
    prefix: str
    token: str

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Iterable[Header] = (),
        media: str | None = "application/json",
        chunks: Sequence[bytes] | None = None,
        token: str | None = "",
        host: str | None = None,
    ) -> Answer:
        """Send a request as written.

        `token=None` sends no credential; `chunks` sends the body chunked.
        """
        lines: list[Header] = [("Host", host or f"127.0.0.1:{self.port}"), *headers]
        if token is not None:
            lines.append(("Authorization", f"Bearer {token or self.token}"))
        payload = b""
        if chunks is not None:
            lines.append(("Transfer-Encoding", "chunked"))
            payload = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks if c) + b"0\r\n\r\n"
        elif body is not None:
            lines.append(("Content-Length", str(len(body))))
            payload = body
        if media is not None and (body is not None or chunks is not None):
            lines.append(("Content-Type", media))
        head = f"{method} {self.prefix}{path} HTTP/1.1\r\n".encode("latin-1")
        for name, value in lines:
            head += (
                name.encode()
                + b": "
                + (value if isinstance(value, bytes) else value.encode("latin-1"))
                + b"\r\n"
            )
        return exchange(self.port, method, head + b"\r\n" + payload)

    def send(self, method: str, path: str, body: Any) -> Answer:
        """A request with a JSON body."""
        return self.ask(method, path, json.dumps(body).encode())
