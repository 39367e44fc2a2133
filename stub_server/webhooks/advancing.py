"""What controls ask of deliveries: advance a clock past them, wait for them, count them, and send
what is held.
"""

import asyncio
from contextlib import suppress

from ..core.slices import at_once
from ..engine.sandbox import Sandbox
from ..engine.scheduler import Fired, jobs_until, move_clock
from ..engine.step import Cause
from .courier import Courier
from .posting import release_parked


async def pass_time(
    courier: Courier,
    sandbox: Sandbox,
    to: int,
    cause: Cause,
    *,
    seconds: float,
) -> tuple[list[Fired], bool]:
    """Advance the clock of a sandbox; wait for that at most so many seconds of real time.

    Returns the jobs done on the way, and whether the clock has arrived.

    The clock stops at the instant of each attempt until the attempt has been answered. After the
    seconds it goes on in the background, and other clock calls are rejected until it is complete.
    """
    fired: list[Fired] = []
    if not courier.is_open:
        at_once(jobs_until(sandbox, to, fired))
        move_clock(sandbox, to, cause)
        return fired, True

    outbox = courier.outbox(sandbox)

    async def go_on() -> None:
        outbox.fired = fired
        try:
            await _advance(courier, sandbox, to, cause, fired)
            if not sandbox.status.is_gone:
                move_clock(sandbox, to, cause)
        finally:
            sandbox.status.is_advancing = False
            outbox.fired = None
            courier.look_soon(sandbox)

    sandbox.status.is_advancing = True
    task = courier.spawn(go_on())
    done, _ = await asyncio.wait((task,), timeout=seconds)
    if done:
        task.result()
        return fired, True
    return list(fired), False


async def _advance(
    courier: Courier, sandbox: Sandbox, to: int, cause: Cause, fired: list[Fired]
) -> None:
    """Do the jobs and the attempts that are due until an instant, in the order of their time."""
    await courier.idle(sandbox)
    while not sandbox.status.is_gone:
        release_parked(sandbox)
        async with sandbox.status.turn:
            jobs = jobs_until(sandbox, to, fired, pausing=True)
            await courier.worker.in_slices(jobs, sandbox.name)
        attempt = sandbox.timers.next_attempt(to)
        if attempt is not None:
            if attempt.due > sandbox.clock.now:
                move_clock(sandbox, attempt.due, cause)
            await courier.queue_due(sandbox, attempt.due)
            await courier.idle(sandbox)
        elif sandbox.timers.next_job(to) is None:
            return


async def drained(courier: Courier, sandbox: Sandbox, seconds: float) -> bool:
    """Wait until nothing is due in a sandbox, at most so many seconds.

    Returns whether that is so.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not _is_drained(courier, sandbox):
                await courier.ended()
    return _is_drained(courier, sandbox)


def _is_drained(courier: Courier, sandbox: Sandbox) -> bool:
    """Whether nothing is due that will be sent, and no clock call goes on."""
    if sandbox.status.is_gone:
        return True
    if sandbox.status.is_advancing or sandbox.timers.claimed or courier.outbox(sandbox).queues:
        return False
    return sandbox.timers.next_attempt(sandbox.clock.read()) is None


def counts(courier: Courier, sandbox: Sandbox) -> dict[str, int]:
    """How many attempts of a sandbox are due, how many of these are under way, and how many are
    kept back.
    """
    timers = sandbox.timers
    return {
        "due": timers.attempts_due(sandbox.clock.now),
        "in_flight": len(courier.outbox(sandbox).queues),
        "held": len(timers.on_hold) + sum(map(len, timers.parked.values())),
    }
