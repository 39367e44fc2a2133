"""Refusals of the controls: of payments, the clock, sandboxes, snapshots, faults, files
and certification.
"""

import threading
from typing import Any
from unittest.mock import patch

from stub_server.engine import fault_rules
from stub_server.operations.control import sandbox as control
from stub_server.server.sandboxes import creating, entry
from stub_server.storage import package

from ..estate import Estate, webhook_body
from ..make import created, make_customer, make_order, make_plan
from ..receiver import receiving
from .row import Answer, Row

_FILE = {"Content-Type": package.MEDIA}


def open_order(shop: Estate) -> str:
    """Another order of the merchant's plan, which is not paid."""
    plan = shop.api.get(f"/v2/plans/{shop.ids['planId']}").json()["plan"]
    return str(make_order(shop.api, plan)["id"])


def pending(shop: Estate, act: str, **body: Any) -> Answer:
    """Act on an open order."""
    return shop.control.post(f"/orders/{open_order(shop)}/{act}", json=body)


def paid(shop: Estate, act: str, **body: Any) -> Answer:
    """Act on an order that is paid."""
    return shop.control.post(f"/orders/{shop.ids['orderId']}/{act}", json=body)


def canceled(shop: Estate) -> Answer:
    """Pay an order that was canceled."""
    ident = pending(shop, "cancel").json()["order"]["id"]
    return shop.control.post(f"/orders/{ident}/pay")


def long_after(shop: Estate, act: str) -> Answer:
    """Act on a payment of a season ago."""
    assert shop.control.post("/clock/advance", json={"days": 91}).status_code == 200
    return paid(shop, act)


def nothing_to_renew(shop: Estate) -> Answer:
    """A plan whose subscribers pay once a year, for somebody who is past due."""
    plan = make_plan(shop.api, interval="year")
    return shop.control.post("/personas", json={"persona": "past_due_br", "planId": plan["id"]})


def while_advancing(shop: Estate) -> Answer:
    """A receiver does not answer, and the clock stands where its delivery is."""
    with receiving() as slow:
        slow.hold = threading.Event()
        created(
            shop.api.post("/v2/webhooks", json=webhook_body(slow.url, events=["customer.created"]))
        )
        make_customer(shop.api)
        assert not shop.control.post(
            "/clock/advance", json={"seconds": 1, "wait_seconds": 0}
        ).json()["complete"]
        refusal = shop.control.post("/clock/advance", json={"seconds": 1})
    assert shop.control.post("/webhooks/drain").json()["complete"]
    return refusal


def name_taken(shop: Estate) -> Answer:
    """By a new sandbox and by a fork, in whatever letters."""
    taken = {"name": shop.sandbox.upper()}
    assert "duplicate_sandbox" == shop.control.post("/sandboxes", json=taken).json()["code"]
    return shop.control.post("/sandboxes/default/fork", json=taken)


def of_a_full_server(shop: Estate) -> Answer:
    """None of its sandboxes was only mentioned."""
    most = len(shop.live.app.sandboxes.sandboxes())
    with patch.object(creating, "MOST", most):
        assert (
            "too_many_sandboxes"
            == shop.control.post(f"/sandboxes/{shop.sandbox}/fork").json()["code"]
        )
        return shop.control.post("/sandboxes", json={"name": "one-more"})


def too_many_merchants(shop: Estate) -> Answer:
    """The sandbox has as many as it keeps; who is one of them is not one more."""
    with patch.object(control, "MOST_MERCHANTS", 1):
        created(shop.control.post("/tokens", json={"merchant_id": shop.merchant_id}))
        return shop.control.post(
            "/tokens", json={"merchant_id": "2c1b9a5e-7a0d-4a44-9a3c-0f3f6b1f6f10"}
        )


def too_many_faults(shop: Estate) -> Answer:
    """One more than a sandbox may have."""
    rule = {"then": {"delay_ms": 1}, "match": {"path": "/nowhere"}}
    with patch.object(fault_rules, "MOST", 1):
        created(shop.control.post("/faults", json=rule))
        return shop.control.post("/faults", json=rule)


def no_such_step(shop: Estate) -> Answer:
    """One that has not been yet, and one that the log has let go."""
    log = shop.live.app.sandboxes.entry(shop.sandbox).sandbox.log
    path = f"/sandboxes/{shop.sandbox}/fork"
    assert "step_not_kept" == shop.control.post(path, json={"step": log.number + 1}).json()["code"]
    log.forget(1)
    return shop.control.post(path, json={"step": 0})


def too_many_snapshots(shop: Estate) -> Answer:
    """One more than a sandbox may have."""
    with patch.object(entry, "MOST_SNAPSHOTS", 1):
        created(shop.control.post("/snapshots", json={"name": "one"}))
        return shop.control.post("/snapshots", json={"name": "two"})


def too_large(shop: Estate) -> Answer:
    """A file of more bytes than one may have."""
    with patch.object(package, "MOST_BYTES", 1_000):
        return shop.control.get("/export")


def broken_off(shop: Estate) -> Answer:
    """The first half of a file."""
    file = shop.control.get("/export").content
    return shop.control.post("/import", content=file[: len(file) // 2], headers=_FILE)


def already_certifying(shop: Estate) -> Answer:
    """Two certifications at a time."""
    running = shop.live.app.server.underway.certifying
    running.add(shop.sandbox)
    try:
        return shop.control.post(
            "/certify", json={"url": "http://127.0.0.1:9/", "signing_key": "whsec_" + "A" * 32}
        )
    finally:
        running.remove(shop.sandbox)


CONTROLS = [
    Row(
        "order_already_paid",
        409,
        control=lambda shop: paid(shop, "pay"),
        is_modelled=True,
    ),
    Row(
        "order_not_payable",
        409,
        control=canceled,
        is_modelled=True,
    ),
    Row(
        "order_not_refundable",
        409,
        control=lambda shop: pending(shop, "refund"),
        is_modelled=True,
    ),
    Row(
        "failure_code_not_applicable",
        409,
        control=lambda shop: pending(shop, "fail", code="card_declined"),
        is_modelled=True,
    ),
    Row(
        "refund_exceeds_amount",
        409,
        control=lambda shop: paid(shop, "refund", amount=99_999),
        is_modelled=True,
    ),
    Row(
        "refund_window_closed",
        409,
        control=lambda shop: long_after(shop, "refund"),
        is_modelled=True,
    ),
    Row(
        "dispute_window_closed",
        409,
        control=lambda shop: long_after(shop, "dispute"),
    ),
    Row(
        "persona_not_possible",
        409,
        control=nothing_to_renew,
    ),
    Row(
        "clock_moves_forward_only",
        409,
        control=lambda shop: shop.control.patch("/clock", json={"to": "2026-01-01T00:00:00Z"}),
    ),
    Row(
        "clock_too_far",
        409,
        control=lambda shop: shop.control.post(
            "/clock/advance", json={"to": "8000-01-01T00:00:00Z"}
        ),
    ),
    Row(
        "clock_advancing",
        409,
        control=while_advancing,
    ),
    Row(
        "scenario_not_found",
        404,
        control=lambda shop: shop.control.post("/reset", json={"scenario": "nowhere"}),
    ),
    Row(
        "snapshot_not_found",
        404,
        control=lambda shop: shop.control.post("/snapshots/nothing/restore"),
    ),
    Row(
        "duplicate_sandbox",
        409,
        control=name_taken,
    ),
    Row(
        "too_many_sandboxes",
        409,
        control=of_a_full_server,
    ),
    Row(
        "too_many_merchants",
        409,
        control=too_many_merchants,
    ),
    Row(
        "sandbox_protected",
        409,
        control=lambda shop: shop.control.delete("/sandboxes/default"),
    ),
    Row(
        "too_many_faults",
        409,
        control=too_many_faults,
    ),
    Row(
        "fault_conflict",
        409,
        control=lambda shop: shop.control.post(
            "/faults", json={"then": {"webhook_drop": True, "status": 503}}
        ),
    ),
    Row(
        "event_conflict",
        409,
        control=lambda shop: shop.control.post(
            "/events", json={"type": "customer.created", "overrides": {"nothing": 1}}
        ),
    ),
    Row(
        "step_not_kept",
        409,
        lambda shop, operation: shop.api.get("/v2/plans", headers={"X-Sandbox-As-Of": "99999"}),
        no_such_step,
        is_anywhere=True,
    ),
    Row(
        "too_many_snapshots",
        409,
        control=too_many_snapshots,
    ),
    Row(
        "sandbox_too_large",
        409,
        control=too_large,
    ),
    Row(
        "unusable_file",
        422,
        control=broken_off,
    ),
    Row(
        "certification_running",
        409,
        control=already_certifying,
    ),
]
