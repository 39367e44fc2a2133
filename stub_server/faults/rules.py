"""The fault rules of one sandbox, oldest first, and the presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from random import Random
from types import MappingProxyType
from typing import Any

from ..kernel.problem import Conflict, NotFound, detail
from ..kernel.record import Body
from .match import Request, Sending
from .rule import Disturbance, Effect, Fault, out_of_place

MOST = 100
LONGEST_DELAY = 60_000  # ms

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
        "slow_answers": {"then": {"delay_ms": {"min": 800, "max": 3_000}, "delay": "after"}},
        "lost_answers": {"when": {"probability": 0.2}, "then": {"drop_connection": "after"}},
    }
)


class Faults:
    """The fault rules of one sandbox. They and their random stream are not world state, and no step records them.

    `rules` are by id, for reading: every request checks whether there are any.
    """

    __slots__ = ("_luck", "_made", "_seed", "rules")

    def __init__(self, seed: int) -> None:
        """With one seed and the same requests, the same ones fail."""
        self._seed = seed
        self._luck: Random | None = None  # made when first needed
        self.rules: dict[str, Fault] = {}
        self._made = 0

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.rules.values())

    def add(self, asked: Body, now: int) -> Fault:
        """Add a rule. Raises Conflict if there are too many, or if it mixes what happens to requests and deliveries.

        Raises ValueError for a path of the body that is not valid.
        """
        if len(self.rules) >= MOST:
            raise Conflict(f"A sandbox has at most {MOST} fault rules: delete one first.", code="too_many_faults")
        preset = PRESETS[asked["preset"]] if "preset" in asked else {}
        whole = {**preset, **asked}
        if wrong := out_of_place(whole):
            message = f"A rule is about requests or about deliveries, and only requests have {', '.join(wrong)}."
            details = [detail(name, "fault_conflict", message) for name in wrong]
            raise Conflict(message, code="fault_conflict", details=details)
        fault = Fault(f"fault_{self._made + 1}", whole, now)
        self._made += 1
        self.rules[fault.id] = fault
        return fault

    def number_from(self, ident: object) -> None:
        """Have the next rule be called so, if no rule that is newer was made."""
        digits = ident.removeprefix("fault_") if isinstance(ident, str) else ""
        if digits.isascii() and digits.isdigit() and len(digits) <= 9:
            self._made = max(self._made, int(digits) - 1)

    def get(self, ident: str) -> Fault:
        """A rule. Raises Missing."""
        found = self.rules.get(ident)
        if found is None:
            raise NotFound("There is no fault rule of this id in the sandbox.")
        return found

    def drop(self, ident: str) -> None:
        """Delete a rule. Raises Missing."""
        del self.rules[self.get(ident).id]

    def clear(self) -> None:
        """Delete all of them."""
        self.rules.clear()

    def copy(self) -> Faults:
        """The rules of a fork, with counters and a random stream of their own."""
        twin = Faults(self._seed)
        twin._made, twin._luck = self._made, copy(self._luck)
        twin.rules = {ident: copy(fault) for ident, fault in self.rules.items()}
        return twin

    # -- what happens to a request

    def by_request(self, request: Request, now: int) -> Iterator[Effect]:
        """The effects of the rules that do not read the body, in their order."""
        for fault in self._of_requests():
            if not fault.match.reads_body and fault.match.fits(request):
                yield from self._fired(fault, now)

    def by_body(self, request: Request, body: Any, now: int) -> Iterator[Effect]:
        """The effects of the rules that read the body."""
        for fault in self._of_requests():
            if fault.match.reads_body and fault.match.fits(request) and fault.match.fits_body(body):
                yield from self._fired(fault, now)

    @property
    def read_bodies(self) -> bool:
        """Whether an enabled rule reads the body."""
        return any(fault.match.reads_body for fault in self._of_requests())

    def _of_requests(self) -> list[Fault]:
        return [fault for fault in self.rules.values() if fault.enabled and not fault.is_for_deliveries]

    def _fired(self, fault: Fault, now: int) -> Iterator[Effect]:
        if fault.fires(now, self._drawn):
            yield fault.effect(self._drawn)

    @property
    def _drawn(self) -> Random:
        if self._luck is None:
            self._luck = Random(f"{self._seed}/faults")
        return self._luck

    # -- what happens to a delivery

    def by_delivery(self, sending: Sending, now: int) -> Disturbance | None:
        """What happens to one attempt of a delivery: delays add up, the first rule that does more acts alone."""
        labels: list[str] = []
        delay, last = 0, None
        for fault in tuple(self.rules.values()):
            if not (fault.enabled and fault.is_for_deliveries and fault.match.fits_delivery(sending)):
                continue
            if not fault.fires(now, self._drawn):
                continue
            last = fault.disturbance(self._drawn)
            labels.append(last.label)
            delay += last.delay
            if not last.only_waits:
                break
        return None if last is None else last._replace(label=", ".join(labels), delay=min(delay, LONGEST_DELAY))
