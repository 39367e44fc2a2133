"""One attempt to deliver: sign, post, and describe the outcome."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from time import perf_counter_ns

from ..domain.deliveries import AttemptOutcome
from ..kernel.clock import SECOND, wall_ms
from .addresses import Resolve, resolve
from .connections import Connections
from .signing import signatures, signed_headers

KEPT_HEADERS = 100
KEPT_VALUE = 2000


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is to be sent. `headers` are the merchant's own; `keys` all sign."""

    url: str
    event_id: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = field(repr=False)


class Sender:
    """How deliveries leave this server. `local` opens this machine and private networks."""

    def __init__(
        self, version: str, *, local: bool, resolve: Resolve = resolve, wall: Callable[[], int] = wall_ms
    ) -> None:
        self._version, self._wall, self.local = version, wall, local
        self.connections = Connections(local=local, resolve=resolve)
        self.results: Counter[str] = Counter()
        """How many attempts were made, by their error or `delivered`."""

    async def attempt(
        self, delivery: Delivery, timeout: float, limits: set[asyncio.Timeout] | None = None
    ) -> AttemptOutcome:
        """Post once and wait for the answer. Never raises for what the other side does, and never follows a redirect.

        While it waits its limit of time is in `limits`, where it can be brought forward.
        The timestamp is the machine's, whatever the sandbox clock shows: receivers refuse one that is minutes off.
        """
        from .exchange import Failed, post  # httpcore2 takes 15 ms to import, which a start has no use for

        now = self._wall()
        timestamp = now // SECOND
        signature = signatures(delivery.keys, delivery.event_id, timestamp, delivery.body)
        headers = signed_headers(self._version, delivery.event_id, timestamp, signature, delivery.headers)
        begun = perf_counter_ns()
        answer, error = None, None
        try:
            answer = await post(self.connections, delivery, headers, timeout, set() if limits is None else limits)
            error = error_of(answer.status)
        except Failed as failed:
            error = failed.error
        self.results[error or "delivered"] += 1
        return AttemptOutcome(
            status=answer.status if answer else None,
            body=answer.body if answer else None,
            response_headers=answer.headers if answer else {},
            duration_ms=(perf_counter_ns() - begun) // 1_000_000,
            error=error,
            request_headers=joined(headers),
            signature=signature,
            retry_after=_retry_after(answer.headers.get("retry-after"), now) if answer else None,
        )


def error_of(status: int) -> str | None:
    """Why an answer is no success, or None for one that is."""
    if 200 <= status < 300:
        return None
    if status < 200:  # an upgrade nobody asked for: not an answer to what was sent
        return "connection_failed"
    if status < 400:
        return "redirect"
    return "http_4xx" if status < 500 else "http_5xx"


def joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers as a map: names in lower case, several of one name in one value, the very long cut."""
    found: dict[str, str] = {}
    for name, value in headers[:KEPT_HEADERS]:
        key = name.lower()
        found[key] = (f"{found[key]}, {value}" if key in found else value)[:KEPT_VALUE]
    return found


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
