"""What time or a customer would do to a subscription."""

from ...domain import subscriptions
from ...domain.lifecycle import refused
from ...kernel.record import Body, Change, Row
from .. import billing, reply
from ..billing import World
from ..call import Call
from ..reply import Reply


def cancel_subscription(call: Call, ident: str, body: Body | None) -> Reply:
    """200 with the canceled subscription, or with one that will end with its period."""
    row = _open(call, ident)
    if not (body or {}).get("at_period_end", False):
        return _apply(call, row, billing.cancel_subscription(_world(call), row), None)
    if row.public["status"] not in (*subscriptions.LIVE, "canceled"):
        raise refused(call.lifecycle("Subscription"), row.public["status"], "canceled")
    change = Change()
    if row.public["status"] != "canceled" and not row.public["cancel_at_period_end"]:
        change.update("subscriptions", row, subscriptions.ending(row.public, call.now))
    return _apply(call, row, change, None)


def renew_subscription(call: Call, ident: str) -> Reply:
    """200 with the renewed subscription and the order that paid for it; the order is made if none is open."""
    row = _open(call, ident)
    if row.public["status"] not in ("active", "past_due"):
        raise refused(call.lifecycle("Subscription"), row.public["status"], "active")
    order_id = row.hidden["renewal_order"]
    order = None if order_id is None else call.store.orders.open(order_id)
    if order is None or order.public["status"] != "pending":
        change, order_id = billing.renewal_order(_world(call), row)
        call.apply(change)
        order = call.store.orders.open(order_id)
        assert order is not None
    if order.public["status"] == "pending":  # a magic e-mail may have failed it at once
        call.apply(billing.pay(_world(call), order))
    return _shown(call, ident, order_id)


def expire_subscription(call: Call, ident: str) -> Reply:
    """200 with the expired subscription and the renewal order that expired with it."""
    row = _open(call, ident)
    if row.public["status"] == "expired":
        return _apply(call, row, Change(), None)
    if row.public["status"] != "past_due":
        raise refused(call.lifecycle("Subscription"), row.public["status"], "expired")
    return _apply(call, row, billing.expire_subscription(_world(call), row), row.hidden["renewal_order"])


def _world(call: Call) -> World:
    return World(call.sandbox, call.store)


def _open(call: Call, ident: str) -> Row:
    """The subscription, whichever merchant of the sandbox it belongs to."""
    for store in call.sandbox.stores.values():
        row = store.subscriptions.open(ident)
        if row is not None:
            call.store = store
            return row
    raise call.missing("subscription")


def _apply(call: Call, row: Row, change: Change, order_id: str | None) -> Reply:
    call.apply(change)
    return _shown(call, row.id, order_id)


def _shown(call: Call, ident: str, order_id: str | None) -> Reply:
    row = _open(call, ident)
    order = None if order_id is None else call.store.orders.open(order_id)
    return reply.value({"subscription": row.public, "order": None if order is None else order.public})
