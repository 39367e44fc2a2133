"""`/_sandbox/metrics`: what is counted, under which labels, and who may read it."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ..support.contract import document
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import created, customer_body

ADMIN = "a-long-admin-key"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(answer: httpx2.Response) -> Series:
    """The samples of an answer, as Prometheus' own parser reads them; each has a help
    and a type.
    """
    assert 200 == answer.status_code, answer.text
    assert "text/plain; version=0.0.4; charset=utf-8" == answer.headers["content-type"]
    families = list(text_string_to_metric_families(answer.text))
    assert [] == [
        family.name for family in families if not family.documentation or family.type == "unknown"
    ]
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in families
        for s in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    """One sample, which must be there."""
    return series[name, frozenset(labels.items())]


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with running(replace(FROZEN, scenario="empty")) as live:
        yield live


@pytest.fixture
def client(server: Live) -> Iterator[httpx2.Client]:
    """The default sandbox with its token."""
    with httpx2.Client(base_url=server.url, timeout=30, verify=NO_TLS) as client:
        token = client.get("/_sandbox/credentials").json()["jwt"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def scraped(client: httpx2.Client) -> Series:
    return read(client.get("/_sandbox/metrics"))


def test_requests_are_counted_by_operation_and_class_of_status(client: httpx2.Client) -> None:
    before = scraped(client)
    for _ in range(3):
        created(client.post("/v2/customers", json=customer_body()))
    assert 422 == client.post("/v2/customers", json={}).status_code
    assert 401 == client.get("/v2/customers", headers={"Authorization": "Bearer x"}).status_code
    after = scraped(client)

    def more(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert 3 == more("stub_requests_total", operation="createCustomer", status="2xx")
    assert 1 == more("stub_requests_total", operation="createCustomer", status="4xx")
    assert 1 == more("stub_requests_total", operation="listCustomers", status="4xx")
    assert 1 == more("stub_requests_total", operation="getMetrics", status="2xx")
    assert 4 == more("stub_request_duration_seconds_count", operation="createCustomer")
    assert 0 < more("stub_request_duration_seconds_sum", operation="createCustomer") < 30
    assert 3 == more("stub_steps_total")


def test_every_series_is_there_at_0_before_anything_happens(client: httpx2.Client) -> None:
    """Prometheus sees no increase in a series that appears with its first count, so no
    alert would ring.
    """
    series = scraped(client)
    operations = ["", *document().operations, *document("sandbox.yaml").operations]
    for operation in operations:
        assert 0 <= value(series, "stub_request_duration_seconds_count", operation=operation)
        for status in ("2xx", "3xx", "4xx", "5xx", "none"):
            assert 0 <= value(series, "stub_requests_total", operation=operation, status=status)
    errors = document().raw["components"]["schemas"]["DeliveryError"]["enum"]
    sent = {dict(labels)["result"] for name, labels in series if name == "stub_deliveries_total"}
    assert {"delivered", *errors} == sent
    assert 0 == value(series, "stub_deliveries_total", result="timeout")


@pytest.mark.promise("metrics-without-client-words")
def test_no_client_makes_labels(client: httpx2.Client) -> None:
    client.get("/v2/nothing")
    before = scraped(client)
    name = f"s{uuid4().hex}"
    for path in (
        f"/{name}",
        f"/v2/customers/{name}",
        f"/s/{name}/v2/{name}",
        f"/_sandbox/{name}",
        "/v2/nothing",
    ):
        client.get(path)
        client.request(f"X{name}"[:12].upper(), path)
    created(client.post("/_sandbox/sandboxes", json={"name": name}))
    answer = client.get("/_sandbox/metrics")
    assert name not in answer.text
    after = read(answer)
    assert value(after, "stub_requests_total", operation="", status="4xx") > value(
        before, "stub_requests_total", operation="", status="4xx"
    )
    assert before.keys() == after.keys()


@pytest.mark.promise("metrics-need-key")
def test_off_loopback_the_admin_key_opens_it_as_a_header_or_as_a_bearer() -> None:
    # nothing is bound to it
    public = replace(FROZEN, scenario="empty", host="0.0.0.0", admin_key=ADMIN)  # noqa: S104 - a setting: it listens on loopback
    with (
        running(public) as live,
        httpx2.Client(base_url=f"http://127.0.0.1:{live.port}", verify=NO_TLS) as client,
    ):
        admin = {"X-Sandbox-Admin-Key": ADMIN}
        own = created(client.post("/_sandbox/sandboxes", json={"name": "alice"}, headers=admin))[
            "sandbox"
        ]
        control = {"X-Sandbox-Control-Key": own["credentials"]["control_key"]}
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": ADMIN},
            {"Authorization": f"Basic {ADMIN}"},
            {"Authorization": f"Bearer {own['credentials']['jwt']}"},
        ):
            assert 403 == client.get("/_sandbox/metrics", headers=headers).status_code
        assert 403 == client.get("/s/alice/_sandbox/metrics", headers=control).status_code
        for headers in (
            admin,
            admin | {"Authorization": "Bearer of-the-api"},
            {"Authorization": f"Bearer {ADMIN}"},
            {"Authorization": f"bearer {ADMIN}"},
        ):
            read(client.get("/_sandbox/metrics", headers=headers))
        for path in ("/_sandbox/clock", "/_sandbox/sandboxes"):
            assert 403 == client.get(path, headers={"Authorization": f"Bearer {ADMIN}"}).status_code
