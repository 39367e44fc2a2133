"""Windows: how often each caller has done something of which only so much is allowed."""

from collections.abc import Hashable
from math import ceil
from time import monotonic

MOST_CALLERS = 10_000


class Windows:
    """Counts of callers, each in a window that begins with the first it counts."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        # when a caller's window ends, and the count in it
        self._counts: dict[Hashable, tuple[float, int]] = {}

    def count(self, caller: Hashable) -> tuple[int, int]:
        """Count one more.

        Returns the count in the caller's window, and in how many seconds it ends.
        """
        now = monotonic()
        ends, count = self._counts.pop(caller, (0.0, 0))
        if ends <= now:
            ends = now + self._seconds
            count = 0
        # moved to the end: the caller that has been idle longest is first
        self._counts[caller] = ends, count + 1
        if len(self._counts) > MOST_CALLERS:
            del self._counts[next(iter(self._counts))]
        return count + 1, ceil(ends - now)
