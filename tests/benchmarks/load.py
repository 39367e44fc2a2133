"""The load: sixteen kept-alive connections that ask again as soon as they are answered."""

import asyncio
import re
import time
from dataclasses import dataclass
from itertools import cycle
from typing import cast

import orjson
import uvloop

from .world import Shot

CONNECTIONS = 16
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Result:
    """What one round measured: times in ms, `answers` in all."""

    answers: int
    per_second: float
    p50: float
    p99: float


class LoadError(Exception):
    """A server answered with something other than success."""


def fire(shot: Shot, port: int, token: str, seconds: float) -> Result:
    """Ask for one thing as often as the server can answer."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_own(_requests(shot, port, token), port, seconds))


def _requests(shot: Shot, port: int, token: str) -> list[bytes]:
    bodies = [shot.body] if shot.other is None else [shot.body, shot.other]
    return [
        _request(shot, b"" if body is None else orjson.dumps(body), port, token) for body in bodies
    ]


def _request(shot: Shot, body: bytes, port: int, token: str) -> bytes:
    lines = [f"{shot.method} {shot.path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"Authorization: Bearer {token}", "Accept: application/json"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class _Connection(asyncio.Protocol):
    """One connection: ask, wait, note the time, ask again."""

    def __init__(self, requests: list[bytes], until: float, times: list[float]) -> None:
        self._requests = cycle(requests)
        self._until = until
        self._times = times
        self._have = b""
        self._need = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._ask()

    def _ask(self) -> None:
        self._have = b""
        self._need = 0
        self._asked = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._have += data
        if not self._need:
            end = self._have.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(self._have, 0, end)
            if not self._have.startswith(b"HTTP/1.1 2") or length is None:
                self._finish(LoadError(self._have[:600].decode("utf-8", "replace")))
                return
            self._need = end + 4 + int(length[1])
        if len(self._have) >= self._need:
            now = time.perf_counter()
            self._times.append(now - self._asked)
            if now < self._until:
                self._ask()
            else:
                self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        if not self.done.done():
            if error is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(error)
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(LoadError(f"the server closed the connection: {exc}"))


async def _own(requests: list[bytes], port: int, seconds: float) -> Result:
    loop = asyncio.get_running_loop()
    times: list[float] = []
    began = time.perf_counter()
    connections = [
        await loop.create_connection(
            lambda: _Connection(requests, began + seconds, times), "127.0.0.1", port
        )
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(connection.done for _, connection in connections))
    took = time.perf_counter() - began
    times.sort()
    return Result(
        len(times),
        len(times) / took,
        times[len(times) // 2] * 1000,
        times[int(len(times) * 0.99)] * 1000,
    )
