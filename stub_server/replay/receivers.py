"""Receivers of webhooks in a replay: nothing is sent, they answer as the recording says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

import orjson

from ..delivery.courier import Courier
from ..delivery.posting import Made, Posting
from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..engine.attempts import attempt_for
from ..engine.deliveries import is_kept_back
from ..engine.sandbox import Sandbox
from ..engine.scheduler import tick_through
from ..events.sender import Delivery, Sender
from ..files.recording import step_for
from ..kernel.clock import iso
from ..kernel.record import Body
from ..kernel.timers import SENDING, Timer
from .inputs import Timepiece

_TURNS = 200  # of the event loop before an attempt that is not in the recording is passed over


class Diverged(Exception):
    """The next step of the recording does not fit the state of the sandbox."""


class Receivers:
    """What the recording says of deliveries: steps of attempts by number, outcomes of those that a request made."""

    def __init__(self, steps: Iterable[Body], timepiece: Timepiece, sandbox: Callable[[], Sandbox]) -> None:
        self._timepiece, self._sandbox = timepiece, sandbox
        self._request = ""  # the id of the request that is being served
        self._fired: set[tuple[str, str]] = set()  # attempts that its answer names, by instant and delivery
        self._steps: dict[int, Body] = {}
        self._answers: dict[str, Body] = {}
        for step in steps:
            if step["cause"]["kind"] == "delivery":
                self._steps[step["number"]] = step
            else:
                self._answers[step["cause"]["id"]] = step

    def begin(self, request: Body) -> None:
        """A request of the recording is served from here on."""
        self._request, self._fired = request["id"], set()
        if request["operation"] == "advanceClock" and request["status"] == 200:
            with suppress(ValueError, KeyError, TypeError):
                fired = orjson.loads(request["answer"].encode("latin-1"))["fired"]
                self._fired = {(job["at"], job["resource"]) for job in fired if job["job"] == SENDING}

    def under_way(self, sandbox: Sandbox) -> int:
        """How many attempts were under way: the next one, unless it was made while the clock advanced."""
        recorded = self._steps.get(sandbox.log.number + 1)
        if (
            recorded is None
            or sandbox is not self._sandbox()
            or (sandbox.clock.frozen and recorded["at"] != sandbox.clock.now)
        ):
            return 0
        timers, subject = sandbox.timers.by_number(), recorded["cause"]["id"]
        dues = [timers[number][0] for number in recorded.get("taken", ()) if number in timers]
        return 0 if any((iso(due), subject) in self._fired for due in dues) else 1

    def until(self, number: int) -> None:
        """Take the attempts that ended before a request, up to the step `number`. Raises Diverged."""
        sandbox = self._sandbox()
        for due in sorted(n for n in self._steps if sandbox.log.number < n <= number):
            step = self._steps[due]
            self._timepiece.show(sandbox, step["at"])
            tick_through(sandbox)
            if not self.take_next(sandbox):
                raise Diverged(f"step {due}, an attempt to deliver, does not follow step {sandbox.log.number}")

    def take_next(self, sandbox: Sandbox, subject: str | None = None) -> bool:
        """Take the next step if it is a recorded attempt, of delivery `subject` if given; whether it was taken."""
        recorded = self._steps.get(sandbox.log.number + 1)
        if sandbox is not self._sandbox() or recorded is None or subject not in (None, recorded["cause"]["id"]):
            return False
        try:
            next_step = step_for(sandbox, recorded)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise Diverged(
                f"step {recorded['number']}, an attempt to deliver, names what is not there ({error})"
            ) from None
        sandbox.take(next_step)
        return True

    def take_waiting(self) -> bool:
        """Take the next attempt while a request waits for what is due; whether there was one."""
        sandbox = self._sandbox()
        recorded = self._steps.get(sandbox.log.number + 1)
        if recorded is None:
            return False
        self._timepiece.show(sandbox, recorded["at"])
        tick_through(sandbox)
        return self.take_next(sandbox)

    def answer(self) -> AttemptOutcome | None:
        """What a receiver answered to the attempt that the present request makes."""
        step = self._answers.get(self._request)
        for put in () if step is None else step.get("puts", ()):
            if put["table"] != "webhook_logs" or not put["hidden"]["attempts"]:
                continue
            attempt, public, hidden = put["hidden"]["attempts"][-1], put["public"], put["hidden"]
            if attempt["trigger"] == AUTOMATIC or step is None:
                continue
            while self._sandbox().log.number + 1 < step["number"] and self.take_waiting():
                pass  # others ended while this one was on its way
            self._timepiece.show(self._sandbox(), step["at"])
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
        return None


class SilentSender(Sender):
    """Sends nothing; returns recorded outcomes."""

    def __init__(self, version: str, receivers: Receivers) -> None:
        super().__init__(version, local=False)
        self._receivers = receivers

    async def attempt(
        self, delivery: Delivery, timeout: float, limits: set[asyncio.Timeout] | None = None
    ) -> AttemptOutcome:
        """The recorded outcome; a failed connection for an attempt that is not in the recording."""
        found = self._receivers.answer()
        return AttemptOutcome(None, None, {}, 0, "connection_failed", {}, "") if found is None else found


class _Posting(Posting):
    """Attempts while the clock advances: each is the step of the recording, when its turn comes."""

    receivers: Receivers

    async def deliver(self, sandbox: Sandbox, timer: Timer, timeout: float, *, slow: bool = False) -> Made | None:
        """Take the step of an attempt; pass over one that is not in the recording."""
        if self._attempt(sandbox, timer) is None:
            return None
        for _ in range(_TURNS):
            if self.receivers.take_next(sandbox, timer.subject):
                return Made(timed_out=False, took=0)
            await asyncio.sleep(0)
        sandbox.timers.pass_over(timer)
        return None

    def in_flight(self, sandbox: Sandbox) -> int:
        """How many attempts were under way then."""
        return self.receivers.under_way(sandbox)

    async def ended(self) -> None:
        """Take the next attempt that has ended. Raises TimeoutError without one."""
        if not self.receivers.take_waiting():
            raise TimeoutError


class SilentCourier(Courier):
    """A courier that is open and sends nothing."""

    def __init__(self, sender: Sender, receivers: Receivers) -> None:
        super().__init__(sender, sender)
        self.posting: _Posting = _Posting(sender, sender, self.worker, lambda sandbox, timer: None)
        self.posting.receivers = receivers

    @property
    def is_open(self) -> bool:
        """It is used like one that sends."""
        return True

    def keep_back(self, sandbox: Sandbox) -> None:
        """Claim what is due and hold what may not be sent, as a courier that sends does before the next request."""
        timers = sandbox.timers
        while (timer := timers.claim(sandbox.clock.now)) is not None:
            attempt = attempt_for(sandbox, timer)
            if attempt is None:
                timers.pass_over(timer)
            elif is_kept_back(sandbox, attempt.serial, attempt.delivery.url):
                timers.hold(timer)

    def hand_back(self, sandbox: Sandbox) -> None:
        """Release everything that was claimed: the clock advances, and takes its steps itself."""
        for claimed in [*sandbox.timers.claimed.values()]:
            sandbox.timers.release(Timer(*claimed))
