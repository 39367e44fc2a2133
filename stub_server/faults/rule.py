"""One fault rule: for which requests it is, when it acts, and its effect."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from ..kernel.clock import SECOND
from ..kernel.record import Body
from .match import Match

BEFORE, AFTER = "before", "after"


class Effect(NamedTuple):
    """The effect on one request. `label` names its cause for the header `X-Sandbox-Simulated`.

    `status` or `code` replace the response; `delay` is ms; `drop` closes the connection `before` or `after` the change;
    `keep` is the share of the body that is sent.
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
        """Whether the response is replaced, and the operation not called."""
        return self.status is not None or self.code is not None

    @property
    def only_waits(self) -> bool:
        """Whether the effect is a delay and nothing else."""
        return not (self.is_answer or self.headers or self.drop or self.keep is not None or self.corrupt)


class Fault:
    """A rule. `seen` requests met its `match`, it acted on `hits` of them; `since` is ms of the sandbox clock."""

    __slots__ = ("asked", "enabled", "hits", "id", "match", "name", "preset", "seen", "since", "then", "when")

    def __init__(self, ident: str, asked: Body, since: int) -> None:
        """`asked` is the request's rule over its preset. Raises ValueError for an invalid path of the body."""
        self.id, self.asked, self.since, self.enabled = ident, asked, since, True
        self.name, self.preset = asked.get("name"), asked.get("preset")
        self.match = Match(asked.get("match", {}))
        self.when: Body = asked.get("when", {})
        self.then: Body = asked["then"]
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

    def effect(self, luck: Random) -> Effect:
        """The effect on this request, with a random delay if the rule has a range."""
        then = self.then
        delay: Any = then.get("delay_ms", 0)
        if isinstance(delay, dict):
            delay = luck.randint(delay["min"], delay["max"])
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
