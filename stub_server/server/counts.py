"""Counts of the requests of a server, by operation, status and duration."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ..engine.kept import Trace

BOUNDS = (
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
)
"""µs at which the buckets of latencies end."""
CLASSES = {0: "none", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}
"""Classes of statuses by their first digit, 0 without an answer."""


class Requests:
    """Counts the requests of a server by operation and class of status."""

    def __init__(self, operations: Iterable[str]) -> None:
        self.counts: dict[str, dict[int, list[int]]] = {}
        for name in ("", *operations):
            self.counts[name] = {status: [0] * (len(BOUNDS) + 2) for status in CLASSES}
        """Requests by bucket, and last their µs; by operation id and class of status.

        All begin at 0: Prometheus sees no increase in a series that appears with its first count.
        """

    def count(self, trace: Trace, warnings: Sequence[str]) -> None:
        """Count a request that has ended."""
        counts = self.counts[trace.operation or ""][trace.status // 100]
        counts[bisect_left(BOUNDS, trace.micros)] += 1
        counts[-1] += trace.micros
