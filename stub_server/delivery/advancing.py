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
    courier: Courier, sandbox: Sandbox, to: int, cause: Cause, seconds: float, then: Callable[[], object] | None = None
) -> Passed:
    """Advance the clock of a sandbox and then call `then`; wait for that at most so many seconds of real time.

    After these it goes on in the background, and other clock calls are rejected until it is complete.
    Raises Conflict.
    """
    check_standing(sandbox)
    fired: list[Fired] = []
    if not courier.is_open:
        fired += advance(sandbox, to, cause)
        if then is not None:
            then()
        return Passed(fired, complete=True)
    sandbox.is_advancing = True
    task = courier.spawn(_pass(courier, sandbox, to, cause, fired, then))
    done, _ = await asyncio.wait((task,), timeout=seconds)
    if done:
        task.result()
        return Passed(fired, complete=True)
    task.add_done_callback(_log_defect)
    return Passed(list(fired), complete=False)


async def _pass(
    courier: Courier, sandbox: Sandbox, to: int, cause: Cause, fired: list[Fired], then: Callable[[], object] | None
) -> None:
    try:
        courier.hand_back(sandbox)
        courier.posting.hasten(sandbox, TIMEOUT)
        while courier.posting.in_flight(sandbox):
            await courier.posting.ended()
        while not sandbox.is_gone:
            speaks = not is_silent(sandbox)
            let_go_on(sandbox)
            async with sandbox.turn:
                await courier.worker.in_slices(passing(sandbox, to, fired, pausing=speaks))
            attempt, job = sandbox.timers.next_attempt() if speaks else None, sandbox.timers.next_due()
            if attempt is not None and attempt <= to:
                await _send(courier, sandbox, attempt, cause, fired)
            elif job is None or job > to:
                break
        if not sandbox.is_gone:
            arrive(sandbox, to, cause)
            if then is not None:
                then()
    finally:
        sandbox.is_advancing = False
        courier.ring(sandbox)
        courier.posting.wake()


async def _send(courier: Courier, sandbox: Sandbox, due: int, cause: Cause, fired: list[Fired]) -> None:
    """Stop the clock at an instant and make the attempts due there, those of one webhook in order."""
    if due > sandbox.clock.now:
        draft = Draft(sandbox, sandbox.store, cause)
        draft.clock = sandbox.clock.moved(due)
        draft.now = draft.clock.now
        draft.record()
    by_webhook: dict[str, list[Timer]] = {}

    def claim() -> Generator[None, None, None]:
        while (timer := sandbox.timers.claim(due)) is not None:
            webhook = webhook_of(sandbox, timer)
            if webhook is None:
                sandbox.timers.pass_over(timer)
            else:
                by_webhook.setdefault(webhook, []).append(timer)
            yield

    await courier.worker.in_slices(claim())

    async def in_order(timers: list[Timer]) -> None:
        for timer in timers:
            if await courier.posting.deliver(sandbox, timer, TIMEOUT) is not None:
                fired.append(Fired(timer.due, SENDING, timer.subject, ()))

    await asyncio.gather(*map(in_order, by_webhook.values()))


async def drained(courier: Courier, sandbox: Sandbox, seconds: float) -> bool:
    """Wait until nothing is due in a sandbox, at most so many seconds. Returns whether that is so."""
    try:
        async with asyncio.timeout(seconds):
            while not is_drained(courier, sandbox):
                await courier.posting.ended()
    except TimeoutError:
        pass
    return is_drained(courier, sandbox)


def is_drained(courier: Courier, sandbox: Sandbox) -> bool:
    """Whether nothing is due that will be sent, and no clock call goes on."""
    timers = sandbox.timers
    if sandbox.is_gone or not (sandbox.is_advancing or timers.claimed or courier.posting.in_flight(sandbox)):
        due = None if sandbox.is_gone or is_silent(sandbox) else timers.next_attempt()
        return due is None or due > sandbox.clock.read()
    return False


def _log_defect(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("defect while the clock advances", exc_info=task.exception())
