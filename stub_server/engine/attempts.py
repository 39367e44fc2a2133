"""Attempts of deliveries: what is to be sent, and how delivery and webhook change afterwards."""

from typing import NamedTuple

from ..core.clock import parse_iso
from ..core.ids import luck
from ..core.record import Row
from ..core.timers import SENDING
from ..domain import receivers
from ..domain.deliveries import (
    AUTOMATIC,
    AttemptOutcome,
    Delivery,
    Timing,
    after_delivery,
    attempted,
    kept_headers,
)
from ..domain.webhooks import valid_keys
from .deliveries import ANSWERING, CALLING_OFF, is_simulated, is_waiting, job_for
from .draft import Draft
from .fault_rules import BAD_SIGNATURE, DROP, NO_EFFECT, Effect
from .sandbox import Sandbox
from .tables.store import Store


class Attempt(NamedTuple):
    """An attempt to make: the delivery as it is now, its webhook, what is sent, and when
    it begins (ms).
    """

    entry: Row
    webhook: Row
    delivery: Delivery
    begun: int


def attempt_of(webhook: Row, entry: Row, now: int) -> Attempt:
    """An attempt of a delivery: its bytes, to the webhook's present address, signed by
    its present keys.
    """
    delivery = Delivery(
        webhook["url"],
        entry["event_id"],
        entry["request_body"].encode(),
        tuple((header["name"], header["value"]) for header in webhook["headers"]),
        tuple(valid_keys(webhook.hidden, now)),
    )
    return Attempt(entry, webhook, delivery, now)


def due_attempt(sandbox: Sandbox, store: Store, ident: str, now: int) -> Attempt | None:
    """The attempt of an open delivery whose webhook is switched on; None where nothing is to be
    sent any more.
    """
    entry = store.webhook_logs.open(ident)
    states = sandbox.rules.lifecycles["WebhookLogEntry"]
    if entry is None or entry.status not in states.sets["open"]:
        return None
    webhook = store.webhooks.open(entry["webhookId"])
    if webhook is None or not webhook["is_active"]:
        return None
    return attempt_of(webhook, entry, now)


def simulated(sandbox: Sandbox, attempt: Attempt) -> AttemptOutcome | None:
    """The answer of the simulated receiver at a reserved name; None for any other address."""
    entry, webhook, delivery, now = attempt
    if not is_simulated(sandbox, delivery.url):
        return None
    effect = disturbance(sandbox, attempt)
    if effect.then.get(DROP):
        return AttemptOutcome.lost(effect.delay, effect.label)
    answer = receivers.answer(webhook, entry, now)
    if effect.then.get(BAD_SIGNATURE):
        delivery = delivery.forged()
        if answer.status == 200:
            answer = answer._replace(status=receivers.FORGED)
    signature, headers = delivery.signed(now)
    media, body = receivers.BODIES.get(answer.status, ("", None))
    return AttemptOutcome(
        status=answer.status,
        body=body,
        response_headers={"content-type": media, "server": "nginx"} if media else {},
        duration_ms=answer.took + effect.delay,
        error=answer.error,
        request_headers=kept_headers(headers),
        signature=signature,
        simulated=effect.label or None,
    )


def disturbance(sandbox: Sandbox, attempt: Attempt) -> Effect:
    """What the fault rules do to one attempt of a delivery; to be called once for each."""
    if not sandbox.faults.rules:
        return NO_EFFECT
    texts = {"event": attempt.entry["event_type"], "url": attempt.delivery.url}
    return sandbox.faults.by_delivery(
        texts,
        attempt.delivery.body,
        sandbox.clock.now,
        is_seeded="receiver" in attempt.webhook.hidden,
    )


def answer_delivery(draft: Draft, subject: str) -> None:
    """The job of a delivery that the server answers: one attempt, answered at once.

    What cannot be answered now is left to the courier.
    """
    attempt = due_attempt(draft.sandbox, draft.store, subject, draft.now)
    if attempt is None:
        return
    if is_waiting(draft.store, attempt.entry):
        earlier = next(
            draft.store.webhook_logs.rows_of("webhookId+status", (attempt.webhook.id, "retrying"))
        )
        due = parse_iso(earlier["next_attempt_at"])
        # one that is due is the courier's: the webhook has moved from or to a real address
        draft.at(max(due, draft.now), ANSWERING if due > draft.now else SENDING, subject)
        return
    outcome = simulated(draft.sandbox, attempt)
    if outcome is None:  # the webhook has another address by now
        draft.at(draft.now, SENDING, subject)
    else:
        conclude(draft, attempt, outcome, AUTOMATIC)


def conclude(draft: Draft, attempt: Attempt, outcome: AttemptOutcome, trigger: str) -> Row:
    """Record an attempt that ends now; returns the delivery after it.

    Delivery and webhook are read again; either may have been deleted.
    """
    sandbox = draft.sandbox
    ident = attempt.entry.id
    url = attempt.delivery.url
    entry = draft.open("webhook_logs", ident)
    webhook = draft.open("webhooks", attempt.webhook.id)
    was = entry or attempt.entry
    # Tests with a frozen clock rely on the schedule as it is documented.
    chance = 0.5 if sandbox.clock.frozen else luck(ident, str(was["attempt_count"]))
    timing = Timing(attempt.begun, draft.now, sandbox.settings.schedule, chance)
    tried = attempted(
        was, outcome, timing, url=url, trigger=trigger, is_open=draft.is_in(was, "open")
    )
    if entry is not None:
        draft.put(tried)
        if trigger == AUTOMATIC and tried["next_attempt_at"] is not None:
            draft.at(parse_iso(tried["next_attempt_at"]), job_for(sandbox, url), ident)
    if webhook is not None:
        changed = after_delivery(webhook, tried, outcome, trigger, draft.now)
        is_switched_off = webhook["is_active"] and not changed["is_active"]
        draft.put(changed, is_noted=is_switched_off)
        if is_switched_off:
            draft.at(draft.now, CALLING_OFF, webhook.id)
    return tried
