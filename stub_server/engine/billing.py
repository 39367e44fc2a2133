"""The course of orders and subscriptions, for operations, controls, the clock and magic values alike.

Each function adds to a draft: the order, the subscription that it moves, their events and timers.
"""

from __future__ import annotations

from ..domain import orders, payments, subscriptions
from ..domain.customers import as_buyer
from ..domain.lifecycle import move, refused
from ..domain.payments import Payer
from ..kernel.record import Body, Record, Row
from .charges import (
    cancel,
    expire,
    fail,
    is_payable,
    is_refundable,
    lifecycle,
    payer_of,
    place,
    states,
    tell_order,
)
from .draft import Draft

__all__ = [
    "activate_subscription",
    "call_off_bill",
    "cancel",
    "end_later",
    "end_subscription",
    "expire",
    "expire_subscription",
    "fail",
    "fall_past_due",
    "is_payable",
    "is_refundable",
    "is_running",
    "lifecycle",
    "pay",
    "payer_of",
    "place",
    "refund",
    "renewal_due",
    "renewal_order",
    "roll",
    "schedule",
    "states",
]


def is_running(draft: Draft, row: Row) -> bool:
    """Whether a subscription has not ended."""
    return row.public["status"] in states(draft, "Subscription", "running")


# -- payments


def pay(
    draft: Draft, row: Row, payer: Payer | None = None, paid_at: int | None = None, amount: int | None = None
) -> Record:
    """The order is paid, and opens or renews a subscription of its plan. Raises Conflict.

    `amount` (cents) and `paid_at` (ms) are the order's total and now unless the payment says otherwise.
    """
    table, orders_ = draft.store.orders, lifecycle(draft, "Order")
    payments.check_payable(row.public, amount, paid_at, draft.now, orders_)
    moved = move(orders_, row.public["status"], "paid")
    payer = payer or payer_of(draft, row)
    public, hidden = payments.paid(row.public, row.hidden, payer, draft.ids.alnum(11), paid_at or draft.now, draft.now)
    held = _renewed_by(draft, hidden)
    opened = None if held is not None or hidden["renewal"] else _opened_by(draft, public, hidden)
    if held is not None:
        hidden = hidden | {"subscriptionId": held.id, "renewal": True}
    elif opened is not None:
        hidden = hidden | {"subscriptionId": opened[0]["id"]}
    record = draft.update(table, row, public, hidden)
    tell_order(draft, record, hidden, moved)
    if held is not None:
        _renew(draft, held, row.id)
    elif opened is not None:
        _open(draft, *opened)
    return record


def refund(draft: Draft, row: Row, amount: int | None) -> Record:
    """Money back, in full or part (cents); what a full refund had paid for is taken away. Raises Conflict."""
    table = lifecycle(draft, "Order")
    public, hidden, full = payments.refunded(row.public, row.hidden, amount, draft.ids.uuid(), draft.now, table)
    status = row.public["status"]
    moved = table.find(status, "refunded") if full else table.find(status, status, "partially_refunded")
    if moved is None:
        raise refused(table, status, "refunded")
    record = draft.update(draft.store.orders, row, public, hidden)
    tell_order(draft, record, hidden, moved)
    if full and hidden["subscriptionId"] is not None:
        _take_back(draft, hidden["subscriptionId"], row.id)
    return record


def _take_back(draft: Draft, ident: str, order_id: str) -> None:
    """The order of a period is refunded: without the running one the subscription ends, a later one is taken off."""
    row = draft.open(draft.store.subscriptions, ident)
    if row is None or row.public["status"] == "past_due" or not is_running(draft, row):
        return  # none of its periods runs
    paid_by = row.hidden["paid_by"]
    if order_id == paid_by[0]:
        end_subscription(draft, row, "canceled")
    elif order_id in paid_by:
        public, hidden = subscriptions.withdrawn(row.public, row.hidden, draft.now, order_id)
        draft.update(draft.store.subscriptions, row, public, hidden)
        schedule(draft, ident, public, hidden)


# -- subscriptions


def _renewed_by(draft: Draft, order: Body) -> Row | None:
    """The running subscription that a paid order renews: its own, or the customer's of the same plan."""
    table = draft.store.subscriptions
    if order["renewal"]:
        row = draft.open(table, order["subscriptionId"])
        # What ended meanwhile is not extended by money that came late.
        return row if row is not None and is_running(draft, row) else None
    held = table.rows_of("customerId+planId", (order["customerId"], order["planId"]))
    return next((row for row in held if is_running(draft, row)), None)


def _opened_by(draft: Draft, order: Body, hidden: Body) -> tuple[Body, Body] | None:
    """The subscription that the first payment on a recurring plan opens: its public and hidden part."""
    store = draft.store
    plan = store.plans.peek(hidden["planId"])
    if plan is None or plan["billing_type"] != "recurring":
        return None
    customer = store.customers.open(hidden["customerId"])
    if customer is None:
        return None
    first = store.subscriptions.count("customerId+planId", (customer.id, plan["id"])) == 0
    return subscriptions.opened(
        ident=draft.ids.uuid(),
        code=draft.code_for(store.subscriptions),
        defaults=dict(draft.sandbox.rules.defaults["Subscription"]),
        plan=plan,
        order=order,
        order_hidden=hidden,
        customer=customer.public,
        now=draft.now,
        trial=first and plan["trial_period_days"] > 0,
    )


def _open(draft: Draft, public: Body, hidden: Body) -> None:
    record = draft.create(draft.store.subscriptions, public["id"], public, hidden)
    _tell(draft, record, public, "new")
    if public["status"] == "active":
        schedule(draft, record.id, public, hidden)
    else:
        draft.at(hidden["anchor"], "subscription.activate", record.id)


def activate_subscription(draft: Draft, row: Row) -> None:
    """The trial is over, and the first paid period begins. Raises Conflict."""
    move(lifecycle(draft, "Subscription"), row.public["status"], "active")
    public = subscriptions.activated(row.public, row.hidden, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    _tell(draft, record, public, row.public["status"])
    schedule(draft, row.id, public, row.hidden)


def _renew(draft: Draft, row: Row, order_id: str) -> None:
    """One more period is paid, whether by the open bill or by another order, which makes the bill pointless."""
    if row.hidden["renewal_order"] != order_id:
        call_off_bill(draft, row)
    public, hidden = subscriptions.renewed(row.public, row.hidden, draft.now, order_id)
    record = draft.update(draft.store.subscriptions, row, public, hidden)
    _tell(draft, record, public, row.public["status"], "renewed")
    schedule(draft, row.id, public, hidden, 1)


def roll(draft: Draft, row: Row) -> None:
    """The running period is over and the next one was paid early: it begins."""
    public, hidden = subscriptions.rolled(row.public, row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, public, hidden)


def schedule(draft: Draft, ident: str, public: Body, hidden: Body, paid: int | None = None) -> None:
    """The timers of the newest `paid` periods, of all that are paid unless told: their ends, and the renewal order."""
    if public["status"] == "trialing":
        return  # they are set when it is activated
    for left in range((paid or len(hidden["paid_by"])) - 1, 0, -1):
        draft.at(subscriptions.period_end(public, hidden, left), "subscription.end", ident)
    draft.at(subscriptions.renewal_at(public, hidden), "subscription.renew", ident)
    draft.at(subscriptions.period_end(public, hidden), "subscription.end", ident)


def renewal_due(draft: Draft, row: Row) -> None:
    """The next period is to be paid: its order is made, and a card is charged."""
    order, public = renewal_order(draft, row)
    record = draft.find(draft.store.subscriptions, row.id)
    assert record is not None
    _tell(draft, record, public, row.public["status"], "renewal_due")
    if public["paymentMethod"] == subscriptions.CHARGED:
        charge = draft.open(draft.store.orders, order.id)
        assert charge is not None
        if is_payable(draft, charge) and not orders.is_refusing(charge.public["customer"]["email"]):
            pay(draft, charge)


def renewal_order(draft: Draft, row: Row) -> tuple[Record, Body]:
    """The order of a subscription's next period, and the subscription that waits for it.

    It is addressed to the customer as he is now, and can be paid until the grace is over.
    """
    store = draft.store
    first, customer = store.orders.open(row.public["orderId"]), store.customers.open(row.public["customerId"])
    assert first is not None
    assert customer is not None
    life = max(0, subscriptions.grace_end(row.public, row.hidden) - draft.now)
    body = subscriptions.renewal_body(row.public, first.public, first.hidden["metadata"])
    method = row.public["paymentMethod"]
    again = _was_refunded(draft, row, customer.public["email"])
    order = place(draft, body, as_buyer(customer.public), customer.id, method, row.id, life, is_ordinary=again)
    public, hidden = subscriptions.awaiting(row.public, row.hidden, order.id, draft.now)
    draft.update(store.subscriptions, row, public, hidden)
    return order, public


def _was_refunded(draft: Draft, row: Row, email: str) -> bool:
    """Whether a magic value has just given the money of a renewal back.

    The bill that follows is due at once: to pay and refund it too would bring the next one a minute later.
    """
    if not orders.is_refunding(email):
        return False
    last = draft.open(draft.store.orders, row.public["lastOrderId"])
    return last is not None and last.public["status"] == "refunded"


def fall_past_due(draft: Draft, row: Row) -> None:
    """The paid period is over and the next one is not paid. Raises Conflict."""
    move(lifecycle(draft, "Subscription"), row.public["status"], "past_due")
    public = subscriptions.past_due(row.public, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    _tell(draft, record, public, row.public["status"])
    draft.at(subscriptions.grace_end(row.public, row.hidden), "subscription.expire", row.id)


def call_off_bill(draft: Draft, row: Row) -> None:
    """The open bill of a subscription, if there is one, is canceled."""
    ident = row.hidden["renewal_order"]
    bill = None if ident is None else draft.open(draft.store.orders, ident)
    if bill is not None and is_payable(draft, bill):
        cancel(draft, bill)


def expire_subscription(draft: Draft, row: Row) -> None:
    """The grace is over, or is ended by hand."""
    end_subscription(draft, row, "expired")


def end_subscription(draft: Draft, row: Row, status: str) -> Record:
    """Over: canceled or expired, and no bill of it stays open. Raises Conflict."""
    if move(lifecycle(draft, "Subscription"), row.public["status"], status) is None:
        return row.record
    call_off_bill(draft, row)
    public = subscriptions.ended(row.public, status, draft.now)
    record = draft.update(draft.store.subscriptions, row, public, row.hidden | {"renewal_order": None})
    _tell(draft, record, public, row.public["status"])
    return record


def end_later(draft: Draft, row: Row) -> Record:
    """To be canceled when the paid period is over: nothing will be renewed, and no bill stays open."""
    call_off_bill(draft, row)
    public = subscriptions.ending(row.public, draft.now)
    return draft.update(draft.store.subscriptions, row, public, row.hidden | {"renewal_order": None})


def _tell(draft: Draft, record: Record, public: Body, previous: str, name: str | None = None) -> None:
    """The events of a subscription's move from its previous state to the one it has."""
    status = public["status"]
    moved = lifecycle(draft, "Subscription").find(previous, status, name if previous == status else None)
    draft.emit_move(draft.store.subscriptions, record, moved, public["projectId"])
