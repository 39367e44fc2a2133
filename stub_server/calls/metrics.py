"""Counts the requests of a server, at little cost: nobody may ever ask."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..engine.journal import Trace

BOUNDS = (250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000)
"""µs at which the buckets of latencies end."""


class Requests:
    """The requests of a server by operation and class of status."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str | None, int], list[int]] = {}
        """Requests by bucket, and last their µs; by operation id and the status' first digit, 0 without an answer."""

    def __call__(self, trace: Trace, warnings: Sequence[str]) -> None:
        """A request was answered."""
        key, micros = (trace.operation, trace.status // 100), trace.micros
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = [0] * (len(BOUNDS) + 2)
        counts[bisect_left(BOUNDS, micros)] += 1
        counts[-1] += micros
