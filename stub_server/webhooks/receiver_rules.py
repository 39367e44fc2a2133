"""The rules for a receiver: what is sent under each, what the receiver must answer and may do, and
the report. `receiver-rules.yaml` of the fixtures has their texts.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import NamedTuple

import orjson

from ..contract.source import fixture
from ..core.record import Body
from ..domain.deliveries import AttemptOutcome, Failed
from .effects import Work
from .receiver import ANSWER_TIME, Session

# the texts have these numbers too
BURST = 20
TWICE = 5  # copies of one delivery at the same moment
ROUNDS = 3  # a gap between looking up and noting is not hit every time
HOUR = 3600
LATE = 75 * HOUR * 1000  # ms; when the last retry of this service would come
LONGEST = 30.0  # seconds of a certification
OTHER_KEYS = ("whsec_" + "Zm9yZ2Vk" * 4,)  # of another receiver
_BODY_SHOWN = 100  # characters of a refusal
_NOTHING = "nothing"
PASSED, FAILED, NOT_APPLICABLE, UNKNOWN = "passed", "failed", "not_applicable", "unknown"


class Finding(NamedTuple):
    """The result of one rule, and what was received, in a sentence; `sent` where that is not what
    the rule says.
    """

    result: str
    received: str
    sent: str | None = None


def _reported(ident: str, finding: Finding, event_type: str) -> Body:
    """A rule in the report; advice is for those who break it."""
    about = fixture("receiver-rules.yaml")[ident]
    return {
        "id": ident,
        "name": about["name"],
        "result": finding.result,
        "sent": finding.sent or about["sent"].format(type=event_type),
        "received": finding.received,
        "advice": about["advice"] if finding.result == FAILED else None,
    }


def _passed(results: Mapping[str, int]) -> bool | None:
    """Whether the receiver keeps the rules; None while a rule is unknown and none is broken."""
    if results[FAILED]:
        return False
    if results[UNKNOWN]:
        return None
    return True


# -- words


def _described(outcome: AttemptOutcome) -> str:
    if outcome.status is None:
        return _status_of(outcome)
    text = f"{outcome.status} after {outcome.duration_ms} ms"
    body = " ".join((outcome.body or "").split())[:_BODY_SHOWN]
    if outcome.error is not None and body:
        text += f" ({body})"
    return text


def _status_of(outcome: AttemptOutcome) -> str:
    if outcome.status is None:
        return f"no answer ({outcome.error})"
    return str(outcome.status)


def _judged(holds: object, received: str) -> Finding:
    return Finding(PASSED if holds else FAILED, received)


def _accepted(outcome: AttemptOutcome) -> Finding:
    """The finding of a rule that asks for a 2xx alone."""
    return _judged(outcome.error is None, _described(outcome))


def _all_accepted(outcomes: Sequence[AttemptOutcome]) -> Finding:
    """The finding of a rule that asks for a 2xx to each of several deliveries."""
    words = []
    for word, many in Counter(map(_status_of, outcomes)).items():
        words.append(word if many == 1 else f"{many} times {word}")
    slowest = max(outcome.duration_ms for outcome in outcomes)
    holds = all(outcome.error is None for outcome in outcomes)
    return _judged(holds, f"{', '.join(words)}; the slowest after {slowest} ms")


def _is_refused(outcome: AttemptOutcome) -> bool:
    return outcome.status is not None and 400 <= outcome.status < 500


class Certification(Session):
    """Judges a receiver. Each rule is a method of its name; those that look at its work wait until
    the receiver does no more.
    """

    async def report(self) -> Body:
        """The report on the receiver, within a bounded time, its rules in the order of their texts.
        Never raises for what the receiver does.
        """
        begun = perf_counter_ns()
        deadline = asyncio.get_running_loop().time() + LONGEST
        rules = []
        results = dict.fromkeys((PASSED, FAILED, NOT_APPLICABLE, UNKNOWN), 0)
        skipped = None
        for ident in fixture("receiver-rules.yaml"):
            # `in_time` judges the deliveries of the others, and is never skipped
            if skipped is not None and ident != "in_time":
                finding = Finding(NOT_APPLICABLE, skipped, _NOTHING)
            else:
                finding = await self._found(ident, deadline)
            if self.unanswered:
                skipped = f"a delivery was not answered within {ANSWER_TIME:.0f} s"
            elif ident == "accepts" and finding.result != PASSED:
                skipped = "the first delivery was not accepted"
            rules.append(_reported(ident, finding, self.samples.type))
            results[finding.result] += 1
        return {
            "passed": _passed(results),
            "summary": results,
            "duration_ms": (perf_counter_ns() - begun) // 1_000_000,
            "rules": rules,
        }

    async def _found(self, ident: str, deadline: float) -> Finding:
        """The result of a rule, unknown where the time of the run is over before."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                finding: Finding = await getattr(self, ident)()
                return finding
        return Finding(UNKNOWN, f"the {LONGEST:.0f} s of a run were over", _NOTHING)

    def _unseen(self) -> str | None:
        """Why nobody can say whether work was repeated; None where it shows."""
        if self.effects is not None and self.effects.trouble is not None:
            return f"the effects could not be read ({self.effects.trouble})"
        if not self.shows(self.usual):
            return (
                "the first delivery showed no effect; if the receiver knows this order already, let"
                " it begin empty"
            )
        return None

    def _accepted_with(self, outcome: AttemptOutcome, done: Work, holds: bool) -> Finding:
        """The finding of a rule that asks for a 2xx, and about the work that was done: unknown
        where that is not seen.
        """
        unseen = self._unseen()
        received = f"{_described(outcome)}; {done}"
        if outcome.error is None and unseen is not None:
            return Finding(UNKNOWN, f"{received}; {unseen}")
        return _judged(outcome.error is None and holds, received)

    async def accepts(self) -> Finding:
        mark = await self.mark()
        outcome = await self.send(self.first)
        if outcome.error == "timeout":  # which is another rule's
            return Finding(NOT_APPLICABLE, _described(outcome))
        if outcome.error is None:
            await self.learn(mark)
        return _judged(outcome.error is None, f"{_described(outcome)}; {self.usual}")

    async def in_time(self) -> Finding:
        if self.unanswered:
            return Finding(FAILED, f"{self.unanswered} not answered within {ANSWER_TIME:.0f} s")
        if not self.answered:
            return Finding(NOT_APPLICABLE, "nothing was answered at all")
        return Finding(PASSED, f"the slowest answer came after {self.slowest} ms")

    async def duplicate(self) -> Finding:
        mark = await self.mark()
        again = await self.send(self.first)
        done = await self.work_since(mark)
        self.repeats = done.is_any
        return self._accepted_with(again, done, not done.is_any)

    async def simultaneous(self) -> Finding:
        if (unseen := self._unseen()) is not None:
            return Finding(UNKNOWN, unseen, _NOTHING)
        if self.repeats:
            received = (
                "the receiver does not recognise duplicates that are sent one after the other"
            )
            return Finding(NOT_APPLICABLE, received, _NOTHING)
        for _ in range(ROUNDS):
            mark = await self.mark()
            try:
                statuses = await self.send_together(self.samples.next(), TWICE)
            except Failed as error:
                return Finding(UNKNOWN, f"it could not be sent ({error})")
            done = await self.work_since(mark)
            answers = ", ".join(str(status or "no answer") for status in statuses)
            received = f"{answers}; {done}; one delivery: {self.usual}"
            is_accepted = any(200 <= (status or 0) < 300 for status in statuses)
            if not is_accepted or done.is_more_than(self.usual):
                return Finding(FAILED, received)
        if not self.usual.is_countable:
            received += "; a text does not show whether a delivery acted once or twice"
            return Finding(UNKNOWN, received)
        return Finding(PASSED, received)

    async def interrupted(self) -> Finding:
        sample = self.samples.next()
        try:
            await self.send_half(sample)
        except Failed as error:
            return Finding(UNKNOWN, f"the first half could not be sent ({error})")
        await self.work_since(await self.mark())
        mark = await self.mark()
        outcome = await self.send(sample)
        done = await self.work_since(mark)
        return self._accepted_with(outcome, done, self.shows(done))

    async def signature(self) -> Finding:
        mark = await self.mark()
        forged = await self.send(self.samples.next(), keys=OTHER_KEYS)
        unsigned = await self.send(self.samples.next(), keys=())
        done = await self.work_since(mark)
        holds = _is_refused(forged) and _is_refused(unsigned) and not done.is_any
        return _judged(holds, f"{_described(forged)} and {_described(unsigned)}; {done}")

    async def timestamp(self) -> Finding:
        mark = await self.mark()
        old = await self.send(self.samples.next(), ago=HOUR)
        done = await self.work_since(mark)
        return _judged(_is_refused(old) and not done.is_any, f"{_described(old)}; {done}")

    async def key_rotation(self) -> Finding:
        return _accepted(
            await self.send(self.samples.next(), keys=(*OTHER_KEYS, *self.target.keys))
        )

    async def raw_body(self) -> Finding:
        sample = self.samples.next()
        return _accepted(
            await self.send(sample, body=orjson.dumps(sample, option=orjson.OPT_INDENT_2))
        )

    async def late(self) -> Finding:
        return _accepted(await self.send(self.samples.next(LATE)))

    async def order(self) -> Finding:
        newer = self.samples.next()
        return _all_accepted([await self.send(newer), await self.send(self.samples.older(newer))])

    async def unknown_type(self) -> Finding:
        return _accepted(await self.send(self.samples.of_unknown_type()))

    async def unknown_fields(self) -> Finding:
        return _accepted(await self.send(self.samples.with_unknown_fields()))

    async def large_body(self) -> Finding:
        return _accepted(await self.send(self.samples.large()))

    async def burst(self) -> Finding:
        attempts = [self.send(self.samples.next()) for _ in range(BURST)]
        return _all_accepted(await asyncio.gather(*attempts))
