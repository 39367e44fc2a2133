"""The fault rules of one sandbox, in the order in which they were made, and the presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from random import Random
from types import MappingProxyType
from typing import Any

from ..kernel.problem import Conflict, Missing
from ..kernel.record import Body
from .match import Request
from .rule import Effect, Fault

MOST = 100

PRESETS: Mapping[str, Body] = MappingProxyType(
    {
        "flaky": {
            "when": {"probability": 0.2},
            "then": {"status": 503, "code": "simulated_fault", "headers": {"Retry-After": "1"}},
        },
        "slow_network": {"then": {"delay_ms": {"min": 300, "max": 1_500}}},
        "outage": {"then": {"status": 503, "code": "simulated_fault", "headers": {"Retry-After": "30"}}},
        "rate_limited": {
            "when": {"every": 3},
            "then": {"status": 429, "code": "rate_limited", "headers": {"Retry-After": "2"}},
        },
        "lost_answers": {"when": {"probability": 0.2}, "then": {"drop_connection": "after"}},
    }
)


class Faults:
    """Rules are the observer's: they and their luck are no state of the world, and no step records them.

    `rules` are by id, for reading: every request looks whether there are any.
    """

    __slots__ = ("_luck", "_made", "_seed", "rules")

    def __init__(self, seed: int) -> None:
        """The same seed and the same requests fail at the same places."""
        self._seed = seed
        self._luck: Random | None = None  # most sandboxes never need any
        self.rules: dict[str, Fault] = {}
        self._made = 0

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.rules.values())

    def add(self, asked: Body, now: int) -> Fault:
        """Make a rule. Raises Conflict when there are too many, ValueError for a path of the body that is none."""
        if len(self.rules) >= MOST:
            raise Conflict(f"A sandbox has at most {MOST} fault rules: delete one first.", code="too_many_faults")
        preset = PRESETS[asked["preset"]] if "preset" in asked else {}
        fault = Fault(f"fault_{self._made + 1}", {**preset, **asked}, now)
        self._made += 1
        self.rules[fault.id] = fault
        return fault

    def get(self, ident: str) -> Fault:
        """A rule. Raises Missing."""
        found = self.rules.get(ident)
        if found is None:
            raise Missing("There is no fault rule of this id in the sandbox.")
        return found

    def drop(self, ident: str) -> None:
        """Delete a rule. Raises Missing."""
        del self.rules[self.get(ident).id]

    def clear(self) -> None:
        """Delete all of them."""
        self.rules.clear()

    def copy(self) -> Faults:
        """The rules of a fork: the same, with counters and luck of their own from here on."""
        twin = Faults(self._seed)
        twin._made, twin._luck = self._made, copy(self._luck)
        twin.rules = {ident: copy(fault) for ident, fault in self.rules.items()}
        return twin

    # -- what happens to a request

    def by_request(self, request: Request, now: int) -> Iterator[Effect]:
        """The effects of the rules that do not read the body, in their order."""
        for fault in tuple(self.rules.values()):
            if fault.enabled and not fault.match.reads_body and fault.match.means(request):
                yield from self._fired(fault, now)

    def by_body(self, request: Request, body: Any, now: int) -> Iterator[Effect]:
        """The effects of the rules that read the body."""
        for fault in tuple(self.rules.values()):
            if fault.enabled and fault.match.reads_body and fault.match.means(request) and fault.match.means_body(body):
                yield from self._fired(fault, now)

    @property
    def read_bodies(self) -> bool:
        """Whether any rule does."""
        return any(fault.enabled and fault.match.reads_body for fault in self.rules.values())

    def _fired(self, fault: Fault, now: int) -> Iterator[Effect]:
        if self._luck is None:
            self._luck = Random(f"{self._seed}/faults")
        if fault.fires(now, self._luck):
            yield fault.effect(self._luck)
