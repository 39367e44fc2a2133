"""Time passing in a world: everything that fell due is done in the order of its time, each job as a step of its own."""

from __future__ import annotations

import logging
from collections.abc import Generator
from time import perf_counter
from typing import NamedTuple

from ..kernel.problem import Conflict, Unavailable
from ..kernel.slices import BackgroundWorker, at_once
from ..kernel.timers import Timer
from .draft import Draft
from .jobs import JOBS, has_moved_on
from .sandbox import Sandbox
from .step import Cause, Step

LITTLE = 0.001  # seconds: what is done at once takes no longer than a request
log = logging.getLogger("stub_server")


class Fired(NamedTuple):
    """A job that the clock has done."""

    at: int
    job: str
    subject: str
    events: tuple[str, ...]


def tick(sandbox: Sandbox) -> int | None:
    """Latch the time of what begins now, after the little that was due before it; None when that is done.

    Where more is due, answers the instant up to which it is to be done first, by `pass_on`. A clock that advances
    stands between its deliveries.
    """
    if sandbox.clock.latch(sandbox.timers.jobs, stands=sandbox.is_advancing):
        return None
    now = sandbox.clock.now if sandbox.is_advancing else sandbox.clock.read()
    if sandbox.turn.locked():
        return now
    work, until = ticking(sandbox, now), perf_counter() + LITTLE
    for _ in work:
        if perf_counter() >= until:
            work.close()
            return now
    return None


async def pass_on(sandbox: Sandbox, lane: BackgroundWorker, until: int) -> None:
    """Do what is due until an instant, however much it is, while requests to other sandboxes are served.

    On the way of a clock that advances, jobs are not done for a request: it is served between them.
    """
    if not (sandbox.is_advancing and sandbox.turn.locked()):
        async with sandbox.turn:
            await lane.in_slices(ticking(sandbox, until))


async def caught_up(sandbox: Sandbox, lane: BackgroundWorker) -> None:
    """Latch the time after everything that is due by now."""
    until = tick(sandbox)
    if until is not None:
        await pass_on(sandbox, lane, until)


def tick_through(sandbox: Sandbox) -> None:
    """The same at once: where nobody else waits."""
    until = tick(sandbox)
    if until is not None:
        at_once(ticking(sandbox, until))


def ticking(sandbox: Sandbox, until: int) -> Generator[None, None, None]:
    """Do what is due until an instant, with pauses, and latch it.

    Where a job fails by a defect, time waits before it and the request is served: the next one tries again.
    """
    timers, clock = sandbox.timers, sandbox.clock
    if timers.next(until) is not None:
        try:
            yield from passing(sandbox, until, [])
        except Unavailable:  # the store cannot be written: time waits, and reads are answered
            return
        except Exception:
            log.exception("defect in a job of sandbox %s; its clock waits at %d", sandbox.name, clock.now)
            return
    if timers is sandbox.timers and timers.next(until) is None:  # else it has gone back meanwhile
        clock.now = max(clock.now, until)


def advance(sandbox: Sandbox, to: int, cause: Cause) -> list[Fired]:
    """Jump to an instant; all jobs on the way are done in the order of their time, those they set included."""
    fired: list[Fired] = []
    at_once(passing(sandbox, to, fired))
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
    """Set the clock to an instant before which nothing is due any more."""
    draft = Draft(sandbox, sandbox.store, cause)
    draft.clock = sandbox.clock.moved(to)
    draft.now = draft.clock.now
    draft.record()


def passing(sandbox: Sandbox, until: int, fired: list[Fired], *, pausing: bool = False) -> Generator[None, None, None]:
    """Do what is due until an instant, with a pause after each job; `fired` takes what was done.

    When `pausing`, only up to the next attempt to send. It ends where the sandbox goes, or goes back, in a pause.
    """
    timers, clock, undone_at = sandbox.timers, sandbox.clock, sandbox.undone_at
    now = clock.now

    def goes_on() -> bool:
        return not sandbox.is_gone and timers is sandbox.timers and undone_at == sandbox.undone_at

    try:
        while goes_on() and (timer := timers.next(until)) is not None:
            if pausing and (attempt := timers.next_attempt()) is not None and attempt < timer.due:
                break
            now = max(now, clock.now, timer.due)
            step = run(sandbox, timer, now)
            if step is not None:
                fired.append(Fired(timer.due, timer.job, timer.subject, tuple(event.type for event in step.events)))
            yield
        if timers.skipped and goes_on():
            last = Draft(sandbox, sandbox.store, Cause("clock", "", "passing"), now)
            last.taken()
            last.clock = clock.at(now)
            last.record()
    except BaseException:
        timers.put_back()
        raise


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
    sandbox.timers.skip(timer)
    return None
