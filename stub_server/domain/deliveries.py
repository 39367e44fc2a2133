"""Rules of deliveries: what one holds, when it is retried, and how an attempt changes it
and its webhook.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple, Self

from ..core.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..core.problem import Conflict
from ..core.record import Body, Row
from ..core.signing import HeaderPairs, new_key, signatures, signed_headers
from .lifecycle import either
from .webhooks import disabled_webhook

AUTOMATIC = "automatic"  # what causes an attempt
MANUAL = "manual"
TEST = "test"
GONE = 410
ASKS_FOR_TIME = (429, 503)  # the statuses whose Retry-After counts
SCHEDULES: Mapping[str, tuple[int, ...]] = {
    # the example schedule of Standard Webhooks 1.0
    "standard": (
        0,
        5 * SECOND,
        5 * MINUTE,
        30 * MINUTE,
        2 * HOUR,
        5 * HOUR,
        10 * HOUR,
        14 * HOUR,
        20 * HOUR,
        24 * HOUR,
    ),
    "fast": (0, SECOND, 5 * SECOND, 25 * SECOND),
    "none": (0,),
}
"""What an attempt waits after the one before, by the name that `--webhook-schedule` has for it;
`none` attempts once.
"""
JITTER = 0.1  # of a wait, more or less
MOST_FAILURES = 3  # events in a row that used up their attempts
LOST = "connection_failed"  # the error of an attempt that nobody answered
ERRORS = (
    "timeout",
    "connection_refused",
    LOST,
    "dns",
    "tls",
    "blocked",
    "redirect",
    "http_4xx",
    "http_5xx",
)
_SHOWN_ALONE = ("request_headers", "request_body", "response_headers", "attempts")
_KEPT_HEADERS = 100  # of an attempt, each way
_KEPT_VALUE = 2_000  # characters
MOST_ATTEMPTS = 100  # attempts of one delivery, the newest: by hand there may be any number


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is to be sent.

    `headers` are the merchant's own; `keys` all sign. `pieces` send the body in parts.
    """

    url: str
    event_id: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = field(repr=False)
    pieces: Callable[[], AsyncIterator[bytes]] | None = None
    method: str = "POST"

    def signed(self, at: int) -> tuple[str, HeaderPairs]:
        """The signature at an instant (ms), and the headers of an attempt with it."""
        timestamp = at // SECOND
        signature = signatures(self.keys, self.event_id, timestamp, self.body)
        return signature, signed_headers(self.event_id, timestamp, signature, self.headers)

    def forged(self) -> Self:
        """The same, signed by keys that no receiver has, one for each: a signature of the right
        form that is not valid.
        """
        return replace(
            self, keys=tuple(new_key(sha256(key.encode()).digest()) for key in self.keys)
        )


class Failed(Exception):
    """Nothing was answered. The message says why, as in a delivery: `dns`, `blocked`, `timeout`."""


def kept_headers(headers: HeaderPairs) -> dict[str, str]:
    """Headers as a map: names in lower case, several of one name in one value, the
    very long cut.
    """
    found: dict[str, str] = {}
    for name, value in headers[:_KEPT_HEADERS]:
        key = name.lower()
        if key in found:
            value = f"{found[key]}, {value}"
        found[key] = value[:_KEPT_VALUE]
    return found


class AttemptOutcome(NamedTuple):
    """The result of one attempt. `status` is None when no answer came, `error` None when it was a
    2xx.

    `retry_after` is the wait that the receiver asked for, in ms, if it did; `simulated` names the
    fault rules that acted on it.
    """

    status: int | None
    body: str | None
    response_headers: dict[str, str]
    duration_ms: int
    error: str | None
    request_headers: dict[str, str]
    signature: str
    retry_after: int | None = None
    simulated: str | None = None

    @classmethod
    def lost(cls, after: int = 0, simulated: str | None = None) -> Self:
        """The result of an attempt that nobody answered, after so many ms."""
        return cls(None, None, {}, after, LOST, {}, "", simulated=simulated)


def error_of(status: int) -> str | None:
    """Why an answer is no success, or None for one that is."""
    if 200 <= status < 300:
        return None
    if status < 200:  # an upgrade nobody asked for: not an answer to what was sent
        return LOST
    if status < 400:
        return "redirect"
    if status < 500:
        return "http_4xx"
    return "http_5xx"


def new_log(
    blank: Row,
    webhook: Body,
    *,
    event_id: str,
    event_type: str,
    body: bytes,
    serial: int,
    most: int | None,
) -> Row:
    """A delivery before its first attempt. `serial` is the event's place in the sandbox's history.

    An automatic one is due at once and attempted at `most` so often; a test send (None) is
    attempted by its request and is never due. The project is the webhook's at the time of the
    event: restricted keys see the delivery by it.
    """
    public = {
        "webhookId": webhook["id"],
        "event_id": event_id,
        "event_type": event_type,
        "status": "pending",
        "is_test": most is None,
        "url": webhook["url"],
        "attempt_count": 0,
        "max_attempts": most or 1,
        "next_attempt_at": None if most is None else blank["createdAt"],
    }
    hidden = {
        "request_headers": {},
        "request_body": body.decode(),
        "response_headers": {},
        "attempts": [],
        "projectId": webhook["projectId"],
        "serial": serial,
    }
    return blank.changed(public, hidden)


def shown_log(row: Row) -> Body:
    """A delivery by itself, with more than its entry in a list."""
    return row.public | {name: row[name] for name in _SHOWN_ALONE}


def check_retryable(public: Body, retryable: Sequence[str], *, webhook_exists: bool) -> None:
    """Check that a delivery can be attempted by hand. Raises Conflict."""
    if not webhook_exists:
        message = "The webhook of this delivery was deleted. There is no address to send it to."
        raise Conflict.at("webhookId", message, "webhook_deleted")
    status = public["status"]
    if status not in retryable:
        message = f"The delivery is {status}; only a {either(retryable)} one can be retried."
        raise Conflict.at("status", message, "log_not_retryable")


class Timing(NamedTuple):
    """When an attempt was begun and answered (ms), and how long further ones wait.

    `luck`, from 0 to 1, moves a wait by up to a tenth either way; 0.5 leaves it.
    """

    begun: int
    answered: int
    schedule: tuple[int, ...]
    luck: float = 0.5


def wait_ms(timing: Timing, number: int, outcome: AttemptOutcome) -> int:
    """How long the attempt after the `number`-th waits: by the schedule, and not less than the
    receiver asked for, up to a day.
    """
    usual = timing.schedule[number]
    planned = usual + round(usual * JITTER * (2 * timing.luck - 1))
    if outcome.retry_after is None or outcome.status not in ASKS_FOR_TIME:
        return planned
    return max(planned, min(outcome.retry_after, DAY))


def attempted(
    row: Row, outcome: AttemptOutcome, timing: Timing, *, url: str, trigger: str, is_open: bool
) -> Row:
    """A delivery after an attempt.

    An automatic one of a delivery that `is_open` follows the schedule. One by hand or as a test
    decides the delivery, but a failure by hand leaves one that is open to its schedule. One that
    was canceled meanwhile stays canceled, and one that was decided by hand is only ever delivered
    after all.
    """
    status, next_attempt_at = _outlook(row, outcome, timing, trigger, is_open=is_open)
    number = row["attempt_count"] + 1
    now = iso(timing.answered)
    public = {
        "url": url,
        "status": status,
        "attempt_count": number,
        "response_status": outcome.status,
        "response_body": outcome.body,
        "duration_ms": outcome.duration_ms,
        "error": outcome.error,
        "next_attempt_at": next_attempt_at,
        "last_attempt_at": iso(timing.begun),
        "updatedAt": now,
    }
    if outcome.error is None:
        public["delivered_at"] = now
    attempt: Body = {
        "number": number,
        "at": iso(timing.begun),
        "response_status": outcome.status,
        "duration_ms": outcome.duration_ms,
        "error": outcome.error,
        "signature": outcome.signature,
        "trigger": trigger,
    }
    if outcome.simulated is not None:
        attempt["simulated"] = outcome.simulated
    hidden = {
        "request_headers": outcome.request_headers,
        "response_headers": outcome.response_headers,
        "attempts": [*row["attempts"], attempt][-MOST_ATTEMPTS:],
    }
    return row.changed(public, hidden)


def _outlook(
    row: Row, outcome: AttemptOutcome, timing: Timing, trigger: str, *, is_open: bool
) -> tuple[str, str | None]:
    """The status of a delivery after an attempt, and when the next one is due."""
    was = row.status
    if was == "canceled":
        return was, None
    if outcome.error is None:
        return "delivered", None
    if is_open and outcome.status != GONE:
        if trigger == MANUAL:
            return was, row["next_attempt_at"]
        by_hand = sum(attempt["trigger"] != AUTOMATIC for attempt in row["attempts"])
        scheduled = row["attempt_count"] + 1 - by_hand
        most = min(row["max_attempts"], len(timing.schedule))
        if trigger == AUTOMATIC and scheduled < most:
            return "retrying", iso(timing.answered + wait_ms(timing, scheduled, outcome))
    if is_open or trigger != AUTOMATIC:
        return "failed", None
    return was, None


def after_delivery(webhook: Row, tried: Row, outcome: AttemptOutcome, trigger: str, at: int) -> Row:
    """A webhook after an attempt, by which its delivery was changed.

    It shows the result of the latest attempt, and may be switched off. Failures count when an event
    has used up its attempts.
    """
    assert tried.before is not None
    before = tried.before.status
    after = tried.status
    failures = webhook["consecutive_failures"]
    if trigger != AUTOMATIC:
        status = "delivered" if outcome.error is None else "failed"
    else:
        status = after if after != "canceled" else "failed"
        if after == "delivered":
            failures = 0
        elif after == "failed" != before:
            failures += 1
    webhook = webhook.changed(
        {
            "last_delivery_at": iso(at),
            "last_delivery_status": status,
            "consecutive_failures": failures,
        }
    )
    if webhook["is_active"] and trigger != TEST:
        if outcome.status == GONE:
            return disabled_webhook(webhook, "gone", iso(at))
        if trigger == AUTOMATIC and failures >= MOST_FAILURES:
            return disabled_webhook(webhook, "too_many_failures", iso(at))
    return webhook
