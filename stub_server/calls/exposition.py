"""The metrics of a server, as Prometheus reads them. Imported when first asked: 8 ms, which a start has no use for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .metrics import BOUNDS, Requests
from .server import Server

MEDIA = b"text/plain; version=0.0.4; charset=utf-8"
_MICRO = 1_000_000
_ENDS = [*(str(bound / _MICRO) for bound in BOUNDS), "+Inf"]


def exposition(server: Server) -> bytes:
    """The metrics in the text format."""
    registry = CollectorRegistry()
    registry.register(_Collector(server))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, server: Server) -> None:
        self._server = server

    def describe(self) -> list[Metric]:
        """Nothing: else everything is collected twice."""
        return []

    def collect(self) -> Iterator[Metric]:
        """What there is now."""
        server = self._server
        yield from _of_requests(server.requests)
        sandboxes, persistence = server.sandboxes, server.sandboxes.persistence
        resident = len(sandboxes.worlds())
        known = resident if sandboxes.residence is None else sandboxes.residence.known
        yield GaugeMetricFamily("stub_sandboxes_known", "Sandboxes that there are.", known)
        yield GaugeMetricFamily("stub_sandboxes_resident", "Sandboxes in memory.", resident)
        steps = server.sandboxes.default.log.budget.steps
        yield CounterMetricFamily("stub_steps", "Steps recorded in all sandboxes.", steps)
        sent = CounterMetricFamily("stub_deliveries", "Webhook attempts sent, by result.", labels=["result"])
        for result, count in (server.sender.results + server.sender_abroad.results).items():
            sent.add_metric([result], count)
        yield sent
        yield GaugeMetricFamily(
            "stub_store_lag_seconds", "Age of the oldest change that is not stored.", persistence.lag
        )
        if persistence.lease is not None:
            yield GaugeMetricFamily("stub_lease_seconds", "For how long this server may answer.", persistence.lease)


def _of_requests(requests: Requests) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "stub_requests", "Requests by operation and class of status.", labels=["operation", "status"]
    )
    latencies = HistogramMetricFamily(
        "stub_request_duration_seconds", "Time from a request to the end of its answer.", labels=["operation"]
    )
    by_operation: dict[str, list[int]] = {}
    for (operation, status), counts in requests.counts.items():
        name = operation or ""
        answers.add_metric([name, f"{status}xx" if status else "none"], sum(counts[:-1]))
        others = by_operation.get(name)
        by_operation[name] = counts if others is None else [a + b for a, b in zip(counts, others, strict=True)]
    for name, counts in by_operation.items():
        buckets = list(zip(_ENDS, map(float, accumulate(counts[:-1])), strict=True))
        latencies.add_metric([name], buckets, counts[-1] / _MICRO)
    yield answers
    yield latencies
