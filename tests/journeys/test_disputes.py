"""Disputes of paid orders: what they hold up, and how they end for the order, its subscription and the figures."""

from operator import itemgetter

import pytest

from ..support.make import Json, make_plan
from .members import at, bill_of, buyer, days, member, move, order, plan_of
from .stage import DAY, Stage
from .steps import done, refused

HELD = ("pix", "credit_card")


def dispute(stage: Stage, ident: str, **body: object) -> Json:
    """Open one; answers what the control shows."""
    return stage.drive("orders", ident, "dispute", **body)


def resolve(stage: Stage, ident: str, outcome: str) -> Json:
    """End one; answers what the control shows."""
    return stage.drive("orders", ident, "dispute/resolve", outcome=outcome)


def sound(stage: Stage) -> bool:
    """Whether the sandbox keeps its laws."""
    return bool(done(stage.control.get("/invariants"))["ok"])


def figures(stage: Stage, shown: Json) -> Json:
    """The statistics of an order's project."""
    stats: Json = done(stage.api.get(f"/v2/projects/{shown['projectId']}/stats"))["data"]["stats"]
    return stats


# -- the order


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


@pytest.mark.parametrize("refunded", [0, 10])
def test_a_dispute_that_is_won_leaves_the_order_as_it_was(stage: Stage, refunded: int) -> None:
    ident = stage.order("paid")["id"]
    if refunded:
        stage.drive("orders", ident, "refund", amount=refunded)
    before, figures_before = stage.get_order(ident), figures(stage, done(stage.control.get(f"/orders/{ident}")))
    dispute(stage, ident)
    stage.advance(DAY)
    shown = resolve(stage, ident, "won")
    same = ("status", "refunded_amount", "paid_at", "amount")
    assert [before["last_transaction"].get(n) for n in same] == [
        shown["order"]["last_transaction"].get(n) for n in same
    ]
    assert ("paid", ["refund", "dispute"]) == (shown["order"]["status"], shown["allowed"])
    assert figures_before | {"generated_at": ""} == figures(stage, shown) | {"generated_at": ""}
    assert ["order.disputed", "order.dispute_won"] == stage.events(ident)[-2:]
    stage.drive("orders", ident, "refund")


def test_a_dispute_that_is_lost_gives_the_money_back_however_late(stage: Stage) -> None:
    ident = stage.order("paid", totalAmount=30)["id"]
    stage.advance(80 * DAY)
    dispute(stage, ident)
    stage.advance(11 * DAY)
    shown = resolve(stage, ident, "lost")
    payment = shown["order"]["last_transaction"]
    assert ("refunded", "refunded", "30.00", stage.now(), []) == (
        shown["order"]["status"],
        payment["status"],
        payment["refunded_amount"],
        payment["refunded_at"],
        shown["allowed"],
    )
    assert ["order.paid", "order.disputed", "order.refunded"] == stage.events(ident)[-3:]
    assert 0 == figures(stage, shown)["revenue"]["net"]
    events = done(stage.control.get("/events", params={"resource_id": ident}))["events"]
    assert ["disputed", "paid"] == [event["data"]["previous_status"] for event in events[:2]]
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


def test_a_part_can_be_disputed_and_lost(stage: Stage) -> None:
    """Of what is left after refunds, which no dispute may exceed; what is left then can be disputed again."""
    ident = stage.order("paid", totalAmount=30)["id"]
    stage.drive("orders", ident, "refund", amount=10)
    fields = refused(
        stage.control.post(f"/orders/{ident}/dispute", json={"amount": 20.01}), 409, "refund_exceeds_amount"
    )
    assert ["amount"] == list(fields)
    assert "5.00" == dispute(stage, ident, amount=5, reason="fraud")["order"]["last_transaction"]["disputed_amount"]
    shown = resolve(stage, ident, "lost")["order"]
    assert ("paid", "partially_refunded", "15.00") == (
        shown["status"],
        shown["last_transaction"]["status"],
        shown["last_transaction"]["refunded_amount"],
    )
    assert "order.partially_refunded" == stage.events(ident)[-1]
    rest = dispute(stage, ident)["order"]["last_transaction"]
    assert ("15.00", False) == (rest["disputed_amount"], "dispute_reason" in rest)
    assert "refunded" == resolve(stage, ident, "lost")["order"]["status"]
    assert "30.00" == stage.get_order(ident)["last_transaction"]["refunded_amount"]
    assert sound(stage)


def test_nobody_disputes_a_boleto(stage: Stage) -> None:
    ident = member(stage, plan_of(stage), method="boleto")["orderId"]
    before = stage.get_order(ident)
    assert ["refund"] == done(stage.control.get(f"/orders/{ident}"))["allowed"]
    response = stage.control.post(f"/orders/{ident}/dispute")
    assert ["paymentMethod"] == list(refused(response, 409, "invalid_state_transition"))
    assert before == stage.get_order(ident)


# -- the subscription


@pytest.mark.parametrize("method", HELD)
def test_a_subscription_is_neither_billed_nor_past_due_during_a_dispute(stage: Stage, method: str) -> None:
    held = member(stage, plan_of(stage), method=method)
    dispute(stage, held["orderId"])
    stage.advance(40 * DAY)
    assert held == stage.get_subscription(held["id"])
    refused(stage.control.post(f"/subscriptions/{held['id']}/renew"), 409, "invalid_state_transition")
    assert sound(stage)


def test_a_dispute_that_is_lost_ends_the_subscription_that_it_paid_for(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.advance(5 * DAY)
    bill = bill_of(stage, held)
    dispute(stage, held["orderId"])
    resolve(stage, held["orderId"], "lost")
    assert ("canceled", "canceled") == (
        stage.get_subscription(held["id"])["status"],
        stage.get_order(bill["id"])["status"],
    )
    assert "subscription.canceled" == stage.events(held["id"])[-1]
    assert sound(stage)


def test_a_suspension_within_a_dispute_is_counted_once(stage: Stage) -> None:
    """What lay ahead of a member who is past due comes later by the time of the dispute, and not a day more."""
    held = member(stage, plan_of(stage))
    stage.go_to(held["current_period_end"])
    stage.advance(DAY)
    dispute(stage, held["orderId"])
    stage.advance(DAY)
    move(stage, held, "suspend")
    stage.advance(DAY)
    move(stage, held, "activate")
    stage.advance(DAY)
    resolve(stage, held["orderId"], "won")
    assert at(held["current_period_end"]) + days(3) == at(stage.get_subscription(held["id"])["current_period_end"])
    assert sound(stage)
