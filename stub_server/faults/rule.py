"""One fault rule: which requests it means, when it fires, and what it does then."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from ..kernel.clock import SECOND
from ..kernel.record import Body
from .match import Match

BEFORE, AFTER = "before", "after"


class Effect(NamedTuple):
    """What happens to one request. `label` says what asked for it, as `X-Sandbox-Simulated` carries it.

    An answer of its own has `status` or `code`, or both; `delay` is ms; `drop` is `before` or `after` the change;
    `keep` the share of the body that is sent.
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

    @property
    def is_answer(self) -> bool:
        """Whether the operation is not reached."""
        return self.status is not None or self.code is not None

    @property
    def only_waits(self) -> bool:
        """Whether the request is answered as ever, a while later."""
        return not (self.is_answer or self.headers or self.drop or self.keep is not None or self.corrupt)


class Fault:
    """A rule. `seen` requests were meant by it, it acted on `hits` of them; `since` is ms of the sandbox clock."""

    __slots__ = ("asked", "enabled", "hits", "id", "match", "name", "preset", "seen", "since", "then", "when")

    def __init__(self, ident: str, asked: Body, since: int) -> None:
        """`asked` has `then`, and `name`, `preset`, `match` and `when` where they were given. Raises ValueError."""
        self.id, self.asked, self.since, self.enabled = ident, asked, since, True
        self.name, self.preset = asked.get("name"), asked.get("preset")
        self.match = Match(asked.get("match", {}))
        self.when: Body = asked.get("when", {})
        self.then: Body = asked["then"]
        self.seen = self.hits = 0

    def fires(self, now: int, luck: Random) -> bool:
        """Count a request that is meant, and say whether the rule acts on it. Luck is asked last."""
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

    def effect(self, luck: Random) -> Effect:
        """What it does this time."""
        then = self.then
        delay: Any = then.get("delay_ms", 0)
        if isinstance(delay, dict):
            low, high = sorted((delay["min"], delay["max"]))
            delay = luck.randint(low, high)
        return Effect(
            f"fault:{self.id}",
            then.get("status"),
            then.get("code"),
            then.get("message"),
            tuple(then.get("headers", {}).items()),
            delay,
            then.get("drop_connection"),
            then.get("truncate_body"),
            then.get("corrupt_json", False),
        )
