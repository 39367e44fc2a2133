"""Simulated receivers at reserved names, which no machine may have: when and what they answer."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ..core.clock import HOUR
from ..core.ids import luck
from ..core.record import Row
from .deliveries import GONE, error_of

UNKNOWN = "invalid"
RESERVED = ("example", "example.com", "example.net", "example.org", "test", UNKNOWN)
"""Names of RFC 2606 and RFC 6761 that no machine has, nor those below them.

No name server knows those of `UNKNOWN`.
"""
REJECTED = 0.08  # of the events to a flaky receiver, besides those that wait until it is back
SLOW = 0.02  # of the first attempts run into the time limit
TIMEOUT_MS = 15_000
LATELY = 36 * HOUR  # before its sandbox begins a flaky receiver went down, and still is
SOON = 2 * HOUR  # after that it is back
_PAGE = (
    "<html>\r\n<head><title>{0}</title></head>\r\n"
    "<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
)
FORGED = 400  # the status that a signature which is not valid is answered with
_HTML = "text/html"
_JSON = "application/json"
BODIES: Mapping[int | None, tuple[str, str | None]] = {
    200: (_JSON, '{"received":true}'),
    500: (_JSON, '{"error":"internal server error"}'),
    502: (_HTML, _PAGE.format("502 Bad Gateway")),
    503: (_HTML, _PAGE.format("503 Service Temporarily Unavailable")),
    GONE: (_JSON, ""),
    FORGED: (_JSON, '{"error":"invalid signature"}'),
}


class Answer(NamedTuple):
    """An answer after `took` ms; `status` is None when none came, because of `failure`."""

    status: int | None
    took: int
    failure: str = "timeout"

    @property
    def error(self) -> str | None:
        """Why the attempt failed, as a delivery shows it; None for a success."""
        return self.failure if self.status is None else error_of(self.status)


def is_reserved(url: str) -> bool:
    """Whether an address is at a reserved name."""
    return any(_is_below(url, name) for name in RESERVED)


def _is_below(url: str, name: str) -> bool:
    host = (urlsplit(url).hostname or "").rstrip(".")
    return host == name or host.endswith(f".{name}")


def answer(webhook: Row, log: Row, at: int) -> Answer:
    """The answer to the next attempt of a delivery, at an instant: the same for the same delivery
    and attempt.

    How a receiver behaves is written in the webhook's hidden part by its seed; others are healthy.
    """
    if _is_below(webhook["url"], UNKNOWN):
        return Answer(None, 0, "dns")
    kept = webhook.hidden.get("receiver", {"behaviour": "healthy"})
    number = log["attempt_count"]
    # mostly a tenth of a second, seldom a whole one
    took = 40 + int(60 / (1.05 - luck(log.id, str(number), "answer")))
    if kept["behaviour"] == "gone" and at >= kept["gone"]:
        return Answer(GONE, took)
    if kept["behaviour"] == "flaky" and (status := _flaky(webhook, log, at)) != 200:
        return Answer(status, TIMEOUT_MS if status is None else took)
    if number == 0 and luck(log.id, "slow") < SLOW:
        return Answer(None, TIMEOUT_MS)
    return Answer(200, took)


def _flaky(webhook: Row, log: Row, at: int) -> int | None:
    until = webhook["receiver"]["until"]
    if until - LATELY <= at < until + SOON:
        return (503, 503, 502, None)[int(4 * luck(webhook.id, "fault"))]
    # Some payloads are rejected at every attempt. A third event in a row would have disabled the
    # webhook.
    is_last = log["attempt_count"] + 1 >= log["max_attempts"]
    is_third = is_last and webhook["consecutive_failures"] >= 2
    return 500 if luck(log.id, "rejected") < REJECTED and not is_third else 200
