"""Sends the deliveries that are due. A server has one courier for all sandboxes."""

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
from ..engine.deliveries import is_kept_back, is_silent, is_waiting, keeps_waiting
from ..engine.sandbox import SILENT, Sandbox
from ..engine.scheduler import pass_on, tick
from ..events.sender import Sender
from ..kernel.slices import SLICE, BackgroundWorker
from ..kernel.timers import SENDING, Timer
from .posting import Posting

TIMEOUT = 15.0  # seconds of one attempt
GRACE = 2  # seconds that open requests and attempts under way get when the server stops
PER_WEBHOOK = 8  # attempts at once, at most
AFTER_DEFECT = 30.0  # seconds until an attempt is repeated after a defect of the server
LONGEST_SLEEP = 3600.0
log = logging.getLogger("stub_server")


@dataclass(slots=True, eq=False)
class Queue:
    """Attempts that wait for one webhook. A receiver gets one at a time, and one more with every answer."""

    sandbox: Sandbox
    waiting: deque[Timer] = field(default_factory=deque)
    workers: int = 0


class Courier:
    """Looks at a sandbox when a step sets something due and when it is, and makes the attempts.

    It works on the event loop on which it was started; before `start` and after `stop` nothing is sent.
    """

    def __init__(self, sender: Sender, abroad: Sender, worker: BackgroundWorker | None = None) -> None:
        """`abroad` sends to addresses that pages of other machines have set; `worker` does long work."""
        self.sender, self.worker = sender, worker or BackgroundWorker()
        self.posting = Posting(sender, abroad, self.worker, self._try_again)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: dict[tuple[int, str], Queue] = {}
        self._rung: set[int] = set()
        self._passing: set[int] = set()
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether it sends."""
        return self._loop is not None

    def start(self, sandboxes: Iterable[Sandbox]) -> None:
        """Start to send, with what is due by now."""
        self._loop = asyncio.get_running_loop()
        self.sender.open()
        for sandbox in sandboxes:
            for timer in list(sandbox.timers.claimed.values()):  # not made before an earlier stop
                sandbox.timers.release(Timer(*timer))
            self.ring(sandbox)

    async def stop(self, since: float | None = None) -> None:
        """Stop sending. Attempts under way get GRACE seconds from `since`; others are due again at the next start."""
        self._loop = None
        for handle in self._alarms.values():
            handle.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=GRACE if since is None else max(0.0, since + GRACE - monotonic()))
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for kept in (self._queues, self._rung, self._passing, self._alarms):
            kept.clear()
        self.posting.forget()
        await self.sender.aclose()

    # -- when to look

    def ring(self, sandbox: Sandbox) -> None:
        """Look at a sandbox as soon as the event loop is free."""
        if self._loop is not None and id(sandbox) not in self._rung:
            self._rung.add(id(sandbox))
            self._loop.call_soon(self._look, sandbox)

    def _look(self, sandbox: Sandbox) -> None:
        """Queue what is due in a sandbox, and set an alarm for what is next."""
        self._rung.discard(id(sandbox))
        self.posting.end(sandbox)
        self.posting.wake()  # those who wait for a sandbox look at it next
        if self._loop is None or sandbox.is_advancing or sandbox.is_broken or sandbox.is_halted:
            return
        if (earlier := self._alarms.pop(id(sandbox), None)) is not None:
            earlier.cancel()
        if sandbox.is_gone:
            return
        try:
            seconds = self._take_stock(sandbox)
        except Exception:
            log.exception("defect in what is due in sandbox %s; it is looked at again", sandbox.name)
            seconds = AFTER_DEFECT
        if seconds is not None:
            self._alarms[id(sandbox)] = self._loop.call_later(min(seconds, LONGEST_SLEEP), self._wake, ref(sandbox))

    def _take_stock(self, sandbox: Sandbox) -> float | None:
        """Do what is due and queue what is to be sent; returns in how many seconds more is due, if it is."""
        job, now = sandbox.timers.next_due(), sandbox.clock.read()
        if job is not None and job <= now:
            if id(sandbox) in self._passing:
                return None
            rest = tick(sandbox)  # jobs raise events
            if rest is not None:
                self._passing.add(id(sandbox))
                self.spawn(self._pass_time(sandbox, rest))
                return None
            job = sandbox.timers.next_due()
        attempt = None
        if not is_silent(sandbox):
            let_go_on(sandbox)
            until = perf_counter() + SLICE
            while perf_counter() < until and (timer := sandbox.timers.claim(now)) is not None:
                self._take_on(sandbox, timer)
            attempt = sandbox.timers.next_attempt()
            if attempt is not None and attempt <= now:
                self.ring(sandbox)
        due = min((instant for instant in (job, attempt) if instant is not None), default=SILENT)
        sandbox.alarm = due
        if due == SILENT or sandbox.clock.frozen:
            return None
        return (due - now) / 1000 if due > now else AFTER_DEFECT  # what is still due now is a job that failed

    async def _pass_time(self, sandbox: Sandbox, until: int) -> None:
        """Do what is due, and look again."""
        try:
            await pass_on(sandbox, self.worker, until)
        finally:
            self._passing.discard(id(sandbox))
        self.ring(sandbox)

    def _wake(self, reference: ref[Sandbox]) -> None:
        sandbox = reference()
        if sandbox is not None:
            self._look(sandbox)

    # -- one queue per webhook

    def _take_on(self, sandbox: Sandbox, timer: Timer) -> None:
        webhook = webhook_of(sandbox, timer)
        if webhook is None:
            sandbox.timers.pass_over(timer)
            return
        queue = self._queues.setdefault((id(sandbox), webhook), Queue(sandbox))
        queue.waiting.append(timer)
        if not queue.workers:
            self._add_worker(webhook, queue)

    def _add_worker(self, webhook: str, queue: Queue) -> None:
        queue.workers += 1
        self.spawn(self._work(webhook, queue))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the server."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _work(self, webhook: str, queue: Queue) -> None:
        sandbox, key = queue.sandbox, (id(queue.sandbox), webhook)
        try:
            while (
                queue.waiting
                and self._loop is not None
                and (queue.workers == 1 or not self.posting.has_timed_out(sandbox, webhook))
            ):
                if sandbox.is_advancing:
                    self.hand_back(sandbox)
                    break
                await self.posting.deliver(sandbox, queue.waiting.popleft(), TIMEOUT)
                if queue.waiting and queue.workers < self._most_at_once(queue, webhook):
                    self._add_worker(webhook, queue)
        finally:
            queue.workers -= 1
            if not queue.workers and not queue.waiting:
                self._queues.pop(key, None)

    def _most_at_once(self, queue: Queue, webhook: str) -> int:
        """How many attempts to a webhook may run at once: one if they time out, or if its events are sent in order."""
        store = queue.sandbox.stores.get(queue.waiting[0].merchant_id)
        public = None if store is None else store.webhooks.peek(webhook)
        is_ordered = public is not None and public.get("ordered")
        return 1 if is_ordered or self.posting.has_timed_out(queue.sandbox, webhook) else PER_WEBHOOK

    def hand_back(self, sandbox: Sandbox) -> None:
        """Make everything due again that waits in a queue: an advancing clock sends it itself."""
        for queue in self._queues.values():
            if queue.sandbox is sandbox:
                while queue.waiting:
                    sandbox.timers.release(queue.waiting.popleft())

    def _try_again(self, sandbox: Sandbox, timer: Timer) -> None:
        """Make an attempt due again a little later, after a defect of the server."""

        def again() -> None:
            sandbox.timers.release(timer)
            self.ring(sandbox)

        if self._loop is not None:
            self._loop.call_later(AFTER_DEFECT, again)

    def queue(self, sandbox: Sandbox) -> dict[str, int]:
        """How many attempts of a sandbox are due, how many of these are under way, and how many are kept back."""
        timers, now = sandbox.timers, sandbox.clock.now
        due, held = timers.attempts_due(now), len(timers.on_hold) + sum(map(len, timers.parked.values()))
        if is_silent(sandbox):
            return {"due": 0, "in_flight": 0, "held": held + due}
        return {"due": due, "in_flight": self.posting.in_flight(sandbox), "held": held}

    def resume(self, sandbox: Sandbox) -> None:
        """Send what is kept back."""
        sandbox.timers.unhold()
        self.ring(sandbox)


def count_kept_back(sandbox: Sandbox) -> Generator[None, None, int]:
    """How many attempts are due and kept back, with pauses. Those that wait for an earlier one do not count."""
    count = 0
    for timer in list(sandbox.timers.due_by(sandbox.clock.now)):
        attempt = attempt_for(sandbox, timer) if timer.job == SENDING else None
        if attempt is not None and is_kept_back(sandbox, attempt.serial, attempt.delivery.url):
            count += not is_waiting(sandbox.stores[timer.merchant_id], attempt.log)
        yield
    return count


def let_go_on(sandbox: Sandbox) -> None:
    """Make due what waited for an earlier delivery to the same webhook that is decided by now."""
    for merchant_id, webhook in list(sandbox.timers.parked):
        if not keeps_waiting(sandbox.stores.get(merchant_id), webhook):
            sandbox.timers.unpark(merchant_id, webhook)


def webhook_of(sandbox: Sandbox, timer: Timer) -> str | None:
    """The id of an attempt's webhook."""
    store = sandbox.stores.get(timer.merchant_id)
    record = store.webhook_logs.find(timer.subject) if store is not None else None
    ident: str | None = None if record is None else orjson.loads(record.public)["webhookId"]
    return ident
