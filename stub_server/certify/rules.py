"""The rules that a receiver is held to, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from . import checks
from .checks import Finding
from .session import ANSWER_TIME, Session


class Rule(NamedTuple):
    """A rule; `advice` is for those who break it."""

    id: str
    name: str
    advice: str
    check: Callable[[Session], Awaitable[Finding]]


ACCEPTS = Rule(
    "accepts",
    "A signed delivery is accepted",
    "Answer 2xx. Check the address, the signing key, that the signature is computed over the raw body, and that the "
    "route takes POST with a JSON body; nothing else can be judged before that.",
    checks.accepts,
)
IN_TIME = Rule(
    "in_time",
    f"Every answer comes within {ANSWER_TIME:.0f} seconds",
    "Verify, keep the event, answer, and do the work afterwards: what is not answered in time is sent again.",
    checks.in_time,
)
BETWEEN = (
    # First those that count calls: each waits until the receiver has come to rest.
    Rule(
        "duplicate",
        "A delivery that comes again has no second effect",
        "Keep the webhook-id of what you have done and answer 2xx to one that you know, without doing it again: a "
        "lost answer makes the sender repeat a delivery that you have had.",
        checks.duplicate,
    ),
    Rule(
        "simultaneous",
        "A delivery that comes twice at the same moment has one effect",
        "Claim the webhook-id in one operation that can succeed once, such as an insert under a unique key, before "
        "the work: looking it up first leaves a gap.",
        checks.simultaneous,
    ),
    Rule(
        "interrupted",
        "A delivery that broke off is taken when it comes again",
        "Claim a webhook-id when the whole body has come and is verified, not when its request begins, and give it "
        "back when the work fails.",
        checks.interrupted,
    ),
    Rule(
        "signature",
        "A forged delivery is refused",
        "Verify webhook-signature before anything else and answer 401 where it does not match. Libraries: "
        "https://github.com/standard-webhooks/standard-webhooks.",
        checks.signature,
    ),
    Rule(
        "timestamp",
        "An old delivery is refused",
        "Refuse a webhook-timestamp that is more than five minutes off: else who has seen a delivery once can "
        "repeat it for ever.",
        checks.timestamp,
    ),
    Rule(
        "key_rotation",
        "One good signature of several is enough",
        "webhook-signature is a list, separated by spaces: accept when one of them matches. After a key was "
        "regenerated the old and the new one both sign.",
        checks.accepted(
            "a delivery with two signatures, the second one good",
            lambda session: session.send(session.samples.next(session.now), keys=session.both_keys()),
        ),
    ),
    Rule(
        "raw_body",
        "The signature is held to the bytes as they came",
        "Compute the signature over the raw body, before any parser has touched it: JSON that is written anew has "
        "other bytes.",
        checks.accepted("a delivery whose JSON has line breaks and indentation", checks.send_indented),
    ),
    Rule(
        "late",
        "A delivery that is days late is accepted",
        "Hold webhook-timestamp to your clock, which is of this attempt, and not the payload's timestamp, which is "
        "of the event: retries go on for three days.",
        checks.accepted(
            "an event that happened 75 hours ago",
            lambda session: session.send(session.samples.late(session.now)),
        ),
    ),
    Rule(
        "order",
        "Events may come in another order",
        "Nothing promises an order. Answer 2xx to an event that is older than one you have had, and read the "
        "record from the API where its present state matters.",
        checks.order,
    ),
    Rule(
        "unknown_type",
        "An unknown event type is accepted",
        "Answer 2xx to types that you do not handle: new ones are added without a new version.",
        checks.accepted(
            "an event of the type membership.upgraded, which does not exist",
            lambda session: session.send(session.samples.of_unknown_type(session.now)),
        ),
    ),
    Rule(
        "unknown_fields",
        "Unknown fields are accepted",
        "Ignore members that you do not know: new ones are added without a new version.",
        checks.accepted(
            "an event with further members at every level",
            lambda session: session.send(session.samples.with_unknown_fields(session.now)),
        ),
    ),
    Rule(
        "large_body",
        "A body of 250 kB is accepted",
        "Raise the limit of your server or framework for this route.",
        checks.accepted("an event of 250 kB", lambda session: session.send(session.samples.large(session.now))),
    ),
    Rule(
        "burst",
        "Twenty deliveries at once are accepted",
        "Put deliveries into a queue and answer at once; raise limits of rate and connections for this route.",
        checks.burst,
    ),
)
RULES = (ACCEPTS, IN_TIME, *BETWEEN)
