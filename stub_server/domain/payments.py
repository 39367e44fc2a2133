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
from .lifecycle import either, path
from .orders import closed, expires_at

REFUND_WINDOW = 90 * DAY  # the Central Bank's limit for returning a PIX payment


class Payer(NamedTuple):
    """Who pays, through which bank (ISPB and name)."""

    name: str
    document: str
    ispb: str
    bank: str


LATE = 30 * DAY  # so long banks take a boleto after its last day


def can_be_late(public: Body, now: int) -> bool:
    """Whether an order that expired can still be paid."""
    is_boleto = public["status"] == "expired" and public["paymentMethod"] == "boleto"
    return is_boleto and now <= expires_at(public) + LATE


def check_payable(
    public: Body, amount: int | None, paid_at: int | None, now: int, lifecycle: Lifecycle, *, late: bool = False
) -> None:
    """Raises Conflict if the order cannot be paid with this amount (cents) at this time (ms), or so `late`."""
    status = public["status"]
    if status == "paid":
        raise _refused("order_already_paid", "The order is already paid.", "status")
    payable = lifecycle.sets["payable"]
    if status not in payable and not (late and can_be_late(public, now)):
        message = f"The order is {status}; only a {either(payable)} one can be paid."
        if status == "expired" and public["paymentMethod"] == "boleto":
            message += ' A boleto can be paid with {"late": true} for 30 days after it expired.'
        raise _refused("order_not_payable", message, "status")
    if amount is not None and amount != cents(public["totalAmount"]):
        message = f"The payment is {text(amount)}, the order {text(cents(public['totalAmount']))}."
        raise _refused("order_not_payable", message, "amount")
    if paid_at is not None and not date_time_ms(public["createdAt"]) <= paid_at <= now:
        message = f"paid_at must be between {public['createdAt']} and {iso(now)}."
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


def refunds(public: Body, hidden: Body) -> list[list[int]]:
    """When money was given back (ms), and how much each time (cents), oldest first."""
    earlier: list[list[int]] = hidden.get("earlier_refunds", [])
    newest = hidden["refunded_cents"] - sum(amount for _, amount in earlier)
    return [*earlier, [date_time_ms(public["last_transaction"]["refunded_at"]), newest]] if newest else earlier


def left(hidden: Body) -> int:
    """What was paid and not given back, in cents."""
    return int(hidden["paid_cents"] - hidden["refunded_cents"])


def check_amount(hidden: Body, amount: int | None, act: str) -> int:
    """The amount (cents) to `refund` or `dispute`, None for all that is left. Raises Conflict if less is left."""
    if amount is not None and amount > left(hidden):
        raise _refused("refund_exceeds_amount", f"{text(left(hidden))} is left to {act}, not {text(amount)}.", "amount")
    return left(hidden) if amount is None else amount


def check_refundable(public: Body, hidden: Body, amount: int | None, now: int, lifecycle: Lifecycle) -> int:
    """The amount to refund in cents, of all that is left if it is None.

    Raises Conflict: not refundable, more than is left, or later than 90 days after the payment.
    """
    refundable = lifecycle.sets["refundable"]
    if public["status"] not in refundable:
        way = "" if path(lifecycle, public["status"], "refunded") else " It never will be."
        message = f"The order is {public['status']}; only a {either(refundable)} one can be refunded.{way}"
        raise _refused("order_not_refundable", message, "status")
    if now > hidden["paid_at"] + REFUND_WINDOW:
        message = f"The payment of {iso(hidden['paid_at'])} is more than 90 days ago."
        raise _refused("refund_window_closed", message, "status")
    return check_amount(hidden, amount, "refund")


def refunded(public: Body, hidden: Body, amount: int, refund_id: str, now: int) -> tuple[Body, Body]:
    """The order after a refund of so many cents."""
    back = hidden["refunded_cents"]
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
    kept = {"earlier_refunds": refunds(public, hidden)} if back else {}
    return after, hidden | {"refunded_cents": total} | kept


def _refused(code: str, message: str, field: str) -> Conflict:
    return Conflict(message, code=code, details=[detail(field, code, message)])
