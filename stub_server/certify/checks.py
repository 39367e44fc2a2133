"""What is sent to a receiver under each rule, and what it must answer and may do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import NamedTuple

import orjson

from ..events.sender import Failed
from .samples import Sample
from .session import ANSWER_TIME, Outcome, Session

BURST = 20
TWICE = 5  # copies of one delivery at the same moment
ROUNDS = 3  # a gap between looking up and noting is not hit every time
HOUR = 3600
_SAID = 100  # characters of a refusal that are shown


class Result(Enum):
    """How a rule was kept."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """What came of one rule: what was sent and what came back, each in a sentence."""

    result: Result
    sent: str
    received: str


def told(outcome: Outcome) -> str:
    """An answer in words."""
    if outcome.status is not None:
        said = " ".join(outcome.body.split())[:_SAID] if outcome.error is not None else ""
        return f"{outcome.status} after {outcome.duration_ms} ms" + (f" ({said})" if said else "")
    return f"no answer ({outcome.error})"


def all_told(outcomes: Sequence[Outcome]) -> str:
    """Several answers in words, equal ones counted."""
    counted: dict[str, int] = {}
    for outcome in outcomes:
        word = f"no answer ({outcome.error})" if outcome.status is None else str(outcome.status)
        counted[word] = counted.get(word, 0) + 1
    slowest = max(outcome.duration_ms for outcome in outcomes)
    words = ", ".join(word if many == 1 else f"{many} times {word}" for word, many in counted.items())
    return f"{words}; the slowest after {slowest} ms"


def calls(number: int) -> str:
    """A number of calls in words."""
    return {0: "no call", 1: "one call"}.get(number, f"{number} calls") + " that changes something"


def _passed(holds: object) -> Result:
    return Result.PASSED if holds else Result.FAILED


def _is_refused(outcome: Outcome) -> bool:
    return outcome.status is not None and 400 <= outcome.status < 500


async def accepts(session: Session) -> Finding:
    mark = session.mark()
    outcome = await session.send(session.first)
    sent = f"{session.samples.type}, signed as it should be"
    if outcome.error == "timeout":  # which is another rule's
        return Finding(Result.NOT_APPLICABLE, sent, told(outcome))
    if outcome.error is None:
        await session.learn(mark)
    return Finding(_passed(outcome.error is None), sent, f"{told(outcome)}; {calls(session.effects)}")


async def in_time(session: Session) -> Finding:
    sent = "every delivery of this run"
    if session.unanswered:
        return Finding(Result.FAILED, sent, f"{session.unanswered} not answered within {ANSWER_TIME:.0f} s")
    if not session.answered:
        return Finding(Result.NOT_APPLICABLE, sent, "nothing was answered at all")
    return Finding(Result.PASSED, sent, f"the slowest answer came after {session.slowest} ms")


async def signature(session: Session) -> Finding:
    mark = session.mark()
    forged = await session.send(session.samples.next(session.now), keys=session.other_keys())
    unsigned = await session.send(session.samples.next(session.now), keys=())
    done = await session.calls_since(mark)
    sent = "one delivery signed with another key, one with an empty webhook-signature"
    received = f"{told(forged)} and {told(unsigned)}; {calls(done)}"
    return Finding(_passed(_is_refused(forged) and _is_refused(unsigned) and not done), sent, received)


async def timestamp(session: Session) -> Finding:
    mark = session.mark()
    old = await session.send(session.samples.next(session.now), ago=HOUR)
    done = await session.calls_since(mark)
    sent = "a delivery that was signed well, an hour ago"
    return Finding(_passed(_is_refused(old) and not done), sent, f"{told(old)}; {calls(done)}")


async def duplicate(session: Session) -> Finding:
    mark = session.mark()
    again = await session.send(session.first)
    done = await session.calls_since(mark)
    sent = "the first delivery once more, under the same webhook-id"
    received = f"{told(again)}; {calls(done)}"
    if again.error is None and not session.effects:
        session.knows_duplicates = None
        return _unseen(sent, received)
    session.knows_duplicates = not done
    return Finding(_passed(again.error is None and not done), sent, received)


async def simultaneous(session: Session) -> Finding:
    sent = f"a delivery {TWICE} times at the same moment; {ROUNDS} deliveries so"
    if session.knows_duplicates is None:
        return Finding(Result.UNKNOWN, "nothing", "whether the receiver knows duplicates could not be seen")
    if not session.knows_duplicates:
        return Finding(Result.NOT_APPLICABLE, "nothing", "the receiver knows no duplicates even one after the other")
    for _ in range(ROUNDS):
        mark = session.mark()
        try:
            statuses = await session.send_together(session.samples.next(session.now), TWICE)
        except Failed as error:
            return Finding(Result.NOT_APPLICABLE, sent, f"it could not be sent ({error})")
        done = await session.calls_since(mark)
        answers = ", ".join("no answer" if status is None else str(status) for status in statuses)
        received = f"{answers}; {calls(done)}, and {session.effects} is what one delivery causes"
        taken = any(status is not None and 200 <= status < 300 for status in statuses)
        if taken and not session.effects:
            return _unseen(sent, received)
        if not taken or done > session.effects:
            return Finding(Result.FAILED, sent, received)
    return Finding(Result.PASSED, sent, received)


async def interrupted(session: Session) -> Finding:
    sample = session.samples.next(session.now)
    sent = "half of a delivery, then the connection was closed; then the whole of it under the same webhook-id"
    try:
        await session.send_half(sample)
    except Failed as error:
        return Finding(Result.NOT_APPLICABLE, sent, f"the first half could not be sent ({error})")
    await session.calls_since(session.mark())
    mark = session.mark()
    outcome = await session.send(sample)
    done = await session.calls_since(mark)
    received = f"{told(outcome)}; {calls(done)}"
    if outcome.error is None and not session.effects:
        return _unseen(sent, received)
    return Finding(_passed(outcome.error is None and done), sent, received)


def accepted(sent: str, send: Callable[[Session], Awaitable[Outcome]]) -> Callable[..., Awaitable[Finding]]:
    """A rule that asks for a 2xx alone."""

    async def check(session: Session) -> Finding:
        outcome = await send(session)
        return Finding(_passed(outcome.error is None), sent, told(outcome))

    return check


async def order(session: Session) -> Finding:
    newer = session.samples.next(session.now)
    outcomes = [await session.send(newer), await session.send(session.samples.older(newer, session.now))]
    sent = "an event, and then one about the same record that happened a second before it"
    return Finding(_passed(all(outcome.error is None for outcome in outcomes)), sent, all_told(outcomes))


async def burst(session: Session) -> Finding:
    made = [session.samples.next(session.now) for _ in range(BURST)]
    outcomes = await asyncio.gather(*(session.send(sample) for sample in made))
    good = all(outcome.error is None for outcome in outcomes)
    return Finding(_passed(good), f"{BURST} different deliveries at the same moment", all_told(outcomes))


def _unseen(sent: str, received: str) -> Finding:
    said = f"{received}; the first delivery caused none either, so a second effect cannot be seen"
    return Finding(Result.UNKNOWN, sent, said)


def _indented(sample: Sample) -> bytes:
    return orjson.dumps(sample.payload, option=orjson.OPT_INDENT_2)


async def send_indented(session: Session) -> Outcome:
    sample = session.samples.next(session.now)
    return await session.send(sample, body=_indented(sample))
