"""The timers of a sandbox: jobs that the clock will run, and attempts to send, in the order of
their time.
"""

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

SENDING = "webhook.attempt"
"""The one job that waits for another machine.

The courier claims it; the clock does not do it by itself.
"""

_SPARE = 1_000  # timers that are gone may stay in a heap


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

    A job of a record has one timer: a new one takes the place of that before. Nothing else cancels
    a job: it looks at the record when it is due and does nothing if the moment has passed. A timer
    that is taken out before its time stays in its heap until it is the first, or most are such;
    what is not in `live`, by number, does not count. Only the courier claims attempts. Those that
    are not in the heap are `claimed`, under way or waiting for their turn, `on_hold` until events
    of the past may be sent, or `parked`, by merchant and webhook, for an earlier one there. Timers
    that are `skipped` had nothing to do: the next step removes them.
    """

    def __init__(self) -> None:
        self.jobs: list[Timer] = []
        self._attempts: list[Timer] = []
        self.claimed: Group = {}
        self.on_hold: Group = {}
        self.parked: defaultdict[tuple[str, str], Group] = defaultdict(dict)
        self.skipped: Group = {}
        self.live: Group = {}
        self._by_subject: dict[tuple[str, str, str], Timer] = {}
        self.last = 0  # the number of the newest timer ever set

    def put(self, timer: Timer) -> None:
        """Add a timer, be it new or one that was removed before."""
        if timer.seq not in self.live:
            self.live[timer.seq] = timer
            if timer.job != SENDING:
                self._by_subject[timer[2:]] = timer
            heappush(self._heap(timer), timer)
            self.last = max(self.last, timer.seq)

    def _heap(self, timer: Timer) -> list[Timer]:
        return self._attempts if timer.job == SENDING else self.jobs

    def discard(self, timer: Timer) -> None:
        """Remove a timer that was done, or undone."""
        for group in (self.live, self.claimed, self.skipped):
            group.pop(timer.seq, None)
        if timer.job != SENDING and self._by_subject.get(timer[2:]) is timer:
            del self._by_subject[timer[2:]]

    def replaced(self, timer: Timer) -> Timer | None:
        """The timer whose place a new one takes. Attempts to send end by themselves."""
        return self._by_subject.get(timer[2:])

    def exchange(self, gone: Iterable[Timer], new: Iterable[Timer]) -> None:
        """Remove timers, and add others."""
        for timer in gone:
            self.discard(timer)
        for timer in new:
            self.put(timer)
        if len(self.jobs) > 2 * len(self.live) + _SPARE:  # most are of timers that are gone
            self.jobs = [timer for timer in self.jobs if self.live.get(timer.seq) is timer]
            heapify(self.jobs)

    def next_job(self, until: float = inf) -> Timer | None:
        """The next job, if it is due at `until` (ms) or before."""
        return self._first(self.jobs, until)

    def next_attempt(self, until: float = inf) -> Timer | None:
        """The next attempt that is not claimed, if it is due at `until` (ms) or before."""
        return self._first(self._attempts, until)

    def _first(self, heap: list[Timer], until: float) -> Timer | None:
        while heap and self.live.get(heap[0].seq) is not heap[0]:
            heappop(heap)
        return heap[0] if heap and heap[0].due <= until else None

    def skip(self, timer: Timer) -> None:
        """Skip the next job, which had nothing to do, until a step records that it was removed."""
        heappop(self.jobs)
        self.skipped[timer.seq] = timer

    def claim(self, until: int) -> Timer | None:
        """The attempt that is due first, if it is at `until` or before; it is returned once."""
        timer = self.next_attempt(until)
        if timer is not None:
            heappop(self._attempts)
            self.claimed[timer.seq] = timer
        return timer

    def is_claimed(self, timer: Timer) -> bool:
        """Whether an attempt that was claimed is still to be made."""
        return self.claimed.get(timer.seq) is timer

    def regroup(self, timer: Timer, group: Group) -> None:
        """Move a claimed attempt to another group."""
        group[timer.seq] = self.claimed.pop(timer.seq)

    def release(self, timer: Timer) -> None:
        """Make a claimed attempt due again, unless a step has removed it."""
        if self.is_claimed(timer):
            heappush(self._attempts, self.claimed.pop(timer.seq))

    def put_back(self, group: Group) -> None:
        """Make the timers of a group due again."""
        for timer in group.values():
            heappush(self._heap(timer), timer)
        group.clear()

    def attempts_due(self, until: int) -> int:
        """How many attempts are due at `until` or before, with those under way and
        without those on hold.
        """
        due = len(self.claimed)
        places = [0]
        while places:
            place = places.pop()
            if place >= len(self._attempts):
                continue
            timer = self._attempts[place]
            if timer.due > until:  # what is below it in the heap is due later still
                continue
            if self.live.get(timer.seq) is timer:
                due += 1
            places += (2 * place + 1, 2 * place + 2)
        return due

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
        twin.last = self.last
        twin.live = self.live.copy()
        twin._by_subject = self._by_subject.copy()
        for timer in self.live.values():
            twin._heap(timer).append(timer)
        heapify(twin.jobs)
        heapify(twin._attempts)
        return twin
