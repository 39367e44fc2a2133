"""A small HTTP client: 64 of them in one process must cost less than the server that they ask."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

PATIENCE = 120  # seconds
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE).search


class Answer(NamedTuple):
    """What came back; status 0 when the server hung up without a word."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body parsed."""
        return orjson.loads(self.body)


CLOSED = Answer(0, b"")


class Client:
    """One connection, opened anew when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: object = None, token: str | None = None, **headers: str
    ) -> Answer:
        """A request with a JSON body, as a program sends it. `X_Sandbox="a"` is a header."""
        return await self.send(request(method, path, body, token, headers))

    async def send(self, data: bytes) -> Answer:
        """Bytes as they are, and the answer to them."""
        async with asyncio.timeout(PATIENCE):
            fresh = self._streams is None
            try:
                return await self._exchange(data)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if fresh:
                    return CLOSED
                return await self.send(data)  # it was closed while it was idle

    async def _exchange(self, data: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH(head)
        body = await reader.readexactly(int(length[1])) if length is not None else b""
        if b"connection: close" in head.lower():
            self.close()
        return Answer(int(head[9:12]), body)

    async def whisper(self, pieces: list[bytes], pause: float) -> None:
        """Send bytes piece by piece, and stop where the server has had enough."""
        self.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
                if reader.at_eof():
                    return
        except ConnectionError:
            return
        finally:
            writer.close()

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def request(
    method: str, path: str, body: object, token: str | None, headers: Mapping[str, str]
) -> bytes:
    """A request's bytes."""
    content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content
