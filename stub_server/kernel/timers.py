"""What the clock has still to do: jobs in the order of their time."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from .record import Later


class Timer(NamedTuple):
    """One job: due in ms, then the order in which it was set; `subject` is the record it concerns."""

    due: int
    seq: int
    job: str
    merchant_id: str
    subject: str


class Timers:
    """A heap of plain data, so that a copy of a world carries its future with it.

    Nothing is ever cancelled: a job looks at the record when it fires and does nothing if the moment has passed.
    """

    __slots__ = ("_heap", "_seq")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str, str, str]] = []  # the members of a Timer
        self._seq = 0

    def set(self, due: int, job: str, merchant_id: str, subject: str) -> None:
        """Have `job` done for `subject` at `due` ms."""
        self._seq += 1
        heappush(self._heap, (due, self._seq, job, merchant_id, subject))

    def set_all(self, jobs: Iterable[Later], merchant_id: str) -> None:
        """`set` for many, in the order of their time."""
        in_time = sorted(jobs, key=itemgetter(0))
        self._heap += [
            (due, number, job, merchant_id, subject)
            for number, (due, job, subject) in enumerate(in_time, self._seq + 1)
        ]
        self._seq += len(in_time)
        heapify(self._heap)

    def next_due(self) -> int | None:
        """When the next job is due, in ms."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> Timer | None:
        """The next job that is due at `now`, taken off the heap."""
        return Timer(*heappop(self._heap)) if self._heap and self._heap[0][0] <= now else None

    def __len__(self) -> int:
        return len(self._heap)

    def copy(self) -> "Timers":
        """The same jobs, going their own way."""
        twin = Timers()
        twin._heap, twin._seq = list(self._heap), self._seq
        return twin
