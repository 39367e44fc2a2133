"""Checks that a record's other fields agree with the moves that lead to its state."""

from __future__ import annotations

from collections.abc import Mapping

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms
from ..domain.subscriptions import is_held, period_end
from ..kernel.clock import iso
from ..kernel.money import cents
from ..kernel.record import Row
from ..store.memory import Store


def order_trace(row: Row, lifecycle: Lifecycle, now: int) -> str:
    """What contradicts an order's status; empty if nothing does."""
    order, hidden, payment = row.public, row.hidden, row.public["last_transaction"]
    status = order["status"]
    expected = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}.get(status, (status,))
    if payment["status"] not in expected:
        return f"is {status}, its payment {payment['status']}"
    settled = status in lifecycle.sets["settled"]
    if settled != (hidden["paid_at"] is not None) or settled != ("paid_at" in payment):
        return f"is {status} and was paid at {hidden['paid_at']}"
    if settled and not date_time_ms(order["createdAt"]) <= hidden["paid_at"] <= now:
        return "was paid before it was placed, or will be"
    if settled and hidden["paid_cents"] != cents(order["totalAmount"]):
        return f"was paid with {hidden['paid_cents']} cents"
    back = hidden["refunded_cents"]
    if not 0 <= back <= hidden["paid_cents"] or (status == "refunded") != (back > 0 and back == hidden["paid_cents"]):
        return f"is {status} with {back} cents given back"
    return ""


def subscription_trace(store: Store, row: Row, lifecycles: Mapping[str, Lifecycle], now: int) -> str:
    """What contradicts a subscription's status; empty if nothing does."""
    public, hidden = row.public, row.hidden
    status = public["status"]
    ended = status not in lifecycles["Subscription"].sets["running"]
    if ended != (public["ended_at"] is not None) or (ended and public["next_billing_at"] is not None):
        return f"is {status}, ended at {public['ended_at']}, next billing at {public['next_billing_at']}"
    order = store.orders.open(public["orderId"])
    if order is None or order.hidden["subscriptionId"] != row.id or order.hidden["renewal"]:
        return "has no first order that refers to it"
    end = period_end(public, hidden)
    in_trial = public["current_period_end"] == public["trial_end"] and public["trial_end"] is not None
    if not in_trial and public["current_period_end"] != iso(end):
        return f"its period ends at {public['current_period_end']}, not at {iso(end)}"
    paid, left = public["cycle"] + 1, len(hidden["paid_by"])
    if not 1 <= left <= paid or ("ends" in hidden and len(hidden["ends"]) != left):
        return f"has {paid} paid periods, {left} of them not over yet"
    if "ends" not in hidden and hidden["periods"] != paid:  # after a suspension the count begins again
        return f"has {hidden['periods']} paid periods after {public['cycle']} renewals"
    for ident in hidden["dispute"]["orders"] if is_held(hidden) else ():
        disputed = store.orders.open(ident)
        if disputed is None or disputed.public["status"] != "disputed" or disputed.hidden["subscriptionId"] != row.id:
            return f"waits for the dispute of order {ident}, which is none of its disputed ones"
    project = store.projects.peek(public["projectId"])
    paused = project is not None and project["status"] in lifecycles["Project"].sets["paused"]
    if status == "trialing" and date_time_ms(public["trial_end"]) < now and not paused:
        return "is trialing after its trial"
    if status == "past_due" and end > now:
        return "is past due before its period is over"
    customer = store.customers.find(public["customerId"])
    if customer is None or public["customer"]["id"] != public["customerId"]:
        return "has no customer"
    return ""
