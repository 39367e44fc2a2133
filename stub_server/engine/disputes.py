"""Disputes of paid orders: a chargeback of a card or the MED of a PIX payment, and how each ends.

While an order of a subscription is disputed, the subscription is neither billed nor past due.
"""

from __future__ import annotations

from ..domain import disputes, payments, subscriptions
from ..domain.lifecycle import refused
from ..kernel.record import Record, Row
from . import billing, renewals
from .draft import Draft


def dispute(draft: Draft, row: Row, amount: int | None, reason: str | None) -> Record:
    """The payer takes the payment back, in full or part (cents), until it is decided. Raises Conflict."""
    table, status = billing.lifecycle(draft, "Order"), row.public["status"]
    moved = table.find(status, "disputed")
    if moved is None:
        raise refused(table, status, "disputed")
    public = disputes.opened(row.public, row.hidden, amount, reason, draft.now)
    record = draft.update(draft.store.orders, row, public)
    billing.tell_order(draft, record, row.hidden, moved)
    held = _subscription_of(draft, row)
    if held is not None and billing.is_running(draft, held):
        hidden = subscriptions.held(held.hidden, row.id, draft.now)
        draft.update(draft.store.subscriptions, held, held.public, hidden)
    return record


def win(draft: Draft, row: Row) -> Record:
    """The merchant keeps the money, and the order is paid as before. Raises Conflict."""
    disputes.check_disputed(row.public)
    table, status = billing.lifecycle(draft, "Order"), row.public["status"]
    moved = table.find(status, "paid", "won")
    if moved is None:
        raise refused(table, status, "paid")
    record = draft.update(draft.store.orders, row, disputes.won(row.public, row.hidden, draft.now))
    billing.tell_order(draft, record, row.hidden, moved)
    _release(draft, row)
    return record


def lose(draft: Draft, row: Row) -> Record:
    """The disputed amount goes back as by a refund, however long ago it was paid. Raises Conflict."""
    disputes.check_disputed(row.public)
    table, status = billing.lifecycle(draft, "Order"), row.public["status"]
    amount = disputes.amount_of(row.public)
    full = amount == payments.left(row.hidden)
    moved = table.find(status, "refunded") if full else table.find(status, "paid", "lost")
    if moved is None:
        raise refused(table, status, "refunded")
    record = billing.give_back(draft, row, amount, moved)
    _release(draft, row)
    return record


def _subscription_of(draft: Draft, order: Row) -> Row | None:
    ident = order.hidden["subscriptionId"]
    return None if ident is None else draft.open(draft.store.subscriptions, ident)


def _release(draft: Draft, order: Row) -> None:
    """The order's subscription goes on with the last of its disputes; what fell into them comes so much later."""
    row = _subscription_of(draft, order)
    if row is None or not subscriptions.is_held(row.hidden):
        return
    since = subscriptions.held_since(row.hidden)
    hidden = subscriptions.released(row.hidden, order.id)
    record = draft.update(draft.store.subscriptions, row, row.public, hidden)
    if subscriptions.is_held(hidden) or not billing.is_running(draft, row):
        return
    begins = max(since, subscriptions.period_end(row.public, hidden))
    until = renewals.stopped_at(draft, row.public["projectId"])
    renewals.postpone(draft, Row(record, row.public, hidden), max(0, (draft.now if until is None else until) - begins))
