"""Simulates what a payer or a bank does to an order: pay, fail, expire, cancel, refund, dispute."""

import orjson

from ...core.clock import parse_iso
from ...core.money import cents
from ...core.problem import NotFound
from ...core.record import Body, Row
from ...core.slices import AT_ONCE, Sliced
from ...domain import orders, payments
from ...domain.brcode import BrCodeError, amount_of
from ...engine import billing, closing, renewals
from ...engine.tables.table import Table
from ...server.views import pay_url
from ...server.work import Work
from .named import open_named

_SHOWN = (
    "projectId",
    "planId",
    "customerId",
    "subscriptionId",
    "metadata",
    "success_url",
    "cancel_url",
)
"""What is shown of the hidden part of an order."""


def inspect_order(work: Work, ident: str) -> Body:
    row = _open(work, ident)
    project = work.store.projects.peek(row["projectId"])
    shop = "" if project is None else project["name"]
    order, sandbox, server = row["id"], work.sandbox, work.server
    address = pay_url(
        server.settings.url, sandbox.name, order, server.sandboxes.pay_key(sandbox, order)
    )
    return _shown(work, row, shop=shop, pay_url=address)


def pay_order(work: Work, ident: str, body: Body) -> Body:
    return _paid(work, _open(work, ident), body)


async def pay_pix_code(work: Work, body: Body) -> Body:
    code = body["qr_code"].strip()
    try:
        amount_of(code)
    except BrCodeError as error:
        # Not 422: no schema says what a checksum is, and a code with a wrong one is that of no
        # order.
        raise NotFound.at(
            "qr_code", f"This is not the qr_code of a PIX order: {error}", violation=error.reason
        ) from None
    for store in [*work.sandbox.stores.values()]:
        ident = await work.in_slices(_with_code(store.orders, code))
        if ident is not None:
            work.store = work.sandbox.store_of(store.merchant.id)
            return _paid(work, _open(work, ident), body)
    raise NotFound("No order of this sandbox shows this PIX code.")


def _paid(work: Work, row: Row, asked: Body) -> Body:
    paid_at = parse_iso(asked["paid_at"]) if "paid_at" in asked else None
    payer = billing.payer_of(work.draft, row, asked.get("payer"))
    return _shown(
        work,
        billing.pay(work.draft, row, payer, paid_at, _amount(asked), late=asked.get("late", False)),
    )


def fail_order(work: Work, ident: str, body: Body) -> Body:
    row = _open(work, ident)
    method = row["paymentMethod"]
    code = body.get("code", orders.DEFAULT_FAILURE[method])
    orders.check_failure(code, method)
    return _shown(work, closing.fail(work.draft, row, code))


def expire_order(work: Work, ident: str) -> Body:
    row = _open(work, ident)
    return _shown(work, closing.expire(work.draft, row))


def cancel_order(work: Work, ident: str) -> Body:
    row = _open(work, ident)
    return _shown(work, closing.cancel(work.draft, row))


def refund_order(work: Work, ident: str, body: Body) -> Body:
    row = _open(work, ident)
    return _shown(work, billing.refund(work.draft, row, _amount(body)))


def dispute_order(work: Work, ident: str, body: Body) -> Body:
    row, reason = _open(work, ident), body.get("reason")
    return _shown(work, renewals.dispute(work.draft, row, _amount(body), reason))


def resolve_dispute(work: Work, ident: str, body: Body) -> Body:
    row = _open(work, ident)
    if body["outcome"] == "won":
        return _shown(work, renewals.win(work.draft, row))
    return _shown(work, renewals.lose(work.draft, row))


def _amount(asked: Body) -> int | None:
    return cents(asked["amount"]) if "amount" in asked else None


def _open(work: Work, ident: str) -> Row:
    return open_named(work, "orders", ident, "order")


def _with_code(table: Table, code: str) -> Sliced[str | None]:
    """The id of the order of a PIX code, of which no other one has the same, if there is one."""
    mark = b'"qr_code":' + orjson.dumps(code)  # a text of a buyer that is the code is none
    # who pays has mostly ordered just now
    for number, record in enumerate([table.rows[key] for key in reversed(table.order)]):
        if mark in record.public:
            row = table.parse(record)
            if row["last_transaction"].get("qr_code") == code:  # and not a text of a buyer
                return row.id
        if not number % AT_ONCE:
            yield
    return None


def _shown(work: Work, row: Row, **more: str) -> Body:
    shown = {"order": row.public} | {name: row[name] for name in _SHOWN}
    return shown | more | {"allowed": _allowed(work, row)}


def _allowed(work: Work, row: Row) -> list[str]:
    """The controls that can move an order on now."""
    allowed = work.lifecycle("Order").controls(row.status)
    is_over = row.status == "expired" and not payments.can_be_late(row, work.now)
    if is_over and "pay" in allowed:
        allowed.remove("pay")
    if "dispute" in allowed and not payments.can_be_disputed(row, work.now):
        allowed.remove("dispute")
    return allowed
