"""Receivers of webhooks in a replay: nothing is sent, they answer as the recording says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from ..delivery.posting import claimed_attempt
from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..engine.attempts import attempt_for
from ..engine.deliveries import is_kept_back
from ..engine.sandbox import Sandbox
from ..engine.scheduler import tick_through
from ..events.sender import Delivery, Limits, Sender, unanswered
from ..files.recording import step_for
from ..kernel.clock import iso
from ..kernel.record import Body
from ..kernel.slices import BackgroundWorker
from ..kernel.timers import SENDING, Timer
from ..version import __version__
from .inputs import Timepiece
from .recorded import Recorded

_TURNS = 200  # of the event loop before an attempt that is not in the recording is passed over


class Diverged(Exception):
    """The next step of the recording does not fit the state of the sandbox."""


class RecordedDeliveries:
    """The `Deliveries` of a replay: steps of attempts by number, and outcomes of those that a request made.

    An attempt is made by taking the step of the recording when its turn comes.
    """

    is_open = True

    def __init__(self, steps: Iterable[Body], timepiece: Timepiece, sandbox: Callable[[], Sandbox]) -> None:
        self.sender, self.worker = Sender(__version__, local=False, answer=self._answer), BackgroundWorker()
        self._timepiece, self._sandbox = timepiece, sandbox
        self._request = ""  # the id of the request that is being served
        self._fired: set[tuple[str, str]] = set()  # attempts that its answer names, by instant and delivery
        self._tasks: set[asyncio.Task[None]] = set()
        self._steps: dict[int, Body] = {}
        self._answers: dict[str, Body] = {}
        for step in steps:
            if step["cause"]["kind"] == "delivery":
                self._steps[step["number"]] = step
            else:
                self._answers[step["cause"]["id"]] = step

    # -- before a request

    def until(self, number: int) -> None:
        """Take the attempts that ended before a request, up to the step `number`. Raises Diverged."""
        sandbox = self._sandbox()
        for due in sorted(n for n in self._steps if sandbox.log.number < n <= number):
            if not self._take_waiting(self._steps[due]):
                raise Diverged(f"step {due}, an attempt to deliver, does not follow step {sandbox.log.number}")

    def begin(self, request: Recorded) -> None:
        """A request of the recording is served from here on; what is due is claimed or held, as it was then."""
        self._request, self._fired = request.id, set()
        if request.operation == "advanceClock" and request.status == 200:
            with suppress(KeyError, TypeError):
                fired = request.json()["fired"]
                self._fired = {(job["at"], job["resource"]) for job in fired if job["job"] == SENDING}
        sandbox = self._sandbox()
        timers = sandbox.timers
        while (timer := timers.claim(sandbox.clock.now)) is not None:
            attempt = attempt_for(sandbox, timer)
            if attempt is None:
                timers.pass_over(timer)
            elif is_kept_back(sandbox, attempt.serial, attempt.delivery.url):
                timers.hold(timer)

    # -- as the courier of the server

    def start(self, sandboxes: Iterable[Sandbox]) -> None:
        """Nothing is sent beside requests."""

    async def stop(self, since: float | None = None) -> None:
        """Nothing is sent."""

    def ring(self, sandbox: Sandbox) -> None:
        """Nothing is sent before its turn."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self, sandbox: Sandbox, seconds: float) -> None:
        """Take the attempts that were under way; all others are due again."""
        for claimed in [*sandbox.timers.claimed.values()]:
            sandbox.timers.release(Timer(*claimed))
        while self.in_flight(sandbox):
            await self.ended()

    async def deliver(self, sandbox: Sandbox, timer: Timer, timeout: float) -> bool:
        """Take the step of an attempt; pass over one that is not in the recording."""
        if claimed_attempt(sandbox, timer) is None:
            return False
        for _ in range(_TURNS):
            if self._take_next(sandbox, timer.subject):
                return True
            await asyncio.sleep(0)
        sandbox.timers.pass_over(timer)
        return False

    def in_flight(self, sandbox: Sandbox) -> int:
        """How many attempts were under way: the next one, unless it was made while the clock advanced."""
        recorded = self._next_step(sandbox)
        if recorded is None or (sandbox.clock.frozen and recorded["at"] != sandbox.clock.now):
            return 0
        timers, subject = sandbox.timers.by_number(), recorded["cause"]["id"]
        dues = [timers[number][0] for number in recorded.get("taken", ()) if number in timers]
        return 0 if any((iso(due), subject) in self._fired for due in dues) else 1

    async def ended(self) -> None:
        """Take the next attempt that has ended. Raises TimeoutError without one."""
        if not self._take_waiting(self._next_step(self._sandbox())):
            raise TimeoutError

    async def _answer(self, delivery: Delivery, timeout: float, limits: Limits) -> AttemptOutcome:
        """What a receiver answered to the attempt that the present request makes; nothing if it is not recorded."""
        step = self._answers.get(self._request)
        for put in () if step is None else step.get("puts", ()):
            if put["table"] != "webhook_logs" or not put["hidden"]["attempts"]:
                continue
            attempt, public, hidden = put["hidden"]["attempts"][-1], put["public"], put["hidden"]
            if attempt["trigger"] == AUTOMATIC or step is None:
                continue
            sandbox = self._sandbox()
            while sandbox.log.number + 1 < step["number"] and self._take_waiting(self._next_step(sandbox)):
                pass  # others ended while this one was on its way
            self._timepiece.show(sandbox, step["at"])
            return AttemptOutcome(
                status=public["response_status"],
                body=public["response_body"],
                response_headers=hidden["response_headers"],
                duration_ms=public["duration_ms"],
                error=public["error"],
                request_headers=hidden["request_headers"],
                signature=attempt["signature"],
                simulated=attempt.get("simulated"),
            )
        return await unanswered(delivery, timeout, limits)

    # -- the steps of the recording

    def _next_step(self, sandbox: Sandbox) -> Body | None:
        """The next step, if it is an attempt of the recorded sandbox."""
        return self._steps.get(sandbox.log.number + 1) if sandbox is self._sandbox() else None

    def _take_waiting(self, recorded: Body | None) -> bool:
        """Take an attempt at its time, if it is the next step; whether it was taken."""
        if recorded is None:
            return False
        sandbox = self._sandbox()
        self._timepiece.show(sandbox, recorded["at"])
        tick_through(sandbox)
        return self._take_next(sandbox)

    def _take_next(self, sandbox: Sandbox, subject: str | None = None) -> bool:
        """Take the next step if it is a recorded attempt, of delivery `subject` if given; whether it was taken."""
        recorded = self._next_step(sandbox)
        if recorded is None or subject not in (None, recorded["cause"]["id"]):
            return False
        try:
            step = step_for(sandbox, recorded)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise Diverged(
                f"step {recorded['number']}, an attempt to deliver, names what is not there ({error})"
            ) from None
        sandbox.take(step)
        return True
