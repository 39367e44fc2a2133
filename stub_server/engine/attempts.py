"""Attempts of deliveries: what is to be sent, and how delivery and webhook change afterwards."""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from ..core.clock import parse_iso
from ..core.ids import luck
from ..core.record import Body, Row
from ..core.signing import new_key, signatures, signed_headers
from ..core.timers import SENDING, Timer
from ..domain import receivers
from ..domain.deliveries import AUTOMATIC, LOST, AttemptOutcome, Delivery, Timing, after_delivery, attempted
from ..domain.webhooks import valid_keys
from .deliveries import ANSWERING, CALLING_OFF, is_simulated, is_waiting, job_for
from .draft import Draft
from .fault_rules import BAD_SIGNATURE, DROP, NO_EFFECT, Effect
from .sandbox import Sandbox
from .tables.memory import Store


class Attempt(NamedTuple):
    """An attempt that is to be made: the delivery as it is now, its webhook, and what is sent."""

    entry: Row
    webhook: Row
    delivery: Delivery


def attempt_for(sandbox: Sandbox, timer: Timer) -> Attempt | None:
    """The attempt that is due; None where nothing is to be sent any more."""
    store = sandbox.stores.get(timer.merchant_id)
    due = None if store is None else _due(sandbox, store, timer.subject)
    if due is None:
        return None
    entry, webhook = due
    return Attempt(entry, webhook, delivery_of(webhook, entry, sandbox.clock.now))


def _due(sandbox: Sandbox, store: Store, ident: str) -> tuple[Row, Row] | None:
    """An open delivery and its webhook, which is switched on."""
    entry = store.webhook_logs.open(ident)
    if entry is None or not _is_open(sandbox, entry.public):
        return None
    webhook = store.webhooks.open(entry.public["webhookId"])
    if webhook is None or not webhook.public["is_active"]:
        return None
    return entry, webhook


def delivery_of(webhook: Row, entry: Row, now: int) -> Delivery:
    """What is sent: the bytes of the delivery, to the webhook's present address, signed by its present keys."""
    return Delivery(
        webhook.public["url"],
        entry.public["event_id"],
        entry.hidden["request_body"].encode(),
        tuple((header["name"], header["value"]) for header in webhook.public["headers"]),
        tuple(valid_keys(webhook.hidden, now)),
    )


def simulated(sandbox: Sandbox, webhook: Row, entry: Row, now: int) -> AttemptOutcome | None:
    """The answer of the simulated receiver at a reserved name; None for any other address."""
    if not is_simulated(sandbox, webhook.public["url"]):
        return None
    effect = disturbance(sandbox, webhook, entry)
    delivery, stamp = delivery_of(webhook, entry, now), now // 1000
    is_forged = effect.then.get(BAD_SIGNATURE, False)
    keys = wrong_keys(delivery.keys) if is_forged else delivery.keys
    signature = signatures(keys, delivery.event_id, stamp, delivery.body)
    own = [(name.lower(), value) for name, value in delivery.headers]
    answer = receivers.answer(webhook.public, webhook.hidden, entry.public, now)
    if effect.then.get(DROP):
        answer = receivers.Answer(None, 0, LOST)
    elif is_forged and answer.status == 200:
        answer = answer._replace(status=receivers.FORGED)
    media, body = receivers.BODIES.get(answer.status, ("", None))
    return AttemptOutcome(
        status=answer.status,
        body=body,
        response_headers={"content-type": media, "server": "nginx"} if media else {},
        duration_ms=answer.took + effect.delay,
        error=answer.error,
        request_headers=dict(signed_headers(delivery.event_id, stamp, signature, own)),
        signature=signature,
        simulated=effect.label or None,
    )


def disturbance(sandbox: Sandbox, webhook: Row, entry: Row) -> Effect:
    """What the fault rules do to one attempt of a delivery; to be called once for each."""
    if not sandbox.faults.rules:
        return NO_EFFECT
    texts = {"event": entry.public["event_type"], "url": webhook.public["url"]}
    body, is_seeded = entry.hidden["request_body"].encode(), "receiver" in webhook.hidden
    return sandbox.faults.by_delivery(texts, body, sandbox.clock.now, is_seeded=is_seeded)


def wrong_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Keys that no receiver has, one for each, so that a signature has the right form and is not valid."""
    return tuple(new_key(sha256(key.encode()).digest()) for key in keys)


def answer_delivery(draft: Draft, subject: str) -> None:
    """The job of a delivery that the server answers: one attempt, answered at once."""
    due = _due(draft.sandbox, draft.store, subject)
    if due is None:
        return
    entry, webhook = due
    if is_waiting(draft.store, entry):
        earlier = next(draft.store.webhook_logs.rows_of("webhookId+status", (webhook.id, "retrying")))
        draft.at(parse_iso(earlier.public["next_attempt_at"]), ANSWERING, subject)
        return
    outcome = simulated(draft.sandbox, webhook, entry, draft.now)
    if outcome is None:  # the webhook has another address by now
        draft.at(draft.now, SENDING, subject)
        return
    conclude(draft, entry, webhook.id, outcome, url=webhook.public["url"], trigger=AUTOMATIC, begun=draft.now)


def conclude(
    draft: Draft, entry: Row, webhook_id: str, outcome: AttemptOutcome, *, url: str, trigger: str, begun: int
) -> tuple[Body, Body]:
    """Record an attempt from `begun` (ms) until now; returns the delivery's two parts.

    `entry` is the delivery at its start. Delivery and webhook are read again; either may have been deleted.
    """
    store, sandbox = draft.store, draft.sandbox
    entry_now, webhook = draft.open(store.webhook_logs, entry.id), draft.open(store.webhooks, webhook_id)
    was = entry_now or entry
    # Tests with a frozen clock rely on the schedule as it is documented.
    chance = 0.5 if sandbox.clock.frozen else luck(entry.id, str(was.public["attempt_count"]))
    attempt = Timing(begun, draft.now, sandbox.settings.schedule, chance)
    public, hidden = attempted(was, outcome, attempt, url=url, trigger=trigger, is_open=_is_open(sandbox, was.public))
    if entry_now is not None:
        draft.update(store.webhook_logs, entry_now, public, hidden)
        if trigger == AUTOMATIC and public["next_attempt_at"] is not None:
            draft.at(parse_iso(public["next_attempt_at"]), job_for(sandbox, url), entry.id)
    if webhook is not None:
        statuses = was.public["status"], public["status"]
        changed = after_delivery(webhook.public, statuses, outcome, trigger, draft.now)
        draft.update(store.webhooks, webhook, changed)
        if webhook.public["is_active"] and not changed["is_active"]:
            draft.at(draft.now, CALLING_OFF, webhook_id)
    return public, hidden


def _is_open(sandbox: Sandbox, entry: Body) -> bool:
    return entry["status"] in sandbox.rules.lifecycles["WebhookLogEntry"].sets["open"]
