"""The fault rules of one sandbox: what each matches, when it acts, and its effect.

`fault-presets.yaml` of the fixtures has the presets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from ..contract.source import fixture
from ..core.clock import SECOND
from ..core.problem import Conflict, NotFound, detail
from ..core.record import Body, without
from ..core.text import MOST_GLOBS, glob, is_glob

MOST = 100
# the schema accepts each member, and together or as they are they can mean nothing
CONFLICT = "fault_conflict"
LONGEST_DELAY = 60_000  # ms
MOST_ITEMS = 100  # of a list, that a rule looks at
_OF_THE_ORIGIN = {
    "set-cookie",
    "clear-site-data",
    "refresh",
    "content-security-policy",
    "x-content-type-options",
    "nel",
    "report-to",
    "reporting-endpoints",
    "strict-transport-security",
    "alt-svc",
}
_OF_PROXIES = ("x-accel-", "x-sendfile")
BEFORE = "before"
AFTER = "after"
DROP = "webhook_drop"
DUPLICATE = "webhook_duplicate"
BAD_SIGNATURE = "webhook_bad_signature"
# The members that only deliveries have.
_OF_DELIVERIES = (("match", {"event", "url"}), ("then", {DROP, DUPLICATE, BAD_SIGNATURE}))
_OF_BOTH = {"delay_ms", "body"}
_OF_WAITS = ("delay_ms", "delay", "message")  # by themselves they change nothing
BodyPath = tuple[str, ...]
"""Members by name, items of lists by place, and `*` for all items."""
_is_path = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_-]*|\[(?:[0-9]{1,4}|\*)\])+").fullmatch
_steps = re.compile(r"[A-Za-z0-9_-]+|\*").findall
_OF_ITEMS = 20  # how many characters of a header the items of a list weigh as much as
Look = Callable[[BodyPath], Sequence[Any]]
"""The values at a path of a body, objects and lists as their texts."""
Texts = Mapping[str, str]
"""What a request or a delivery has for the members of a `match` that are texts."""


def acts_beyond(header: str) -> bool:
    """Whether an answer would act by a header on pages of this server, such as the console of
    somebody with more rights, or have the proxy before it send a file of its own.
    """
    name = header.lower()
    return name in _OF_THE_ORIGIN or name.startswith(_OF_PROXIES)


def looking(read: Callable[[], Any]) -> Look:
    """Looks into a body for all rules: it is read, and each path followed, once."""
    body = cache(read)

    @cache
    def at(path: BodyPath) -> Sequence[Any]:
        values = [body()]
        for step in path:
            inner = []
            for value in values:
                inner += _inside(value, step)
            values = inner[:MOST_ITEMS]
        return [_text_of(value) for value in values]

    return at


def _text_of(value: Any) -> Any:
    """The text of an object or a list; any other value as it is."""
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return value


class Effect(NamedTuple):
    """The effect on one request or delivery. `label` names its cause, for `X-Sandbox-Simulated` and
    attempts.

    `then` is what the contract calls so. `delay` is ms before the operation or the delivery,
    `delay_after` ms between an operation and its answer.
    """

    label: str
    then: Mapping[str, Any] = MappingProxyType({})
    delay: int = 0
    delay_after: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether the response is replaced, and the operation not called."""
        return "status" in self.then or "code" in self.then

    @property
    def only_waits(self) -> bool:
        """Whether the effect is a delay and nothing else."""
        for name, value in self.then.items():
            if name not in _OF_WAITS and value is not False and value != {}:
                return False
        return True


NO_EFFECT = Effect("")


class Fault:
    """A rule. `seen` requests or deliveries met its `match`, it acted on `hits`; `since` is ms of
    the sandbox clock.

    All conditions of its `match` must hold; texts may be globs with `*` and `?`.
    """

    def __init__(self, ident: str, asked: Body, since: int) -> None:
        """`asked` is the request's rule over its preset.

        Raises Conflict for an invalid path of the body.
        """
        self.id, self.asked, self.since, self.enabled = ident, asked, since, True
        self.when: Body = asked.get("when", {})
        self.then: Body = asked["then"]
        self.is_for_deliveries = any(
            names & asked.get(part, {}).keys() for part, names in _OF_DELIVERIES
        )
        self.seen = self.hits = 0
        match = asked.get("match", {})
        self._texts: Mapping[str, str] = without(match, "header", "body")
        self._headers: dict[bytes, str] = {}
        for name, wanted in match.get("header", {}).items():
            self._headers[name.lower().encode()] = wanted
        self._body: dict[BodyPath, Any] = {}
        for path, wanted in match.get("body", {}).items():
            self._body[_body_path(path)] = wanted
        self.reads_body = bool(self._body)

    @property
    def effort(self) -> int:
        """How many characters of globs a request is compared with at most, those of each item."""
        found = sum(map(_length, (*self._texts.values(), *self._headers.values())))
        for path, wanted in self._body.items():
            length = _length(wanted)
            found += _OF_ITEMS * max(1, length) if "*" in path else length
        return found

    def fits(self, texts: Texts, headers: Mapping[bytes, bytes], look: Look) -> bool:
        """Whether a request or a delivery meets all conditions.

        `headers` are those of a request, with names in lower case; a body of no rule that reads it
        is not parsed.
        """
        for name, wanted in self._texts.items():
            if not glob(wanted, texts[name]):
                return False
        for header, wanted in self._headers.items():
            if header not in headers or not glob(wanted, headers[header].decode("latin-1")):
                return False
        return all(_has(look(path), wanted) for path, wanted in self._body.items())

    def fires(self, now: int, random: Random) -> bool:
        """Count a request or delivery that met the `match`, and return whether the
        rule acts on it.
        """
        self.seen += 1
        if not self._is_its_turn(now):
            return False
        if "probability" in self.when and random.random() >= self.when["probability"]:
            return False
        self.hits += 1
        return True

    def _is_its_turn(self, now: int) -> bool:
        """Whether the conditions of `when` hold but for chance."""
        when = self.when
        place = self.seen - when.get("after", 0)
        if place <= 0 or place % when.get("every", 1):
            return False
        if "times" in when and self.hits >= when["times"]:
            return False
        return "for_seconds" not in when or now - self.since < when["for_seconds"] * SECOND

    def effect(self, random: Random) -> Effect:
        """The effect on this request or delivery."""
        ms: Any = self.then.get("delay_ms", 0)
        if isinstance(ms, dict):
            ms = random.randint(ms["min"], ms["max"])
        label = f"fault:{self.id}"
        if self.then.get("delay") == AFTER:
            return Effect(label, self.then, delay_after=int(ms))
        return Effect(label, self.then, delay=int(ms))


class Faults:
    """The fault rules of one sandbox. They and their random stream are not part of its state, and
    no step has them.

    `rules` are by id, oldest first, for reading: every request checks whether there are any.
    """

    def __init__(self, seed: int) -> None:
        """With one seed and the same requests, the same ones fail."""
        self.rules: dict[str, Fault] = {}
        self._random = Random(f"{seed}/faults")
        self._made = 0

    def add(self, asked: Body, now: int) -> Fault:
        """Add a rule.

        Raises Conflict if there are too many, if a path of the body is not valid, or if the rule
        mixes what happens to requests and deliveries.
        """
        if len(self.rules) >= MOST:
            raise Conflict(
                f"A sandbox has at most {MOST} fault rules: delete one first.",
                code="too_many_faults",
            )
        if "preset" in asked:
            asked = {**fixture("fault-presets.yaml")[asked["preset"]], **asked}
        fault = Fault(f"fault_{self._made + 1}", asked, now)
        if fault.is_for_deliveries:
            _check_members(fault)
        if sum(rule.effort for rule in (fault, *self.rules.values())) > MOST_GLOBS:
            raise Conflict(
                f"The texts with wildcards of a sandbox's fault rules have at most {MOST_GLOBS}"
                " characters: delete a rule first.",
                code="too_many_faults",
            )
        self._made += 1
        self.rules[fault.id] = fault
        return fault

    def get(self, ident: str) -> Fault:
        """A rule. Raises NotFound."""
        found = self.rules.get(ident)
        if found is None:
            raise NotFound("There is no fault rule of this id in the sandbox.")
        return found

    def drop(self, ident: str) -> None:
        """Delete a rule. Raises NotFound."""
        del self.rules[self.get(ident).id]

    def copy(self) -> Faults:
        """The rules of a fork, with counters and a random stream of their own."""
        twin = copy(self)
        twin._random = copy(self._random)
        twin.rules = {ident: copy(fault) for ident, fault in self.rules.items()}
        return twin

    def by_request(
        self,
        texts: Texts,
        headers: Mapping[bytes, bytes],
        now: int,
        body: Any = None,
        *,
        reads_body: bool = False,
    ) -> Iterator[Effect]:
        """The effects on a request, in the order of the rules: of those that read its body, or of
        the others.
        """
        look = looking(lambda: body)
        for fault in self.rules.values():
            if not fault.enabled or fault.is_for_deliveries or fault.reads_body is not reads_body:
                continue
            if fault.fits(texts, headers, look) and fault.fires(now, self._random):
                yield fault.effect(self._random)

    def by_delivery(self, texts: Texts, payload: bytes, now: int, *, is_seeded: bool) -> Effect:
        """The effect on one attempt of a delivery: delays add up, and the first rule that does more
        ends the search.

        Webhooks that the seed made are meant only by rules that name an address.
        """
        found = []
        look = looking(lambda: orjson.loads(payload))
        for fault in self.rules.values():
            if not fault.enabled or not fault.is_for_deliveries:
                continue
            if is_seeded and "url" not in fault.asked.get("match", {}):
                continue
            if fault.fits(texts, {}, look) and fault.fires(now, self._random):
                found.append(fault.effect(self._random))
                if not found[-1].only_waits:
                    break
        if not found:
            return NO_EFFECT
        delay = min(sum(each.delay for each in found), LONGEST_DELAY)
        return found[-1]._replace(label=", ".join(each.label for each in found), delay=delay)


def _check_members(fault: Fault) -> None:
    """Check that a rule about deliveries has nothing that only requests have. Raises Conflict."""
    wrong = []
    for part, names in _OF_DELIVERIES:
        for name in fault.asked.get(part, {}):
            if name not in names | _OF_BOTH:
                wrong.append(f"{part}.{name}")
    if wrong:
        message = (
            f"This rule is about deliveries. Leave out what only requests have: {', '.join(wrong)}."
        )
        raise Conflict(
            message, code=CONFLICT, details=[detail(name, CONFLICT, message) for name in wrong]
        )


def _body_path(text: str) -> BodyPath:
    """`$.items[0].name` -> `("items", "0", "name")`; no name of a member is a number.

    Raises Conflict for any other text.
    """
    if not _is_path(text):
        raise Conflict.at(
            "match.body",
            f"{text} is not a path. Write it like $.customer.email or $.items[0].price.",
            CONFLICT,
        )
    return tuple(_steps(text))


def _length(wanted: Any) -> int:
    """How many characters of a glob a value is compared with."""
    return len(wanted) if isinstance(wanted, str) and is_glob(wanted) else 0


def _has(values: Sequence[Any], wanted: Any) -> bool:
    """Whether one of the values at a path of a body is as wanted."""
    return any(_equal(wanted, value) for value in values)


def _inside(value: Any, step: str) -> list[Any]:
    """What a step of a path leads to: a member, one item of a list, or all of them."""
    if step == "*" or step.isdigit():
        if not isinstance(value, list):
            return []
        return value if step == "*" else value[int(step) :][:1]
    return [value[step]] if isinstance(value, dict) and step in value else []


def _equal(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, str):
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return glob(wanted, text)
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    return bool(wanted == value)
