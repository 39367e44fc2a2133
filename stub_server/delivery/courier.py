"""Sends what is due, one courier for all worlds of a server: after the answers, and without anybody asking."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Generator, Iterable
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any
from weakref import ref

import orjson

from ..engine.attempts import attempt_for
from ..engine.deliveries import is_held, is_silent, is_waiting, keeps_waiting
from ..engine.sandbox import SILENT, Sandbox
from ..engine.scheduler import pass_on, tick
from ..events.sender import Sender
from ..kernel.slices import SLICE
from ..kernel.slices import BackgroundWorker as Slices
from ..kernel.timers import SENDING, Timer
from .posting import Posting

TIMEOUT = 15.0  # seconds of one attempt
GRACE = 2  # seconds that open requests and attempts under way get when the server stops
PER_WEBHOOK = 8  # attempts at once, at most
AFTER_DEFECT = 30.0  # seconds until what failed by a defect of ours is tried again
LONGEST_SLEEP = 3600.0
log = logging.getLogger("stub_server")


@dataclass(slots=True, eq=False)
class Lane:
    """What waits for one webhook. A receiver gets one attempt at a time, and one more with every answer."""

    world: Sandbox
    waiting: deque[Timer] = field(default_factory=deque)
    workers: int = 0


class Courier:
    """Looks at a world when its bell rings and when something falls due there, and makes the attempts.

    It works on the event loop on which it was started; before and after that nothing is sent.
    """

    def __init__(self, sender: Sender, abroad: Sender, lane: Slices | None = None) -> None:
        """`abroad` sends to the addresses that pages of other machines chose; long work takes its turn in `lane`."""
        self.sender, self.lane = sender, lane or Slices()
        self.posting = Posting(sender, abroad, self.lane, self._try_again)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lanes: dict[tuple[int, str], Lane] = {}
        self._rung: set[int] = set()
        self._passing: set[int] = set()
        self._alarms: dict[int, asyncio.TimerHandle] = {}
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

    async def stop(self, since: float | None = None) -> None:
        """Send nothing more. Attempts under way get a few seconds; what is not made is due again at the next start.

        The server stops `since` a moment: what open requests were given of that time is gone.
        """
        self._loop = None
        for handle in self._alarms.values():
            handle.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=GRACE if since is None else max(0.0, since + GRACE - monotonic()))
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for kept in (self._lanes, self._rung, self._passing, self._alarms):
            kept.clear()
        self.posting.forget()
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
        self.posting.end(world)
        self.posting.tell()  # whoever waits for a world looks at it after this
        if self._loop is None or world.is_advancing or world.is_broken or world.is_halted:
            return
        if (earlier := self._alarms.pop(id(world), None)) is not None:
            earlier.cancel()
        if world.is_gone:
            return
        try:
            seconds = self._take_stock(world)
        except Exception:
            log.exception("defect in what is due in sandbox %s; it is looked at again", world.name)
            seconds = AFTER_DEFECT
        if seconds is not None:
            self._alarms[id(world)] = self._loop.call_later(min(seconds, LONGEST_SLEEP), self._wake, ref(world))

    def _take_stock(self, world: Sandbox) -> float | None:
        """Do what time brings and take on what is to be sent; answers in how many seconds more is due, if it is."""
        job, now = world.timers.next_due(), world.clock.read()
        if job is not None and job <= now:
            if id(world) in self._passing:
                return None
            rest = tick(world)  # events that time raises are delivered without a request
            if rest is not None:
                self._passing.add(id(world))
                self.spawn(self._pass_time(world, rest))
                return None
            job = world.timers.next_due()
        attempt = None
        if not is_silent(world):
            let_go_on(world)
            until = perf_counter() + SLICE
            while perf_counter() < until and (timer := world.timers.claim(now)) is not None:
                self._take_on(world, timer)
            attempt = world.timers.next_attempt()
            if attempt is not None and attempt <= now:
                self.ring(world)
        due = min((instant for instant in (job, attempt) if instant is not None), default=SILENT)
        world.alarm = due
        if due == SILENT or world.clock.frozen:
            return None
        return (due - now) / 1000 if due > now else AFTER_DEFECT  # what is still due now is a job that failed

    async def _pass_time(self, world: Sandbox, until: int) -> None:
        """Do what time brings, and look again."""
        try:
            await pass_on(world, self.lane, until)
        finally:
            self._passing.discard(id(world))
        self.ring(world)

    def _wake(self, reference: ref[Sandbox]) -> None:
        world = reference()
        if world is not None:
            self._look(world)

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
        if not lane.workers:
            self._staff(webhook, lane)

    def _staff(self, webhook: str, lane: Lane) -> None:
        lane.workers += 1
        self.spawn(self._work(webhook, lane))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done that ends with the server."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _work(self, webhook: str, lane: Lane) -> None:
        world, key = lane.world, (id(lane.world), webhook)
        try:
            while (
                lane.waiting
                and self._loop is not None
                and (lane.workers == 1 or not self.posting.has_timed_out(world, webhook))
            ):
                if world.is_advancing:
                    self.hand_back(world)
                    break
                await self.posting.deliver(world, lane.waiting.popleft(), TIMEOUT)
                if lane.waiting and lane.workers < self._most_at_once(lane, webhook):
                    self._staff(webhook, lane)
        finally:
            lane.workers -= 1
            if not lane.workers and not lane.waiting:
                self._lanes.pop(key, None)

    def _most_at_once(self, lane: Lane, webhook: str) -> int:
        """How many attempts to a webhook may be under way together: one if they time out, or it is told in order."""
        store = lane.world.stores.get(lane.waiting[0].merchant_id)
        public = None if store is None else store.webhooks.peek(webhook)
        is_ordered = public is not None and public.get("ordered")
        return 1 if is_ordered or self.posting.has_timed_out(lane.world, webhook) else PER_WEBHOOK

    def hand_back(self, world: Sandbox) -> None:
        """Have everything due again that waits in lanes: the clock of its world advances, and sends it itself."""
        for lane in self._lanes.values():
            if lane.world is world:
                while lane.waiting:
                    world.timers.release(lane.waiting.popleft())

    def _try_again(self, world: Sandbox, timer: Timer) -> None:
        """Have an attempt due again a little later that failed by a defect of ours."""

        def again() -> None:
            world.timers.release(timer)
            self.ring(world)

        if self._loop is not None:
            self._loop.call_later(AFTER_DEFECT, again)

    # -- what waits

    def queue(self, world: Sandbox) -> dict[str, int]:
        """How many attempts of a world are due, how many of these are under way, and how many are held back."""
        timers, now = world.timers, world.clock.now
        due, held = timers.attempts_due(now), len(timers.on_hold) + sum(map(len, timers.parked.values()))
        if is_silent(world):
            return {"due": 0, "in_flight": 0, "held": held + due}
        return {"due": due, "in_flight": self.posting.in_flight(world), "held": held}

    def resume(self, world: Sandbox) -> None:
        """Send what is held back."""
        world.timers.unhold()
        self.ring(world)


def held_back(world: Sandbox) -> Generator[None, None, int]:
    """How many attempts are due and held back, whether or not the courier has come for them.

    Those that wait for an earlier one do not count. Others may be served where it yields.
    """
    count = 0
    for timer in list(world.timers.due_by(world.clock.now)):
        attempt = attempt_for(world, timer) if timer.job == SENDING else None
        if attempt is not None and is_held(world, attempt.serial, attempt.delivery.url):
            count += not is_waiting(world.stores[timer.merchant_id], attempt.log)
        yield
    return count


def let_go_on(world: Sandbox) -> None:
    """Have due what has waited for an earlier delivery to the same webhook, where that is decided by now."""
    for merchant_id, webhook in list(world.timers.parked):
        if not keeps_waiting(world.stores.get(merchant_id), webhook):
            world.timers.unpark(merchant_id, webhook)


def webhook_of(world: Sandbox, timer: Timer) -> str | None:
    """The id of the webhook that an attempt is for."""
    store = world.stores.get(timer.merchant_id)
    record = store.webhook_logs.find(timer.subject) if store is not None else None
    ident: str | None = None if record is None else orjson.loads(record.public)["webhookId"]
    return ident
