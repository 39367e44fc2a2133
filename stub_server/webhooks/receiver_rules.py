"""The rules for a receiver: what is sent under each, what the receiver must answer and may do, and
the report.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import NamedTuple

import orjson

from ..core.record import Body
from ..domain.deliveries import AttemptOutcome, Failed
from .receiver import ANSWER_TIME, Session

BURST = 20
TWICE = 5  # copies of one delivery at the same moment
ROUNDS = 3  # a gap between looking up and noting is not hit every time
HOUR = 3600
LATE = 75 * HOUR * 1000  # ms; when the last retry of this service would come
LONGEST = 30.0  # seconds of a certification
OTHER_KEYS = ("whsec_" + "Zm9yZ2Vk" * 4,)  # of another receiver
_BODY_SHOWN = 100  # characters of a refusal
PASSED, FAILED, NOT_APPLICABLE, UNKNOWN = "passed", "failed", "not_applicable", "unknown"


class Finding(NamedTuple):
    """The result of one rule, and what was sent and received, each in a sentence."""

    result: str
    sent: str
    received: str


Check = Callable[[Session], Awaitable[Finding]]


class Rule(NamedTuple):
    """A rule; `advice` is for those who break it."""

    id: str
    name: str
    advice: str
    check: Check


def rule(name: str, advice: str) -> Callable[[Check], Rule]:
    """Make a rule of its check; the id is the name of the function."""
    return lambda check: Rule(check.__name__, name, advice, check)


async def certify(session: Session) -> Body:
    """The report on a receiver, within a bounded time. Never raises for what the receiver does."""
    begun = perf_counter_ns()
    deadline = asyncio.get_running_loop().time() + LONGEST
    rules: list[Body] = []
    results = dict.fromkeys((PASSED, FAILED, NOT_APPLICABLE, UNKNOWN), 0)
    skipped = None
    for each in RULES:
        # `in_time` judges the deliveries of the others, and is never skipped
        if skipped is not None and each is not in_time:
            finding = Finding(NOT_APPLICABLE, "nothing", skipped)
        else:
            finding = await _found(each, session, deadline)
        if session.unanswered:
            skipped = f"a delivery was not answered within {ANSWER_TIME:.0f} s"
        elif each is accepts and finding.result != PASSED:
            skipped = "the first delivery was not accepted"
        advice = each.advice if finding.result == FAILED else None
        rules.append({"id": each.id, "name": each.name, **finding._asdict(), "advice": advice})
        results[finding.result] += 1
    return {
        "passed": _passed(results),
        "summary": results,
        "duration_ms": (perf_counter_ns() - begun) // 1_000_000,
        "rules": rules,
    }


async def _found(each: Rule, session: Session, deadline: float) -> Finding:
    """The result of a rule, unknown where the time of the run is over before."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            return await each.check(session)
    return Finding(UNKNOWN, "nothing", f"the {LONGEST:.0f} s of a run were over")


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


def _all_described(outcomes: Sequence[AttemptOutcome]) -> str:
    words = []
    for word, many in Counter(map(_status_of, outcomes)).items():
        words.append(word if many == 1 else f"{many} times {word}")
    slowest = max(outcome.duration_ms for outcome in outcomes)
    return f"{', '.join(words)}; the slowest after {slowest} ms"


def _status_of(outcome: AttemptOutcome) -> str:
    if outcome.status is None:
        return f"no answer ({outcome.error})"
    return str(outcome.status)


def _result(holds: object) -> str:
    return PASSED if holds else FAILED


def _accepted(sent: str, outcome: AttemptOutcome) -> Finding:
    """The finding of a rule that asks for a 2xx alone."""
    return Finding(_result(outcome.error is None), sent, _described(outcome))


def _all_accepted(sent: str, outcomes: Sequence[AttemptOutcome]) -> Finding:
    """The finding of a rule that asks for a 2xx to each of several deliveries."""
    holds = all(outcome.error is None for outcome in outcomes)
    return Finding(_result(holds), sent, _all_described(outcomes))


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


def _judged(
    session: Session, outcome: AttemptOutcome, holds: bool, sent: str, received: str
) -> Finding:
    """The finding of a rule that asks for a 2xx, and about the work: unknown where that is not
    seen.
    """
    unseen = _unseen(session)
    if outcome.error is None and unseen is not None:
        return Finding(UNKNOWN, sent, f"{received}; {unseen}")
    return Finding(_result(outcome.error is None and holds), sent, received)


def _is_refused(outcome: AttemptOutcome) -> bool:
    return outcome.status is not None and 400 <= outcome.status < 500


# -- the rules; first those that look at its work: each waits until the receiver does no more


@rule(
    "A signed delivery is accepted",
    "Answer 2xx. Check the address, the signing key, that the signature is computed over the raw"
    " body, and that the route takes POST with a JSON body; nothing else can be judged before"
    " that.",
)
async def accepts(session: Session) -> Finding:
    mark = await session.mark()
    outcome = await session.send(session.first)
    sent = f"{session.samples.type}, with a valid signature"
    if outcome.error == "timeout":  # which is another rule's
        return Finding(NOT_APPLICABLE, sent, _described(outcome))
    if outcome.error is None:
        await session.learn(mark)
    return Finding(_result(outcome.error is None), sent, f"{_described(outcome)}; {session.usual}")


@rule(
    f"Every answer comes within {ANSWER_TIME:.0f} seconds",
    "Verify, store the event, answer, and do the work afterwards: a delivery that is not answered"
    " in time is sent again.",
)
async def in_time(session: Session) -> Finding:
    sent = "every delivery of this run"
    if session.unanswered:
        return Finding(
            FAILED, sent, f"{session.unanswered} not answered within {ANSWER_TIME:.0f} s"
        )
    if not session.answered:
        return Finding(NOT_APPLICABLE, sent, "nothing was answered at all")
    return Finding(PASSED, sent, f"the slowest answer came after {session.slowest} ms")


@rule(
    "A repeated delivery has no second effect",
    "Store the webhook-id of each delivery that you process. Answer 2xx to a delivery whose id is"
    " stored, without processing it again: if an answer is lost, the sender repeats the delivery.",
)
async def duplicate(session: Session) -> Finding:
    mark = await session.mark()
    again = await session.send(session.first)
    done = await session.work_since(mark)
    sent = "the first delivery once more, under the same webhook-id"
    received = f"{_described(again)}; {done}"
    session.repeats = done.is_any
    return _judged(session, again, not done.is_any, sent, received)


@rule(
    "A delivery that arrives twice at the same moment has one effect",
    "Before the work, claim the webhook-id in one operation that succeeds only once, such as an"
    " insert with a unique key. Looking it up first leaves a gap.",
)
async def simultaneous(session: Session) -> Finding:
    sent = f"{ROUNDS} deliveries, each {TWICE} times at the same moment"
    if (unseen := _unseen(session)) is not None:
        return Finding(UNKNOWN, "nothing", unseen)
    if session.repeats:
        received = "the receiver does not recognise duplicates that are sent one after the other"
        return Finding(NOT_APPLICABLE, "nothing", received)
    for _ in range(ROUNDS):
        mark = await session.mark()
        try:
            statuses = await session.send_together(session.samples.next(), TWICE)
        except Failed as error:
            return Finding(UNKNOWN, sent, f"it could not be sent ({error})")
        done = await session.work_since(mark)
        answers = ", ".join(str(status or "no answer") for status in statuses)
        received = f"{answers}; {done}; one delivery: {session.usual}"
        is_accepted = any(200 <= (status or 0) < 300 for status in statuses)
        if not is_accepted or done.is_more_than(session.usual):
            return Finding(FAILED, sent, received)
    if not session.usual.is_countable:
        return Finding(
            UNKNOWN,
            sent,
            f"{received}; a text does not show whether a delivery acted once or twice",
        )
    return Finding(PASSED, sent, received)


@rule(
    "An interrupted delivery is accepted when it is sent again",
    "Claim a webhook-id only when the whole body has arrived and is verified, not when its request"
    " begins, and release it when the work fails.",
)
async def interrupted(session: Session) -> Finding:
    sample = session.samples.next()
    sent = (
        "half of a delivery, then the connection was closed; then the whole delivery, under the"
        " same webhook-id"
    )
    try:
        await session.send_half(sample)
    except Failed as error:
        return Finding(UNKNOWN, sent, f"the first half could not be sent ({error})")
    await session.work_since(await session.mark())
    mark = await session.mark()
    outcome = await session.send(sample)
    done = await session.work_since(mark)
    received = f"{_described(outcome)}; {done}"
    return _judged(session, outcome, session.shows(done), sent, received)


@rule(
    "A forged delivery is refused",
    "Verify webhook-signature before anything else and answer 401 where it does not match."
    " Libraries: https://github.com/standard-webhooks/standard-webhooks.",
)
async def signature(session: Session) -> Finding:
    mark = await session.mark()
    forged = await session.send(session.samples.next(), keys=OTHER_KEYS)
    unsigned = await session.send(session.samples.next(), keys=())
    done = await session.work_since(mark)
    sent = "one delivery signed with another key, one with an empty webhook-signature"
    received = f"{_described(forged)} and {_described(unsigned)}; {done}"
    return Finding(
        _result(_is_refused(forged) and _is_refused(unsigned) and not done.is_any), sent, received
    )


@rule(
    "An old delivery is refused",
    "Refuse a webhook-timestamp that is more than five minutes off: otherwise anyone who has seen a"
    " delivery once can repeat it for ever.",
)
async def timestamp(session: Session) -> Finding:
    mark = await session.mark()
    old = await session.send(session.samples.next(), ago=HOUR)
    done = await session.work_since(mark)
    sent = "a delivery with a valid signature that is an hour old"
    return Finding(
        _result(_is_refused(old) and not done.is_any), sent, f"{_described(old)}; {done}"
    )


def _accepting(
    ident: str,
    name: str,
    advice: str,
    sent: str,
    send: Callable[[Session], Awaitable[AttemptOutcome]],
) -> Rule:
    """The rule that a delivery is accepted."""

    async def check(session: Session) -> Finding:
        return _accepted(sent, await send(session))

    return Rule(ident, name, advice, check)


key_rotation = _accepting(
    "key_rotation",
    "One valid signature of several is enough",
    "webhook-signature is a list, separated by spaces: accept when one of them matches. After a key"
    " was regenerated the old and the new one both sign.",
    "a delivery with two signatures, the second one valid",
    lambda session: session.send(session.samples.next(), keys=(*OTHER_KEYS, *session.target.keys)),
)
late = _accepting(
    "late",
    "A delivery that is days late is accepted",
    "Compare your clock with webhook-timestamp, the time of this attempt, and not with the"
    " payload's timestamp, the time of the event: a delivery is retried for three days.",
    "an event that happened 75 hours ago",
    lambda session: session.send(session.samples.next(LATE)),
)
unknown_type = _accepting(
    "unknown_type",
    "An unknown event type is accepted",
    "Answer 2xx to types that you do not handle: new ones are added without a new version.",
    "an event of the type membership.upgraded, which does not exist",
    lambda session: session.send(session.samples.of_unknown_type()),
)
unknown_fields = _accepting(
    "unknown_fields",
    "Unknown fields are accepted",
    "Ignore members that you do not know: new ones are added without a new version.",
    "an event with further members at every level",
    lambda session: session.send(session.samples.with_unknown_fields()),
)
large_body = _accepting(
    "large_body",
    "A body of 250 kB is accepted",
    "Raise the limit of your server or framework for this route.",
    "an event of 250 kB",
    lambda session: session.send(session.samples.large()),
)


@rule(
    "The signature is verified over the raw body",
    "Compute the signature over the raw body, before it is parsed: JSON that is serialized again"
    " has other bytes.",
)
async def raw_body(session: Session) -> Finding:
    sample = session.samples.next()
    outcome = await session.send(sample, body=orjson.dumps(sample, option=orjson.OPT_INDENT_2))
    return _accepted("a delivery whose JSON has line breaks and indentation", outcome)


@rule(
    "Events out of order are accepted",
    "Events may arrive in any order. Answer 2xx to an event that is older than one that you have"
    " processed, and read the record from the API where its present state matters.",
)
async def order(session: Session) -> Finding:
    newer = session.samples.next()
    outcomes = [await session.send(newer), await session.send(session.samples.older(newer))]
    return _all_accepted(
        "an event, and then one about the same record that happened a second before it", outcomes
    )


@rule(
    "Twenty deliveries at once are accepted",
    "Put deliveries into a queue and answer at once; raise limits of rate and connections for this"
    " route.",
)
async def burst(session: Session) -> Finding:
    attempts = [session.send(session.samples.next()) for _ in range(BURST)]
    outcomes = await asyncio.gather(*attempts)
    return _all_accepted(f"{BURST} different deliveries at the same moment", outcomes)


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
