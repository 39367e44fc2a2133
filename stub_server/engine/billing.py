"""Payments of orders, and the subscriptions that they open, renew and end.

Operations, controls, the clock and magic values call these functions, and those of `ordering.py`
and `closing.py`.
Each adds to a draft: the order, the subscription that it changes, their events and timers.
"""

from zlib import crc32

from ..core.clock import parse_iso
from ..core.record import Body, Parts, Row
from ..domain import payments, subscriptions
from ..domain.lifecycle import legal, move
from ..domain.payments import Payer
from .closing import cancel, change_order, is_payable
from .draft import Draft


def is_running(draft: Draft, row: Row) -> bool:
    """Whether a subscription has not ended."""
    return row.status in draft.states("Subscription", "running")


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
    customer, banks = row.public["customer"], draft.sandbox.rules.banks
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
    orders_ = draft.lifecycle("Order")
    payments.check_payable(row.public, amount, paid_at, draft.now, orders_, late=late)
    moved = move(orders_, row.status, "paid")
    payer = payer or payer_of(draft, row)
    public, hidden = payments.paid(
        row.public,
        row.hidden,
        payer,
        suffix=draft.ids.alnum(11),
        paid_at=paid_at or draft.now,
        now=draft.now,
    )
    renewed = _renewed_by(draft, hidden)
    if renewed is not None:
        hidden = hidden | {"subscriptionId": renewed.id, "renewal": True}
        order = change_order(draft, row, moved, public, hidden)
        _renew(draft, renewed, order.id, public["paymentMethod"])
        return order
    opened = _opened_by(draft, public, hidden)
    if opened is not None:
        hidden = hidden | {"subscriptionId": opened[0]["id"], "renewal": False}
    order = change_order(draft, row, moved, public, hidden)
    if opened is not None:
        _open(draft, *opened)
    return order


def refund(draft: Draft, row: Row, amount: int | None = None) -> Row:
    """Refund an order in full or part (cents).

    A full refund ends what it paid for. Raises Conflict.
    """
    table = draft.lifecycle("Order")
    amount = payments.check_refundable(row.public, row.hidden, amount, draft.now, table)
    return give_back(draft, row, amount, "partially_refunded")


def give_back(draft: Draft, row: Row, amount: int, part: str) -> Row:
    """The order after so many cents went back; `part` names the move where more are left.

    A full refund ends what the order paid for.
    """
    table, status = draft.lifecycle("Order"), row.status
    if amount == payments.left(row.hidden):
        moved = legal(table, status, "refunded")
    else:
        moved = legal(table, status, "paid", part)
    public, hidden = payments.refunded(row.public, row.hidden, amount, draft.ids.uuid(), draft.now)
    order = change_order(draft, row, moved, public, hidden)
    if not payments.left(hidden) and hidden["subscriptionId"] is not None:
        _take_back(draft, hidden["subscriptionId"], row.id)
    return order


def _take_back(draft: Draft, ident: str, order_id: str) -> None:
    """The order of a period is refunded: that of the running one ends the subscription, a later
    period is removed.
    """
    row = draft.open("subscriptions", ident)
    if row is None or row.status == "past_due" or not is_running(draft, row):
        return  # none of its periods runs
    paid_by = row.hidden["paid_by"]
    if order_id == paid_by[0]:
        end_subscription(draft, row, "canceled")
    elif order_id in paid_by:
        withdrawn = subscriptions.withdrawn(row.public, row.hidden, draft.now, order_id)
        schedule(draft, draft.update(row, *withdrawn))


# -- subscriptions, as orders open and renew them


def _renewed_by(draft: Draft, order: Body) -> Row | None:
    """The running subscription that a paid order renews: its own, or the customer's of
    the same plan.
    """
    if order["renewal"]:
        row = draft.open("subscriptions", order["subscriptionId"])
        if row is not None and is_running(draft, row):
            return row
    return draft.store.running_of(order["customerId"], order["planId"])


def _opened_by(draft: Draft, order: Body, hidden: Body) -> Parts | None:
    """The subscription that the first payment on a recurring plan opens: its public and
    hidden part.
    """
    store = draft.store
    plan = store.plans.peek(hidden["planId"])
    if plan is None or plan["billing_type"] != "recurring":
        return None
    customer = draft.get("customers", hidden["customerId"])
    first = store.subscriptions.count("customerId+planId", (customer.id, plan["id"])) == 0
    known = customer.public
    if hidden["copy_only"]:
        known = known | order["customer"]
    return subscriptions.opened(
        ident=draft.ids.uuid(),
        code=draft.code_for("subscriptions"),
        defaults=dict(draft.sandbox.rules.defaults["Subscription"]),
        plan=plan,
        order=order,
        order_hidden=hidden,
        customer=known,
        now=draft.now,
        trial=first and plan["trial_period_days"] > 0,
    )


def _open(draft: Draft, public: Body, hidden: Body) -> None:
    row = draft.create("subscriptions", public, hidden)
    emit_subscription(draft, row, "new")
    schedule(draft, row)
    if not is_project(draft, row, "open"):  # its order was paid late
        end_later(draft, row)


def _renew(draft: Draft, row: Row, order_id: str, method: str) -> None:
    """One more period is paid, by the open order or by another one, which cancels the open one."""
    if row.hidden["renewal_order"] != order_id:
        call_off_bill(draft, row)
    public = row.public
    if public["cancel_at_period_end"] and is_project(draft, row, "open"):
        public = subscriptions.resumed(public, row.hidden, draft.now)
    public, hidden = subscriptions.renewed(public, row.hidden, draft.now, order_id, method)
    renewed = change_subscription(draft, row, public, hidden, "renewed")
    # What was due in a dispute was not done: a period that is paid now may have begun already.
    schedule(draft, renewed, None if subscriptions.has_dispute(hidden) else 1)


def schedule(draft: Draft, row: Row, paid: int | None = None) -> None:
    """The timers of a subscription.

    `paid` is how many of its newest periods have none yet, all of them by default.
    """
    ident, public, hidden = row.id, row.public, row.hidden
    if public["status"] == "trialing":
        draft.at(parse_iso(public["trial_end"]), "subscription.activate", ident)
        return  # the others are set then
    if public["status"] == "past_due":
        if public["paymentMethod"] == subscriptions.CHARGED:
            for at in subscriptions.attempts(public, hidden):
                if at > draft.now:
                    draft.at(at, "subscription.charge", ident)
        draft.at(subscriptions.grace_end(public, hidden), "subscription.expire", ident)
        return
    newest = hidden["ends"]
    if paid is not None:
        newest = newest[-paid:]
    for end in newest[:-1]:
        draft.at(end, "subscription.end", ident)
    draft.at(subscriptions.renewal_at(public, hidden), "subscription.renew", ident)
    draft.at(subscriptions.period_end(hidden), "subscription.end", ident)


def call_off_bill(draft: Draft, row: Row) -> None:
    """Cancel the open order of a subscription, if there is one."""
    bill = draft.open("orders", row.hidden["renewal_order"])
    if bill is not None and is_payable(draft, bill):
        cancel(draft, bill)


def end_subscription(draft: Draft, row: Row, status: str) -> None:
    """End a subscription, canceled or expired, and cancel its open order. Raises Conflict."""
    if move(draft.lifecycle("Subscription"), row.status, status) is not None:
        call_off_bill(draft, row)
        change_subscription(draft, row, subscriptions.ended(row.public, status, draft.now))


def end_later(draft: Draft, row: Row) -> None:
    """Cancel a subscription at the end of the paid period, or at once if that is over, and cancel
    its open order.
    """
    if row.status == "past_due":
        end_subscription(draft, row, "canceled")
        return
    call_off_bill(draft, row)
    public = subscriptions.ending(row.public, row.hidden, draft.now)
    if subscriptions.has_dispute(row.hidden):  # its period may be over already
        draft.at(draft.now, "subscription.end", row.id)
    draft.update(row, public, row.hidden | {"renewal_order": None})


def change_subscription(
    draft: Draft, row: Row, public: Body, hidden: Body | None = None, name: str | None = None
) -> Row:
    """A subscription after a move, with its events."""
    changed = draft.update(row, public, hidden)
    emit_subscription(draft, changed, row.status, name)
    return changed


def emit_subscription(draft: Draft, row: Row, previous: str, name: str | None = None) -> None:
    """The events of a subscription's move from its previous state to the one it has."""
    status = row.status
    moved = draft.lifecycle("Subscription").find(
        previous, status, name if previous == status else None
    )
    draft.emit_move(row, moved)
