"""Counts of the requests of a server, by operation, status and duration."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from ..engine.journal import Trace

BOUNDS = (250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000)
"""µs at which the buckets of latencies end."""


class Requests:
    """Counts the requests of a server by operation and class of status."""

    def __init__(self) -> None:
        self.counts: dict[str | None, dict[int, list[int]]]
        self.counts = defaultdict(lambda: defaultdict(lambda: [0] * (len(BOUNDS) + 2)))
        """Requests by bucket, and last their µs; by operation id and the status' first digit, 0 without an answer."""

    def __call__(self, trace: Trace, warnings: Sequence[str]) -> None:
        counts = self.counts[trace.operation][trace.status // 100]
        counts[bisect_left(BOUNDS, trace.micros)] += 1
        counts[-1] += trace.micros
