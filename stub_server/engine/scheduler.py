"""Time passing in a world: everything that fell due is done in the order of its time, each job as a step of its own."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ..kernel.problem import Conflict
from ..kernel.timers import Timer
from .draft import Draft
from .jobs import JOBS, has_moved_on
from .sandbox import Sandbox
from .step import Cause, Step

MOST_JOBS = 100_000  # of one run: nobody else is served meanwhile
log = logging.getLogger("stub_server")


class Fired(NamedTuple):
    """A job that the clock has done."""

    at: int
    job: str
    subject: str
    events: tuple[str, ...]


def tick(sandbox: Sandbox) -> int:
    """Latch the time of the request that begins now, after everything that was due before it.

    Where a job fails by a defect, time waits before it and the request is served: the next one tries again. While the
    clock advances, it stands between its deliveries.
    """
    now = sandbox.clock.now if sandbox.is_advancing else sandbox.clock.read()
    if not sandbox.timers.is_quiet(now):
        try:
            run_due(sandbox, now)
        except Exception:
            log.exception("defect in a job of sandbox %s; its clock waits at %d", sandbox.name, sandbox.clock.now)
            return sandbox.clock.now
        due = sandbox.timers.next_due()
        if due is not None and due <= now:  # more than one run does: time waits until the next one
            return sandbox.clock.now
    sandbox.clock.latch(now)
    return now


def advance(sandbox: Sandbox, to: int, cause: Cause) -> list[Fired]:
    """Jump to an instant; all jobs on the way are done in the order of their time, those they set included.

    After MOST_JOBS the clock stops where the last one was: the next call goes on from there.
    """
    fired = run_due(sandbox, to)
    arrive(sandbox, to, cause)
    return fired


def check_standing(world: Sandbox) -> None:
    """Refuse to change the time of a world whose clock advances. Raises Conflict."""
    if world.is_advancing:
        raise Conflict(
            "The clock is still advancing, for receivers of webhooks take their time.",
            advice="Send this again in a few seconds, or wait for it: POST /_sandbox/webhooks/drain, or `wait_seconds` "
            "of the call that advances it. "
            "GET /_sandbox/clock says when it is complete, and POST /_sandbox/reset ends it.",
            code="clock_advancing",
            headers={"Retry-After": "4"},  # an attempt takes no longer
        )


def arrive(sandbox: Sandbox, to: int, cause: Cause) -> None:
    """Set the clock to an instant, unless a job is due before it."""
    due = sandbox.timers.next_due()
    draft = Draft(sandbox, sandbox.store, cause)
    draft.clock = sandbox.clock.moved(sandbox.clock.now if due is not None and due <= to else to)
    draft.now = draft.clock.now
    draft.record()


def run_due(sandbox: Sandbox, until: int, most: int | None = None, *, pausing: bool = False) -> list[Fired]:
    """Do what is due until an instant, at most so many jobs; when `pausing`, only up to the next attempt to send."""
    most = MOST_JOBS if most is None else most
    fired: list[Fired] = []
    timers, clock = sandbox.timers, sandbox.clock
    now = clock.now
    try:
        for _ in range(most):
            timer = timers.next(until)
            if timer is None:
                break
            if pausing and (attempt := timers.next_attempt()) is not None and attempt < timer.due:
                break
            now = max(now, timer.due)
            step = run(sandbox, timer, now)
            if step is not None:
                fired.append(Fired(timer.due, timer.job, timer.subject, tuple(event.type for event in step.events)))
        if timers.aside:
            last = Draft(sandbox, sandbox.store, Cause("clock", "", "passing"), now)
            last.taken()
            last.clock = clock.at(now)
            last.record()
    except BaseException:
        timers.put_back()
        raise
    return fired


def run(sandbox: Sandbox, timer: Timer, now: int) -> Step | None:
    """Do the next timer's job at an instant; None where its moment has passed, which the next step will say."""
    store = sandbox.stores.get(timer.merchant_id)
    if store is not None and not has_moved_on(sandbox, store, timer):
        _, _, job, _, subject = timer
        draft = Draft(sandbox, store, Cause("job", subject, job), now)
        JOBS[job](draft, subject)
        if not draft.is_empty:
            draft.taken(timer)
            return draft.record()
    sandbox.timers.set_aside(timer)
    return None
