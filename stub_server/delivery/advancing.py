"""A clock that advances: it stops at the instant of each attempt until the attempt has been answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import NamedTuple

from ..engine.deliveries import is_silent
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.scheduler import Fired, advance, arrive, check_standing, passing
from ..engine.step import Cause
from ..kernel.timers import SENDING, Timer
from .courier import Courier, let_go_on, webhook_of

TIMEOUT = 4.0  # seconds of one attempt
log = logging.getLogger("stub_server")


class Passed(NamedTuple):
    """The jobs done on the way, and whether the clock has arrived."""

    fired: list[Fired]
    complete: bool


async def pass_time(
    courier: Courier, world: Sandbox, to: int, cause: Cause, seconds: float, then: Callable[[], object] | None = None
) -> Passed:
    """Advance the clock of a sandbox and then call `then`; wait for that at most so many seconds of real time.

    After these it goes on in the background, and other clock calls are rejected until it is complete.
    Raises Conflict.
    """
    check_standing(world)
    fired: list[Fired] = []
    if not courier.is_open:
        fired += advance(world, to, cause)
        if then is not None:
            then()
        return Passed(fired, complete=True)
    world.is_advancing = True
    task = courier.spawn(_pass(courier, world, to, cause, fired, then))
    done, _ = await asyncio.wait((task,), timeout=seconds)
    if done:
        task.result()
        return Passed(fired, complete=True)
    task.add_done_callback(_log_defect)
    return Passed(list(fired), complete=False)


async def _pass(
    courier: Courier, world: Sandbox, to: int, cause: Cause, fired: list[Fired], then: Callable[[], object] | None
) -> None:
    try:
        courier.hand_back(world)
        courier.posting.hasten(world, TIMEOUT)
        while courier.posting.in_flight(world):
            await courier.posting.ended()
        while not world.is_gone:
            speaks = not is_silent(world)
            let_go_on(world)
            async with world.turn:
                await courier.lane.in_slices(passing(world, to, fired, pausing=speaks))
            attempt, job = world.timers.next_attempt() if speaks else None, world.timers.next_due()
            if attempt is not None and attempt <= to:
                await _send(courier, world, attempt, cause, fired)
            elif job is None or job > to:
                break
        if not world.is_gone:
            arrive(world, to, cause)
            if then is not None:
                then()
    finally:
        world.is_advancing = False
        courier.ring(world)
        courier.posting.wake()


async def _send(courier: Courier, world: Sandbox, due: int, cause: Cause, fired: list[Fired]) -> None:
    """Stop the clock at an instant and make the attempts due there, those of one webhook in order."""
    if due > world.clock.now:
        draft = Draft(world, world.store, cause)
        draft.clock = world.clock.moved(due)
        draft.now = draft.clock.now
        draft.record()
    by_webhook: dict[str, list[Timer]] = {}

    def claim() -> Generator[None, None, None]:
        while (timer := world.timers.claim(due)) is not None:
            webhook = webhook_of(world, timer)
            if webhook is None:
                world.timers.pass_over(timer)
            else:
                by_webhook.setdefault(webhook, []).append(timer)
            yield

    await courier.lane.in_slices(claim())

    async def in_order(timers: list[Timer]) -> None:
        for timer in timers:
            if await courier.posting.deliver(world, timer, TIMEOUT) is not None:
                fired.append(Fired(timer.due, SENDING, timer.subject, ()))

    await asyncio.gather(*map(in_order, by_webhook.values()))


async def drained(courier: Courier, world: Sandbox, seconds: float) -> bool:
    """Wait until nothing is due in a sandbox, at most so many seconds. Returns whether that is so."""
    try:
        async with asyncio.timeout(seconds):
            while not is_drained(courier, world):
                await courier.posting.ended()
    except TimeoutError:
        pass
    return is_drained(courier, world)


def is_drained(courier: Courier, world: Sandbox) -> bool:
    """Whether nothing is due that will be sent, and no clock call goes on."""
    timers = world.timers
    if world.is_gone or not (world.is_advancing or timers.claimed or courier.posting.in_flight(world)):
        due = None if world.is_gone or is_silent(world) else timers.next_attempt()
        return due is None or due > world.clock.read()
    return False


def _log_defect(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("defect while the clock advances", exc_info=task.exception())
