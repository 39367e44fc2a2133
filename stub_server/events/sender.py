"""One attempt to deliver: sign, connect to a checked address, post, and say what came of it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter_ns
from types import MappingProxyType

import httpx2

from ..domain.webhooks import AttemptOutcome
from ..kernel.clock import wall_ms
from .addresses import allowed, resolve
from .signing import signatures, signed_headers

KEPT_BYTES = 4096
KEPT_HEADERS = 100
KEPT_VALUE = 2000
_PORTS = MappingProxyType({"http": 80, "https": 443})
Resolve = Callable[[str, int], Awaitable[list[str]]]


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


@dataclass(frozen=True, slots=True)
class Sender:
    """How deliveries leave this server. `local` opens this machine and private networks, `shut` closes all of them."""

    version: str
    local: bool
    shut: bool = False
    resolve: Resolve = resolve
    wall: Callable[[], int] = wall_ms

    async def attempt(self, delivery: Delivery, timeout: float) -> AttemptOutcome:
        """Post once and wait for the answer. Never raises for what the other side does, and never follows a redirect.

        The timestamp is the machine's, whatever the sandbox clock shows: receivers refuse one that is minutes off.
        """
        timestamp = self.wall() // 1000
        signature = signatures(delivery.keys, delivery.event_id, timestamp, delivery.body)
        headers = signed_headers(self.version, delivery.event_id, timestamp, signature, delivery.headers)
        begun = perf_counter_ns()
        answer, error = None, None
        try:
            answer = await self._post(delivery, headers, timeout)
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
        )

    async def _post(self, delivery: Delivery, headers: list[tuple[str, str]], timeout: float) -> _Answer:
        answers: list[_Answer] = []
        try:
            async with asyncio.timeout(timeout):
                url = httpx2.URL(delivery.url)
                addresses = await self._addresses(url)
                # Certificates are checked only where there are any; reading the machine's authorities takes a while.
                verify = _authorities() if url.scheme == "https" else False
                async with httpx2.AsyncClient(trust_env=False, verify=verify, timeout=None) as client:
                    await self._exchange(client, url, addresses, headers, delivery.body, answers)
        except (TimeoutError, httpx2.TimeoutException):
            if not answers:
                raise _Failed("timeout") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            if not answers:
                raise _Failed(_kind(error)) from error
        return answers[-1]

    async def _addresses(self, url: httpx2.URL) -> list[str]:
        """Where to connect: resolved once and checked, so that a name cannot mean something else a moment later."""
        port = url.port if url.port is not None else _PORTS[url.scheme]
        try:
            if not url.host or not 0 < port < 65_536:
                raise ValueError("no host, or no such port")
            found = await self.resolve(url.raw_host.decode("ascii"), port)
        except (OSError, ValueError, OverflowError) as error:
            raise _Failed("timeout" if isinstance(error, TimeoutError) else "dns") from error
        open_ones = [address for address in found if not self.shut and allowed(address, local=self.local)]
        if not open_ones:
            raise _Failed("blocked" if found else "dns")
        return open_ones

    async def _exchange(
        self,
        client: httpx2.AsyncClient,
        url: httpx2.URL,
        addresses: list[str],
        headers: list[tuple[str, str]],
        body: bytes,
        answers: list[_Answer],
    ) -> None:
        """Post to the first address that takes a connection. The answer goes to `answers` as soon as its head is there.

        What a slow body has brought by the time limit is kept beside it.
        """
        host = url.netloc.decode("ascii")
        for number, address in enumerate(addresses, 1):
            request = httpx2.Request(
                "POST",
                url.copy_with(host=address),
                headers=[("host", host), *headers],
                content=body,
                extensions={"sni_hostname": url.raw_host.decode("ascii")},
            )
            try:
                response = await client.send(request, stream=True, follow_redirects=False)
            except httpx2.ConnectError:
                if number == len(addresses):
                    raise
                continue
            received = b""
            try:
                answers.append(_answer(response, received))
                async for part in response.aiter_raw():
                    received += part[: KEPT_BYTES - len(received)]
                    answers[-1] = _answer(response, received)
                    if len(received) >= KEPT_BYTES:
                        break
            finally:
                await response.aclose()
            return


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


def _answer(response: httpx2.Response, received: bytes) -> _Answer:
    text = received.decode("utf-8", "replace").replace("\x00", "\ufffd")
    return _Answer(response.status_code, _joined(response.headers.multi_items()), text)


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers as a map: names in lower case, several of one name in one value, the very long cut."""
    joined: dict[str, str] = {}
    for name, value in headers[:KEPT_HEADERS]:
        key = name.lower()
        joined[key] = (f"{joined[key]}, {value}" if key in joined else value)[:KEPT_VALUE]
    return joined


@cache
def _authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
