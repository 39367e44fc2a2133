"""The receiver while it is judged: what is sent to it, what it answers, and what it
does meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple

import orjson

from ..core.clock import SECOND, wall_ms
from ..core.record import Body
from ..domain.deliveries import AttemptOutcome, Delivery, Failed
from ..engine.kept import Trace
from ..engine.sandbox import Sandbox
from .effects import Effects, Work
from .sample_events import Samples
from .sender import Sender

ANSWER_TIME = 4.0  # seconds that a receiver has, which the text of a rule says too
_FIRST_WORK = 1.0  # seconds in which a receiver that answers first must have begun its work
_PAUSE = 0.02  # seconds between two looks
# seconds without work after which a receiver counts as done; more for one that answers first
_QUIET = 0.25
_LONGEST_WAIT = 3.0
_HEADSTART = 0.05  # seconds in which a receiver accepts several connections and reads
_CUT_OFF = "cut_off"  # why an attempt failed whose connection was closed on purpose


class Mark(NamedTuple):
    """A moment: the newest request of the sandbox, and the number or text that shows effects."""

    newest: Trace | None
    effects: str | None


class Session:
    """Sends to one receiver and watches the journal of one sandbox.

    `target` is a delivery without event and body: the receiver's address, the merchant's own
    headers, the keys.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        target: Delivery,
        sender: Sender,
        samples: Samples,
        effects: Effects | None = None,
    ) -> None:
        self.samples = samples
        self.effects = effects
        self._sandbox = sandbox
        self.target = target
        self._sender = sender
        self._quiet = _QUIET
        self.first = samples.next()
        self.answered = self.unanswered = 0
        self.slowest = 0  # ms
        self.usual = Work()  # what one delivery causes, as the first one has shown
        self.repeats = False  # whether it has processed the first delivery twice

    async def send(self, sample: Body, *, ago: int = 0, **other: Any) -> AttemptOutcome:
        """Deliver once.

        `other` are a body or keys in place of the usual ones, `ago` seconds on the timestamp.
        """
        delivery = self._delivery(sample, **other)
        outcome = await self._sender.attempt(delivery, ANSWER_TIME, at=wall_ms() - ago * SECOND)
        if outcome.status is not None:
            self.answered += 1
            self.slowest = max(self.slowest, outcome.duration_ms)
        elif outcome.error == "timeout":
            self.unanswered += 1
        return outcome

    async def send_half(self, sample: Body) -> None:
        """Send the head and half of the body of a delivery, then close the connection.

        Raises Failed.
        """
        delivery = self._delivery(sample)

        async def half() -> AsyncIterator[bytes]:
            yield delivery.body[: len(delivery.body) // 2]
            raise Failed(_CUT_OFF)

        outcome = await self._sender.attempt(replace(delivery, pieces=half), ANSWER_TIME)
        if outcome.error != _CUT_OFF:
            raise Failed(outcome.error or "connection_failed")

    async def send_together(self, sample: Body, copies: int) -> list[int | None]:
        """Send a delivery several times at the very same moment; the status of each answer.

        Raises Failed.
        """
        delivery = self._delivery(sample)
        ready = asyncio.Barrier(copies)
        is_sent = False

        async def in_step() -> AsyncIterator[bytes]:
            nonlocal is_sent
            yield delivery.body[:-1]
            # The last byte is sent separately, so that the receiver gets all copies complete at the
            # same moment.
            await ready.wait()
            await asyncio.sleep(_HEADSTART)
            is_sent = True
            yield delivery.body[-1:]

        each = replace(delivery, pieces=in_step)
        outcomes = await asyncio.gather(
            *[self._sender.attempt(each, ANSWER_TIME) for _ in range(copies)]
        )
        if not is_sent:
            raise Failed(outcomes[0].error or "connection_failed")
        statuses = [outcome.status for outcome in outcomes]
        self.answered += copies - statuses.count(None)
        return statuses

    def _delivery(self, sample: Body, **other: Any) -> Delivery:
        return replace(self.target, event_id=sample["id"], **{"body": orjson.dumps(sample)} | other)

    # -- what it does

    async def mark(self) -> Mark:
        """How things stand before something is sent."""
        newest = next(reversed(self._sandbox.journal), None)
        return Mark(newest, None if self.effects is None else await self.effects.ask())

    async def work_since(self, mark: Mark) -> Work:
        """What the receiver has done, once it does no more."""
        begun = changed = monotonic()
        seen = await self._work(mark)
        while monotonic() - changed < self._quiet and monotonic() - begun < _LONGEST_WAIT:
            await asyncio.sleep(_PAUSE)
            now = await self._work(mark)
            if now != seen:
                seen = now
                changed = monotonic()
        return seen

    async def learn(self, mark: Mark) -> None:
        """What one delivery causes, and how long after the answer: receivers may answer first and
        work then.
        """
        begun = monotonic()
        while not self.shows(await self._work(mark)) and monotonic() - begun < _FIRST_WORK:
            await asyncio.sleep(_PAUSE)
        took = monotonic() - begun
        if took < _FIRST_WORK:
            self._quiet = max(_QUIET, 3 * took)
        self.usual = await self.work_since(mark)

    def shows(self, work: Work) -> bool:
        """Whether work was done, by the effects if they are asked, else by the calls."""
        if self.effects is None:
            return work.calls > 0
        return work.has_changed

    async def _work(self, mark: Mark) -> Work:
        after = None if self.effects is None else await self.effects.ask()
        return Work(self._calls(mark.newest), mark.effects, after)

    def _calls(self, newest: Trace | None) -> int:
        """Calls that do something: no reads, and none that an Idempotency-Key answered with an
        earlier reply.

        An update to what a record is already counts: the receiver has done its work again.
        """
        calls = 0
        for trace in reversed(self._sandbox.journal):
            if trace is newest:
                break
            is_read = trace.method in ("GET", "HEAD", "OPTIONS")
            if is_read or trace.path.startswith("/_sandbox"):
                continue
            if "idempotent-replayed" not in dict(trace.answer_headers):
                calls += 1
        return calls
