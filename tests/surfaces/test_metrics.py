"""`/_sandbox/metrics`: what is counted, under which labels, and who may read it."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import created, customer_body
from ..support.receiver import receiving

ADMIN = "a-long-admin-key"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(answer: httpx2.Response) -> Series:
    """The samples of an answer, as Prometheus' own parser reads them; each has a help and a type."""
    assert 200 == answer.status_code, answer.text
    assert "text/plain; version=0.0.4; charset=utf-8" == answer.headers["content-type"]
    families = list(text_string_to_metric_families(answer.text))
    assert [] == [family.name for family in families if not family.documentation or family.type == "unknown"]
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(series: Series, name: str, **labels: str) -> float:
    """One sample; 0 where nothing was counted yet."""
    return series.get((name, frozenset(labels.items())), 0.0)


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


def test_the_buckets_of_latency_count_up_to_all_requests(client: httpx2.Client) -> None:
    for delay in (0, 0, 20, 300):
        assert 200 == client.get("/v2/plans", headers={"X-Sandbox-Delay": str(delay)}).status_code
    series = scraped(client)
    found = {
        float(dict(labels)["le"]): count
        for (name, labels), count in series.items()
        if name == "stub_request_duration_seconds_bucket" and ("operation", "listPlans") in labels
    }
    counts = [found[end] for end in sorted(found)]
    assert counts == sorted(counts)
    assert (2, 3, 4) == (found[0.01], found[0.25], found[float("inf")])
    assert 4 == value(series, "stub_request_duration_seconds_count", operation="listPlans")


@pytest.mark.promise("metrics-without-client-words")
def test_no_client_makes_labels(client: httpx2.Client) -> None:
    client.get("/v2/nothing")
    before = scraped(client)
    name = f"s{uuid4().hex}"
    for path in (f"/{name}", f"/v2/customers/{name}", f"/s/{name}/v2/{name}", f"/_sandbox/{name}", "/v2/nothing"):
        client.get(path)
        client.request(f"X{name}"[:12].upper(), path)
    created(client.post("/_sandbox/sandboxes", json={"name": name}))
    answer = client.get("/_sandbox/metrics")
    assert name not in answer.text
    after = read(answer)
    assert value(after, "stub_requests_total", operation="", status="4xx") > value(
        before, "stub_requests_total", operation="", status="4xx"
    )
    operations = {label for _, labels in after for label in labels if label[0] == "operation"}
    assert operations - {label for _, labels in before for label in labels} <= {
        ("operation", "getCustomer"),
        ("operation", "createSandbox"),
    }


def test_sandboxes_are_counted(client: httpx2.Client) -> None:
    before = scraped(client)
    created(client.post("/_sandbox/sandboxes", json={"name": "one-more"}))
    after = scraped(client)
    assert 1 == value(after, "stub_sandboxes_resident") - value(before, "stub_sandboxes_resident")
    assert 204 == client.delete("/_sandbox/sandboxes/one-more").status_code
    assert value(before, "stub_sandboxes_resident") == value(scraped(client), "stub_sandboxes_resident")
    assert 0 == value(after, "stub_store_lag_seconds")
    assert 0 < value(after, "process_resident_memory_bytes")


def test_attempts_are_counted_by_result(client: httpx2.Client) -> None:
    before = scraped(client)
    with receiving() as receiver:
        receiver.decide = lambda request, number: 200 if number > 1 else 500
        hook = {"url": receiver.url, "events": ["customer.created"]}
        webhook = created(client.post("/v2/webhooks", json=hook))["webhook"]
        for _ in range(3):
            created(client.post("/v2/customers", json=customer_body()))
            assert 200 == client.post("/_sandbox/webhooks/drain").status_code
        assert 200 == client.delete(f"/v2/webhooks/{webhook['id']}").status_code
    after = scraped(client)
    found = {
        result: value(after, "stub_deliveries_total", result=result)
        - value(before, "stub_deliveries_total", result=result)
        for result in ("delivered", "http_5xx")
    }
    assert {"delivered": 2, "http_5xx": 1} == found


def test_what_is_tried_for_an_explanation_is_not_counted(client: httpx2.Client) -> None:
    refused = client.post("/v2/customers", json={"name": "x"})
    before = scraped(client)
    ident = refused.headers["x-request-id"]
    assert "explanation" in client.get(f"/_sandbox/requests/{ident}").json()["request"]
    after = scraped(client)
    assert value(before, "stub_steps_total") == value(after, "stub_steps_total")
    posted = {"operation": "createCustomer", "status": "2xx"}
    assert value(before, "stub_requests_total", **posted) == value(after, "stub_requests_total", **posted)


@pytest.mark.promise("metrics-need-key")
def test_off_loopback_the_admin_key_opens_it_as_a_header_or_as_a_bearer() -> None:
    public = replace(FROZEN, scenario="empty", host="0.0.0.0", admin_key=ADMIN)  # noqa: S104 - nothing is bound to it
    with running(public) as live, httpx2.Client(base_url=f"http://127.0.0.1:{live.port}", verify=NO_TLS) as client:
        admin = {"X-Sandbox-Admin-Key": ADMIN}
        own = created(client.post("/_sandbox/sandboxes", json={"name": "alice"}, headers=admin))["sandbox"]
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
        for headers in (admin, {"Authorization": f"Bearer {ADMIN}"}, {"Authorization": f"bearer {ADMIN}"}):
            read(client.get("/_sandbox/metrics", headers=headers))
        for path in ("/_sandbox/clock", "/_sandbox/sandboxes"):
            assert 403 == client.get(path, headers={"Authorization": f"Bearer {ADMIN}"}).status_code


def test_without_an_admin_key_it_is_closed_off_loopback_and_to_pages_of_others(server: Live) -> None:
    with running(replace(FROZEN, scenario="empty", host="0.0.0.0")) as live:  # noqa: S104 - nothing is bound to it
        for headers in ({}, {"Authorization": "Bearer x"}):
            closed = httpx2.get(f"http://127.0.0.1:{live.port}/_sandbox/metrics", headers=headers, verify=NO_TLS)
            assert 403 == closed.status_code
    page = {"Origin": "https://evil.example"}
    assert 403 == httpx2.get(f"{server.url}/_sandbox/metrics", headers=page, verify=NO_TLS).status_code
