"""What is to happen, in the order of time: a queue whose cost does not grow with what is far off."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound="tuple[Any, ...]")
_SPAN = 22  # bits: 2 ** 22 ms are 70 minutes


class Agenda(Generic[T]):
    """Tuples that begin with an instant (ms), the smallest first.

    Only the entries of the time that comes next stand in a heap. All others lie unordered in the span of time that they
    belong to, until it is the turn of that: a heap of everything would be walked from end to end for each entry.
    """

    __slots__ = ("_later", "_soon", "_spans", "_until")

    def __init__(self) -> None:
        self._soon: list[T] = []  # a heap of what is due before `_until`
        self._until: float = float("-inf")
        self._later: dict[int, list[T]] = {}  # the rest, by span
        self._spans: list[int] = []  # a heap of the spans that have something

    def add(self, entry: T) -> None:
        """Put an entry in its place."""
        due = entry[0]
        if due < self._until:
            heappush(self._soon, entry)
            return
        span = due >> _SPAN
        entries = self._later.get(span)
        if entries is None:
            self._later[span] = [entry]
            heappush(self._spans, span)
        else:
            entries.append(entry)

    def first(self) -> T | None:
        """The entry that is due first, which stays; None where nothing is left."""
        soon = self._soon
        if not soon:
            if not self._spans:
                return None
            span = heappop(self._spans)
            self._soon = soon = self._later.pop(span)
            self._until = (span + 1) << _SPAN
            heapify(soon)
        return soon[0]

    def pop(self) -> T:
        """Take out the entry that is due first; there must be one."""
        if not self._soon:
            self.first()
        return heappop(self._soon)

    def is_quiet(self, until: int) -> bool:
        """Whether nothing is due at `until` or before, as far as a glance tells."""
        if self._soon:
            return bool(self._soon[0][0] > until)
        return not self._spans or self._spans[0] << _SPAN > until

    def clear(self) -> None:
        """Let go of everything."""
        self._soon.clear()
        self._later.clear()
        self._spans.clear()

    def copy(self) -> Agenda[T]:
        """An independent copy."""
        twin: Agenda[T] = Agenda()
        twin._soon, twin._until = self._soon.copy(), self._until
        twin._later = {span: entries.copy() for span, entries in self._later.items()}
        twin._spans = self._spans.copy()
        return twin
