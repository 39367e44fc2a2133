"""The timers of a world: jobs that the clock will run, in the order of their time."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias


class Timer(NamedTuple):
    """One job: `due` in ms, `seq` by the order in which timers were set, `subject` the id of the record it is about."""

    due: int
    seq: int
    job: str
    merchant_id: str
    subject: str


TimerData: TypeAlias = tuple[int, int, str, str, str]
"""A timer as a plain tuple: the members of Timer."""


class Timers:
    """A heap of plain tuples, so that a copy of a world has its own timers.

    Rules do not cancel jobs: a job looks at the record when it is due, and does nothing if it no longer applies. A
    timer that is removed early stays in the heap until it comes to the top; only those in `_live` count. `_live` maps
    numbers to timers, because a number is given again after its step was undone.
    """

    __slots__ = ("_heap", "_live", "aside", "last")

    def __init__(self) -> None:
        self._heap: list[TimerData] = []
        self._live: dict[int, TimerData] = {}
        self.aside: dict[int, Timer] = {}  # skipped, and not yet removed by a step
        self.last = 0  # the number of the newest timer ever set

    def put(self, timer: TimerData) -> None:
        """Add a timer, be it new or one that was removed before."""
        number = timer[1]
        if number not in self._live:
            self._live[number] = timer
            heappush(self._heap, timer)
            if number > self.last:
                self.last = number

    def discard(self, timer: TimerData) -> None:
        """Remove a timer, if it is there."""
        self._live.pop(timer[1], None)
        self.aside.pop(timer[1], None)

    def next_due(self) -> int | None:
        """When the next job is due, in ms; None without jobs."""
        heap, live = self._heap, self._live
        while heap:  # called for every request
            top = heap[0]
            if live.get(top[1]) == top:
                return top[0]
            heappop(heap)
        return None

    def next(self, until: int) -> Timer | None:
        """The next timer that is due at `until` or before."""
        due = self.next_due()
        return Timer(*self._heap[0]) if due is not None and due <= until else None

    # -- timers whose job had nothing to do are set aside until a step records that they were removed

    def set_aside(self, timer: Timer) -> None:
        """Skip the next timer."""
        heappop(self._heap)
        self.aside[timer.seq] = timer

    def put_back(self) -> None:
        """Put the skipped timers back into the heap."""
        for timer in self.aside.values():
            heappush(self._heap, timer)
        self.aside.clear()

    def __len__(self) -> int:
        return len(self._live)

    def pending(self) -> list[Timer]:
        """Every timer, in the order of time."""
        return [Timer(*timer) for timer in sorted(self._live.values())]

    def due_by(self, until: int) -> Iterator[Timer]:
        """The timers that are due at an instant or before, in no order."""
        return (Timer(*timer) for timer in self._live.values() if timer[0] <= until)

    def copy(self) -> "Timers":
        """An independent copy."""
        twin = Timers()
        twin._heap, twin.last = list(self._heap), self.last
        twin._live, twin.aside = dict(self._live), dict(self.aside)
        return twin
