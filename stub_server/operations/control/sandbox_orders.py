"""Simulates what a payer or a bank does to an order: pay, fail, expire, cancel, refund, dispute."""

import orjson

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...calls.views import pay_url
from ...domain import orders, payments
from ...domain.brcode import BrCodeError, amount_of
from ...engine import billing, renewals
from ...kernel.clock import parse_iso
from ...kernel.money import cents
from ...kernel.problem import NotFound, detail
from ...kernel.record import Body, Record, Row


def inspect_order(call: Call, ident: str) -> Reply:
    row = _open(call, ident)
    project = call.store.projects.peek(row.hidden["projectId"])
    shop = "" if project is None else project["name"]
    order, sandbox, server = row.public["id"], call.sandbox, call.server
    address = pay_url(server.settings.url, sandbox.name, order, server.sandboxes.pay_key(sandbox, order))
    return _shown(call, row, shop=shop, pay_url=address)


def pay_order(call: Call, ident: str, body: Body | None) -> Reply:
    return _paid(call, _open(call, ident), body or {})


def pay_pix_code(call: Call, body: Body) -> Reply:
    code = body["qr_code"].strip()
    try:
        amount_of(code)
    except BrCodeError as error:
        # Not 422: no schema says what a checksum is, and a code with a wrong one is that of no order.
        message = f"This is not the qr_code of a PIX order: {error}"
        raise NotFound(message, details=[detail("qr_code", error.reason, message)]) from None
    return _paid(call, _with_code(call, code), body)


def _paid(call: Call, row: Row, asked: Body) -> Reply:
    paid_at = parse_iso(asked["paid_at"]) if "paid_at" in asked else None
    payer = billing.payer_of(call.draft, row, asked.get("payer"))
    return _changed(call, billing.pay(call.draft, row, payer, paid_at, _amount(asked), late=asked.get("late", False)))


def fail_order(call: Call, ident: str, body: Body | None) -> Reply:
    row = _open(call, ident)
    method = row.public["paymentMethod"]
    code = (body or {}).get("code", orders.DEFAULT_FAILURE[method])
    orders.check_failure(code, method)
    return _changed(call, billing.fail(call.draft, row, code))


def expire_order(call: Call, ident: str) -> Reply:
    row = _open(call, ident)
    return _changed(call, billing.expire(call.draft, row))


def cancel_order(call: Call, ident: str) -> Reply:
    row = _open(call, ident)
    return _changed(call, billing.cancel(call.draft, row))


def refund_order(call: Call, ident: str, body: Body | None) -> Reply:
    row = _open(call, ident)
    return _changed(call, billing.refund(call.draft, row, _amount(body)))


def dispute_order(call: Call, ident: str, body: Body | None) -> Reply:
    row, reason = _open(call, ident), (body or {}).get("reason")
    return _changed(call, renewals.dispute(call.draft, row, _amount(body), reason))


def resolve_dispute(call: Call, ident: str, body: Body) -> Reply:
    row = _open(call, ident)
    return _changed(call, (renewals.win if body["outcome"] == "won" else renewals.lose)(call.draft, row))


def _amount(asked: Body | None) -> int | None:
    return cents(asked["amount"]) if asked and "amount" in asked else None


def _open(call: Call, ident: str) -> Row:
    return call.open_of_any("orders", ident, "order")


def _with_code(call: Call, code: str) -> Row:
    """The order of a PIX code, payable ones first. Raises NotFound."""
    mark = orjson.dumps(code)
    payable = call.lifecycle("Order").sets["payable"]
    for store in call.sandbox.stores.values():
        table = store.orders
        for keys in (*(table.bucket("status", status) for status in payable), table.order):
            for key in keys:
                if mark in table.rows[key].public:
                    call.store = store
                    return table.parse(table.rows[key])
    raise NotFound("No order of this sandbox shows this PIX code.")


def _changed(call: Call, record: Record) -> Reply:
    row = call.draft.open(call.store.orders, record.id)
    assert row is not None  # it was just written
    return _shown(call, row)


def _shown(call: Call, row: Row, **more: str) -> Reply:
    hidden = row.hidden
    names = ("projectId", "planId", "customerId", "subscriptionId", "metadata", "success_url", "cancel_url")
    allowed = call.lifecycle("Order").controls(row.public["status"])
    if row.public["status"] == "expired" and "pay" in allowed and not payments.can_be_late(row.public, call.now):
        allowed.remove("pay")
    if "dispute" in allowed and not payments.can_be_disputed(row.public, hidden, call.now):
        allowed.remove("dispute")
    return reply.value({"order": row.public, **{name: hidden[name] for name in names}, **more, "allowed": allowed})
