"""One fault rule: for which requests or deliveries it is, when it acts, and its effect."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from ..kernel.clock import SECOND
from ..kernel.record import Body
from .match import Match

BEFORE, AFTER = "before", "after"
OF_DELIVERIES = ("webhook_drop", "webhook_duplicate", "webhook_bad_signature")
"""Members of `then` that happen to deliveries."""
MATCHES_DELIVERIES = ("event", "url")
"""Members of `match` that deliveries have."""
OF_EITHER = ("delay_ms", "body")
"""Members of `then` and `match` that requests and deliveries have."""


class Effect(NamedTuple):
    """The effect on one request. `label` names its cause for the header `X-Sandbox-Simulated`.

    `status` or `code` replace the response; `delay` is ms before the operation, `delay_after` ms between it and its
    answer; `drop` closes the connection `before` or `after` the change; `keep` is the share of the body that is sent.
    """

    label: str
    status: int | None = None
    code: str | None = None
    message: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    delay: int = 0
    drop: str | None = None
    keep: float | None = None
    corrupt: bool = False
    delay_after: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether the response is replaced, and the operation not called."""
        return self.status is not None or self.code is not None

    @property
    def only_waits(self) -> bool:
        """Whether the effect is a delay and nothing else."""
        return not (self.is_answer or self.headers or self.drop or self.keep is not None or self.corrupt)


class Disturbance(NamedTuple):
    """The effect on one delivery. `label` names the rules; `delay` is ms; at most one of the others is true."""

    label: str
    delay: int = 0
    drop: bool = False
    duplicate: bool = False
    bad_signature: bool = False

    @property
    def only_waits(self) -> bool:
        """Whether it is a delay and nothing else."""
        return not (self.drop or self.duplicate or self.bad_signature)


def is_for_deliveries(asked: Body) -> bool:
    """Whether a rule is about deliveries: a member of it says so. Every other rule is about requests."""
    return any(name in asked.get("then", {}) for name in OF_DELIVERIES) or any(
        name in asked.get("match", {}) for name in MATCHES_DELIVERIES
    )


def out_of_place(asked: Body) -> list[str]:
    """The members of a rule about deliveries that only requests have."""
    if not is_for_deliveries(asked):
        return []
    match = [f"match.{name}" for name in asked.get("match", {}) if name not in (*MATCHES_DELIVERIES, *OF_EITHER)]
    return match + [f"then.{name}" for name in asked.get("then", {}) if name not in (*OF_DELIVERIES, *OF_EITHER)]


class Fault:
    """A rule. `seen` requests or deliveries met its `match`, it acted on `hits`; `since` is ms of the sandbox clock."""

    __slots__ = (
        "asked", "enabled", "hits", "id", "is_for_deliveries", "match", "name", "preset", "seen", "since", "then",
        "when",
    )  # fmt: skip

    def __init__(self, ident: str, asked: Body, since: int) -> None:
        """`asked` is the request's rule over its preset. Raises ValueError for an invalid path of the body."""
        self.id, self.asked, self.since, self.enabled = ident, asked, since, True
        self.name, self.preset = asked.get("name"), asked.get("preset")
        self.match = Match(asked.get("match", {}))
        self.when: Body = asked.get("when", {})
        self.then: Body = asked["then"]
        self.is_for_deliveries = is_for_deliveries(asked)
        self.seen = self.hits = 0

    def fires(self, now: int, luck: Random) -> bool:
        """Count a request that met the `match`, and return whether the rule acts on it."""
        self.seen += 1
        when = self.when
        place = self.seen - when.get("after", 0)
        if (
            place <= 0
            or place % when.get("every", 1)
            or self.hits >= when.get("times", self.hits + 1)
            or now - self.since >= when.get("for_seconds", now) * SECOND
        ):
            return False
        if "probability" in when and luck.random() >= when["probability"]:
            return False
        self.hits += 1
        return True

    def _delay(self, luck: Random) -> int:
        """How long it has something wait; random if the rule has a range."""
        delay: Any = self.then.get("delay_ms", 0)
        return luck.randint(delay["min"], delay["max"]) if isinstance(delay, dict) else int(delay)

    def disturbance(self, luck: Random) -> Disturbance:
        """The effect on this delivery."""
        then = self.then
        return Disturbance(f"fault:{self.id}", self._delay(luck), *(then.get(name, False) for name in OF_DELIVERIES))

    def effect(self, luck: Random) -> Effect:
        """The effect on this request."""
        then, delay = self.then, self._delay(luck)
        is_after = then.get("delay") == AFTER
        return Effect(
            f"fault:{self.id}",
            then.get("status"),
            then.get("code"),
            then.get("message"),
            tuple(then.get("headers", {}).items()),
            0 if is_after else delay,
            then.get("drop_connection"),
            then.get("truncate_body"),
            then.get("corrupt_json", False),
            delay if is_after else 0,
        )
