"""Planting exceptions: the k-th call of a function fails, before it has done anything or after all of it."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

NEVER = -1


class Planted(Exception):
    """A defect of ours."""


class Place(NamedTuple):
    """A function of the product that a fault is planted in, and whether it has done its work by then."""

    owner: Any
    name: str
    afterwards: bool = False

    def __str__(self) -> str:
        return f"{'after' if self.afterwards else 'before'} {self.owner.__name__.rpartition('.')[2]}.{self.name}"


class Fault:
    """Fails the `turn`-th call (from 0) of a place while the block runs, and no other; `fired` says whether it came.

    `calls` counts them; NEVER as the turn only counts.
    """

    def __init__(self, place: Place, turn: int = 0, error: Callable[[str], Exception] = Planted) -> None:
        self._place, self._turn, self._error = place, turn, error
        self.fired = False
        self.calls = 0

    def __enter__(self) -> "Fault":
        owner, name, afterwards = self._place
        original = self._original = getattr(owner, name)

        def failing(*args: Any, **options: Any) -> Any:
            self.calls += 1
            left, self._turn = self._turn, self._turn - 1
            if left == 0 and not afterwards:
                self._fire()
            value = original(*args, **options)
            if left == 0:
                self._fire()
            return value

        setattr(owner, name, failing)
        return self

    def _fire(self) -> None:
        self.fired = True
        raise self._error(f"planted {self._place}")

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        setattr(self._place.owner, self._place.name, self._original)
