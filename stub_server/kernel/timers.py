"""What the clock has still to do: jobs in the order of their time."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias


class Timer(NamedTuple):
    """One job: due in ms, then the order in which it was set; `subject` is the record it concerns."""

    due: int
    seq: int
    job: str
    merchant_id: str
    subject: str


TimerData: TypeAlias = tuple[int, int, str, str, str]
"""A timer as it is kept: the members of Timer."""


class Timers:
    """A heap of plain data, so that a copy of a world carries its future with it.

    No rule cancels a job: a job looks at the record when it is due and does nothing if the moment has passed. A timer
    that is taken out before its time stays in the heap until it comes to the top; what is not in `_live` is not there.
    `_live` holds timers by number, not numbers alone: after a step was undone, another one gives its numbers again.
    """

    __slots__ = ("_heap", "_live", "aside", "last")

    def __init__(self) -> None:
        self._heap: list[TimerData] = []
        self._live: dict[int, TimerData] = {}
        self.aside: dict[int, Timer] = {}  # passed over, and not yet taken by a step
        self.last = 0  # the number of the newest timer ever set

    def put(self, timer: TimerData) -> None:
        """Add a timer: a new one, or one that was taken before."""
        number = timer[1]
        if number not in self._live:
            self._live[number] = timer
            heappush(self._heap, timer)
            if number > self.last:
                self.last = number

    def discard(self, timer: TimerData) -> None:
        """Take a timer out, if it is there."""
        self._live.pop(timer[1], None)
        self.aside.pop(timer[1], None)

    def next_due(self) -> int | None:
        """When the next job is due, in ms."""
        heap, live = self._heap, self._live
        while heap:  # every request asks
            top = heap[0]
            if live.get(top[1]) == top:
                return top[0]
            heappop(heap)
        return None

    def next(self, until: int) -> Timer | None:
        """The next timer that is due at `until` or before."""
        due = self.next_due()
        return self.first() if due is not None and due <= until else None

    def first(self) -> Timer:
        """The timer of `next_due`, right after that was asked."""
        return Timer._make(self._heap[0])

    # -- timers that turn out to have nothing to do wait aside until a step records that they were taken

    def set_aside(self, timer: Timer) -> None:
        """Pass over the next timer."""
        heappop(self._heap)
        self.aside[timer.seq] = timer

    def put_back(self) -> None:
        """Have the timers that were passed over due again."""
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
