"""Disputes of paid orders: what they hold up, and how they end for the order, its subscription and the figures."""

from operator import itemgetter

import pytest

from ..support.make import Json, make_plan
from .members import at, bill_of, buyer, days, member, order, pay_again, plan_of
from .stage import DAY, Stage
from .steps import done, refused

HELD = ("pix", "credit_card")
STATES = ("pending", "paid", "failed", "expired", "canceled", "refunded")


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


@pytest.mark.parametrize("state", [state for state in STATES if state != "paid"])
def test_only_a_paid_order_is_disputed(stage: Stage, state: str) -> None:
    before = stage.order(state)
    refused(stage.control.post(f"/orders/{before['id']}/dispute"), 409, "invalid_state_transition")
    assert before == stage.get_order(before["id"])


def test_what_is_disputed_is_not_disputed_again(stage: Stage) -> None:
    ident = stage.order("disputed")["id"]
    before = stage.get_order(ident)
    response = stage.control.post(f"/orders/{ident}/dispute", json={"reason": "other"})
    refused(response, 409, "invalid_state_transition")
    assert 1 == response.json()["message"].count("paid (resolveDispute)")
    assert before == stage.get_order(ident)


@pytest.mark.parametrize("outcome", ["won", "lost"])
@pytest.mark.parametrize("state", STATES)
def test_only_a_dispute_is_resolved(stage: Stage, state: str, outcome: str) -> None:
    before = stage.order(state)
    response = stage.control.post(f"/orders/{before['id']}/dispute/resolve", json={"outcome": outcome})
    refused(response, 409, "invalid_state_transition")
    assert before == stage.get_order(before["id"])


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("dispute", {"amount": 0}, "amount"),
        ("dispute", {"amount": 0.001}, "amount"),
        ("dispute", {"reason": ""}, "reason"),
        ("dispute", {"reason": "\0"}, "reason"),
        ("dispute", {"why": "fraud"}, "why"),
        ("dispute/resolve", {}, "outcome"),
        ("dispute/resolve", {"outcome": "draw"}, "outcome"),
    ],
)
def test_bodies_of_disputes_are_validated(stage: Stage, verb: str, body: Json, field: str) -> None:
    ident = stage.order("paid")["id"]
    response = stage.control.post(f"/orders/{ident}/{verb}", json=body)
    assert [field] == list(refused(response, 422, "validation_error"))


def test_a_buyer_keeps_the_seat_while_the_order_is_disputed(stage: Stage) -> None:
    plan = make_plan(stage.api, billing_type="one_time")
    ident = stage.order("paid", plan)["id"]
    counts = []
    for outcome in ("won", "lost"):
        dispute(stage, ident)
        counts.append(done(stage.api.get(f"/v2/plans/{plan['id']}"))["plan"]["subscribers_count"])
        resolve(stage, ident, outcome)
    counts.append(done(stage.api.get(f"/v2/plans/{plan['id']}"))["plan"]["subscribers_count"])
    assert [1, 1, 0] == counts


# -- the subscription


@pytest.mark.parametrize("method", HELD)
def test_a_subscription_is_neither_billed_nor_past_due_during_a_dispute(stage: Stage, method: str) -> None:
    held = member(stage, plan_of(stage), method=method)
    dispute(stage, held["orderId"])
    stage.advance(40 * DAY)
    assert held == stage.get_subscription(held["id"])
    refused(stage.control.post(f"/subscriptions/{held['id']}/renew"), 409, "invalid_state_transition")
    assert sound(stage)


def test_after_a_dispute_a_card_is_charged_for_a_period_that_begins_now(stage: Stage) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    dispute(stage, held["orderId"])
    stage.advance(40 * DAY)
    resolve(stage, held["orderId"], "won")
    now = stage.get_subscription(held["id"])
    assert ("active", 1, stage.now()) == itemgetter("status", "cycle", "current_period_start")(now)
    assert at(stage.now()) + days(7) == at(now["current_period_end"])
    assert "paid" == bill_of(stage, held)["status"]
    assert sound(stage)


def test_after_a_dispute_pix_is_billed_at_once_with_the_whole_grace_to_pay(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"])
    stage.advance(40 * DAY)
    resolve(stage, held["orderId"], "won")
    now, bill = stage.get_subscription(held["id"]), bill_of(stage, held)
    assert ("past_due", "pending", stage.now()) == (now["status"], bill["status"], bill["createdAt"])
    assert at(stage.now()) + days(7) == at(bill["last_transaction"]["expires_at"])
    stage.drive("orders", bill["id"], "pay")
    assert ("active", 1) == itemgetter("status", "cycle")(stage.get_subscription(held["id"]))
    assert sound(stage)


@pytest.mark.parametrize("outcome", ["won", "lost"])
def test_a_dispute_within_a_period_moves_nothing(stage: Stage, outcome: str) -> None:
    """Neither if it is lost, where a part of the money is left."""
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"], amount=1)
    stage.advance(DAY)
    resolve(stage, held["orderId"], outcome)
    assert held == stage.get_subscription(held["id"])
    stage.advance(3 * DAY)
    assert "pending" == bill_of(stage, held)["status"]
    stage.go_to(held["current_period_end"])
    assert "past_due" == stage.get_subscription(held["id"])["status"]


def test_a_bill_that_came_before_the_dispute_can_be_paid_in_it_and_does_not_expire(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.advance(5 * DAY)
    bill = bill_of(stage, held)
    dispute(stage, held["orderId"])
    stage.advance(30 * DAY)
    assert ("pending", "active") == (
        stage.get_order(bill["id"])["status"],
        stage.get_subscription(held["id"])["status"],
    )
    assert sound(stage)
    resolve(stage, held["orderId"], "won")
    assert at(stage.now()) + days(7) == at(stage.get_order(bill["id"])["last_transaction"]["expires_at"])
    stage.advance(7 * DAY)
    assert ("expired", "expired") == (
        stage.get_order(bill["id"])["status"],
        stage.get_subscription(held["id"])["status"],
    )


def test_a_grace_stands_still_during_a_dispute(stage: Stage) -> None:
    held = stage.subscription("past_due", interval="week")
    stage.advance(2 * DAY)
    dispute(stage, held["orderId"])
    stage.advance(20 * DAY)
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    assert sound(stage)
    resolve(stage, held["orderId"], "won")
    stage.advance(5 * DAY - 1)
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.advance(1)
    assert "expired" == stage.get_subscription(held["id"])["status"]


def test_a_declined_card_is_not_charged_again_during_a_dispute(stage: Stage) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": f"fill_never.{held['code']}@example.com"}))
    stage.go_to(held["current_period_end"])
    first = bill_of(stage, held)
    stage.drive("orders", first["id"], "fail")
    dispute(stage, held["orderId"])
    stage.advance(6 * DAY)
    assert first["id"] == stage.get_subscription(held["id"])["lastOrderId"]
    resolve(stage, held["orderId"], "won")
    stage.advance(DAY)
    assert first["id"] != stage.get_subscription(held["id"])["lastOrderId"]


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


def test_a_dispute_of_an_earlier_period_stops_billing_and_takes_nothing_off(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    pay_again(stage, held)
    stage.advance(8 * DAY)
    now = stage.get_subscription(held["id"])
    dispute(stage, held["orderId"])
    stage.advance(10 * DAY)
    assert now == stage.get_subscription(held["id"])
    resolve(stage, held["orderId"], "lost")
    after = stage.get_subscription(held["id"])
    assert ("past_due", 1, stage.now()) == itemgetter("status", "cycle", "current_period_end")(after)
    assert sound(stage)


def test_a_subscription_goes_on_with_the_last_of_its_disputes(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    again = pay_again(stage, held)
    dispute(stage, held["orderId"])
    stage.advance(DAY)
    dispute(stage, again["id"])
    stage.advance(30 * DAY)
    resolve(stage, held["orderId"], "won")
    assert "active" == stage.get_subscription(held["id"])["status"]
    resolve(stage, again["id"], "won")
    now = stage.get_subscription(held["id"])
    assert ("past_due", stage.now()) == itemgetter("status", "current_period_end")(now)
    assert sound(stage)


def test_what_is_to_be_canceled_ends_during_a_dispute(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    dispute(stage, held["orderId"])
    stage.go_to(held["current_period_end"])
    assert "canceled" == stage.get_subscription(held["id"])["status"]
    resolve(stage, held["orderId"], "won")
    assert "canceled" == stage.get_subscription(held["id"])["status"]
    assert sound(stage)


def test_a_trial_begins_its_first_period_during_a_dispute(stage: Stage) -> None:
    held = member(stage, plan_of(stage, trial_period_days=5))
    dispute(stage, held["orderId"])
    stage.go_to(held["trial_end"])
    assert "active" == stage.get_subscription(held["id"])["status"]
    stage.advance(30 * DAY)
    assert "active" == stage.get_subscription(held["id"])["status"]
    resolve(stage, held["orderId"], "won")
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    assert sound(stage)


def test_time_in_which_the_project_was_suspended_too_is_given_back_once(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"])
    stage.go_to(held["current_period_end"])
    stage.advance(DAY)
    path = f"/v2/projects/{held['projectId']}/status"
    done(stage.api.patch(path, json={"status": "suspended"}))
    stage.advance(3 * DAY)
    resolve(stage, held["orderId"], "won")
    stage.advance(2 * DAY)
    done(stage.api.patch(path, json={"status": "active"}))
    now = stage.get_subscription(held["id"])
    assert ("past_due", stage.now()) == itemgetter("status", "current_period_end")(now)
    assert sound(stage)


def test_a_disputed_membership_is_served_what_a_suspension_owes_it_before_an_archive_ends_it(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    end = at(held["current_period_end"])
    dispute(stage, held["orderId"])
    stage.advance((end - days(2) - at(stage.now())).total_seconds())
    path = f"/v2/projects/{held['projectId']}/status"
    done(stage.api.patch(path, json={"status": "suspended"}))
    stage.advance(5 * DAY)
    done(stage.api.patch(path, json={"status": "archived"}))
    now = stage.get_subscription(held["id"])
    assert ("active", end + days(5)) == (now["status"], at(now["cancel_at"]))
    stage.advance(2 * DAY)
    assert "canceled" == stage.get_subscription(held["id"])["status"]
    assert sound(stage)


def test_a_sandbox_with_a_dispute_can_be_carried(stage: Stage) -> None:
    """And the dispute goes on where it is put up again."""
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"])
    stage.advance(40 * DAY)
    file = stage.control.get("/export").content
    answer = stage.control.post("/import", content=file, headers={"Content-Type": "application/vnd.stub.sandbox+gzip"})
    assert 200 == answer.status_code, answer.text
    assert held == stage.get_subscription(held["id"])
    resolve(stage, held["orderId"], "won")
    assert "past_due" == stage.get_subscription(held["id"])["status"]


def test_a_period_that_is_paid_during_a_dispute_has_begun_already(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"])
    stage.advance(10 * DAY)
    pay_again(stage, held)
    now = stage.get_subscription(held["id"])
    assert (held["current_period_end"], 1) == itemgetter("current_period_start", "cycle")(now)
    stage.advance(30 * DAY)
    resolve(stage, held["orderId"], "won")
    assert ("past_due", "pending") == (stage.get_subscription(held["id"])["status"], bill_of(stage, held)["status"])
    assert sound(stage)


def test_what_leaves_during_a_dispute_after_its_period_ends_at_once(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    dispute(stage, held["orderId"])
    stage.advance(10 * DAY)
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    assert "canceled" == stage.get_subscription(held["id"])["status"]
