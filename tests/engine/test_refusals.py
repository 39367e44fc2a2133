"""A refused control leaves its sandbox byte for byte as it was, whatever it was refused for."""

import threading
from collections.abc import Callable, Iterator
from unittest.mock import patch

import httpx2
import pytest

from stub_server.faults import fault_rules
from stub_server.files import package
from stub_server.files.package import MEDIA
from stub_server.operations.control import sandbox as control
from stub_server.sandboxes import entry, sandboxes

from ..support.contract import document
from ..support.estate import Estate, webhook_body
from ..support.live import NO_TLS
from ..support.make import Json, created, make_customer, make_order, make_plan
from ..support.receiver import receiving
from ..support.requests import OPERATIONS
from ..support.watched import Watched, own_shop, unchanged

NOTHING = "11111111-1111-4111-8111-111111111111"
OF_THE_WIRE = {
    "malformed_request",
    "request_timeout",
    "uri_too_long",
    "headers_too_large",
    "too_many_connections",
}
"""Codes that a connection is refused with: no request comes of it."""
NOT_REFUSALS = {
    "internal_error",
    "not_implemented",
    "simulated_fault",
    "sandbox_unavailable",
    "store_unavailable",
    "server_stopping",
    "rate_limited",
}
"""Codes of defects, of what is not there, and of limits that this server does not set."""
IN_PUBLIC = {"admin_key_required"}
"""Codes of a server that other machines can reach."""


@pytest.fixture
def shop(watched: Watched, sink: str) -> Iterator[Estate]:
    """A merchant in a sandbox of his own, in which no refusal changes anything."""
    with own_shop(watched.live, sink) as made, unchanged(watched):
        yield made


def refused(response: httpx2.Response, status: int, code: str) -> None:
    """The refusal was the one that was meant."""
    assert (status, code) == (response.status_code, response.json().get("code")), response.text


def _drive(shop: Estate, *verbs: str, body: Json | None = None) -> httpx2.Response:
    order = make_order(shop.api, make_plan(shop.api, billing_type="one_time"))
    for verb in verbs[:-1]:
        assert 200 == shop.control.post(f"/orders/{order['id']}/{verb}").status_code
    return shop.control.post(f"/orders/{order['id']}/{verbs[-1]}", json=body)


def _nothing_to_buy(shop: Estate) -> httpx2.Response:
    plan = make_plan(shop.api, interval="year")
    return shop.control.post("/personas", json={"persona": "past_due_br", "planId": plan["id"]})


def _long_after(shop: Estate, verb: str) -> httpx2.Response:
    order = make_order(shop.api, make_plan(shop.api, billing_type="one_time"))
    assert 200 == shop.control.post(f"/orders/{order['id']}/pay").status_code
    assert 200 == shop.control.post("/clock/advance", json={"seconds": 91 * 86_400}).status_code
    return shop.control.post(f"/orders/{order['id']}/{verb}")


def _taken(shop: Estate) -> httpx2.Response:
    """By a new world and by a fork, in whatever letters."""
    taken = {"name": shop.sandbox.upper()}
    refused(shop.control.post("/sandboxes", json=taken), 409, "duplicate_sandbox")
    return shop.control.post("/sandboxes/default/fork", json=taken)


def _too_many(shop: Estate) -> httpx2.Response:
    """None of those that there are was only mentioned."""
    with patch.object(sandboxes, "MOST", len(shop.live.app.sandboxes.sandboxes())):
        refused(shop.control.post("/sandboxes"), 409, "too_many_sandboxes")
        return shop.control.post(f"/sandboxes/{shop.sandbox}/fork")


def _too_many_merchants(shop: Estate) -> httpx2.Response:
    """The sandbox has as many as it keeps."""
    with patch.object(control, "MOST_MERCHANTS", 1):
        assert 201 == shop.control.post("/tokens", json={"merchant_id": shop.merchant_id}).status_code
        return shop.control.post("/tokens", json={"merchant_id": "2c1b9a5e-7a0d-4a44-9a3c-0f3f6b1f6f10"})


def _no_such_step(shop: Estate) -> httpx2.Response:
    """One that has not been yet, and one that the log has let go."""
    log = shop.live.app.sandboxes.entry(shop.sandbox).sandbox.log
    path = f"/sandboxes/{shop.sandbox}/fork"
    refused(shop.control.post(path, json={"step": log.number + 1}), 409, "step_not_kept")
    log.forget(1)
    return shop.control.post(path, json={"step": 0})


def _already_certifying(shop: Estate) -> httpx2.Response:
    running = shop.live.app.server.certifying
    running.add(shop.sandbox)
    try:
        body = {"url": "http://127.0.0.1:9/", "signing_key": "whsec_" + "A" * 32}
        return shop.control.post("/certify", json=body)
    finally:
        running.remove(shop.sandbox)


def _too_many_rules(shop: Estate) -> httpx2.Response:
    rule = {"then": {"delay_ms": 1}, "match": {"path": "/nowhere"}}
    with patch.object(fault_rules, "MOST", 1):
        made = shop.control.post("/faults", json=rule)
        refusal = shop.control.post("/faults", json=rule)
    shop.control.delete(f"/faults/{made.json()['fault']['id']}")
    return refusal


def _while_advancing(shop: Estate) -> httpx2.Response:
    """A receiver does not answer, and the clock stands where its delivery is."""
    with receiving() as slow:
        slow.hold = threading.Event()
        created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url, events=["customer.created"])))
        make_customer(shop.api)
        assert not shop.control.post("/clock/advance", json={"seconds": 1, "wait_seconds": 0}).json()["complete"]
        answer = shop.control.post("/clock/advance", json={"seconds": 1})
    assert shop.control.post("/webhooks/drain").json()["complete"]
    return answer


def _too_many_snapshots(shop: Estate) -> httpx2.Response:
    with patch.object(entry, "MOST_SNAPSHOTS", 1):
        made = shop.control.post("/snapshots", json={"name": "one"})
        refusal = shop.control.post("/snapshots", json={"name": "two"})
    assert 201 == made.status_code
    shop.control.delete("/snapshots/one")
    return refusal


FILE = {"Content-Type": MEDIA}


def _too_large(shop: Estate) -> httpx2.Response:
    with patch.object(package, "MOST_BYTES", 1_000):
        return shop.control.get("/export")


CONTROLS: dict[tuple[int, str], Callable[[Estate], httpx2.Response]] = {
    (404, "not_found"): lambda shop: shop.control.post(f"/orders/{NOTHING}/pay"),
    (409, "order_already_paid"): lambda shop: _drive(shop, "pay", "pay"),
    (409, "order_not_payable"): lambda shop: _drive(shop, "cancel", "pay"),
    (409, "failure_code_not_applicable"): lambda shop: _drive(shop, "fail", body={"code": "card_declined"}),
    (409, "order_not_refundable"): lambda shop: _drive(shop, "refund"),
    (409, "refund_exceeds_amount"): lambda shop: _drive(shop, "pay", "refund", body={"amount": 5000}),
    (409, "refund_window_closed"): lambda shop: _long_after(shop, "refund"),
    (409, "persona_not_possible"): _nothing_to_buy,
    (409, "dispute_window_closed"): lambda shop: _long_after(shop, "dispute"),
    (409, "invalid_state_transition"): lambda shop: _drive(shop, "pay", "expire"),
    (409, "clock_moves_forward_only"): lambda shop: shop.control.patch("/clock", json={"to": "2026-01-01T00:00:00Z"}),
    (409, "clock_too_far"): lambda shop: shop.control.post("/clock/advance", json={"to": "8000-01-01T00:00:00Z"}),
    (404, "scenario_not_found"): lambda shop: shop.control.post("/reset", json={"scenario": "nowhere"}),
    (409, "duplicate_sandbox"): _taken,
    (409, "too_many_sandboxes"): _too_many,
    (409, "too_many_merchants"): _too_many_merchants,
    (409, "step_not_kept"): _no_such_step,
    (404, "snapshot_not_found"): lambda shop: shop.control.post("/snapshots/nothing/restore"),
    (409, "too_many_snapshots"): _too_many_snapshots,
    (409, "too_many_faults"): _too_many_rules,
    (409, "fault_conflict"): lambda shop: shop.control.post(
        "/faults", json={"then": {"delay_ms": {"min": 2, "max": 1}}}
    ),
    (409, "event_conflict"): lambda shop: shop.control.post(
        "/events", json={"type": "customer.created", "overrides": {"nothing": 1}}
    ),
    (409, "certification_running"): _already_certifying,
    (409, "sandbox_too_large"): _too_large,
    (422, "unusable_file"): lambda shop: shop.control.post("/import", content=b"no file", headers=FILE),
    (409, "sandbox_protected"): lambda shop: shop.control.delete("/sandboxes/default"),
    (422, "validation_error"): lambda shop: shop.control.post("/clock/advance", json={"seconds": -1}),
    (404, "route_not_found"): lambda shop: shop.api.post("/v2/nothing", json={}),
    (405, "method_not_allowed"): lambda shop: shop.api.patch("/v2/customers", json={}),
    (404, "sandbox_not_found"): lambda shop: httpx2.post(f"{shop.live.url}/s/-no-/v2/customers", verify=NO_TLS),
    (409, "clock_advancing"): _while_advancing,
    (403, "delivery_not_allowed"): lambda shop: shop.api.post("/v2/customers", headers={"webhook-id": "evt_1"}),
    (403, "host_not_allowed"): lambda shop: shop.api.post("/v2/customers", headers={"Host": "example.com"}),
}


@pytest.mark.parametrize(("status", "code"), CONTROLS)
def test_a_refused_control_changes_nothing(shop: Estate, status: int, code: str) -> None:
    refused(CONTROLS[status, code](shop), status, code)


def test_every_code_is_looked_at() -> None:
    """Of those that a request can be refused with on this machine: here, or where those of the API are reached."""
    codes = set(document().raw["components"]["schemas"]["ErrorCode"]["enum"])
    of_the_api = {code for each in OPERATIONS.values() for answer in each.responses.values() for code in answer.codes}
    assert codes - OF_THE_WIRE - NOT_REFUSALS - IN_PUBLIC == of_the_api | {code for _, code in CONTROLS}
