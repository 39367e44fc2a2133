"""One attempt to deliver: whether it is to be made, and the step it ends with."""

from ..core.timers import SENDING, Timer
from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..engine.attempts import Attempt, conclude, due_attempt
from ..engine.deliveries import (
    is_kept_back,
    is_simulated,
    is_waiting,
    keeps_waiting,
)
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.step import Cause


def release_parked(sandbox: Sandbox) -> None:
    """Make due what waited for an earlier delivery to the same webhook that is decided by now."""
    timers = sandbox.timers
    for merchant_id, webhook in list(timers.parked):
        if not keeps_waiting(sandbox.stores[merchant_id], webhook):
            timers.put_back(timers.parked.pop((merchant_id, webhook)))


def claimed_attempt(sandbox: Sandbox, timer: Timer) -> Attempt | None:
    """What a claimed timer sends now; None where nothing is to be sent, no longer or not yet."""
    timers = sandbox.timers
    if sandbox.status.is_gone or sandbox.status.is_broken or not timers.is_claimed(timer):
        return None
    store = sandbox.stores[timer.merchant_id]
    attempt = due_attempt(sandbox, store, timer.subject, sandbox.present)
    if attempt is None:
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


def record(sandbox: Sandbox, timer: Timer, attempt: Attempt, outcome: AttemptOutcome) -> None:
    """Record the step of an attempt, at the instant that the clock shows by now, unless its sandbox
    is gone.
    """
    store = sandbox.stores.get(timer.merchant_id)
    if store is None or sandbox.status.is_gone or sandbox.status.is_broken:
        return
    draft = Draft(sandbox, store, Cause("delivery", timer.subject, SENDING))
    if sandbox.timers.live.get(timer.seq) == timer:  # also in a sandbox that was rewound meanwhile
        draft.fired(timer)
    conclude(draft, attempt, outcome, AUTOMATIC)
    draft.record()
