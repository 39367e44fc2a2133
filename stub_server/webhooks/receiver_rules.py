"""The rules for a receiver: what is sent under each, what the receiver must answer and may do, and
the report. `receiver-rules.yaml` of the fixtures has their texts.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
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


Check = Callable[[Session], Awaitable[Finding]]


async def certify(session: Session) -> Body:
    """The report on a receiver, within a bounded time. Never raises for what the receiver does."""
    begun = perf_counter_ns()
    deadline = asyncio.get_running_loop().time() + LONGEST
    rules: list[Body] = []
    results = dict.fromkeys((PASSED, FAILED, NOT_APPLICABLE, UNKNOWN), 0)
    skipped = None
    for check in RULES:
        # `in_time` judges the deliveries of the others, and is never skipped
        if skipped is not None and check is not in_time:
            finding = Finding(NOT_APPLICABLE, skipped, _NOTHING)
        else:
            finding = await _found(check, session, deadline)
        if session.unanswered:
            skipped = f"a delivery was not answered within {ANSWER_TIME:.0f} s"
        elif check is accepts and finding.result != PASSED:
            skipped = "the first delivery was not accepted"
        rules.append(_reported(check.__name__, finding, session.samples.type))
        results[finding.result] += 1
    return {
        "passed": _passed(results),
        "summary": results,
        "duration_ms": (perf_counter_ns() - begun) // 1_000_000,
        "rules": rules,
    }


async def _found(check: Check, session: Session, deadline: float) -> Finding:
    """The result of a rule, unknown where the time of the run is over before."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            return await check(session)
    return Finding(UNKNOWN, f"the {LONGEST:.0f} s of a run were over", _NOTHING)


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


def _unseen(session: Session) -> str | None:
    """Why nobody can say whether work was repeated; None where it shows."""
    if session.effects is not None and session.effects.trouble is not None:
        return f"the effects could not be read ({session.effects.trouble})"
    if not session.shows(session.usual):
        return (
            "the first delivery showed no effect; if the receiver knows this order already, let it"
            " begin empty"
        )
    return None


def _accepted_with(session: Session, outcome: AttemptOutcome, done: Work, holds: bool) -> Finding:
    """The finding of a rule that asks for a 2xx, and about the work that was done: unknown where
    that is not seen.
    """
    unseen, received = _unseen(session), f"{_described(outcome)}; {done}"
    if outcome.error is None and unseen is not None:
        return Finding(UNKNOWN, f"{received}; {unseen}")
    return _judged(outcome.error is None and holds, received)


def _is_refused(outcome: AttemptOutcome) -> bool:
    return outcome.status is not None and 400 <= outcome.status < 500


# -- the rules; first those that look at its work: each waits until the receiver does no more


async def accepts(session: Session) -> Finding:
    mark = await session.mark()
    outcome = await session.send(session.first)
    if outcome.error == "timeout":  # which is another rule's
        return Finding(NOT_APPLICABLE, _described(outcome))
    if outcome.error is None:
        await session.learn(mark)
    return _judged(outcome.error is None, f"{_described(outcome)}; {session.usual}")


async def in_time(session: Session) -> Finding:
    if session.unanswered:
        return Finding(FAILED, f"{session.unanswered} not answered within {ANSWER_TIME:.0f} s")
    if not session.answered:
        return Finding(NOT_APPLICABLE, "nothing was answered at all")
    return Finding(PASSED, f"the slowest answer came after {session.slowest} ms")


async def duplicate(session: Session) -> Finding:
    mark = await session.mark()
    again = await session.send(session.first)
    done = await session.work_since(mark)
    session.repeats = done.is_any
    return _accepted_with(session, again, done, not done.is_any)


async def simultaneous(session: Session) -> Finding:
    if (unseen := _unseen(session)) is not None:
        return Finding(UNKNOWN, unseen, _NOTHING)
    if session.repeats:
        received = "the receiver does not recognise duplicates that are sent one after the other"
        return Finding(NOT_APPLICABLE, received, _NOTHING)
    for _ in range(ROUNDS):
        mark = await session.mark()
        try:
            statuses = await session.send_together(session.samples.next(), TWICE)
        except Failed as error:
            return Finding(UNKNOWN, f"it could not be sent ({error})")
        done = await session.work_since(mark)
        answers = ", ".join(str(status or "no answer") for status in statuses)
        received = f"{answers}; {done}; one delivery: {session.usual}"
        is_accepted = any(200 <= (status or 0) < 300 for status in statuses)
        if not is_accepted or done.is_more_than(session.usual):
            return Finding(FAILED, received)
    if not session.usual.is_countable:
        received += "; a text does not show whether a delivery acted once or twice"
        return Finding(UNKNOWN, received)
    return Finding(PASSED, received)


async def interrupted(session: Session) -> Finding:
    sample = session.samples.next()
    try:
        await session.send_half(sample)
    except Failed as error:
        return Finding(UNKNOWN, f"the first half could not be sent ({error})")
    await session.work_since(await session.mark())
    mark = await session.mark()
    outcome = await session.send(sample)
    done = await session.work_since(mark)
    return _accepted_with(session, outcome, done, session.shows(done))


async def signature(session: Session) -> Finding:
    mark = await session.mark()
    forged = await session.send(session.samples.next(), keys=OTHER_KEYS)
    unsigned = await session.send(session.samples.next(), keys=())
    done = await session.work_since(mark)
    holds = _is_refused(forged) and _is_refused(unsigned) and not done.is_any
    return _judged(holds, f"{_described(forged)} and {_described(unsigned)}; {done}")


async def timestamp(session: Session) -> Finding:
    mark = await session.mark()
    old = await session.send(session.samples.next(), ago=HOUR)
    done = await session.work_since(mark)
    return _judged(_is_refused(old) and not done.is_any, f"{_described(old)}; {done}")


async def key_rotation(session: Session) -> Finding:
    keys = (*OTHER_KEYS, *session.target.keys)
    return _accepted(await session.send(session.samples.next(), keys=keys))


async def raw_body(session: Session) -> Finding:
    sample = session.samples.next()
    body = orjson.dumps(sample, option=orjson.OPT_INDENT_2)
    return _accepted(await session.send(sample, body=body))


async def late(session: Session) -> Finding:
    return _accepted(await session.send(session.samples.next(LATE)))


async def order(session: Session) -> Finding:
    newer = session.samples.next()
    outcomes = [await session.send(newer), await session.send(session.samples.older(newer))]
    return _all_accepted(outcomes)


async def unknown_type(session: Session) -> Finding:
    return _accepted(await session.send(session.samples.of_unknown_type()))


async def unknown_fields(session: Session) -> Finding:
    return _accepted(await session.send(session.samples.with_unknown_fields()))


async def large_body(session: Session) -> Finding:
    return _accepted(await session.send(session.samples.large()))


async def burst(session: Session) -> Finding:
    attempts = [session.send(session.samples.next()) for _ in range(BURST)]
    return _all_accepted(await asyncio.gather(*attempts))


RULES = (
    accepts,
    duplicate,
    simultaneous,
    interrupted,
    signature,
    timestamp,
    key_rotation,
    raw_body,
    late,
    order,
    unknown_type,
    unknown_fields,
    large_body,
    burst,
    in_time,
)
"""In the order of the report."""
