"""The metrics of a server: counts of its requests, and the text that Prometheus reads."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..engine.journal import Trace

if TYPE_CHECKING:
    from .server import Server

MEDIA = b"text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000)
"""µs at which the buckets of latencies end."""
_MICRO = 1_000_000
_ENDS = [*(str(end / _MICRO) for end in BOUNDS), "+Inf"]


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


def exposition(server: "Server") -> bytes:
    """The metrics in Prometheus' text format. Its client is imported here: 8 ms, which a start does not need."""
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import generate_latest
    from prometheus_client.registry import Collector

    class OfServer(Collector):
        def collect(self) -> Iterator[Any]:
            return _present(server)

    registry = CollectorRegistry()
    registry.register(OfServer())
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def _present(server: "Server") -> Iterator[Any]:
    """The values of the server itself."""
    from prometheus_client.metrics_core import CounterMetricFamily as Counters
    from prometheus_client.metrics_core import GaugeMetricFamily as Gauge
    from prometheus_client.metrics_core import HistogramMetricFamily as Histograms

    sandboxes, persistence = server.sandboxes, server.sandboxes.persistence
    answers = Counters("stub_requests", "Requests by operation and class of status.", labels=["operation", "status"])
    latencies = Histograms(
        "stub_request_duration_seconds", "Time from a request to the end of its answer.", labels=["operation"]
    )
    for operation, by_status in server.requests.counts.items():
        name = operation or ""
        for status, counts in by_status.items():
            answers.add_metric([name, f"{status}xx" if status else "none"], sum(counts[:-1]))
        *in_all, micros = map(sum, zip(*by_status.values(), strict=True))
        latencies.add_metric([name], list(zip(_ENDS, map(float, accumulate(in_all)), strict=True)), micros / _MICRO)
    yield answers
    yield latencies
    yield Gauge("stub_sandboxes_resident", "Sandboxes in memory.", len(sandboxes.sandboxes()))
    steps = sandboxes.default.log.budget.steps
    yield Counters("stub_steps", "Steps recorded in all sandboxes.", steps)
    sent = Counters("stub_deliveries", "Webhook attempts sent, by result.", labels=["result"])
    for result, count in (server.courier.sender.results + server.courier.abroad.results).items():
        sent.add_metric([result], count)
    yield sent
    yield Gauge("stub_store_lag_seconds", "Age of the oldest change that is not stored.", persistence.lag)
    if persistence.lease is not None:
        yield Gauge("stub_lease_seconds", "For how long this server may answer.", persistence.lease)
