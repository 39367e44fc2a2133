"""Disputes of paid orders: what they hold up, and until when. How they end is held to the model."""

from operator import itemgetter

import pytest

from ..support.make import Json, make_plan
from .members import buyer, member, order, plan_of
from .stage import DAY, Stage
from .steps import done, refused

HELD = ("pix", "credit_card")


def dispute(stage: Stage, ident: str, **body: object) -> Json:
    """Open one; answers what the control shows."""
    return stage.drive("orders", ident, "dispute", **body)


def sound(stage: Stage) -> bool:
    """Whether the sandbox keeps its laws."""
    return bool(done(stage.control.get("/invariants"))["ok"])


def figures(stage: Stage, shown: Json) -> Json:
    """The statistics of an order's project."""
    stats: Json = done(stage.api.get(f"/v2/projects/{shown['projectId']}/stats"))["data"]["stats"]
    return stats


@pytest.mark.parametrize("method", HELD)
def test_a_disputed_order_counts_as_paid_and_cannot_be_refunded(stage: Stage, method: str) -> None:
    paid = member(stage, plan_of(stage), method=method)["orderId"]
    before = stage.control.get(f"/orders/{paid}").json()
    counted = figures(stage, before)
    shown = dispute(stage, paid, reason="fraud")
    payment = shown["order"]["last_transaction"]
    assert ("disputed", ["resolve_dispute"]) == (shown["order"]["status"], shown["allowed"])
    assert ("disputed", "true", "fraud", stage.now()) == itemgetter(
        "status", "success", "dispute_reason", "disputed_at"
    )(payment)
    assert payment["amount"] == payment["disputed_amount"]
    refused(stage.control.post(f"/orders/{paid}/refund"), 409, "order_not_refundable")
    refused(stage.control.post(f"/orders/{paid}/pay"), 409, "order_not_payable")
    now = figures(stage, before)
    assert (1, 0) == itemgetter("disputed", "paid")(now["orders"])
    same = ("revenue", "conversion_rate", "subscribers", "mrr", "top_plans")
    assert [counted[name] for name in same] == [now[name] for name in same]
    listed = done(stage.api.get("/v2/orders", params={"status": "disputed"}))["orders"]
    assert paid in [entry["id"] for entry in listed]
    refused(stage.api.delete(f"/v2/projects/{before['projectId']}"), 409, "project_has_activity")
    assert sound(stage)


@pytest.mark.parametrize(("method", "window"), [("pix", 80), ("credit_card", 120)])
def test_a_payment_can_be_disputed_for_so_many_days(stage: Stage, method: str, window: int) -> None:
    """The last instant counts; later it is refused, and the control is offered no more."""
    plan = make_plan(stage.api, billing_type="one_time", payment_methods=["pix", "credit_card"])
    first, second = (order(stage, plan, buyer(), method)["id"] for _ in range(2))
    if method == "pix":
        for ident in (first, second):
            stage.drive("orders", ident, "pay")
    stage.advance(window * DAY)
    dispute(stage, first)
    stage.advance(0.001)
    refused(stage.control.post(f"/orders/{second}/dispute"), 409, "dispute_window_closed")
    assert ["refund"] == done(stage.control.get(f"/orders/{second}"))["allowed"]


def test_nobody_disputes_a_boleto(stage: Stage) -> None:
    ident = member(stage, plan_of(stage), method="boleto")["orderId"]
    before = stage.get_order(ident)
    assert ["refund"] == done(stage.control.get(f"/orders/{ident}"))["allowed"]
    response = stage.control.post(f"/orders/{ident}/dispute")
    assert ["paymentMethod"] == list(refused(response, 409, "invalid_state_transition"))
    assert before == stage.get_order(ident)
