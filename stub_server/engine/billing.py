"""What becomes of orders and subscriptions, whoever brings it about: an operation, a control, the clock, a magic value.

Each function adds to a draft: the order, the subscription that it moves, their events and timers.
"""

from __future__ import annotations

from collections.abc import Collection
from zlib import crc32

from ..contract.document import Lifecycle, Move
from ..domain import orders, payments, subscriptions
from ..domain.lifecycle import move, refused
from ..domain.payments import Payer
from ..kernel.clock import SECOND, iso
from ..kernel.record import Body, Record, Row
from .draft import Draft

# -- what the contract says of states


def lifecycle(draft: Draft, resource: str) -> Lifecycle:
    """The contract's states and moves of a resource."""
    return draft.sandbox.rules.lifecycles[resource]


def states(draft: Draft, resource: str, name: str) -> Collection[str]:
    """A named set of states, such as the `payable` ones of Order."""
    return lifecycle(draft, resource).sets[name]


def is_payable(draft: Draft, row: Row) -> bool:
    """Whether an order can be paid."""
    return row.public["status"] in states(draft, "Order", "payable")


def is_refundable(draft: Draft, row: Row) -> bool:
    """Whether money of an order can be given back."""
    return row.public["status"] in states(draft, "Order", "refundable")


def is_running(draft: Draft, row: Row) -> bool:
    """Whether a subscription has not ended."""
    return row.public["status"] in states(draft, "Subscription", "running")


# -- orders


def place(
    draft: Draft,
    body: Body,
    customer: Body,
    customer_id: str,
    method: str,
    subscription_id: str | None,
    life: int,
    ident: str | None = None,
) -> Record:
    """A new order, with the timers that end or pay it. `life` is how long its PIX can be paid, in ms.

    An order that a scenario names has the id `ident`.
    """
    rules, store, now = draft.sandbox.rules, draft.store, draft.now
    code = draft.code_for(store.orders)
    magic = orders.magic_of(customer["email"])
    outcome = orders.NOTHING if magic is None else orders.MAGIC[magic]
    expires = now + (life if outcome.life is None else outcome.life)
    ident = ident or draft.ids.uuid()
    names = (ident, code, draft.ids.uuid())
    seller = (store.merchant.name, store.merchant.city, rules.base_url)
    public, hidden = orders.new_order(
        names, body, customer, customer_id, method, seller, now, expires, outcome.fails, subscription_id
    )
    record = draft.create(store.orders, ident, public, hidden)
    _tell_order(draft, record, hidden, lifecycle(draft, "Order").find("new", public["status"]))
    if public["status"] == "failed":
        return record
    if method == "pix" or outcome.life is not None:
        draft.at(expires, "order.expire", ident)
    for job, delay in outcome.jobs:
        draft.at(now + delay, job, ident)
    if magic is None and rules.autopay is not None and method == "pix":
        draft.at(now + rules.autopay * SECOND, "order.pay", ident)
    return record


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
    opened = None if hidden["renewal"] else _opened_by(draft, public, hidden)
    if opened is not None:
        hidden = hidden | {"subscriptionId": opened[0]["id"]}
    record = draft.update(table, row, public, hidden)
    _tell_order(draft, record, hidden, moved)
    if opened is not None:
        _open(draft, *opened)
    elif hidden["renewal"]:
        _renew(draft, row)
    return record


def payer_of(draft: Draft, row: Row, sent: Body | None = None) -> Payer:
    """Who pays: what was said of the payer, the order's customer for the rest, and one of the banks."""
    sent = sent or {}
    customer, banks = row.public["customer"], draft.sandbox.rules.banks
    # Everybody has one account: the document decides the bank.
    ispb, bank = banks[crc32(customer["document"].encode()) % len(banks)]
    if "bank" in sent:
        ispb = next((code for code, name in banks if name == sent["bank"]), ispb)
    return Payer(
        sent.get("name", customer["name"]), sent.get("document", customer["document"]), ispb, sent.get("bank", bank)
    )


def fail(draft: Draft, row: Row, code: str) -> Record:
    """The payment is refused. Raises Conflict."""
    return _close(draft, row, "failed", orders.failure(code))


def expire(draft: Draft, row: Row) -> Record:
    """The order's time is over. Raises Conflict."""
    return _close(draft, row, "expired", {"status": "expired", "success": "false"})


def cancel(draft: Draft, row: Row) -> Record:
    """Nobody wants the order any more. Raises Conflict."""
    return _close(draft, row, "canceled", {"status": "canceled", "success": "false"})


def _close(draft: Draft, row: Row, status: str, transaction: dict[str, str]) -> Record:
    moved = move(lifecycle(draft, "Order"), row.public["status"], status)
    if moved is None:
        return row.record
    public = orders.closed(row.public, status, iso(draft.now), transaction)
    if status == "expired" and "expires_at" in row.public["last_transaction"]:
        # Expired by hand: the code ends now, so that expires_at and updatedAt agree.
        public["last_transaction"] = public["last_transaction"] | {"expires_at": public["updatedAt"]}
    record = draft.update(draft.store.orders, row, public)
    _tell_order(draft, record, row.hidden, moved)
    return record


def refund(draft: Draft, row: Row, amount: int | None) -> Record:
    """Money back, in full or part (cents); a full refund of the first order ends its subscription. Raises Conflict."""
    table = lifecycle(draft, "Order")
    public, hidden, full = payments.refunded(row.public, row.hidden, amount, draft.ids.uuid(), draft.now, table)
    status = row.public["status"]
    moved = table.find(status, "refunded") if full else table.find(status, status, "partially_refunded")
    if moved is None:
        raise refused(table, status, "refunded")
    record = draft.update(draft.store.orders, row, public, hidden)
    _tell_order(draft, record, hidden, moved)
    if full and hidden["subscriptionId"] is not None and not hidden["renewal"]:
        subscription = draft.open(draft.store.subscriptions, hidden["subscriptionId"])
        if subscription is not None and is_running(draft, subscription):
            end_subscription(draft, subscription, "canceled")
    return record


def _tell_order(draft: Draft, record: Record, hidden: Body, moved: Move | None) -> None:
    previous = None if moved is None or moved.from_ == "new" else moved.from_
    draft.emit_move(draft.store.orders, record, moved, hidden["projectId"], orders.beside(previous))


# -- subscriptions


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
        _schedule(draft, record.id, public, hidden)
    else:
        draft.at(hidden["anchor"], "subscription.activate", record.id)


def activate_subscription(draft: Draft, row: Row) -> None:
    """The trial is over, and the first paid period begins. Raises Conflict."""
    move(lifecycle(draft, "Subscription"), row.public["status"], "active")
    public = subscriptions.activated(row.public, row.hidden, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    _tell(draft, record, public, row.public["status"])
    _schedule(draft, row.id, public, row.hidden)


def _renew(draft: Draft, order: Row) -> None:
    """A renewal order was paid."""
    table = draft.store.subscriptions
    row = draft.open(table, order.hidden["subscriptionId"])
    if row is None or row.hidden["renewal_order"] != order.id:
        return  # it ended meanwhile: the money came late, and there is nothing to extend
    public, hidden = subscriptions.renewed(row.public, row.hidden, draft.now)
    record = draft.update(table, row, public, hidden)
    _tell(draft, record, public, row.public["status"], "renewed")
    _schedule(draft, row.id, public, hidden)


def _schedule(draft: Draft, ident: str, public: Body, hidden: Body) -> None:
    """The timers of a paid period: the renewal order before its end, and the end itself."""
    draft.at(subscriptions.renewal_at(public, hidden), "subscription.renew", ident)
    draft.at(subscriptions.period_end(public, hidden), "subscription.end", ident)


def renewal_due(draft: Draft, row: Row) -> None:
    """The next period is to be paid soon: its order is made."""
    public = renewal_order(draft, row)[1]
    record = draft.find(draft.store.subscriptions, row.id)
    assert record is not None
    _tell(draft, record, public, row.public["status"], "renewal_due")


def renewal_order(draft: Draft, row: Row) -> tuple[Record, Body]:
    """The order of a subscription's next period, and the subscription that waits for it.

    Its PIX can be paid until the grace is over.
    """
    store = draft.store
    first = store.orders.open(row.public["orderId"])
    assert first is not None
    life = max(0, subscriptions.grace_end(row.public, row.hidden) - draft.now)
    body = subscriptions.renewal_body(row.public, first.public, first.hidden["metadata"])
    order = place(
        draft, body, first.public["customer"], row.public["customerId"], row.public["paymentMethod"], row.id, life
    )
    public, hidden = subscriptions.awaiting(row.public, row.hidden, order.id, draft.now)
    draft.update(store.subscriptions, row, public, hidden)
    return order, public


def fall_past_due(draft: Draft, row: Row) -> None:
    """The paid period is over and the next one is not paid. Raises Conflict."""
    move(lifecycle(draft, "Subscription"), row.public["status"], "past_due")
    public = subscriptions.past_due(row.public, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    _tell(draft, record, public, row.public["status"])
    draft.at(subscriptions.grace_end(row.public, row.hidden), "subscription.expire", row.id)


def expire_subscription(draft: Draft, row: Row) -> None:
    """The grace is over: an open renewal order, however it would be paid, expires with the subscription."""
    order_id = row.hidden["renewal_order"]
    order = None if order_id is None else draft.open(draft.store.orders, order_id)
    if order is not None and is_payable(draft, order):
        expire(draft, order)
    end_subscription(draft, row, "expired")


def end_subscription(draft: Draft, row: Row, status: str) -> Record:
    """Over: canceled or expired. Raises Conflict. An open renewal order stays payable, and extends nothing."""
    if move(lifecycle(draft, "Subscription"), row.public["status"], status) is None:
        return row.record
    public = subscriptions.ended(row.public, status, draft.now)
    record = draft.update(draft.store.subscriptions, row, public, row.hidden | {"renewal_order": None})
    _tell(draft, record, public, row.public["status"])
    return record


def end_with_period(draft: Draft, row: Row) -> None:
    """Nobody wants another period: the running one is the last."""
    draft.update(draft.store.subscriptions, row, subscriptions.ending(row.public, draft.now))


def _tell(draft: Draft, record: Record, public: Body, previous: str, name: str | None = None) -> None:
    """The events of a subscription's move from its previous state to the one it has."""
    status = public["status"]
    moved = lifecycle(draft, "Subscription").find(previous, status, name if previous == status else None)
    draft.emit_move(draft.store.subscriptions, record, moved, public["projectId"])
