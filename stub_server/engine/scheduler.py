"""The clock of a sandbox: jobs that fall due are done in the order of their time, each as its own
step.

A job reads its record as it is by then, and does nothing if that has changed. `JOBS` has all of
them.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ..core.log import log
from ..core.problem import Conflict, Unavailable
from ..core.record import Row
from ..core.slices import BackgroundWorker, Sliced
from ..core.timers import Timer, Timers
from ..domain import orders, subscriptions
from ..domain.api_keys import state
from . import attempts, billing, closing, renewals, resources
from .deliveries import ANSWERING, CALLING_OFF
from .draft import Draft
from .sandbox import Sandbox
from .step import Cause, Step
from .tables.table import Table

# records that one step of a job changes at most: each may open deliveries to twenty webhooks
MOST_CHANGED = 25
MOST_RESUMED = 200  # subscriptions that get a timer in one step

Job = Callable[[Draft, str], None]
"""Drafts what is due for a subject."""


class Fired(NamedTuple):
    """A job that the clock has done."""

    at: int
    job: str
    subject: str
    events: tuple[str, ...]


# -- time


async def do_due(sandbox: Sandbox, worker: BackgroundWorker) -> None:
    """Do everything that is due by now, and latch the time, while requests to other sandboxes are
    served.

    While the clock advances, it does the jobs itself, and requests are served between them.
    """
    if not (sandbox.status.is_advancing and sandbox.status.turn.locked()):
        async with sandbox.status.turn:
            await worker.in_slices(due_jobs(sandbox), sandbox.name)


def due_jobs(sandbox: Sandbox) -> Sliced[None]:
    """Do what is due by now, with pauses, and latch the time.

    If a job fails by a defect, time stops before it and the request is served; the next request
    tries again.
    """
    timers = sandbox.timers
    clock = sandbox.clock
    until = sandbox.present
    if timers.next_job(until) is not None:
        try:
            yield from jobs_until(sandbox, until, [])
        except Unavailable:  # steps cannot be stored: time waits, and reads are answered
            return
        except Exception:
            log.exception(
                "defect in a job of sandbox %s; its clock waits at %d", sandbox.name, clock.now
            )
            return
    if timers is sandbox.timers and timers.next_job(until) is None:  # else it was rewound meanwhile
        clock.now = max(clock.now, until)


def check_not_advancing(sandbox: Sandbox) -> None:
    """Check that the clock of a sandbox is not advancing. Raises Conflict."""
    if sandbox.status.is_advancing:
        raise Conflict(
            "The clock is still advancing, because it waits for receivers of webhooks.",
            advice=(
                "Send this again in a few seconds, or wait with POST /_sandbox/webhooks/drain or"
                " with `wait_seconds` of the call that advances it. GET /_sandbox/clock shows when"
                " it is complete, and POST /_sandbox/reset ends it."
            ),
            code="clock_advancing",
            headers={"Retry-After": "4"},  # an attempt takes no longer
        )


def move_clock(sandbox: Sandbox, to: int, cause: Cause) -> None:
    """Set the clock to an instant before which nothing is due."""
    draft = Draft(sandbox, sandbox.store, cause)
    draft.clock = sandbox.clock.moved(to)
    draft.now = draft.clock.now
    draft.record()


def jobs_until(
    sandbox: Sandbox, until: int, fired: list[Fired], *, pausing: bool = False
) -> Sliced[None]:
    """Do what is due until an instant, with a pause after each job; jobs done are added to `fired`.

    With `pausing`, only up to the next attempt to send. It ends when the sandbox is deleted or
    rewound in a pause.
    """
    timers = sandbox.timers
    clock = sandbox.clock
    now = clock.now
    try:
        while (timer := _next_job(sandbox, timers, until, pausing=pausing)) is not None:
            now = max(now, clock.now, timer.due)
            step = run(sandbox, timer, now)
            if step is not None:
                events = tuple(event.type for event in step.events)
                fired.append(Fired(timer.due, timer.job, timer.subject, events))
            yield
        if timers.skipped and _goes_on(sandbox, timers):
            last = Draft(sandbox, sandbox.store, Cause("clock", "", "passing"), now)
            last.clock = clock.at(now)
            last.record()
    except BaseException:
        timers.put_back(timers.skipped)
        raise


def _goes_on(sandbox: Sandbox, timers: Timers) -> bool:
    """Whether a sandbox still has these timers, so that it was neither deleted nor rewound."""
    return not sandbox.status.is_gone and timers is sandbox.timers


def _next_job(sandbox: Sandbox, timers: Timers, until: int, *, pausing: bool) -> Timer | None:
    """The next job that is due until an instant; with `pausing` none after an attempt to send."""
    timer = timers.next_job(until) if _goes_on(sandbox, timers) else None
    if timer is not None and pausing and timers.next_attempt(timer.due - 1) is not None:
        return None
    return timer


def run(sandbox: Sandbox, timer: Timer, now: int) -> Step | None:
    """Do the job of the next timer; None where its moment has passed, which the next
    step records.
    """
    store = sandbox.stores.get(timer.merchant_id)
    if store is not None:
        draft = Draft(sandbox, store, Cause("job", timer.subject, timer.job), now)
        try:
            JOBS[timer.job](draft, timer.subject)
        except Conflict:  # of a move that the contract no longer has
            draft = Draft(sandbox, store, draft.cause, now)
        if not draft.is_empty:
            draft.fired(timer)
            return draft.record()
    sandbox.timers.skip(timer)
    return None


# -- jobs


def _expire(draft: Draft, row: Row) -> None:
    if row["renewal"]:  # it waits with its subscription
        renewed = draft.open("subscriptions", row["subscriptionId"])
        if renewed is not None and subscriptions.has_dispute(renewed):
            return
        if billing.is_project(draft, row, "paused"):
            return
    if orders.expires_at(row) <= draft.now:
        closing.expire(draft, row)


def _expire_key(draft: Draft, subject: str) -> None:
    row = draft.open("api_keys", subject)
    if row is None or not row["is_active"] or state(row, draft.now) != "expired":
        return
    key = draft.put(row.changed({"is_active": False}))
    resources.key_moved(draft, key, "active", "expired")


def _call_off(draft: Draft, subject: str) -> None:
    """The webhook was switched off or deleted: its open deliveries are canceled."""
    table = draft.store.webhook_logs
    waiting = _rows_in(table, "webhookId", subject, draft.states("WebhookLogEntry", "open"))
    for row in draft.some(waiting, CALLING_OFF, subject, MOST_CHANGED):
        draft.put(row.changed({"status": "canceled", "next_attempt_at": None}))


def _close_project(draft: Draft, subject: str) -> None:
    """The project was archived: open orders are canceled, and subscriptions end with the period
    that is paid for.
    """
    payable = draft.states("Order", "payable")
    unpaid = _rows_in(draft.store.orders, "projectId", subject, payable)
    for row in draft.some(unpaid, "project.close", subject, MOST_CHANGED):
        closing.cancel(draft, row)
    members = draft.store.subscriptions.rows_of("going_on", subject)
    for row in draft.some(members, "project.close", subject, MOST_CHANGED):
        billing.end_later(draft, row)


def _go_on_reopening(draft: Draft, subject: str) -> None:
    """The subscriptions of the project after this one."""
    row = draft.open("subscriptions", subject)
    if row is not None:
        _reopen_project(draft, row["projectId"], row.record.key)


def _reopen_project(draft: Draft, project_id: str, key: int = 0) -> None:
    """The project is no longer suspended: its running subscriptions are resumed, those after that
    of a key; of many some now, and the others at once.
    """
    table = draft.store.subscriptions
    buckets = [
        table.bucket("projectId+status", (project_id, state))
        for state in draft.states("Subscription", "running")
    ]
    keys = sorted(chain.from_iterable(buckets))
    begin = bisect_right(keys, key)
    chosen = [table.rows[each].id for each in keys[begin : begin + MOST_RESUMED]]
    for ident in chosen:
        draft.at(draft.now, "subscription.resume", ident)
    if begin + MOST_RESUMED < len(keys):
        draft.at(draft.now, "subscription.reopen", chosen[-1])


def _rows_in(table: Table, index: str, ident: str, states: Iterable[str]) -> Iterator[Row]:
    """The records of a project or a webhook (`index`) in each of these states."""
    for state_ in states:
        yield from table.rows_of(f"{index}+status", (ident, state_))


def _on_order(states: str, action: Callable[[Draft, Row], object]) -> Job:
    """A job for an order in one of the `states` of that name."""

    def job(draft: Draft, subject: str) -> None:
        # Most have been paid long before they would expire: those are not even parsed.
        if draft.store.orders.is_in(subject, "status", draft.states("Order", states)):
            action(draft, draft.get("orders", subject))

    return job


def _on_subscription(action: Callable[[Draft, Row], object]) -> Job:
    def job(draft: Draft, subject: str) -> None:
        row = draft.open("subscriptions", subject)
        if row is not None and not billing.is_project(draft, row, "paused"):
            action(draft, row)

    return job


JOBS: Mapping[str, Job] = {
    "order.pay": _on_order("payable", billing.pay),
    "order.expire": _on_order("payable", _expire),
    "order.refund": _on_order("refundable", billing.refund),
    "subscription.activate": _on_subscription(renewals.activate),
    "subscription.renew": _on_subscription(renewals.renew),
    "subscription.reopen": _go_on_reopening,
    "subscription.resume": _on_subscription(renewals.end_suspension),
    "subscription.end": _on_subscription(renewals.end_period),
    "subscription.charge": _on_subscription(renewals.charge_again),
    "subscription.expire": _on_subscription(renewals.end_grace),
    "api_key.expire": _expire_key,
    "project.close": _close_project,
    "project.reopen": _reopen_project,
    resources.CLEARING_PROJECT: resources.clear_project,
    resources.CLEARING_PLAN: resources.clear_plan,
    ANSWERING: attempts.answer_delivery,
    CALLING_OFF: _call_off,
}


def table_of_job(job: str) -> str:
    """The table of the records that a job is about: `order.expire` -> `orders`."""
    kind = job.partition(".")[0]
    if kind == "webhook":
        return "webhooks" if job == CALLING_OFF else "webhook_logs"
    return f"{kind}s"
