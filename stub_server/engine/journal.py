"""The journal of a world: its newest requests, bounded in number and in bytes. It is the observer's, and no state."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..kernel.trace import Trace
from .log import Budget

KEPT = 2_000
MOST_BYTES = 32 * 1024 * 1024
MOST_BYTES_IN_ALL = 256 * 1024 * 1024
_UNTOLD = 64 * 1024  # bytes that a journal may grow by before the budget learns of them


class Journal:
    """The newest requests, the oldest first.

    A request counts with its path, query, headers and bodies. Those to the control surface have as many places again,
    so that they take none of the API.
    """

    __slots__ = (
        "__weakref__", "_alarm", "_budget", "_cleared", "_controls", "_forgotten", "_kept", "_most", "_room", "_told",
        "keeps_bodies", "size",
    )  # fmt: skip

    def __init__(self, most: int = KEPT, budget: Budget | None = None) -> None:
        """`most` requests are kept; 0 keeps no bodies, and as many requests as usual. `budget` is shared by worlds."""
        self._most, self.keeps_bodies = most or KEPT, most > 0
        self._budget = budget or Budget(MOST_BYTES_IN_ALL)
        self._kept: deque[Trace] = deque()
        self.size = self._forgotten = self._cleared = 0
        self._controls = 0  # requests to the control surface
        self._room = self._most  # how many requests may be kept with them
        self._told = 0  # bytes that the budget knows of
        self._alarm = 0  # bytes at which bounds are looked at: every request appends

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        kept = self._kept
        kept.append(trace)
        size = self.size + trace.size
        if trace.is_control:
            self._count_control(1)
        while len(kept) > self._room:
            size -= self._oldest().size
        self.size = size
        if size > self._alarm:
            self._look()

    def _look(self) -> None:
        """Keep to the bounds in bytes."""
        if not self._told:
            self._budget.join(self)
        while self.size > MOST_BYTES:
            self._forget()
        self._tell()
        if self._budget.used > self._budget.most:
            self._budget.make_room()

    def _forget(self) -> None:
        self.size -= self._oldest().size

    def _oldest(self) -> Trace:
        """Take the oldest request away."""
        trace = self._kept.popleft()
        self._forgotten += 1
        if trace.is_control:
            self._count_control(-1)
        return trace

    def _count_control(self, more: int) -> None:
        self._controls += more
        self._room = self._most + min(self._controls, self._most)

    def forget(self, size: int) -> None:
        """Let the oldest requests of about so many bytes go, at most half of what there is and at least one."""
        goal = max(self.size // 2, self.size - size)
        self._forget()
        while self.size > goal:
            self._forget()
        self._tell()

    def _tell(self) -> None:
        """Have the budget know how much it is by now."""
        self._budget.used += self.size - self._told
        self._told = self.size
        self._alarm = min(MOST_BYTES, self.size + _UNTOLD)

    @property
    def is_whole(self) -> bool:
        """Whether every request since the last clearing is still there."""
        return self._forgotten == self._cleared

    def clear(self) -> None:
        """Forget every request."""
        self._forgotten += len(self._kept)
        self._cleared = self._forgotten
        self._kept.clear()
        self._controls, self._room = 0, self._most
        self.size = 0
        self._tell()

    @property
    def appended(self) -> int:
        """How many requests there ever were."""
        return self._forgotten + len(self._kept)

    def find(self, ident: str) -> Trace | None:
        """The request of an id, if it is still kept."""
        return next((trace for trace in reversed(self._kept) if trace.id == ident), None)

    def __getitem__(self, place: int) -> Trace:
        return self._kept[place]

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[Trace]:
        return reversed(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def fresh(self) -> Journal:
        """An empty journal of the same bounds, as a fork begins with."""
        return Journal(self._most if self.keeps_bodies else 0, self._budget)
