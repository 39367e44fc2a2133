"""One attempt to deliver: sign, connect to a checked address, post, and say what came of it."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from time import perf_counter_ns
from types import MappingProxyType
from typing import NamedTuple

import httpcore2
import httpx2

from ..domain.deliveries import AttemptOutcome
from ..kernel.clock import SECOND, wall_ms
from .addresses import resolve
from .connections import Connections, Guard, Origin, Resolve, Unreachable
from .signing import signatures, signed_headers

KEPT_BYTES = 4096
KEPT_HEADERS = 100
KEPT_VALUE = 2000
_PORTS = MappingProxyType({"http": 80, "https": 443})
_UNANSWERED = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.InvalidURL,
    OSError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is to be sent. `headers` are the merchant's own; `keys` all sign."""

    url: str
    event_id: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = field(repr=False)


class _Failed(Exception):
    """The attempt ended without an answer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: str


class Sender:
    """How deliveries leave this server. `local` opens this machine and private networks."""

    def __init__(
        self, version: str, *, local: bool, resolve: Resolve = resolve, wall: Callable[[], int] = wall_ms
    ) -> None:
        self._version, self._wall, self.local = version, wall, local
        self.connections = Connections(Guard(local=local, resolve=resolve))

    async def attempt(
        self, delivery: Delivery, timeout: float, limits: set[asyncio.Timeout] | None = None
    ) -> AttemptOutcome:
        """Post once and wait for the answer. Never raises for what the other side does, and never follows a redirect.

        While it waits its limit of time is in `limits`, where it can be brought forward.
        The timestamp is the machine's, whatever the sandbox clock shows: receivers refuse one that is minutes off.
        """
        now = self._wall()
        timestamp = now // SECOND
        signature = signatures(delivery.keys, delivery.event_id, timestamp, delivery.body)
        headers = signed_headers(self._version, delivery.event_id, timestamp, signature, delivery.headers)
        begun = perf_counter_ns()
        answer, error = None, None
        try:
            answer = await self._post(delivery, headers, timeout, set() if limits is None else limits)
            error = error_of(answer.status)
        except _Failed as failed:
            error = failed.error
        return AttemptOutcome(
            status=answer.status if answer else None,
            body=answer.body if answer else None,
            response_headers=answer.headers if answer else {},
            duration_ms=(perf_counter_ns() - begun) // 1_000_000,
            error=error,
            request_headers=_joined(headers),
            signature=signature,
            retry_after=_retry_after(answer.headers.get("retry-after"), now) if answer else None,
        )

    async def _post(
        self, delivery: Delivery, headers: list[tuple[str, str]], timeout: float, limits: set[asyncio.Timeout]
    ) -> _Answer:
        answers: list[_Answer] = []
        try:
            async with asyncio.timeout(timeout) as limit:
                limits.add(limit)
                try:
                    await self._exchange(delivery, headers, answers)
                finally:
                    limits.discard(limit)
        except (TimeoutError, httpcore2.TimeoutException):
            if not answers:
                raise _Failed("timeout") from None
        except Unreachable as error:
            raise _Failed(error.error) from error
        except _UNANSWERED as error:
            if not answers:
                raise _Failed(_kind(error)) from error
        return answers[-1]

    async def _exchange(self, delivery: Delivery, headers: list[tuple[str, str]], answers: list[_Answer]) -> None:
        """Post. The answer goes to `answers` as soon as its head is there, then with what its body has brought."""
        target = _target(delivery.url)
        sent = [("host", target.netloc), ("content-length", str(len(delivery.body))), *headers]
        request = httpcore2.Request(
            "POST",
            target.url,
            headers=[(name.encode(), value.encode()) for name, value in sent],
            content=delivery.body,
        )
        async with self.connections.to(target.origin) as pool:
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


def error_of(status: int) -> str | None:
    """Why an answer is no success, or None for one that is."""
    if 200 <= status < 300:
        return None
    if status < 200:  # an upgrade nobody asked for: not an answer to what was sent
        return "connection_failed"
    if status < 400:
        return "redirect"
    return "http_4xx" if status < 500 else "http_5xx"


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


def _answer(response: httpcore2.Response, received: bytes) -> _Answer:
    text = received.decode("utf-8", "replace").replace("\x00", "\ufffd")
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return _Answer(response.status, _joined(headers), text)


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers as a map: names in lower case, several of one name in one value, the very long cut."""
    joined: dict[str, str] = {}
    for name, value in headers[:KEPT_HEADERS]:
        key = name.lower()
        joined[key] = (f"{joined[key]}, {value}" if key in joined else value)[:KEPT_VALUE]
    return joined


def _retry_after(text: str | None, now: int) -> int | None:
    """What a receiver asks for, seconds or an HTTP date, in ms from `now`; None for neither."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text[:9]) * SECOND
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * SECOND) - now)
    except (ValueError, OverflowError):
        return None
