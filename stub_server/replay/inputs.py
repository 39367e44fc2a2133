"""What a replay supplies from outside: the machine's time, request ids, credentials, and the receivers of webhooks."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

import orjson

from ..calls.credentials import Tokens
from ..contract.source import nodes
from ..data.keys import pair_of
from ..delivery.courier import Courier
from ..delivery.posting import claimed_attempt
from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..engine.attempts import attempt_for
from ..engine.deliveries import is_kept_back
from ..engine.journal import Trace
from ..engine.sandbox import Sandbox
from ..engine.scheduler import do_due_at_once
from ..events.sender import Sender, unanswered
from ..files.exports import step_for
from ..files.fitting import Fitting
from ..kernel.clock import EARLIEST_START, LATEST_START, iso
from ..kernel.record import Body
from ..kernel.timers import SENDING, Timer
from .recorded import json_of

_TURNS = 200  # of the event loop before an attempt that is not in the recording is passed over


class Timepiece:
    """The machine's time as the recording has it, in ms."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def show(self, sandbox: Sandbox, at: int, wall: int | None = None) -> None:
        """Set the time so that a running clock shows `at`; if the clock is frozen, set it to `wall` if given."""
        if not sandbox.clock.frozen:  # within the years that can be written, whatever clock the file has
            self.now = min(max(at - sandbox.clock.state.offset, EARLIEST_START), LATEST_START)
        elif wall is not None:
            self.now = wall


class RequestIds(Random):
    """Random bits for request ids: first those of `ident`, then generated ones."""

    def __init__(self, ident: str) -> None:
        super().__init__(ident)
        self._next: int | None = int(ident.removeprefix("req_"), 16)

    def getrandbits(self, k: int, /) -> int:
        given, self._next = self._next, None
        return super().getrandbits(k) if given is None else given


class Callers:
    """Credentials for the callers of a recording, which names callers and contains no credentials."""

    def __init__(self, tokens: Tokens, secret: bytes) -> None:
        self._tokens, self._secret = tokens, secret
        self._made: dict[str, str] = {}

    def credential(self, sandbox: Sandbox, request: Trace) -> str:
        """The value of Authorization for a request."""
        caller = request.caller
        if caller is None or (caller.claims is None and caller.key_id is None):
            return "Bearer anybody"  # a lenient server takes any
        if caller.claims is not None:
            return "Bearer " + self._tokens.signed(caller.claims)
        ident = caller.key_id
        if caller.kind == "public_key":
            known = (store.api_keys.peek(ident) for store in sandbox.stores.values())
            return "Bearer " + next((key["public_key"] for key in known if key), "pk_sandbox_" + "0" * 24)
        return "Bearer " + (self._made.get(ident) or pair_of(self._secret, sandbox.seed, ident, sandbox.identity)[1])

    def learn(self, answer: bytes) -> None:
        """Remember the private keys that an answer shows once."""
        if b'"private_key"' in answer:
            with suppress(ValueError):
                for _, node in nodes([orjson.loads(answer)]):
                    if isinstance(node, dict) and isinstance(node.get("private_key"), str) and "id" in node:
                        self._made[node["id"]] = node["private_key"]


class Diverged(Exception):
    """The next step of the recording does not fit the state of the sandbox."""


class RecordedDeliveries(Courier):
    """The courier of a replay: steps of attempts by number, and outcomes of those that a request made.

    An attempt is made by taking the step of the recording when its turn comes. It is never started: nothing is sent
    beside requests.
    """

    is_open = True

    def __init__(
        self, steps: Iterable[Body], timepiece: Timepiece, sandbox: Callable[[], Sandbox], fitting: Fitting
    ) -> None:
        sender = Sender(local=False, answer=self._answer)
        super().__init__(sender, sender)
        self._timepiece, self._sandbox, self._fitting = timepiece, sandbox, fitting
        self._request = ""  # the id of the request that is being served
        self._fired: set[tuple[str, str]] = set()  # attempts that its answer names, by instant and delivery
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

    def begin(self, request: Trace) -> None:
        """A request of the recording is served from here on; what is due is claimed or held, as it was then."""
        self._request, self._fired = request.id, set()
        if request.operation == "advanceClock" and request.status == 200:
            with suppress(KeyError, TypeError):
                fired = json_of(request)["fired"]
                self._fired = {(job["at"], job["resource"]) for job in fired if job["job"] == SENDING}
        sandbox = self._sandbox()
        timers = sandbox.timers
        while (timer := timers.claim(sandbox.clock.now)) is not None:
            attempt = attempt_for(sandbox, timer)
            if attempt is None:
                timers.regroup(timer, timers.skipped)
            elif is_kept_back(sandbox, attempt.entry, attempt.delivery.url):
                timers.regroup(timer, timers.on_hold)

    # -- as the courier of the server

    async def settle(self, sandbox: Sandbox) -> None:
        """Take the attempts that were under way; all others are due again."""
        for timer in [*sandbox.timers.claimed.values()]:
            sandbox.timers.release(timer)
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
        sandbox.timers.regroup(timer, sandbox.timers.skipped)
        return False

    def in_flight(self, sandbox: Sandbox) -> int:
        """How many attempts were under way: the next one, unless it was made while the clock advanced."""
        recorded = self._next_step(sandbox)
        if recorded is None or (sandbox.clock.frozen and recorded["at"] != sandbox.clock.now):
            return 0
        timers, subject = sandbox.timers.live, recorded["cause"]["id"]
        dues = [timers[number][0] for number in recorded.get("taken", ()) if number in timers]
        return 0 if any((iso(due), subject) in self._fired for due in dues) else 1

    async def ended(self) -> None:
        """Take the next attempt that has ended. Raises TimeoutError without one."""
        if not self._take_waiting(self._next_step(self._sandbox())):
            raise TimeoutError

    async def _answer(self) -> AttemptOutcome:
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
        return await unanswered()

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
        do_due_at_once(sandbox)
        return self._take_next(sandbox)

    def _take_next(self, sandbox: Sandbox, subject: str | None = None) -> bool:
        """Take the next step if it is a recorded attempt, of delivery `subject` if given; whether it was taken."""
        recorded = self._next_step(sandbox)
        if recorded is None or subject not in (None, recorded["cause"]["id"]):
            return False
        try:
            step = step_for(sandbox, recorded, self._fitting)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise Diverged(
                f"step {recorded['number']}, an attempt to deliver, names what is not there ({error})"
            ) from None
        sandbox.take(step)
        return True
