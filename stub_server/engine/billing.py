"""The course of orders and subscriptions, for operations, controls, the clock and magic values alike.

Each function adds to a draft: the order, the subscription that it moves, their events and timers.
"""

from __future__ import annotations

from ..contract.document import Move
from ..contract.formats import date_time_ms
from ..domain import orders, payments, subscriptions
from ..domain.customers import as_buyer
from ..domain.lifecycle import move, refused
from ..domain.payments import Payer
from ..kernel.clock import iso
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
    "buy",
    "call_off_bill",
    "cancel",
    "charge_again",
    "end_later",
    "end_subscription",
    "expire",
    "expire_subscription",
    "fail",
    "fall_past_due",
    "give_back",
    "held_by",
    "is_open",
    "is_payable",
    "is_refundable",
    "is_running",
    "lifecycle",
    "pay",
    "payer_of",
    "place",
    "postpone",
    "refund",
    "renewal_due",
    "renewal_order",
    "resume",
    "roll",
    "schedule",
    "states",
]


def is_running(draft: Draft, row: Row) -> bool:
    """Whether a subscription has not ended."""
    return row.public["status"] in states(draft, "Subscription", "running")


# -- payments


def buy(
    draft: Draft,
    body: Body,
    customer: Body,
    customer_id: str,
    method: str,
    ident: str | None = None,
    refused: str | None = None,
    *,
    copy_only: bool = False,
) -> Record:
    """A buyer's order. A card pays it in the same step, unless it fails with the code `refused` or by a magic value."""
    life = orders.life(method, draft.now)
    record = place(draft, body, customer, customer_id, method, None, life, ident, refused=refused, copy_only=copy_only)
    if method == subscriptions.CHARGED:
        row = draft.open(draft.store.orders, record.id)
        assert row is not None
        if orders.is_prompt(orders.token_of(row.public, row.hidden)) and is_payable(draft, row):
            return pay(draft, row)
    return record


def pay(
    draft: Draft,
    row: Row,
    payer: Payer | None = None,
    paid_at: int | None = None,
    amount: int | None = None,
    *,
    late: bool = False,
) -> Record:
    """The order is paid, and opens or renews a subscription of its plan. Raises Conflict.

    `amount` (cents) and `paid_at` (ms) are the order's total and now unless the payment says otherwise. With `late` a
    boleto that expired can be paid too.
    """
    table, orders_ = draft.store.orders, lifecycle(draft, "Order")
    payments.check_payable(row.public, amount, paid_at, draft.now, orders_, late=late)
    moved = move(orders_, row.public["status"], "paid")
    payer = payer or payer_of(draft, row)
    public, hidden = payments.paid(row.public, row.hidden, payer, draft.ids.alnum(11), paid_at or draft.now, draft.now)
    held = _renewed_by(draft, hidden)
    opened = None if held is not None else _opened_by(draft, public, hidden)
    if held is not None:
        hidden = hidden | {"subscriptionId": held.id, "renewal": True}
    elif opened is not None:
        hidden = hidden | {"subscriptionId": opened[0]["id"], "renewal": False}
    record = draft.update(table, row, public, hidden)
    tell_order(draft, record, hidden, moved)
    if held is not None:
        _renew(draft, held, record.id, public["paymentMethod"])
    elif opened is not None:
        _open(draft, *opened)
    return record


def refund(draft: Draft, row: Row, amount: int | None) -> Record:
    """Money back, in full or part (cents); what a full refund had paid for is taken away. Raises Conflict."""
    table, status = lifecycle(draft, "Order"), row.public["status"]
    amount = payments.check_refundable(row.public, row.hidden, amount, draft.now, table)
    full = amount == payments.left(row.hidden)
    moved = table.find(status, "refunded") if full else table.find(status, status, "partially_refunded")
    if moved is None:
        raise refused(table, status, "refunded")
    return give_back(draft, row, amount, moved)


def give_back(draft: Draft, row: Row, amount: int, moved: Move) -> Record:
    """The order after a move by which so many cents went back; what a full refund had paid for is taken away."""
    public, hidden = payments.refunded(row.public, row.hidden, amount, draft.ids.uuid(), draft.now)
    record = draft.update(draft.store.orders, row, public, hidden)
    tell_order(draft, record, hidden, moved)
    if not payments.left(hidden) and hidden["subscriptionId"] is not None:
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
        if row is not None and is_running(draft, row):
            return row
    return held_by(draft, order["customerId"], order["planId"])


def held_by(draft: Draft, customer_id: str, plan_id: str) -> Row | None:
    """The running subscription that a customer has of a plan: there are never two."""
    table, of = draft.store.subscriptions, (customer_id, plan_id)
    if not table.count("customerId+planId", of):
        return None
    return next((row for row in table.rows_of("customerId+planId", of) if is_running(draft, row)), None)


def _opened_by(draft: Draft, order: Body, hidden: Body) -> tuple[Body, Body] | None:
    """The subscription that the first payment on a recurring plan opens: its public and hidden part."""
    store = draft.store
    plan = store.plans.peek(hidden["planId"])
    if plan is None or plan["billing_type"] != "recurring":
        return None
    customer = draft.open(store.customers, hidden["customerId"])
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
        customer=customer.public | (order["customer"] if hidden["copy_only"] else {}),
        now=draft.now,
        trial=first and plan["trial_period_days"] > 0,
    )


def _open(draft: Draft, public: Body, hidden: Body) -> None:
    record = draft.create(draft.store.subscriptions, public["id"], public, hidden)
    _tell(draft, record, public, "new")
    schedule(draft, record.id, public, hidden)
    if not is_open(draft, public["projectId"]):  # its order was paid late
        end_later(draft, Row(record, public, hidden))


def activate_subscription(draft: Draft, row: Row) -> None:
    """The trial is over, and the first paid period begins. Raises Conflict."""
    move(lifecycle(draft, "Subscription"), row.public["status"], "active")
    public = subscriptions.activated(row.public, row.hidden, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    _tell(draft, record, public, row.public["status"])
    schedule(draft, row.id, public, row.hidden)


def _renew(draft: Draft, row: Row, order_id: str, method: str) -> None:
    """One more period is paid, whether by the open bill or by another order, which makes the bill pointless."""
    if row.hidden["renewal_order"] != order_id:
        call_off_bill(draft, row)
    public = row.public
    if public["cancel_at_period_end"] and is_open(draft, public["projectId"]):
        public = subscriptions.resumed(public, row.hidden, draft.now)
    public, hidden = subscriptions.renewed(public, row.hidden, draft.now, order_id, method)
    record = draft.update(draft.store.subscriptions, row, public, hidden)
    _tell(draft, record, public, row.public["status"], "renewed")
    # What was due in a dispute was not done: a period that is paid now may have begun already.
    schedule(draft, row.id, public, hidden, None if subscriptions.is_held(hidden) else 1)


def roll(draft: Draft, row: Row) -> None:
    """The running period is over and the next one was paid early: it begins."""
    public, hidden = subscriptions.rolled(row.public, row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, public, hidden)


def schedule(draft: Draft, ident: str, public: Body, hidden: Body, paid: int | None = None) -> None:
    """The timers of a subscription. `paid` is how many of its newest periods have none yet, all of them by default."""
    if public["status"] == "trialing":
        draft.at(date_time_ms(public["trial_end"]), "subscription.activate", ident)
        return  # the others are set then
    if public["status"] == "past_due":
        if public["paymentMethod"] == subscriptions.CHARGED:
            for at in subscriptions.attempts(public, hidden):
                if at > draft.now:
                    draft.at(at, "subscription.charge", ident)
        draft.at(subscriptions.grace_end(public, hidden), "subscription.expire", ident)
        return
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
        _charge(draft, order)


def _charge(draft: Draft, order: Record) -> None:
    """A card pays its renewal order, unless a magic value refuses it."""
    charged = draft.open(draft.store.orders, order.id)
    assert charged is not None
    if is_payable(draft, charged) and not orders.is_refusing(orders.token_of(charged.public, charged.hidden)):
        pay(draft, charged)


def charge_again(draft: Draft, row: Row) -> None:
    """A card was declined: another renewal order is charged, if an attempt is due now and the last order is closed."""
    last = draft.open(draft.store.orders, row.hidden["renewal_order"])
    assert last is not None  # past due since it was not paid
    is_new = date_time_ms(last.public["createdAt"]) == draft.now
    if draft.now in subscriptions.attempts(row.public, row.hidden) and not is_payable(draft, last) and not is_new:
        _charge(draft, renewal_order(draft, row)[0])


def renewal_order(draft: Draft, row: Row) -> tuple[Record, Body]:
    """The order of a subscription's next period, and the subscription that waits for it.

    It is addressed to the customer as he is now, unless keys of the project do not see him, and can be paid until the
    grace is over.
    """
    store = draft.store
    first, customer = store.orders.open(row.public["orderId"]), store.customers.open(row.public["customerId"])
    assert first is not None
    assert customer is not None
    life = max(0, subscriptions.grace_end(row.public, row.hidden) - draft.now)
    body = subscriptions.renewal_body(row.public, first.public, first.hidden["metadata"])
    method = row.public["paymentMethod"]
    copy_only = first.hidden["copy_only"] and store.has_copy_only(row.public)
    buyer = first.public["customer"] if copy_only else as_buyer(customer.public)
    again = _was_refunded(draft, row, buyer["email"])
    refused = draft.sandbox.declining.get(row.id)
    order = place(
        draft, body, buyer, customer.id, method, row.id, life, refused=refused, is_ordinary=again, copy_only=copy_only
    )
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
    schedule(draft, row.id, public, row.hidden)


def postpone(draft: Draft, row: Row, wait: int) -> None:
    """Nothing was due for `wait` ms: all that lay ahead comes so much later, the end of the open bill too."""
    public, hidden = row.public, row.hidden
    if wait:
        public, hidden = subscriptions.postponed(public, hidden, draft.now, wait)
        draft.update(draft.store.subscriptions, row, public, hidden)
        bill = None if hidden["renewal_order"] is None else draft.open(draft.store.orders, hidden["renewal_order"])
        if bill is not None and is_payable(draft, bill):
            ends = orders.expires_at(bill.public) + wait
            draft.update(draft.store.orders, bill, orders.postponed(bill.public, iso(ends), iso(draft.now)))
            draft.at(ends, "order.expire", bill.id)
    schedule(draft, row.id, public, hidden)


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
    """To be canceled when the paid period is over, or at once if it is: nothing is renewed, no bill stays open."""
    if row.public["status"] == "past_due":
        return end_subscription(draft, row, "canceled")
    call_off_bill(draft, row)
    public = subscriptions.ending(row.public, row.hidden, draft.now)
    if subscriptions.is_held(row.hidden):  # its period may be over already
        schedule(draft, row.id, public, row.hidden)
    return draft.update(draft.store.subscriptions, row, public, row.hidden | {"renewal_order": None})


def is_open(draft: Draft, project_id: str) -> bool:
    """Whether a project has not been archived: only then subscriptions are renewed."""
    project = draft.store.projects.peek(project_id)
    return project is not None and project["status"] in states(draft, "Project", "open")


def resume(draft: Draft, row: Row) -> None:
    """Not to be canceled any more: its timers are set anew, that of the renewal order too."""
    public = subscriptions.resumed(row.public, row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, public)
    schedule(draft, row.id, public, row.hidden)


def _tell(draft: Draft, record: Record, public: Body, previous: str, name: str | None = None) -> None:
    """The events of a subscription's move from its previous state to the one it has."""
    status = public["status"]
    moved = lifecycle(draft, "Subscription").find(previous, status, name if previous == status else None)
    draft.emit_move(draft.store.subscriptions, record, moved, public["projectId"])
