"""Requests that wait: for a receiver, a delay, or the time of their sandbox. Each of them holds a connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ..kernel.problem import Limited

if TYPE_CHECKING:
    from .call import Call

OF_ONE = 32  # requests of one caller to one sandbox
OF_SANDBOX = 128
IN_ALL = 384
Place: TypeAlias = tuple[str, Hashable]
"""A sandbox, and who waits there."""


class Waiting:
    """One per server: how many requests wait, so that others always find a connection."""

    def __init__(self, connections: int = 512) -> None:
        """`connections` are the most that the server has."""
        self._most = max(1, connections * 3 // 4)
        self._counts: Counter[Place] = Counter()

    @contextmanager
    def of(self, call: Call) -> Iterator[None]:
        """A place for a request that waits for something of its own. Raises Limited when none is free."""
        place = self.take(call)
        try:
            yield
        finally:
            self.give_back(place)

    def take(self, call: Call) -> Place:
        """The same, until it is given back."""
        caller = call.caller  # on loopback not known yet
        named = call.headers.get(b"authorization", call.peer) if caller is None else caller.key_id or caller.subject
        place = call.sandbox.name, named
        if self._counts[place] >= OF_ONE:
            raise _too_many(OF_ONE, " of this caller")
        return self._taken(place)

    @contextmanager
    def with_sandbox(self, call: Call) -> Iterator[None]:
        """A place for a request that waits because its sandbox does. Raises Limited when none is free."""
        place = self._taken((call.sandbox.name, None))
        try:
            yield
        finally:
            self.give_back(place)

    def _taken(self, place: Place) -> Place:
        if sum(count for (sandbox, _), count in self._counts.items() if sandbox == place[0]) >= OF_SANDBOX:
            raise _too_many(OF_SANDBOX, " of this sandbox")
        most = min(IN_ALL, self._most)
        if self._counts.total() >= most:
            raise _too_many(most, "")
        self._counts[place] += 1
        return place

    def give_back(self, place: Place) -> None:
        """Free a place."""
        self._counts[place] -= 1
        if not self._counts[place]:
            del self._counts[place]


def _too_many(most: int, whose: str) -> Limited:
    return Limited(f"{most} requests{whose} wait already, the most at once.", headers={"Retry-After": "1"})
