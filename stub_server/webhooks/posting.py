"""One attempt to deliver: whether it is to be made, what is sent, and the step it ends with."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import orjson

from ..core.clock import SECOND
from ..core.timers import SENDING, Timer
from ..domain.deliveries import AUTOMATIC, AttemptOutcome, Delivery
from ..engine.attempts import Attempt, conclude, due_attempt, wrong_keys
from ..engine.deliveries import (
    is_kept_back,
    is_silent,
    is_simulated,
    is_waiting,
    keeps_waiting,
)
from ..engine.draft import Draft
from ..engine.fault_rules import BAD_SIGNATURE, DROP, DUPLICATE, Effect
from ..engine.sandbox import Sandbox
from ..engine.step import Cause
from ..engine.tables.store import Store
from .sender import Sender

# -- whether it is to be made


def next_attempt(sandbox: Sandbox) -> int | None:
    """When the next attempt is due; None if nothing is to be sent."""
    if is_silent(sandbox):
        return None
    return sandbox.timers.next_attempt()


def claim_due(sandbox: Sandbox, until: int) -> Iterator[tuple[str, Timer]]:
    """Claim the attempts that are due at an instant or before, in the order of time; each with its
    webhook's id.
    """
    while (timer := sandbox.timers.claim(until)) is not None:
        webhook = _webhook_of(sandbox, timer)
        if webhook is None:
            sandbox.timers.regroup(timer, sandbox.timers.skipped)
        else:
            yield webhook, timer


def _webhook_of(sandbox: Sandbox, timer: Timer) -> str | None:
    """The id of the webhook that a timer sends to; None if its delivery is no longer stored."""
    store = sandbox.stores.get(timer.merchant_id)
    if store is None:
        return None
    record = store.webhook_logs.find(timer.subject)
    if record is None:
        return None
    return str(orjson.loads(record.public)["webhookId"])


def release_parked(sandbox: Sandbox) -> None:
    """Make due what waited for an earlier delivery to the same webhook that is decided by now."""
    timers = sandbox.timers
    for merchant_id, webhook in list(timers.parked):
        if not keeps_waiting(sandbox.stores.get(merchant_id), webhook):
            timers.put_back(timers.parked.pop((merchant_id, webhook)))


def claimed_attempt(sandbox: Sandbox, timer: Timer) -> Attempt | None:
    """What a claimed timer sends now; None where nothing is to be sent, no longer or not yet."""
    timers = sandbox.timers
    if sandbox.status.is_gone or sandbox.status.is_broken or not timers.is_claimed(timer):
        return None
    store = sandbox.stores.get(timer.merchant_id)
    attempt = due_attempt(sandbox, store, timer.subject, sandbox.present)
    if store is None or attempt is None:
        timers.regroup(timer, timers.skipped)
        return None
    url = attempt.delivery.url
    if is_kept_back(sandbox, attempt.entry, url) and not is_simulated(sandbox, url):
        timers.regroup(timer, timers.on_hold)
    elif is_waiting(store, attempt.entry):
        timers.regroup(timer, timers.parked[timer.merchant_id, attempt.webhook.id])
    else:
        return attempt
    return None


# -- what is sent, and the step


async def send(
    sender: Sender, delivery: Delivery, timeout: float, effect: Effect
) -> AttemptOutcome:
    """Post once, or as the fault rules say, which the outcome names.

    Of a duplicate the first answer counts.
    """
    if effect.delay:
        await asyncio.sleep(effect.delay / SECOND)
    if effect.then.get(DROP):
        return AttemptOutcome.lost(effect.delay, effect.label)
    if effect.then.get(BAD_SIGNATURE):
        delivery = replace(delivery, keys=wrong_keys(delivery.keys))
    outcome = await sender.attempt(delivery, timeout)
    if effect.then.get(DUPLICATE):
        await sender.attempt(delivery, timeout)
    return outcome._replace(
        simulated=effect.label or None, duration_ms=outcome.duration_ms + effect.delay
    )


def record(sandbox: Sandbox, timer: Timer, attempt: Attempt, outcome: AttemptOutcome) -> None:
    """Record the step of an attempt, at the instant that the clock shows by now, unless its sandbox
    is gone.
    """
    store = sandbox.stores.get(timer.merchant_id)
    if store is not None and not sandbox.status.is_gone and not sandbox.status.is_broken:
        draft = _draft(sandbox, timer, store)
        conclude(draft, attempt, outcome, AUTOMATIC)
        draft.record()


def _draft(sandbox: Sandbox, timer: Timer, store: Store) -> Draft:
    draft = Draft(sandbox, store, Cause("delivery", timer.subject, SENDING))
    if sandbox.timers.live.get(timer.seq) == timer:  # also in a sandbox that was rewound meanwhile
        draft.fired(timer)
    return draft
