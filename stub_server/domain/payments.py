"""Rules of paying and refunding an order."""

from typing import NamedTuple

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms
from ..kernel.clock import DAY, iso
from ..kernel.money import cents, text
from ..kernel.problem import Conflict, detail
from ..kernel.record import Body
from .brcode import end_to_end_id
from .documents import mask_document
from .lifecycle import path
from .orders import closed, expires_at

REFUND_WINDOW = 90 * DAY  # the Central Bank's limit for returning a PIX payment


class Payer(NamedTuple):
    """Who pays, through which bank (ISPB and name)."""

    name: str
    document: str
    ispb: str
    bank: str


def check_payable(public: Body, amount: int | None, paid_at: int | None, now: int, lifecycle: Lifecycle) -> None:
    """Raises Conflict if the order cannot be paid with this amount (cents) at this time (ms)."""
    status = public["status"]
    if status == "paid":
        raise _refused("order_already_paid", "The order is already paid.", "status")
    payable = lifecycle.sets["payable"]
    if status not in payable:
        message = f"The order is {status}; only a {' or '.join(payable)} one can be paid."
        raise _refused("order_not_payable", message, "status")
    if amount is not None and amount != cents(public["totalAmount"]):
        message = f"The payment is {text(amount)}, the order {text(cents(public['totalAmount']))}."
        raise _refused("order_not_payable", message, "amount")
    if paid_at is not None:
        latest = min(now, expires_at(public))
        if not date_time_ms(public["createdAt"]) <= paid_at <= latest:
            message = f"paid_at must be between {public['createdAt']} and {iso(latest)}."
            raise _refused("order_not_payable", message, "paid_at")


def paid(public: Body, hidden: Body, payer: Payer, suffix: str, paid_at: int, now: int) -> tuple[Body, Body]:
    """The order once it is paid; `suffix` is the generated end of a PIX payment's end_to_end_id."""
    at = iso(paid_at)
    transaction = {"status": "paid", "success": "true", "paid_at": at}
    if public["paymentMethod"] == "pix":
        transaction["end_to_end_id"] = end_to_end_id(payer.ispb, at, suffix)
        transaction["payer_bank"] = payer.bank
    transaction["payer_name"], transaction["payer_document"] = payer.name, mask_document(payer.document)
    return closed(public, "paid", at if now == paid_at else iso(now), transaction), hidden | {
        "paid_cents": cents(public["totalAmount"]),
        "paid_at": paid_at,
    }


def refunded(
    public: Body, hidden: Body, amount: int | None, refund_id: str, now: int, lifecycle: Lifecycle
) -> tuple[Body, Body, bool]:
    """The order after a refund, and whether it is refunded in full. `amount` is cents, None for all that is left.

    Raises Conflict: not refundable, more than is left, or later than 90 days after the payment.
    """
    refundable = lifecycle.sets["refundable"]
    if public["status"] not in refundable:
        way = "" if path(lifecycle, public["status"], "refunded") else " It never will be."
        message = f"The order is {public['status']}; only a {' or '.join(refundable)} one can be refunded.{way}"
        raise _refused("order_not_refundable", message, "status")
    if now > hidden["paid_at"] + REFUND_WINDOW:
        message = f"The payment of {iso(hidden['paid_at'])} is more than 90 days ago."
        raise _refused("refund_window_closed", message, "status")
    back = hidden.get("refunded_cents", 0)
    left = hidden["paid_cents"] - back
    amount = left if amount is None else amount
    if amount > left:
        raise _refused("refund_exceeds_amount", f"{text(left)} is left to refund, not {text(amount)}.", "amount")
    total = back + amount
    full = total == hidden["paid_cents"]
    at = iso(now)
    transaction = {
        "status": "refunded" if full else "partially_refunded",
        "refunded_amount": text(total),
        "refunded_at": at,
        "refund_id": refund_id,
    }
    after = closed(public, "refunded" if full else "paid", at, transaction)
    return after, hidden | {"refunded_cents": total}, full


def _refused(code: str, message: str, field: str) -> Conflict:
    return Conflict(message, code=code, details=[detail(field, code, message)])
