"""The metrics of a server as the text that Prometheus reads."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from ..domain.deliveries import ERRORS
from .request import BOUNDS, CLASSES
from .server import Server

MEDIA = b"text/plain; version=0.0.4; charset=utf-8"
_MICRO = 1_000_000
_ENDS = [*(str(end / _MICRO) for end in BOUNDS), "+Inf"]


def exposition(server: Server) -> bytes:
    """The metrics in Prometheus' text format.

    Its client is imported here: 8 ms, which a start does not need.
    """
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


def _present(server: Server) -> Iterator[Any]:
    """The values of the server itself."""
    from prometheus_client.metrics_core import CounterMetricFamily as Counters
    from prometheus_client.metrics_core import GaugeMetricFamily as Gauge
    from prometheus_client.metrics_core import HistogramMetricFamily as Histograms

    answers = Counters(
        "stub_requests",
        "Requests by operation and class of status.",
        labels=["operation", "status"],
    )
    latencies = Histograms(
        "stub_request_duration_seconds",
        "Time from a request to the end of its answer.",
        labels=["operation"],
    )
    for name, by_status in server.requests.counts.items():
        for status, counts in by_status.items():
            answers.add_metric([name, CLASSES[status]], sum(counts[:-1]))
        *in_all, micros = map(sum, zip(*by_status.values(), strict=True))
        latencies.add_metric(
            [name], list(zip(_ENDS, map(float, accumulate(in_all)), strict=True)), micros / _MICRO
        )
    sent = Counters("stub_deliveries", "Webhook attempts sent, by result.", labels=["result"])
    results = server.courier.sender.results + server.courier.abroad.results
    for result in ("delivered", *ERRORS):
        sent.add_metric([result], results[result])
    yield from (answers, latencies, sent)
    sandboxes, persistence = server.sandboxes, server.sandboxes.persistence
    yield Gauge("stub_sandboxes_resident", "Sandboxes in memory.", len(sandboxes.sandboxes()))
    yield Counters(
        "stub_steps", "Steps recorded in all sandboxes.", sandboxes.default.log.budget.steps
    )
    yield Gauge(
        "stub_store_lag_seconds", "Age of the oldest change that is not stored.", persistence.lag
    )
    if persistence.lease is not None:
        yield Gauge("stub_lease_seconds", "For how long this server may answer.", persistence.lease)
