"""The HTTP exchange of one attempt: post to an address, and what became of it."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import httpcore2
import httpx2

from .connections import Connections, Origin
from .sender import Delivery, joined
from .streams import Unreachable

KEPT_BYTES = 4096
_PORTS = MappingProxyType({"http": 80, "https": 443})
_UNANSWERED = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.InvalidURL,
    OSError,
    ValueError,
)


class Failed(Exception):
    """The attempt ended without an answer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Answer:
    """What of an answer is kept."""

    status: int
    headers: dict[str, str]
    body: str


async def post(
    connections: Connections,
    delivery: Delivery,
    headers: list[tuple[str, str]],
    timeout: float,
    limits: set[asyncio.Timeout],
) -> Answer:
    """Post once, and wait for the answer or its head. Raises Failed. Meanwhile its limit of time is in `limits`."""
    answers: list[Answer] = []
    try:
        async with asyncio.timeout(timeout) as limit:
            limits.add(limit)
            try:
                await _exchange(connections, delivery, headers, answers)
            finally:
                limits.discard(limit)
    except (TimeoutError, httpcore2.TimeoutException):
        if not answers:
            raise Failed("timeout") from None
    except Unreachable as error:
        raise Failed(error.error) from error
    except _UNANSWERED as error:
        if not answers:
            raise Failed(_kind(error)) from error
    return answers[-1]


async def _exchange(
    connections: Connections, delivery: Delivery, headers: list[tuple[str, str]], answers: list[Answer]
) -> None:
    """Post. The answer goes to `answers` as soon as its head is there, then with what its body has brought."""
    target = _target(delivery.url)
    sent = [("host", target.netloc), ("content-length", str(len(delivery.body))), *headers]
    request = httpcore2.Request(
        "POST",
        target.url,
        headers=[(name.encode(), value.encode()) for name, value in sent],
        content=delivery.body,
    )
    async with connections.to(target.origin) as pool:
        response = await pool.handle_async_request(request)
        received = b""
        try:
            answers.append(_answer(response, received))
            async for part in response.aiter_stream():
                received += part[: KEPT_BYTES - len(received)]
                answers[-1] = _answer(response, received)
                if len(received) >= KEPT_BYTES:
                    break
        finally:
            await response.aclose()


class _Target(NamedTuple):
    """Where an address leads."""

    origin: Origin
    netloc: str
    url: httpcore2.URL


@lru_cache(maxsize=1024)
def _target(address: str) -> _Target:
    """Raises Unreachable and httpx2.InvalidURL for what leads nowhere."""
    url = httpx2.URL(address)
    port = url.port if url.port is not None else _PORTS[url.scheme]
    host = url.raw_host.decode("ascii")
    if not host or not 0 < port < 65_536:
        raise Unreachable("dns")
    parsed = httpcore2.URL(scheme=url.scheme, host=host, port=port, target=url.raw_path)
    return _Target((url.scheme, host, port), url.netloc.decode("ascii"), parsed)


def _kind(error: BaseException) -> str:
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused"
    return "connection_failed"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for member in error.exceptions:
                yield from _chain(member)
        error = error.__cause__ or error.__context__


def _answer(response: httpcore2.Response, received: bytes) -> Answer:
    text = received.decode("utf-8", "replace").replace("\x00", "\ufffd")
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return Answer(response.status, joined(headers), text)
