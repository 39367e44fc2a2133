"""What a payer or a bank would do to an order."""

from ...contract.formats import date_time_ms
from ...kernel.money import cents
from ...kernel.record import Body, Change, Row
from .. import billing, reply
from ..billing import World
from ..call import Call
from ..reply import Reply

_MOVES = {"pending": ["pay", "fail", "expire", "cancel"], "paid": ["refund"]}


def inspect_order(call: Call, ident: str) -> Reply:
    """200 with the order and what the API does not show of it."""
    return _shown(_open(call, ident))


def pay_order(call: Call, ident: str, body: Body | None) -> Reply:
    """200 with the paid order."""
    row, asked = _open(call, ident), body or {}
    amount = cents(asked["amount"]) if "amount" in asked else None
    paid_at = date_time_ms(asked["paid_at"]) if "paid_at" in asked else None
    world = World(call.sandbox, call.store)
    return _apply(call, row, billing.pay(world, row, billing.payer_of(world, row, asked.get("payer")), paid_at, amount))


def fail_order(call: Call, ident: str, body: Body | None) -> Reply:
    """200 with the failed order."""
    row = _open(call, ident)
    return _apply(
        call, row, billing.fail(World(call.sandbox, call.store), row, (body or {}).get("code", "insufficient_funds"))
    )


def expire_order(call: Call, ident: str) -> Reply:
    """200 with the expired order."""
    row = _open(call, ident)
    return _apply(call, row, billing.expire(World(call.sandbox, call.store), row))


def cancel_order(call: Call, ident: str) -> Reply:
    """200 with the canceled order."""
    row = _open(call, ident)
    return _apply(call, row, billing.cancel(World(call.sandbox, call.store), row))


def refund_order(call: Call, ident: str, body: Body | None) -> Reply:
    """200 with the order after money went back."""
    row = _open(call, ident)
    amount = cents(body["amount"]) if body and "amount" in body else None
    return _apply(call, row, billing.refund(World(call.sandbox, call.store), row, amount))


def _open(call: Call, ident: str) -> Row:
    """The order, whichever merchant of the sandbox it belongs to: the control surface stands above them."""
    for store in call.sandbox.stores.values():
        row = store.orders.open(ident)
        if row is not None:
            call.store = store
            return row
    raise call.missing("order")


def _apply(call: Call, row: Row, change: Change) -> Reply:
    call.apply(change)
    return _shown(_open(call, row.id))


def _shown(row: Row) -> Reply:
    hidden = row.hidden
    names = ("projectId", "planId", "customerId", "subscriptionId", "metadata", "success_url", "cancel_url")
    allowed = _MOVES.get(row.public["status"], [])
    return reply.value({"order": row.public, **{name: hidden[name] for name in names}, "allowed": allowed})
