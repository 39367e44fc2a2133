"""Sends the deliveries that are due. A server has one courier for all sandboxes."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from ..core.log import log
from ..core.problem import Unavailable
from ..core.slices import SLICE, BackgroundWorker
from ..core.timers import Timer
from ..domain.deliveries import AttemptOutcome
from ..domain.webhooks import ABROAD
from ..engine.attempts import Attempt, disturbance, simulated
from ..engine.deliveries import is_silent
from ..engine.sandbox import SILENT, Sandbox
from ..engine.scheduler import do_due
from .posting import claim_due, claimed_attempt, next_attempt, record, release_parked, send
from .sender import Sender

TIMEOUT = 15.0  # seconds of one attempt
GRACE = 2  # seconds that open requests and attempts under way get when the server stops
OF_SANDBOX, IN_ALL = 32, 256  # attempts under way
AFTER_DEFECT = 30.0  # seconds until what failed by a defect of the server is done again
LONGEST_SLEEP = 3600.0


@dataclass(slots=True, eq=False)
class Outbox:
    """The claimed attempts of one sandbox: in a queue for each webhook, or `in_flight`: under way
    or without a place.

    `queues` has the webhooks that a task works for. `places` are those of attempts under way.
    """

    queues: dict[str, deque[Timer]] = field(default_factory=dict)
    in_flight: int = 0
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OF_SANDBOX))
    is_looking_soon: bool = False
    has_jobs: bool = False  # a task does what is due
    alarm: asyncio.TimerHandle | None = None  # when to look next


class Courier:
    """Looks at a sandbox when a step sets something due and when it is, and makes the attempts.

    It works on the event loop on which it was started; before `start` and after `stop` nothing is
    sent.
    """

    def __init__(self, sender: Sender, abroad: Sender) -> None:
        """`abroad` sends to addresses that pages of other machines have set."""
        self.sender, self.abroad, self.worker = sender, abroad, BackgroundWorker()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outboxes: WeakKeyDictionary[Sandbox, Outbox] = WeakKeyDictionary()
        self._places = asyncio.Semaphore(IN_ALL)
        self._tasks: set[asyncio.Task[None]] = set()
        self._change = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether it sends: it has been started, and not stopped."""
        return self._loop is not None

    def start(self, sandboxes: Iterable[Sandbox]) -> None:
        """Start to send, with what is due by now."""
        self._loop = asyncio.get_running_loop()
        for sandbox in sandboxes:
            for timer in list(sandbox.timers.claimed.values()):  # not made before an earlier stop
                sandbox.timers.release(timer)
            self.look_soon(sandbox)

    async def stop(self, since: float | None = None) -> None:
        """Stop sending.

        Attempts under way get GRACE seconds from `since`; others are due again at the next start.
        """
        self._loop = None
        for outbox in self._outboxes.values():
            if outbox.alarm is not None:
                outbox.alarm.cancel()
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
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _outbox(self, sandbox: Sandbox) -> Outbox:
        outbox = self._outboxes.get(sandbox)
        if outbox is None:
            outbox = self._outboxes[sandbox] = Outbox()
        return outbox

    # -- when to look

    def look_soon(self, sandbox: Sandbox) -> None:
        """Look at a sandbox as soon as the event loop is free."""
        outbox = self._outbox(sandbox)
        if self._loop is not None and not outbox.is_looking_soon:
            outbox.is_looking_soon = True
            self._loop.call_soon(self._look, sandbox, outbox)

    def _look(self, sandbox: Sandbox, outbox: Outbox) -> None:
        """Do the jobs that are due in a sandbox, which may raise events, then queue what
        is to be sent.
        """
        outbox.is_looking_soon = False
        self._wake()  # those who wait for a sandbox look at it next
        if outbox.alarm is not None:  # it holds the sandbox, which may be gone
            outbox.alarm.cancel()
            outbox.alarm = None
        job = sandbox.timers.next_due()
        if outbox.has_jobs or not self._serves(sandbox):
            return
        if job is not None and job <= sandbox.clock.read():
            outbox.has_jobs = True
            self.spawn(self._do_jobs(sandbox, outbox))
        else:
            self._queue_due(sandbox, outbox)

    def _serves(self, sandbox: Sandbox) -> bool:
        """Whether something may be done in a sandbox by now."""
        status = sandbox.status
        if status.is_gone or status.is_broken or status.is_halted:
            return False
        return self.is_open and not status.is_advancing

    async def _do_jobs(self, sandbox: Sandbox, outbox: Outbox) -> None:
        try:
            await do_due(sandbox, self.worker)
        finally:
            outbox.has_jobs = False
        if self._serves(sandbox):
            self._queue_due(sandbox, outbox)

    def _queue_due(self, sandbox: Sandbox, outbox: Outbox) -> None:
        """Queue what is to be sent, and set an alarm for what is due next."""
        now = sandbox.clock.read()
        if not is_silent(sandbox):
            self._queue_attempts(sandbox, outbox, now)
        due = SILENT
        for at in (sandbox.timers.next_due(), next_attempt(sandbox)):
            if at is not None:
                due = min(due, at)
        sandbox.status.next_look = due
        if self._loop is None or due == SILENT or sandbox.clock.frozen:
            return
        seconds = min((due - now) / 1000, LONGEST_SLEEP)
        if due <= now:  # it is a job that failed
            seconds = AFTER_DEFECT
        outbox.alarm = self._loop.call_later(seconds, self._look, sandbox, outbox)

    def _queue_attempts(self, sandbox: Sandbox, outbox: Outbox, now: int) -> None:
        """Queue the attempts that are due, as many as fit into a slice."""
        release_parked(sandbox)
        until = perf_counter() + SLICE
        for webhook, timer in claim_due(sandbox, now):
            if webhook in outbox.queues:
                outbox.queues[webhook].append(timer)
            else:
                outbox.queues[webhook] = deque([timer])
                self.spawn(self._work(sandbox, outbox, webhook))
            if perf_counter() >= until:
                break
        attempt = sandbox.timers.next_attempt()
        if attempt is not None and attempt <= now:
            self.look_soon(sandbox)

    # -- one queue per webhook

    async def _work(self, sandbox: Sandbox, outbox: Outbox, webhook: str) -> None:
        """Make the attempts of a queue, one after the other: a receiver that is slow
        delays no other.
        """
        waiting = outbox.queues[webhook]
        try:
            while waiting and self.is_open:
                if sandbox.status.is_advancing:
                    self._hand_back(sandbox)
                    break
                await self.deliver(sandbox, waiting.popleft(), TIMEOUT)
        finally:
            outbox.queues.pop(webhook, None)

    def _hand_back(self, sandbox: Sandbox) -> None:
        """Make everything due again that waits in a queue: an advancing clock sends it itself."""
        for waiting in self._outbox(sandbox).queues.values():
            while waiting:
                sandbox.timers.release(waiting.popleft())

    # -- attempts

    async def deliver(self, sandbox: Sandbox, timer: Timer, timeout: float) -> bool:
        """Make a claimed attempt, if it is still due, and record its outcome.

        Returns False where nothing was sent.
        """
        outbox, advancing = self._outbox(sandbox), sandbox.status.is_advancing
        outbox.in_flight += 1
        try:
            async with outbox.places, self._places:
                if sandbox.status.is_advancing != advancing:
                    sandbox.timers.release(timer)
                    return False
                attempt = claimed_attempt(sandbox, timer)
                if attempt is None:
                    return False
                outcome = await self._attempt(sandbox, attempt, timeout)
            if not sandbox.status.is_broken:
                await do_due(sandbox, self.worker)
            record(sandbox, timer, attempt, outcome)
            return True
        except asyncio.CancelledError:
            sandbox.timers.release(timer)
            raise
        except Unavailable:  # its outcome cannot be stored: it is repeated once it can
            sandbox.timers.release(timer)
        except Exception:  # not at once: it would fail again, as often as it can
            log.exception("defect in a delivery of sandbox %s; it is tried again", sandbox.name)
            if self._loop is not None:
                self._loop.call_later(AFTER_DEFECT, self._try_again, sandbox, timer)
        finally:
            outbox.in_flight -= 1
            self._wake()
        return False

    async def _attempt(self, sandbox: Sandbox, attempt: Attempt, timeout: float) -> AttemptOutcome:
        """Send a delivery, or answer it for a simulated receiver."""
        if sandbox.log.stored is not None:  # an event that was sent must not be undone
            await sandbox.log.stored()
        answered = simulated(sandbox, attempt)
        if answered is not None:
            return answered
        sender = self.sender
        if attempt.webhook.hidden.get(ABROAD):
            sender = self.abroad
        return await send(sender, attempt.delivery, timeout, disturbance(sandbox, attempt))

    def _try_again(self, sandbox: Sandbox, timer: Timer) -> None:
        sandbox.timers.release(timer)
        self.look_soon(sandbox)

    def in_flight(self, sandbox: Sandbox) -> int:
        """How many attempts of a sandbox are under way or wait for a place."""
        return self._outbox(sandbox).in_flight

    async def ended(self) -> None:
        """Wait until an attempt has ended, or a sandbox is looked at."""
        await self._change.wait()

    def _wake(self) -> None:
        """Wake those who wait: an attempt has ended, or a sandbox is looked at."""
        self._change.set()
        self._change = asyncio.Event()

    async def settle(self, sandbox: Sandbox) -> None:
        """Wait for the attempts under way; what waits in queues is due again."""
        self._hand_back(sandbox)
        while self.in_flight(sandbox):
            await self.ended()
