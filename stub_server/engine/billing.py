"""Payments of orders, and the subscriptions that they open, renew and end.

Operations, controls, the clock and magic values call these functions, and those of `ordering.py`
and `closing.py`.
Each adds to a draft: the order, the subscription that it changes, their events and timers.
"""

from zlib import crc32

from ..core.clock import parse_iso
from ..core.record import Body, Row
from ..domain import payments, subscriptions
from ..domain.lifecycle import legal
from ..domain.payments import Payer
from .closing import cancel
from .draft import Draft


def is_project(draft: Draft, row: Row, states: str) -> bool:
    """Whether a record's project is in one of the `states` of that name: subscriptions are renewed
    while it is `open`, that is not archived, and nothing is due for them while it is `paused`.
    """
    project = draft.store.projects.peek(row.project or "")
    return project is not None and project["status"] in draft.states("Project", states)


# -- payments


def payer_of(draft: Draft, row: Row, sent: Body | None = None) -> Payer:
    """Who pays: what `sent` says of the payer; else the order's customer, with one of the banks."""
    sent = sent or {}
    customer = row["customer"]
    banks = draft.sandbox.rules.banks
    # Everybody has one account: the document decides the bank.
    ispb, bank = banks[crc32(customer["document"].encode()) % len(banks)]
    if "bank" in sent:
        ispb = next((code for code, name in banks if name == sent["bank"]), ispb)
    return Payer(
        sent.get("name", customer["name"]),
        sent.get("document", customer["document"]),
        ispb,
        sent.get("bank", bank),
    )


def pay(
    draft: Draft,
    row: Row,
    payer: Payer | None = None,
    paid_at: int | None = None,
    amount: int | None = None,
    *,
    late: bool = False,
) -> Row:
    """The order is paid, and opens or renews a subscription of its plan. Raises Conflict.

    `amount` (cents) and `paid_at` (ms) are the order's total and now unless the payment says
    otherwise. With `late` a boleto that expired can be paid too.
    """
    at = draft.now if paid_at is None else paid_at
    payments.check_payable(row, amount, at, draft.now, draft.lifecycle("Order"), late=late)
    payer = payer or payer_of(draft, row)
    paid = payments.paid(row, payer, draft.ids.alnum(11), at, draft.now)
    renewed = _renewed_by(draft, row.hidden)
    if renewed is not None:
        order = draft.move(paid.keeping({"subscriptionId": renewed.id, "renewal": True}))
        _renew(draft, renewed, order)
        return order
    opened = _opened_by(draft, paid)
    if opened is None:
        return draft.move(paid)
    order = draft.move(paid.keeping({"subscriptionId": opened.id, "renewal": False}))
    _open(draft, opened)
    return order


def refund(draft: Draft, row: Row, amount: int | None = None) -> Row:
    """Refund an order in full or part (cents).

    A full refund ends what it paid for. Raises Conflict.
    """
    amount = payments.check_refundable(row, amount, draft.now, draft.lifecycle("Order"))
    return give_back(draft, row, amount, "partially_refunded")


def give_back(draft: Draft, row: Row, amount: int, part: str) -> Row:
    """The order after so many cents went back; `part` names the move where more are left.

    A full refund ends what the order paid for.
    """
    refunded = payments.refunded(row, amount, draft.ids.uuid(), draft.now)
    if payments.left(refunded):
        legal(draft.lifecycle_of(row), row.status, "paid", part)
        return draft.move(refunded, part)
    order = draft.move(refunded)
    if row["subscriptionId"] is not None:
        _take_back(draft, row["subscriptionId"], row.id)
    return order


def _take_back(draft: Draft, ident: str, order_id: str) -> None:
    """The order of a period is refunded: that of the running one ends the subscription, a later
    period is removed.
    """
    row = draft.open("subscriptions", ident)
    if row is None or row.status == "past_due" or not draft.is_in(row, "running"):
        return  # none of its periods runs
    paid_by = row["paid_by"]
    if order_id == paid_by[0]:
        end_subscription(draft, row, "canceled")
    elif order_id in paid_by:
        schedule(draft, draft.put(subscriptions.withdrawn(row, order_id)))


# -- subscriptions, as orders open and renew them


def _renewed_by(draft: Draft, order: Body) -> Row | None:
    """The running subscription that a paid order renews: its own, or the customer's of
    the same plan.
    """
    if order["renewal"]:
        row = draft.open("subscriptions", order["subscriptionId"])
        if row is not None and draft.is_in(row, "running"):
            return row
    return draft.store.running_of(order["customerId"], order["planId"])


def _opened_by(draft: Draft, order: Row) -> Row | None:
    """The subscription that the first payment on a recurring plan opens."""
    store = draft.store
    plan = store.plans.peek(order["planId"])
    if plan is None or plan["billing_type"] != "recurring":
        return None
    customer = draft.get("customers", order["customerId"])
    earlier = store.subscriptions.count("customerId+planId", (customer.id, plan["id"]))
    known = customer.public
    if order["copy_only"]:
        known = known | order["customer"]
    blank = draft.new("subscriptions")
    code = draft.code_for("subscriptions")
    trial = not earlier and plan["trial_period_days"] > 0
    return subscriptions.opened(blank, code, plan, order, known, trial=trial)


def _open(draft: Draft, opened: Row) -> None:
    row = draft.move(opened)
    schedule(draft, row)
    if not is_project(draft, row, "open"):  # its order was paid late
        end_later(draft, row)


def _renew(draft: Draft, row: Row, order: Row) -> None:
    """One more period is paid, by the open order or by another one, which cancels the open one."""
    if row["renewal_order"] != order.id:
        call_off_bill(draft, row)
    if row["cancel_at_period_end"] and is_project(draft, row, "open"):
        row = subscriptions.resumed(row)
    renewed = subscriptions.renewed(row, order.id, order["paymentMethod"])
    schedule(draft, draft.move(renewed, None if row.status == "past_due" else "renewed"))


def schedule(draft: Draft, row: Row) -> None:
    """The timers of a subscription: each has what is due next, and sets itself again."""
    if row.status == "trialing":
        draft.at(parse_iso(row["trial_end"]), "subscription.activate", row.id)
        return  # the others are set then
    if row.status == "past_due":
        if row["paymentMethod"] == subscriptions.CHARGED:
            schedule_charge(draft, row)
        draft.at(subscriptions.grace_end(row), "subscription.expire", row.id)
        return
    draft.at(subscriptions.renewal_at(row), "subscription.renew", row.id)
    draft.at(row["ends"][0], "subscription.end", row.id)


def schedule_charge(draft: Draft, row: Row) -> None:
    """The timer of the next attempt to charge the card of a subscription that is past due."""
    coming = [at for at in subscriptions.attempts(row) if at > draft.now]
    if coming:
        draft.at(coming[0], "subscription.charge", row.id)


def call_off_bill(draft: Draft, row: Row) -> None:
    """Cancel the open order of a subscription, if there is one."""
    bill = draft.open("orders", row["renewal_order"])
    if bill is not None and draft.is_in(bill, "payable"):
        cancel(draft, bill)


def end_subscription(draft: Draft, row: Row, status: str) -> None:
    """End a subscription, canceled or expired, and cancel its open order. Raises Conflict."""
    if row.status != status:
        call_off_bill(draft, row)
        draft.move(subscriptions.ended(row, status, draft.now))


def end_later(draft: Draft, row: Row) -> None:
    """Cancel a subscription at the end of the paid period, or at once if that is over, and cancel
    its open order.
    """
    if row.status == "past_due":
        end_subscription(draft, row, "canceled")
        return
    call_off_bill(draft, row)
    if subscriptions.has_dispute(row):  # its period may be over already
        draft.at(max(row["ends"][0], draft.now), "subscription.end", row.id)
    draft.put(subscriptions.ending(row, draft.now).keeping({"renewal_order": None}))
