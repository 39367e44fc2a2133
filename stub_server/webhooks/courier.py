"""Sends the deliveries that are due. A server has one courier for all sandboxes."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from ..core.clock import SECOND
from ..core.log import log
from ..core.problem import Unavailable
from ..core.slices import BackgroundWorker, Sliced
from ..core.timers import SENDING, Timer
from ..domain.deliveries import AttemptOutcome
from ..domain.webhooks import ABROAD
from ..engine.attempts import Attempt, disturbance, simulated
from ..engine.fault_rules import BAD_SIGNATURE, DROP, DUPLICATE
from ..engine.sandbox import SILENT, Sandbox
from ..engine.scheduler import Fired, do_due
from .posting import claimed_attempt, record, release_parked
from .sender import Sender

TIMEOUT = 15.0  # seconds of one attempt
SHORTER = 4.0  # while a clock that advances waits for it
GRACE = 2  # seconds that open requests and attempts under way get when the server stops
OF_SANDBOX = 32  # attempts under way
IN_ALL = 256
AFTER_DEFECT = 30.0  # seconds until what failed by a defect of the server is done again
LONGEST_SLEEP = 3600.0


@dataclass(slots=True, eq=False)
class Outbox:
    """The claimed attempts of one sandbox, in a queue for each webhook for which a task works: its
    first one is under way or waits for a place.

    `places` are those of attempts under way. A clock that advances has a list of what it has
    `fired`, which attempts join.
    """

    queues: dict[str, deque[Timer]] = field(default_factory=dict)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OF_SANDBOX))
    is_looking: bool = False
    alarm: asyncio.TimerHandle | None = None  # when to look next
    fired: list[Fired] | None = None

    def cancel_alarm(self) -> None:
        """Forget when to look next; the alarm holds the sandbox, which may be gone."""
        if self.alarm is not None:
            self.alarm.cancel()


class Courier:
    """Looks at a sandbox when a step sets something due and when it is, and makes the attempts.

    It works on the event loop on which it was started; before `start` and after `stop` nothing is
    sent.
    """

    _loop: asyncio.AbstractEventLoop

    def __init__(self, sender: Sender, abroad: Sender) -> None:
        """`abroad` sends to addresses that pages of other machines have set."""
        self.sender = sender
        self.abroad = abroad
        self.worker = BackgroundWorker()
        self.is_open = False
        self._outboxes: WeakKeyDictionary[Sandbox, Outbox] = WeakKeyDictionary()
        self._places = asyncio.Semaphore(IN_ALL)
        self._tasks: set[asyncio.Task[None]] = set()
        self._change = asyncio.Event()

    def start(self, sandboxes: Iterable[Sandbox]) -> None:
        """Start to send, with what is due by now."""
        self._loop = asyncio.get_running_loop()
        self.is_open = True
        for sandbox in sandboxes:
            for timer in list(sandbox.timers.claimed.values()):  # not made before an earlier stop
                sandbox.timers.release(timer)
            self.look_soon(sandbox)

    async def stop(self, since: float | None = None) -> None:
        """Stop sending.

        Attempts under way get GRACE seconds from `since`; others are due again at the next start.
        """
        self.is_open = False
        for outbox in self._outboxes.values():
            outbox.cancel_alarm()
        if self._tasks:
            now = monotonic()
            until = (since or now) + GRACE
            await asyncio.wait(self._tasks, timeout=max(0.0, until - now))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._outboxes.clear()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the server."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def outbox(self, sandbox: Sandbox) -> Outbox:
        """What is under way in a sandbox."""
        outbox = self._outboxes.get(sandbox)
        if outbox is None:
            outbox = self._outboxes[sandbox] = Outbox()
        return outbox

    # -- when to look

    def look_soon(self, sandbox: Sandbox) -> None:
        """Look at a sandbox as soon as the event loop is free."""
        outbox = self.outbox(sandbox)
        if self.is_open and not outbox.is_looking:
            outbox.is_looking = True
            self.spawn(self._look(sandbox, outbox))

    async def _look(self, sandbox: Sandbox, outbox: Outbox) -> None:
        """Do the jobs that are due in a sandbox, which may raise events, then queue what
        is to be sent, and set an alarm for what is due next.
        """
        outbox.cancel_alarm()
        now = sandbox.clock.read()
        try:
            if self._serves(sandbox) and sandbox.timers.next_job(now) is not None:
                await do_due(sandbox, self.worker)
        finally:
            outbox.is_looking = False
        if self._serves(sandbox):
            await self.queue_due(sandbox, now)
            self._set_alarm(sandbox, outbox, now)
        self._wake()

    def _serves(self, sandbox: Sandbox) -> bool:
        """Whether something may be done in a sandbox by now."""
        status = sandbox.status
        if status.is_gone or status.is_broken or status.is_halted:
            return False
        return self.is_open and not status.is_advancing

    def _set_alarm(self, sandbox: Sandbox, outbox: Outbox, looked: int) -> None:
        """Look again when something is due that was not when the sandbox was `looked` at (ms)."""
        due = SILENT
        for timer in (sandbox.timers.next_job(), sandbox.timers.next_attempt()):
            if timer is not None:
                due = min(due, timer.due)
        sandbox.status.next_look = due
        if due == SILENT or sandbox.clock.frozen or not self.is_open:
            return
        seconds = min((due - sandbox.clock.read()) / 1000, LONGEST_SLEEP)
        if due <= looked:  # it is a job that failed
            seconds = AFTER_DEFECT
        outbox.cancel_alarm()
        outbox.alarm = self._loop.call_later(seconds, self.look_soon, sandbox)

    # -- one queue per webhook

    async def queue_due(self, sandbox: Sandbox, until: int) -> None:
        """Queue the attempts that are due at an instant or before, in the order of time."""
        await self.worker.in_slices(self._queue(sandbox, until), sandbox.name)

    def _queue(self, sandbox: Sandbox, until: int) -> Sliced[None]:
        release_parked(sandbox)
        queues = self.outbox(sandbox).queues
        while (timer := sandbox.timers.claim(until)) is not None:
            entry = sandbox.stores[timer.merchant_id].webhook_logs.peek(timer.subject)
            if entry is None:  # it has made room for others
                sandbox.timers.regroup(timer, sandbox.timers.skipped)
            elif entry["webhookId"] in queues:
                queues[entry["webhookId"]].append(timer)
            else:
                queues[entry["webhookId"]] = deque([timer])
                self.spawn(self._work(sandbox, entry["webhookId"]))
            yield

    async def _work(self, sandbox: Sandbox, webhook: str) -> None:
        """Make the attempts of a queue, one after the other: a receiver that is slow
        delays no other.

        Where the clock begins to advance meanwhile, it sends the others itself.
        """
        outbox = self.outbox(sandbox)
        advances = sandbox.status.is_advancing
        waiting = outbox.queues[webhook]
        try:
            while waiting and (self.is_open or advances):
                await self._deliver(sandbox, outbox, waiting[0])
                waiting.popleft()
                if sandbox.status.is_advancing != advances:
                    break
        finally:
            del outbox.queues[webhook]
            for timer in waiting:
                sandbox.timers.release(timer)
            self._wake()

    async def _deliver(self, sandbox: Sandbox, outbox: Outbox, timer: Timer) -> None:
        """Make a claimed attempt, if it is still due, and record its outcome."""
        try:
            async with outbox.places, self._places:
                attempt = claimed_attempt(sandbox, timer)
                if attempt is None:
                    return
                if sandbox.log.stored is not None:  # an event that was sent must not be undone
                    await sandbox.log.stored()
                timeout = TIMEOUT if outbox.fired is None else SHORTER
                outcome = await self.send(sandbox, attempt, timeout)
            if not sandbox.status.is_broken:
                await do_due(sandbox, self.worker)
            record(sandbox, timer, attempt, outcome)
            if outbox.fired is not None:
                outbox.fired.append(Fired(timer.due, SENDING, timer.subject, ()))
        except Unavailable:  # its outcome cannot be stored: it is repeated once it can
            sandbox.timers.release(timer)
        except Exception:  # not at once: it would fail again, as often as it can
            log.exception("defect in a delivery of sandbox %s; it is tried again", sandbox.name)
            await asyncio.sleep(AFTER_DEFECT)
            sandbox.timers.release(timer)
            self.look_soon(sandbox)
        finally:
            self._wake()

    async def send(
        self, sandbox: Sandbox, attempt: Attempt, timeout: float, *, is_foreign: bool = False
    ) -> AttemptOutcome:
        """Post once, or as the fault rules say, which the outcome names. A simulated receiver
        answers at once, and of a duplicate the first answer counts.

        A stranger's page may call a server on its visitor's machine; it must not reach into that
        visitor's networks: neither when it `is_foreign`, nor where it has set the address.
        """
        answered = simulated(sandbox, attempt)
        if answered is not None:
            return answered
        sender = self.sender
        delivery = attempt.delivery
        if is_foreign or attempt.webhook.hidden.get(ABROAD):
            sender = self.abroad
        effect = disturbance(sandbox, attempt)
        if effect.delay:
            await asyncio.sleep(effect.delay / SECOND)
        if effect.then.get(DROP):
            return AttemptOutcome.lost(effect.delay, effect.label)
        if effect.then.get(BAD_SIGNATURE):
            delivery = delivery.forged()
        outcome = await sender.attempt(delivery, timeout)
        if effect.then.get(DUPLICATE):
            await sender.attempt(delivery, timeout)
        return outcome._replace(
            simulated=effect.label or None, duration_ms=outcome.duration_ms + effect.delay
        )

    # -- those who wait

    async def idle(self, sandbox: Sandbox) -> None:
        """Wait until nothing of a sandbox is under way."""
        while self.outbox(sandbox).queues:
            await self.ended()

    async def ended(self) -> None:
        """Wait until an attempt has ended, or a sandbox is looked at."""
        await self._change.wait()

    def _wake(self) -> None:
        """Wake those who wait: an attempt has ended, or a sandbox is looked at."""
        self._change.set()
        self._change = asyncio.Event()
