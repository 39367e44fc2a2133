"""What a replay supplies from outside: the machine's time, request ids, credentials, and what
receivers caused.
"""

from collections.abc import Callable, Iterable
from random import Random

import orjson

from ...core.clock import EARLIEST_START, LATEST_START
from ...core.record import Body, object_in
from ...core.timers import SENDING
from ...data.keys import own_pair
from ...engine.kept import Trace
from ...engine.sandbox import Sandbox
from ...server.tokens import Tokens
from ...storage.exports import is_outside, step_for
from ...storage.fitting import Fitting
from .recorded import FAULTS, MACHINES, last_step

_OF_RULES = b'"simulated":"fault:'  # what an attempt that a rule has disturbed has in its record


class Timepiece:
    """The machine's time as the recording has it, in ms."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def show(self, sandbox: Sandbox, at: int, wall: int | None = None) -> None:
        """Set the time so that a running clock shows `at`; if the clock is frozen, set it to `wall`
        if given.
        """
        # within the years that can be written, whatever clock the file has
        if not sandbox.clock.frozen:
            self.now = min(max(at - sandbox.clock.state.offset, EARLIEST_START), LATEST_START)
        elif wall is not None:
            self.now = wall


class RequestIds(Random):
    """Random bits for request ids: first those of `ident`, then generated ones."""

    def __init__(self, ident: str) -> None:
        super().__init__(ident)
        self._next: int | None = int(ident.removeprefix("req_"), 16)

    def getrandbits(self, k: int, /) -> int:
        first, self._next = self._next, None
        if first is None:
            return super().getrandbits(k)
        return first


class Callers:
    """Credentials for the callers of a recording, which names callers and contains no
    credentials.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._made: dict[str, str] = {}

    def credential(self, sandbox: Sandbox, request: Trace) -> str:
        """The value of Authorization for a request."""
        caller = request.caller
        if caller is not None and caller.claims is not None:
            return "Bearer " + self._tokens.signed(caller.claims)
        if caller is None or caller.key_id is None:
            return "Bearer anybody"  # a lenient server takes any
        ident = caller.key_id
        if caller.kind == "public_key":
            for store in sandbox.stores.values():
                key = store.api_keys.peek(ident)
                if key:
                    return f"Bearer {key['public_key']}"
            return f"Bearer pk_sandbox_{'0' * 24}"  # it is no longer stored, and nobody has this
        return f"Bearer {self._made.get(ident, own_pair(sandbox, ident)[1])}"

    def learn(self, answer: bytes) -> None:
        """Remember the private key that an answer shows once."""
        key = object_in(answer).get("api_key")
        if isinstance(key, dict) and "private_key" in key:
            self._made[key["id"]] = key["private_key"]


class Diverged(Exception):
    """The next step of the recording does not fit the state of the sandbox."""


class RecordedSteps:
    """The steps since the state of a recording, by number. A replay takes those that no request of
    its own makes.

    Such are attempts to deliver, jobs between two requests, and what is done by a request that
    waits for receivers.
    """

    def __init__(
        self,
        steps: Iterable[Body],
        timepiece: Timepiece,
        sandbox: Callable[[], Sandbox],
        fitting: Fitting,
    ) -> None:
        self._steps = {step["number"]: step for step in steps}
        self._timepiece, self._sandbox, self._fitting = timepiece, sandbox, fitting

    def reason(self, request: Trace) -> str | None:
        """Why a request is not compared: a receiver or a fault rule had a part in its
        steps or its answer.
        """
        has_receiver = SENDING.encode() in (request.answer or b"")
        for number in range(request.before + 1, last_step(request) + 1):
            step = self._steps.get(number)
            if step is None:
                continue
            if _OF_RULES in orjson.dumps(step):
                return FAULTS
            if is_outside(step):
                has_receiver = True
        return MACHINES if has_receiver else None

    def take(self, until: int) -> None:
        """Take the next steps, up to that of the number `until`. Raises Diverged."""
        sandbox = self._sandbox()
        while (number := sandbox.log.number + 1) <= until:
            if number not in self._steps:
                raise Diverged(f"step {number} is not in the recording")
            recorded = self._steps[number]
            self._timepiece.show(sandbox, recorded["at"])
            try:
                step = step_for(sandbox, recorded, self._fitting)
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise Diverged(f"step {number} names what is not there ({error})") from None
            sandbox.take(step)
