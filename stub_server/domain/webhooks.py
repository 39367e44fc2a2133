"""Rules of webhooks: what one listens to, which keys sign, and what becomes of a delivery."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import HOUR, LATEST, MINUTE, SECOND, iso
from ..kernel.problem import Conflict, detail, duplicate
from ..kernel.record import Body, Row

AUTOMATIC, MANUAL, TEST = "automatic", "manual", "test"  # what brings an attempt about
MOST = 20
KEYS = 10
GONE = 410
SCHEDULE = (0, 5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
"""What an attempt waits after the one before: the example schedule of Standard Webhooks 1.0."""
MOST_FAILURES = 3  # events in a row that used up their attempts
DETAILS = ("request_headers", "request_body", "response_headers", "attempts")
"""What one delivery shows beyond its entry in a list."""


class AttemptOutcome(NamedTuple):
    """What one attempt came to. `status` is None when no answer came, `error` None when it was a 2xx."""

    status: int | None
    body: str | None
    response_headers: dict[str, str]
    duration_ms: int
    error: str | None
    request_headers: dict[str, str]
    signature: str


# -- webhooks


def new_webhook(body: Body, defaults: Body, ident: str, signing_key: str, now: str) -> tuple[Body, Body]:
    """A new webhook's public and hidden parts; the key is in the hidden one alone."""
    public = defaults | {"is_active": True} | _written(body)
    public |= {"id": ident, "api_version": "v2", "consecutive_failures": 0, "createdAt": now, "updatedAt": now}
    return public, {"signing_keys": [{"key": signing_key, "until": None}]}


def changed_webhook(old: Body, body: Body, now: str) -> Body:
    """A webhook after an update; switching it on forgets why the service had switched it off."""
    public = old | _written(body) | {"updatedAt": now}
    if body.get("is_active") is True:
        public |= {"disabled_at": None, "disabled_reason": None, "consecutive_failures": 0}
    return public


def disabled_webhook(old: Body, reason: str, now: str) -> Body:
    """A webhook that the service switches off: `gone` or `too_many_failures`."""
    return old | {"is_active": False, "disabled_at": now, "disabled_reason": reason, "updatedAt": now}


def _written(body: Body) -> Body:
    project = body.get("projectId")
    return body | {"projectId": project.lower()} if project is not None else body


def check_room(count: int) -> None:
    """A merchant has at most 20 webhooks. Raises Conflict."""
    if count >= MOST:
        raise Conflict(f"A merchant has at most {MOST} webhooks. Delete one first.", code="webhook_limit")


def check_address(holder: str | None, own: str | None) -> None:
    """One webhook per address and project. Raises Conflict."""
    if holder is not None and holder != own:
        raise duplicate("url", "duplicate_url", "Another webhook of this merchant has this address for this project.")


def with_key(public: Body, key: str) -> Body:
    """The webhook as the two operations answer that make a key."""
    shown: Body = {}
    for name, value in public.items():
        shown[name] = value
        if name == "api_version":
            shown["signing_key"] = key
    return shown


# -- signing keys


def valid_keys(hidden: Body, now: int) -> list[str]:
    """The keys that sign now, the current one first; `until` is ms and the first instant at which a key is retired."""
    keys = [entry["key"] for entry in hidden["signing_keys"] if entry["until"] is None or entry["until"] > now]
    return keys[::-1]


def rotated(hidden: Body, key: str, now: int, grace_ms: int) -> tuple[Body, int]:
    """The hidden part with a new current key, and when the previous one retires (ms).

    Keys of earlier rotations keep the end that was promised for them; a header has room for the newest ten.
    """
    until = min(now + grace_ms, LATEST)
    kept = [{"key": e["key"], "until": until if e["until"] is None else e["until"]} for e in hidden["signing_keys"]]
    kept = [entry for entry in kept if entry["until"] > now][-(KEYS - 1) :]
    return hidden | {"signing_keys": [*kept, {"key": key, "until": None}]}, until


# -- what is wanted


def listens(patterns: Iterable[str], event_type: str) -> bool:
    """Whether one of the patterns (`*`, `<resource>.*`, a type) names an event type."""
    return not {"*", event_type.partition(".")[0] + ".*", event_type}.isdisjoint(patterns)


class Subscriber(NamedTuple):
    """A webhook as events see it: which ones it wants, and where they go."""

    id: str
    url: str
    patterns: frozenset[str]
    project_id: str | None

    def wants(self, event_type: str, project_id: str | None) -> bool:
        """Whether an event is for this webhook: by its type, and by its project if the webhook has one."""
        return (self.project_id is None or self.project_id == project_id) and listens(self.patterns, event_type)


@lru_cache(maxsize=4096)
def subscriber_of(record_json: bytes) -> Subscriber:
    """A stored webhook as a subscriber. Cached by its bytes: a changed webhook has others, a copied world the same."""
    public = orjson.loads(record_json)
    return Subscriber(public["id"], public["url"], frozenset(public["events"]), public["projectId"])


# -- deliveries


def new_log(
    ident: str,
    subscriber: Subscriber,
    event_id: str,
    event_type: str,
    body: bytes,
    serial: int,
    now: str,
    *,
    test: bool,
) -> tuple[Body, Body]:
    """A delivery before its first attempt. `serial` is the event's place in the world's history.

    An automatic one is due at once; a test send is attempted by its request and is never due.
    The project is the webhook's at the time of the event: restricted keys see the delivery by it.
    """
    public = {
        "id": ident,
        "webhookId": subscriber.id,
        "event_id": event_id,
        "event_type": event_type,
        "status": "pending",
        "is_test": test,
        "url": subscriber.url,
        "attempt_count": 0,
        "max_attempts": 1 if test else len(SCHEDULE),
        "response_status": None,
        "response_body": None,
        "duration_ms": None,
        "error": None,
        "next_attempt_at": None if test else now,
        "last_attempt_at": None,
        "delivered_at": None,
        "createdAt": now,
        "updatedAt": now,
    }
    hidden: Body = {
        "request_headers": {},
        "request_body": body.decode(),
        "response_headers": {},
        "attempts": [],
        "projectId": subscriber.project_id,
        "serial": serial,
    }
    return public, hidden


def shown_log(public: Body, hidden: Body) -> Body:
    """One delivery as it is shown alone."""
    return public | {name: hidden[name] for name in DETAILS}


def check_retryable(public: Body, *, webhook_exists: bool) -> None:
    """Only a delivery that has been attempted is attempted again by hand. Raises Conflict."""
    if not webhook_exists:
        message = "The webhook of this delivery was deleted. There is no address to send it to."
        raise Conflict(message, code="webhook_deleted", details=[detail("webhookId", "webhook_deleted", message)])
    if public["status"] in ("pending", "canceled"):
        message = f"The delivery is {public['status']}; only a delivered, retrying or failed one can be retried."
        raise Conflict(message, code="log_not_retryable", details=[detail("status", "log_not_retryable", message)])


def attempted(row: Row, outcome: AttemptOutcome, url: str, trigger: str, at: int, now: int) -> tuple[Body, Body]:
    """A delivery after an attempt that was begun at `at` and answered at `now` (ms).

    An automatic one follows the schedule. One by hand or as a test decides the delivery, which leaves the schedule; one
    that was canceled meanwhile stays canceled.
    """
    delivered = outcome.error is None
    number = row.public["attempt_count"] + 1
    retries = not delivered and trigger == AUTOMATIC and outcome.status != GONE and number < row.public["max_attempts"]
    canceled = row.public["status"] == "canceled"
    public = row.public | {
        "url": url,
        "attempt_count": number,
        "response_status": outcome.status,
        "response_body": outcome.body,
        "duration_ms": outcome.duration_ms,
        "error": outcome.error,
        "next_attempt_at": iso(now + SCHEDULE[number]) if retries and not canceled else None,
        "last_attempt_at": iso(at),
        "updatedAt": iso(now),
    }
    if delivered:
        public["delivered_at"] = iso(now)
    if not canceled:
        public["status"] = "delivered" if delivered else "retrying" if retries else "failed"
    attempt: dict[str, Any] = {
        "number": number,
        "at": iso(at),
        "response_status": outcome.status,
        "duration_ms": outcome.duration_ms,
        "error": outcome.error,
        "signature": outcome.signature,
        "trigger": trigger,
    }
    hidden = row.hidden | {
        "request_headers": outcome.request_headers,
        "response_headers": outcome.response_headers,
        "attempts": [*row.hidden["attempts"], attempt],
    }
    return public, hidden


def after_delivery(old: Body, log: Body, outcome: AttemptOutcome, trigger: str, at: int) -> Body:
    """A webhook after an attempt of a delivery: what it shows of the latest one, and whether it is switched off.

    `updatedAt` stays unless it is: nobody changed it. Failures count when an event has used up its attempts.
    """
    if trigger != AUTOMATIC:
        status = "delivered" if outcome.error is None else "failed"
        failures = old["consecutive_failures"]
    else:
        status = log["status"] if log["status"] != "canceled" else "failed"
        failures = {"delivered": 0, "failed": old["consecutive_failures"] + 1}.get(status, old["consecutive_failures"])
    public = old | {"last_delivery_at": iso(at), "last_delivery_status": status, "consecutive_failures": failures}
    if public["is_active"] and trigger != TEST:
        if outcome.status == GONE:
            return disabled_webhook(public, "gone", iso(at))
        if trigger == AUTOMATIC and failures >= MOST_FAILURES:
            return disabled_webhook(public, "too_many_failures", iso(at))
    return public


def called_off(public: Body, now: str) -> Body:
    """A delivery that nobody will attempt any more."""
    return public | {"status": "canceled", "next_attempt_at": None, "updatedAt": now}
