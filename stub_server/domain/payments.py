"""Rules of paying, refunding and disputing an order."""

from typing import NamedTuple

from ..contract.lifecycles import Lifecycle
from ..core.clock import DAY, iso, parse_iso
from ..core.money import cents, text
from ..core.problem import Conflict
from ..core.record import Body, Parts, without
from .brcode import end_to_end_id
from .documents import mask_document
from .lifecycle import either, path
from .orders import closed, expires_at

REFUND_WINDOW = 90 * DAY  # the Central Bank's limit for returning a PIX payment
# of the MED and of the card networks; nobody takes a boleto back
DISPUTE_DAYS = {"pix": 80, "credit_card": 120}
LATE = 30 * DAY  # how long after its last day banks accept a boleto


class Payer(NamedTuple):
    """Who pays, through which bank (ISPB and name)."""

    name: str
    document: str
    ispb: str
    bank: str


def can_be_late(public: Body, now: int) -> bool:
    """Whether an order that expired can still be paid."""
    is_boleto = public["status"] == "expired" and public["paymentMethod"] == "boleto"
    return is_boleto and now <= expires_at(public) + LATE


def check_payable(
    public: Body,
    amount: int | None,
    paid_at: int | None,
    now: int,
    lifecycle: Lifecycle,
    *,
    late: bool = False,
) -> None:
    """Raises Conflict if the order cannot be paid with this amount (cents) at this time
    (ms), or so `late`.
    """
    status = public["status"]
    if status == "paid":
        raise Conflict.at("status", "The order is already paid.", "order_already_paid")
    payable = lifecycle.sets["payable"]
    if status not in payable and not (late and can_be_late(public, now)):
        message = f"The order is {status}; only a {either(payable)} one can be paid."
        if status == "expired" and public["paymentMethod"] == "boleto":
            message += ' A boleto can be paid with {"late": true} for 30 days after it expired.'
        raise Conflict.at("status", message, "order_not_payable")
    if amount is not None and amount != cents(public["totalAmount"]):
        message = (
            f"The payment is {text(amount)}, but the total is {text(cents(public['totalAmount']))}."
        )
        raise Conflict.at("amount", message, "order_not_payable")
    if paid_at is not None and not parse_iso(public["createdAt"]) <= paid_at <= now:
        message = f"paid_at must be between {public['createdAt']} and {iso(now)}."
        raise Conflict.at("paid_at", message, "order_not_payable")


def paid(public: Body, hidden: Body, payer: Payer, *, suffix: str, paid_at: int, now: int) -> Parts:
    """The order once it is paid; `suffix` is the generated end of a PIX payment's end_to_end_id."""
    at = iso(paid_at)
    transaction = {"status": "paid", "success": "true", "paid_at": at}
    if public["paymentMethod"] == "pix":
        transaction["end_to_end_id"] = end_to_end_id(payer.ispb, at, suffix)
        transaction["payer_bank"] = payer.bank
    transaction["payer_name"] = payer.name
    transaction["payer_document"] = mask_document(payer.document)
    public = closed(public, "paid", iso(now), transaction)
    return public, hidden | {"paid_cents": cents(public["totalAmount"]), "paid_at": paid_at}


def refunds(public: Body, hidden: Body) -> list[list[int]]:
    """When money was given back (ms), and how much each time (cents), oldest first."""
    earlier: list[list[int]] = hidden.get("earlier_refunds", [])
    newest = hidden["refunded_cents"] - sum(amount for _, amount in earlier)
    if not newest:
        return earlier
    return [*earlier, [parse_iso(public["last_transaction"]["refunded_at"]), newest]]


def left(hidden: Body) -> int:
    """What was paid and not given back, in cents."""
    return int(hidden["paid_cents"] - hidden["refunded_cents"])


def check_amount(hidden: Body, amount: int | None, act: str) -> int:
    """The amount (cents) to `refund` or `dispute`, None for all that is left.

    Raises Conflict if less is left.
    """
    rest = left(hidden)
    if amount is None:
        return rest
    if amount > rest:
        raise Conflict.at(
            "amount", f"{text(rest)} is left to {act}, not {text(amount)}.", "refund_exceeds_amount"
        )
    return amount


def check_refundable(
    public: Body, hidden: Body, amount: int | None, now: int, lifecycle: Lifecycle
) -> int:
    """The amount to refund in cents, of all that is left if it is None.

    Raises Conflict: not refundable, more than is left, or later than 90 days after the payment.
    """
    refundable = lifecycle.sets["refundable"]
    if public["status"] not in refundable:
        message = (
            f"The order is {public['status']}; only a {either(refundable)} one can be refunded."
        )
        if not path(lifecycle, public["status"], "refunded"):
            message += " It can no longer be paid."
        raise Conflict.at("status", message, "order_not_refundable")
    if now > hidden["paid_at"] + REFUND_WINDOW:
        message = f"The payment of {iso(hidden['paid_at'])} is more than 90 days ago."
        raise Conflict.at("status", message, "refund_window_closed")
    return check_amount(hidden, amount, "refund")


def refunded(public: Body, hidden: Body, amount: int, refund_id: str, now: int) -> Parts:
    """The order after a refund of so many cents."""
    back, earlier = hidden["refunded_cents"], refunds(public, hidden)
    total = back + amount
    at = iso(now)
    transaction = {
        "status": "partially_refunded",
        "refunded_amount": text(total),
        "refunded_at": at,
        "refund_id": refund_id,
    }
    status = "paid"
    if total == hidden["paid_cents"]:
        status = transaction["status"] = "refunded"
    after = closed(public, status, at, transaction)
    hidden = hidden | {"refunded_cents": total}
    if back:
        hidden["earlier_refunds"] = earlier
    return after, hidden


# -- disputes


def can_be_disputed(public: Body, hidden: Body, now: int) -> bool:
    """Whether the payment of a paid order can still be taken back."""
    days = DISPUTE_DAYS.get(public["paymentMethod"])
    return days is not None and now <= hidden["paid_at"] + days * DAY


def disputed(public: Body, hidden: Body, amount: int | None, reason: str | None, now: int) -> Body:
    """The order while it is disputed. `amount` is cents, None for all that is left.

    Raises Conflict: a boleto, more than is left, or too late.
    """
    if public["paymentMethod"] not in DISPUTE_DAYS:
        message = "A payment by boleto cannot be disputed; one by pix or credit_card can."
        raise Conflict.at("paymentMethod", message)
    if not can_be_disputed(public, hidden, now):
        days = DISPUTE_DAYS[public["paymentMethod"]]
        message = f"The payment of {iso(hidden['paid_at'])} is more than {days} days ago."
        raise Conflict.at("status", message, "dispute_window_closed")
    amount = check_amount(hidden, amount, "dispute")
    at = iso(now)
    transaction = {"status": "disputed", "disputed_amount": text(amount), "disputed_at": at}
    if reason is not None:
        transaction["dispute_reason"] = reason
    earlier = without(public["last_transaction"], "dispute_reason")
    return closed({**public, "last_transaction": earlier}, "disputed", at, transaction)


def check_disputed(public: Body) -> None:
    """Check that an order is disputed. Raises Conflict."""
    if public["status"] != "disputed":
        raise Conflict.at(
            "status",
            f"The order is {public['status']}; only a disputed one has a dispute to resolve.",
        )


def won(public: Body, hidden: Body, now: int) -> Body:
    """The order as it was before the dispute."""
    status = "partially_refunded" if left(hidden) < hidden["paid_cents"] else "paid"
    return closed(public, "paid", iso(now), {"status": status})
