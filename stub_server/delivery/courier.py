"""Sends what is due, one courier for all worlds of a server: after the answers, and without anybody asking."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import orjson

from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..engine.attempts import Attempt, attempt_for, conclude
from ..engine.draft import Draft
from ..engine.sandbox import SILENT, Sandbox
from ..engine.scheduler import tick
from ..engine.step import Cause
from ..events.sender import Sender
from ..kernel.timers import SENDING, Timer
from .places import Places

TIMEOUT = 15.0  # seconds of one attempt
GRACE = 3.0  # seconds that attempts under way get when the server stops
PER_WEBHOOK = 8  # attempts at once
SLICE = 250  # attempts claimed at once: finding them holds up the server
AFTER_DEFECT = 30.0  # seconds until what failed by a defect of ours is tried again
LONGEST_SLEEP = 3600.0
log = logging.getLogger("stub_server")


@dataclass(slots=True, eq=False)
class Lane:
    """What waits for one webhook. A `slow` receiver, which has let an attempt time out, gets one at a time."""

    world: Sandbox
    waiting: deque[Timer] = field(default_factory=deque)
    workers: int = 0
    slow: bool = False


class Courier:
    """Looks at a world when its bell rings and when something falls due there, and makes the attempts.

    It works on the event loop on which it was started; before and after that nothing is sent.
    """

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self._places = Places()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lanes: dict[tuple[int, str], Lane] = {}
        self._flying: dict[int, int] = {}
        self._rung: set[int] = set()
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self._watching: list[asyncio.Future[None]] = []
        self.tasks: set[asyncio.Task[None]] = set()

    # -- its own life

    @property
    def is_open(self) -> bool:
        """Whether it sends."""
        return self._loop is not None

    def start(self, worlds: Iterable[Sandbox]) -> None:
        """Begin to send, with what is due by now."""
        self._loop = asyncio.get_running_loop()
        self.sender.connections.keep()
        for world in worlds:
            for timer in list(world.timers.claimed.values()):  # what was not made before an earlier stop
                world.timers.release(Timer(*timer))
            self.ring(world)

    async def stop(self) -> None:
        """Send nothing more. Attempts under way get a few seconds; what is not made is due again at the next start."""
        self._loop = None
        for handle in self._alarms.values():
            handle.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=GRACE)
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for kept in (self._lanes, self._flying, self._rung, self._alarms):
            kept.clear()
        await self.sender.connections.aclose()

    # -- when to look

    def ring(self, world: Sandbox) -> None:
        """Look at a world as soon as the event loop is free."""
        if self._loop is not None and id(world) not in self._rung:
            self._rung.add(id(world))
            self._loop.call_soon(self._look, world)

    def _look(self, world: Sandbox) -> None:
        """Take on what is due in a world, and see to being called when the next is."""
        self._rung.discard(id(world))
        if self._loop is None or world.is_advancing or world.is_broken:
            return
        if (earlier := self._alarms.pop(id(world), None)) is not None:
            earlier.cancel()
        if world.is_gone:
            return
        job, now = self._next_job(world), world.clock.read()
        if job is not None and job <= now:
            tick(world)  # events of time itself are told though nobody asks
            job = self._next_job(world)
        attempt = None
        if world.held != SILENT:
            for timer in world.timers.claim(now, SLICE):
                self._take_on(world, timer)
            attempt = world.timers.next_attempt()
            if attempt is not None and attempt <= now:
                self.ring(world)
        due = min((instant for instant in (job, attempt) if instant is not None), default=SILENT)
        world.alarm = due
        if due != SILENT and not world.clock.frozen:
            # What is still due now is a job that failed.
            seconds = (due - now) / 1000 if due > now else AFTER_DEFECT
            self._alarms[id(world)] = self._loop.call_later(min(seconds, LONGEST_SLEEP), self._wake, ref(world))

    def _wake(self, reference: ref[Sandbox]) -> None:
        world = reference()
        if world is not None:
            self._look(world)

    def _next_job(self, world: Sandbox) -> int | None:
        """When time next does something in a world that somebody may be told of."""
        heard = any(store.webhooks.bucket("is_active", True) for store in world.stores.values())
        return world.timers.next_due() if heard else None

    # -- lanes

    def _take_on(self, world: Sandbox, timer: Timer) -> None:
        webhook = webhook_of(world, timer)
        if webhook is None:
            world.timers.pass_over(timer)
            return
        lane = self._lanes.get((id(world), webhook))
        if lane is None:
            lane = self._lanes[id(world), webhook] = Lane(world)
        lane.waiting.append(timer)
        self._staff(webhook, lane)

    def _staff(self, webhook: str, lane: Lane) -> None:
        if lane.workers < (1 if lane.slow else PER_WEBHOOK):
            lane.workers += 1
            self.spawn(self._work(webhook, lane))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done that ends with the server."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _work(self, webhook: str, lane: Lane) -> None:
        world = lane.world
        try:
            while lane.waiting and self._loop is not None and (lane.workers == 1 or not lane.slow):
                if world.is_advancing:
                    self.hand_back(world)
                    break
                error = await self.deliver(world, lane.waiting.popleft(), TIMEOUT)
                lane.slow = error == "timeout" if error is not None else lane.slow
                if lane.waiting and not lane.slow:
                    self._staff(webhook, lane)
        finally:
            lane.workers -= 1
            if not lane.workers and not lane.waiting:
                self._lanes.pop((id(world), webhook), None)

    def hand_back(self, world: Sandbox) -> None:
        """Have everything due again that waits in lanes: the clock of its world advances, and sends it itself."""
        for lane in self._lanes.values():
            if lane.world is world:
                while lane.waiting:
                    world.timers.release(lane.waiting.popleft())

    # -- one attempt

    async def deliver(self, world: Sandbox, timer: Timer, timeout: float) -> str | None:
        """Make a claimed attempt, if it is still to be made, and record what came of it.

        Answers the error, an empty text for a success and None where nothing was sent.
        """
        advancing = world.is_advancing
        self._flying[id(world)] = self._flying.get(id(world), 0) + 1
        try:
            attempt = self._attempt(world, timer)
            if attempt is None:
                return None
            was_free = self._places.is_free(attempt.delivery.url)
            async with self._places.at(attempt.delivery.url):
                if not was_free:
                    if world.is_advancing != advancing:
                        world.timers.release(timer)
                        return None
                    attempt = self._attempt(world, timer)
                    if attempt is None:
                        return None
                begun = world.clock.now if world.is_advancing else world.clock.read()
                outcome = await self.sender.attempt(attempt.delivery, timeout)
            if not world.is_gone and not world.is_broken:
                self._record(world, timer, attempt, outcome, begun)
            return outcome.error or ""
        except asyncio.CancelledError:
            world.timers.release(timer)
            raise
        except Exception:
            log.exception("defect in a delivery of sandbox %s; it is tried again", world.name)
            if self._loop is not None:
                self._loop.call_later(AFTER_DEFECT, self._again, world, timer)
            return None
        finally:
            left = self._flying.pop(id(world)) - 1
            if left:
                self._flying[id(world)] = left
            self.tell()

    def _again(self, world: Sandbox, timer: Timer) -> None:
        world.timers.release(timer)
        self.ring(world)

    def _attempt(self, world: Sandbox, timer: Timer) -> Attempt | None:
        """What is to be sent now; None where nothing is: not any more, or not yet."""
        if world.is_gone or world.is_broken or not world.timers.is_claimed(timer):
            return None
        attempt = attempt_for(world, timer)
        if attempt is None:
            world.timers.pass_over(timer)
        elif attempt.serial <= world.held:
            world.timers.hold(timer)
            return None
        return attempt

    def _record(self, world: Sandbox, timer: Timer, attempt: Attempt, outcome: AttemptOutcome, begun: int) -> None:
        """The step of an attempt, at the instant that the clock shows by now."""
        tick(world)
        store = world.stores.get(timer.merchant_id)
        if store is None or world.is_broken:
            return
        draft = Draft(world, store, Cause("delivery", timer.subject, SENDING))
        conclude(draft, attempt.log, attempt.webhook.id, outcome, attempt.delivery.url, AUTOMATIC, begun)
        if world.timers.is_claimed(timer):
            draft.taken(timer)
        draft.record()

    # -- what waits

    def queue(self, world: Sandbox) -> dict[str, int]:
        """How many attempts of a world are due, how many of these are under way, and how many are held back."""
        due = world.timers.attempts_due(world.clock.now)
        if world.held == SILENT:
            return {"due": 0, "in_flight": 0, "held": due}
        return {"due": due, "in_flight": self.in_flight(world), "held": len(world.timers.held)}

    def resume(self, world: Sandbox) -> int:
        """Send what is held back; answers how many attempts of it are due."""
        held = self.queue(world)["held"]
        world.held = 0
        world.timers.unhold()
        self.ring(world)
        return held

    def in_flight(self, world: Sandbox) -> int:
        """How many attempts of a world are under way or wait for a place."""
        return self._flying.get(id(world), 0)

    async def ended(self) -> None:
        """Wait until some attempt has ended."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching.append(future)
        await future

    def tell(self) -> None:
        """Some attempt has ended, or a clock call has."""
        watching, self._watching = self._watching, []
        for future in watching:
            if not future.done():
                future.set_result(None)


def webhook_of(world: Sandbox, timer: Timer) -> str | None:
    """The id of the webhook that an attempt is for."""
    store = world.stores.get(timer.merchant_id)
    record = store.webhook_logs.find(timer.subject) if store is not None else None
    ident: str | None = None if record is None else orjson.loads(record.public)["webhookId"]
    return ident
