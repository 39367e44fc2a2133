"""A subscription after its first payment: renewals, the grace period, suspended projects and
disputes.

While its project is suspended or one of its orders disputed, nothing is due; afterwards everything
is due later by that time.
"""

from ..core.clock import parse_iso
from ..core.money import cents
from ..core.record import Row
from ..domain import boleto, orders, payments, subscriptions
from ..domain.customers import as_buyer
from ..domain.lifecycle import legal
from . import billing, ordering
from .draft import Draft

# -- the jobs of the clock


def activate(draft: Draft, row: Row) -> None:
    """The trial is over, and the first paid period begins. Raises Conflict."""
    if row.status == "trialing" and parse_iso(row["trial_end"]) <= draft.now:
        billing.schedule(draft, draft.move(subscriptions.activated(row)))


def renew(draft: Draft, row: Row) -> None:
    """The order of the next period is created, unless the subscription is about to end, and a card
    is charged.
    """
    if row.status != "active" or row["cancel_at_period_end"] or row["renewal_order"] is not None:
        return
    if subscriptions.has_dispute(row) or subscriptions.renewal_at(row) > draft.now:
        return
    order = renewal_order(draft, row, "renewal_due")
    if row["paymentMethod"] == subscriptions.CHARGED:
        _charge(draft, order)


def end_period(draft: Draft, row: Row) -> None:
    """A paid period is over: the next one was paid early, was not paid, or is not wanted.

    Raises Conflict.
    """
    if row.status != "active":
        return
    ends = row["cancel_at_period_end"]
    waits = subscriptions.has_dispute(row) and not ends
    if subscriptions.period_end(row) > draft.now or waits:
        if len(row["paid_by"]) > 1 and row["ends"][0] <= draft.now:
            row = draft.put(subscriptions.rolled(row, draft.now))
            draft.at(row["ends"][0], "subscription.end", row.id)
    elif ends:
        billing.end_subscription(draft, row, "canceled")
    else:
        billing.schedule(draft, draft.move(row.changed({"status": "past_due"})))


def end_grace(draft: Draft, row: Row) -> None:
    """The grace after an unpaid period is over."""
    if _is_late(row) and subscriptions.grace_end(row) <= draft.now:
        billing.end_subscription(draft, row, "expired")


def charge_again(draft: Draft, row: Row) -> None:
    """A card was declined: another renewal order is charged, if an attempt is due now and the last
    order is closed.
    """
    if not _is_late(row) or row["paymentMethod"] != subscriptions.CHARGED:
        return
    billing.schedule_charge(draft, row)
    # past due since it was not paid
    last = draft.get("orders", row["renewal_order"])
    is_due = draft.now in subscriptions.attempts(row)
    is_new = parse_iso(last["createdAt"]) == draft.now
    if is_due and not draft.is_in(last, "payable") and not is_new:
        _charge(draft, renewal_order(draft, row))


def end_suspension(draft: Draft, row: Row) -> None:
    """The project is active again: everything is due later by the time of its suspension."""
    if not draft.is_in(row, "running"):
        return
    since = max(_suspended_at(draft, row), parse_iso(row["createdAt"]))
    postpone(draft, subscriptions.reactivated(row, since, draft.now), draft.now - since)


def _is_late(row: Row) -> bool:
    return row.status == "past_due" and not subscriptions.has_dispute(row)


def _charge(draft: Draft, order: Row) -> None:
    """A card pays its renewal order, unless a magic value refuses it."""
    if draft.is_in(order, "payable") and not orders.magic_for(order).refuses:
        billing.pay(draft, order)


def renewal_order(draft: Draft, row: Row, name: str | None = None) -> Row:
    """The order of a subscription's next period. With the name of a move, the subscription raises
    its events.

    It has the customer's data of now, unless keys of the project do not see the customer, and can
    be paid until the grace is over.
    """
    store = draft.store
    first = store.orders.get(row["orderId"])
    customer = store.customers.peek(row["customerId"])
    assert customer is not None  # customers are never deleted
    copy_only = first["copy_only"] and store.has_copy_only(row)
    buyer = first["customer"] if copy_only else as_buyer(customer)
    new = orders.NewOrder(
        subscriptions.renewal_body(row, first),
        buyer,
        row["customerId"],
        row["paymentMethod"],
        copy_only=copy_only,
        refused=draft.sandbox.origin.declining.get(row.id),
        no_magic=_was_refunded(draft, row, buyer["email"]),
        life=max(0, subscriptions.grace_end(row) - draft.now),
        due=boleto.closes_at(subscriptions.period_end(row)),
        subscription_id=row.id,
    )
    order = ordering.place(draft, new)
    is_early = subscriptions.renewal_at(row) > draft.now
    row = row.changed({"lastOrderId": order.id})
    if draft.is_in(order, "payable") or not is_early:
        row = row.keeping({"renewal_order": order.id})  # else the regular bill is still to come
    if name is None:
        draft.put(row)
    else:
        draft.move(row, name)
    return order


def _was_refunded(draft: Draft, row: Row, email: str) -> bool:
    """Whether a magic value has just refunded a renewal.

    The next order is due at once: to pay and refund it too would create another one a minute later.
    """
    if orders.magic_of(email).refunds is None:
        return False
    last = draft.open("orders", row["lastOrderId"])
    return last is not None and last.status == "refunded"


# -- later and going on


def postpone(draft: Draft, row: Row, wait: int) -> None:
    """Postpone everything that is still to come by `wait` ms, the end of the open order too."""
    if wait:
        ended = subscriptions.grace_end(row)
        row = draft.put(subscriptions.postponed(row, wait))
        bill = draft.open("orders", row["renewal_order"])
        if bill is not None and draft.is_in(bill, "payable"):
            ends = orders.expires_at(bill) + subscriptions.grace_end(row) - ended
            due = boleto.closes_at(subscriptions.period_end(row))
            draft.put(orders.postponed(bill, ends, due, draft.now))
            draft.at(ends, "order.expire", bill.id)
    billing.schedule(draft, row)


def resume(draft: Draft, row: Row) -> None:
    """Do not cancel it at the end of the period after all, and set its timers again."""
    billing.schedule(draft, draft.put(subscriptions.resumed(row)))


def _suspended_at(draft: Draft, row: Row) -> int:
    """When the project of a subscription was suspended, in ms."""
    # a contract may call more states paused
    return int(draft.store.projects.get(row["projectId"]).hidden.get("suspended_at", draft.now))


# -- disputes: a chargeback of a card, or the MED of a PIX payment


def dispute(draft: Draft, row: Row, amount: int | None, reason: str | None) -> Row:
    """The payer takes the payment back, in full or part (cents), until it is decided.

    Raises Conflict.
    """
    legal(draft.lifecycle_of(row), row.status, "disputed")
    order = draft.move(payments.disputed(row, amount, reason, draft.now))
    paid_for = draft.open("subscriptions", row["subscriptionId"])
    if paid_for is not None and draft.is_in(paid_for, "running"):
        draft.put(subscriptions.disputed(paid_for, row.id, draft.now))
    return order


def win(draft: Draft, row: Row) -> Row:
    """The merchant keeps the money, and the order is paid as before. Raises Conflict."""
    payments.check_disputed(row)
    order = draft.move(payments.won(row, draft.now), "won")
    _release(draft, row)
    return order


def lose(draft: Draft, row: Row) -> Row:
    """The disputed amount goes back as by a refund, however long ago it was paid.

    Raises Conflict.
    """
    payments.check_disputed(row)
    amount = cents(float(row["last_transaction"]["disputed_amount"]))
    order = billing.give_back(draft, row, amount, "lost")
    _release(draft, row)
    return order


def _release(draft: Draft, order: Row) -> None:
    """After the last dispute of its orders, everything of a subscription is due later by the time
    of the disputes.
    """
    row = draft.open("subscriptions", order["subscriptionId"])
    if row is None or not subscriptions.has_dispute(row):
        return
    released = draft.put(subscriptions.released(row, order.id))
    if subscriptions.has_dispute(released) or not draft.is_in(row, "running"):
        return
    begins = max(row["dispute"]["since"], subscriptions.period_end(row))
    until = draft.now
    if billing.is_project(draft, row, "paused"):
        until = _suspended_at(draft, row)
    postpone(draft, released, max(0, until - begins))
