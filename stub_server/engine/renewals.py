"""What falls due of a subscription: a trial's end, the next period and its order, the end of the grace.

Nothing is due while its project is suspended, and all comes so much later.
"""

from __future__ import annotations

from ..contract.formats import date_time_ms
from ..domain import orders, subscriptions
from ..domain.customers import as_buyer
from ..domain.lifecycle import move
from ..kernel.clock import iso
from ..kernel.record import Body, Record, Row
from . import billing
from .draft import Draft


def activate_subscription(draft: Draft, row: Row) -> None:
    """The trial is over, and the first paid period begins. Raises Conflict."""
    move(billing.lifecycle(draft, "Subscription"), row.public["status"], "active")
    public = subscriptions.activated(row.public, row.hidden, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    billing.tell_subscription(draft, record, public, row.public["status"])
    billing.schedule(draft, row.id, public, row.hidden)


def roll(draft: Draft, row: Row) -> None:
    """The running period is over and the next one was paid early: it begins."""
    public, hidden = subscriptions.rolled(row.public, row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, public, hidden)


def renewal_due(draft: Draft, row: Row) -> None:
    """The next period is to be paid: its order is made, and a card is charged."""
    order, public = renewal_order(draft, row)
    record = draft.find(draft.store.subscriptions, row.id)
    assert record is not None
    billing.tell_subscription(draft, record, public, row.public["status"], "renewal_due")
    if public["paymentMethod"] == subscriptions.CHARGED:
        _charge(draft, order)


def _charge(draft: Draft, order: Record) -> None:
    """A card pays its renewal order, unless a magic value refuses it."""
    charged = draft.open(draft.store.orders, order.id)
    assert charged is not None
    if billing.is_payable(draft, charged) and not orders.is_refusing(orders.token_of(charged.public, charged.hidden)):
        billing.pay(draft, charged)


def charge_again(draft: Draft, row: Row) -> None:
    """A card was declined: another renewal order is charged, if an attempt is due now and the last order is closed."""
    last = draft.open(draft.store.orders, row.hidden["renewal_order"])
    assert last is not None  # past due since it was not paid
    is_new = date_time_ms(last.public["createdAt"]) == draft.now
    if (
        draft.now in subscriptions.attempts(row.public, row.hidden)
        and not billing.is_payable(draft, last)
        and not is_new
    ):
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
    order = billing.place(
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
    move(billing.lifecycle(draft, "Subscription"), row.public["status"], "past_due")
    public = subscriptions.past_due(row.public, draft.now)
    record = draft.update(draft.store.subscriptions, row, public)
    billing.tell_subscription(draft, record, public, row.public["status"])
    billing.schedule(draft, row.id, public, row.hidden)


def postpone(draft: Draft, row: Row, wait: int) -> None:
    """Nothing was due for `wait` ms: all that lay ahead comes so much later, the end of the open bill too."""
    public, hidden = row.public, row.hidden
    if wait:
        public, hidden = subscriptions.postponed(public, hidden, draft.now, wait)
        draft.update(draft.store.subscriptions, row, public, hidden)
        bill = None if hidden["renewal_order"] is None else draft.open(draft.store.orders, hidden["renewal_order"])
        if bill is not None and billing.is_payable(draft, bill):
            ends = orders.expires_at(bill.public) + wait
            draft.update(draft.store.orders, bill, orders.postponed(bill.public, iso(ends), iso(draft.now)))
            draft.at(ends, "order.expire", bill.id)
    billing.schedule(draft, row.id, public, hidden)


def resume(draft: Draft, row: Row) -> None:
    """Not to be canceled any more: its timers are set anew, that of the renewal order too."""
    public = subscriptions.resumed(row.public, row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, public)
    billing.schedule(draft, row.id, public, row.hidden)


# -- of suspended projects


def stands_still(draft: Draft, project_id: str) -> bool:
    """Whether a project is suspended: nothing is due for its subscriptions meanwhile."""
    project = draft.store.projects.peek(project_id)
    return project is not None and project["status"] in billing.states(draft, "Project", "paused")


def stopped_at(draft: Draft, project_id: str) -> int | None:
    """Since when (ms) nothing is due for the subscriptions of a project; None while it is not suspended."""
    project = draft.store.projects.open(project_id) if stands_still(draft, project_id) else None
    return None if project is None else int(project.hidden.get("suspended_at", draft.now))


def end_suspension(draft: Draft, row: Row) -> None:
    """The project goes on: nobody loses time that was paid for. One that an archive has just ended stays as it is."""
    if row.public["status"] not in billing.states(draft, "Subscription", "running"):
        return
    project = draft.store.projects.open(row.public["projectId"])
    assert project is not None
    suspended = project.hidden.get("suspended_at", draft.now)  # a file of an earlier version does not say when
    since = max(suspended, date_time_ms(row.public["createdAt"]))
    postpone(draft, row, draft.now - since)
