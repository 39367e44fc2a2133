"""The timers of a sandbox: jobs that the clock will run, and attempts to send, in the order of
their time.
"""

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

SENDING = "webhook.attempt"
"""The one job that waits for another machine.

The courier claims it; the clock does not do it by itself.
"""


class Timer(NamedTuple):
    """One job:

    `due` in ms, `seq` by the order in which timers were set, `subject` the id of the record it is
    about.
    """

    due: int
    seq: int
    job: str
    merchant_id: str
    subject: str


Group = dict[int, Timer]
"""Timers by number."""


class Timers:
    """Two heaps, one of `jobs` and one of attempts to send.

    No rule cancels a job: a job looks at the record when it is due and does nothing if the moment
    has passed. A timer that is taken out before its time stays in its heap until it is the first;
    what is not in `live` does not count. `live` holds timers by number, not numbers alone: after a
    step was undone, another one gives its numbers again. Only the courier claims attempts.
    `claimed` ones are under way or wait for their turn, those `on_hold` until events of the past
    may be sent, and `parked` ones, by merchant and webhook, for an earlier one there. Timers that
    are `skipped` had nothing to do: the next step removes them.
    """

    def __init__(self) -> None:
        self.jobs: list[Timer] = []
        self._attempts: list[Timer] = []
        self.claimed: Group = {}
        self.on_hold: Group = {}
        self.parked: defaultdict[tuple[str, str], Group] = defaultdict(dict)
        self.skipped: Group = {}
        self.live: Group = {}
        self.last = 0  # the number of the newest timer ever set

    def put(self, timer: Timer) -> None:
        """Add a timer, be it new or one that was removed before."""
        if timer.seq not in self.live:
            self.live[timer.seq] = timer
            self._queue(timer)
            self.last = max(self.last, timer.seq)

    def _queue(self, timer: Timer) -> None:
        """Put a timer into its heap."""
        heappush(self._attempts if timer.job == SENDING else self.jobs, timer)

    def discard(self, timer: Timer) -> None:
        """Remove a timer, be it due, done or waiting."""
        self.live.pop(timer.seq, None)
        for group in self._outside():
            group.pop(timer.seq, None)

    def exchange(self, gone: Iterable[Timer], new: Iterable[Timer]) -> None:
        """Remove timers, and add others."""
        for timer in gone:
            self.discard(timer)
        for timer in new:
            self.put(timer)

    def _outside(self) -> tuple[Group, ...]:
        """The timers that are in no heap."""
        return (self.claimed, self.on_hold, self.skipped, *self.parked.values())

    # -- jobs

    def next_due(self) -> int | None:
        """When the next job is due, in ms; None without jobs."""
        jobs, live = self.jobs, self.live
        while jobs:
            timer = jobs[0]
            if live.get(timer.seq) is timer:
                return timer.due
            heappop(jobs)
        return None

    def next(self, until: int) -> Timer | None:
        """The next job, if it is due at `until` or before."""
        due = self.next_due()
        return self.jobs[0] if due is not None and due <= until else None

    def skip(self, timer: Timer) -> None:
        """Skip the next job, which had nothing to do, until a step records that it was removed."""
        heappop(self.jobs)
        self.skipped[timer.seq] = timer

    # -- attempts to send

    def next_attempt(self) -> int | None:
        """When the next attempt is due that is not claimed, in ms."""
        heap = self._attempts
        while heap:
            if self._is_waiting(heap[0]):
                return heap[0].due
            heappop(heap)
        return None

    def _is_waiting(self, timer: Timer) -> bool:
        """Whether an attempt in the heap is one: a timer that was taken out and put back
        is in it twice.
        """
        if self.live.get(timer.seq) != timer:
            return False
        return not any(timer.seq in group for group in self._outside())

    def claim(self, until: int) -> Timer | None:
        """The attempt that is due first, if it is at `until` or before; it is returned once."""
        due = self.next_attempt()
        if due is None or due > until:
            return None
        timer = heappop(self._attempts)
        self.claimed[timer.seq] = timer
        return timer

    def is_claimed(self, timer: Timer) -> bool:
        """Whether an attempt that was claimed is still to be made."""
        return self.claimed.get(timer.seq) == timer

    def release(self, timer: Timer) -> None:
        """Make a claimed attempt due again, unless a step has removed it."""
        if self.is_claimed(timer):
            self._queue(self.claimed.pop(timer.seq))

    def regroup(self, timer: Timer, group: Group) -> None:
        """Move a claimed attempt to another group, unless a step has removed it."""
        if self.is_claimed(timer):
            group[timer.seq] = self.claimed.pop(timer.seq)

    def put_back(self, group: Group) -> None:
        """Make the timers of a group due again."""
        for timer in group.values():
            self._queue(timer)
        group.clear()

    def attempts_due(self, until: int) -> int:
        """How many attempts are due at `until` or before, with those under way and
        without those on hold.
        """
        elsewhere = set[int]().union(*self._outside())
        due = set()  # a timer that was taken out and put back is in the heap twice
        for timer in self._attempts:
            number = timer.seq
            if timer.due <= until and number not in elsewhere and self.live.get(number) == timer:
                due.add(number)
        return len(self.claimed) + len(due)

    # -- all of them

    def beyond(self, other: "Timers") -> tuple[Timer, ...]:
        """The timers that others do not have, in the order of time."""
        found = []
        for number, timer in self.live.items():
            theirs = other.live.get(number)
            if theirs is not timer and theirs != timer:  # mostly it is the same one: that is faster
                found.append(timer)
        return tuple(sorted(found))

    def __len__(self) -> int:
        return len(self.live)

    def pending(self, until: float = inf) -> list[Timer]:
        """The timers that are due at an instant or before, in the order of time."""
        return [timer for timer in sorted(self.live.values()) if timer.due <= until]

    def copy(self) -> "Timers":
        """An independent copy, in which no attempt is claimed, on hold or parked."""
        twin = Timers()
        twin.last, twin.live = self.last, self.live.copy()
        twin.jobs, twin._attempts = self.jobs.copy(), self._attempts.copy()
        for group in self._outside():
            twin.put_back(dict(group))
        return twin
