"""Rules of paying, refunding and disputing an order."""

from typing import NamedTuple

from ..contract.lifecycles import Lifecycle
from ..core.clock import DAY, iso, parse_iso
from ..core.money import cents, text
from ..core.problem import Conflict
from ..core.record import Row, without
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


def can_be_late(row: Row, now: int) -> bool:
    """Whether an order that expired can still be paid."""
    is_boleto = row.status == "expired" and row["paymentMethod"] == "boleto"
    return is_boleto and now <= expires_at(row) + LATE


def check_payable(
    row: Row, amount: int | None, paid_at: int, now: int, lifecycle: Lifecycle, *, late: bool
) -> None:
    """Raises Conflict if the order cannot be paid with this amount (cents) at this time
    (ms), or so `late`.
    """
    status = row.status
    if status == "paid":
        raise Conflict.at("status", "The order is already paid.", "order_already_paid")
    payable = lifecycle.sets["payable"]
    if status not in payable and not (late and can_be_late(row, now)):
        message = f"The order is {status}; only a {either(payable)} one can be paid."
        if status == "expired" and row["paymentMethod"] == "boleto":
            message += ' A boleto can be paid with {"late": true} for 30 days after it expired.'
        raise Conflict.at("status", message, "order_not_payable")
    total = cents(row["totalAmount"])
    if amount is not None and amount != total:
        message = f"The payment is {text(amount)}, but the total is {text(total)}."
        raise Conflict.at("amount", message, "order_not_payable")
    if not parse_iso(row["createdAt"]) <= paid_at <= now:
        message = f"paid_at must be between {row['createdAt']} and {iso(now)}."
        raise Conflict.at("paid_at", message, "order_not_payable")


def paid(row: Row, payer: Payer, suffix: str, paid_at: int, now: int) -> Row:
    """The order once it is paid; `suffix` is the generated end of a PIX payment's end_to_end_id."""
    at = iso(paid_at)
    transaction = {"status": "paid", "success": "true", "paid_at": at}
    if row["paymentMethod"] == "pix":
        transaction["end_to_end_id"] = end_to_end_id(payer.ispb, at, suffix)
        transaction["payer_bank"] = payer.bank
    transaction["payer_name"] = payer.name
    transaction["payer_document"] = mask_document(payer.document)
    return closed(row, "paid", now, transaction).keeping(
        {"paid_cents": cents(row["totalAmount"]), "paid_at": paid_at}
    )


def refunds(row: Row) -> list[list[int]]:
    """When money was given back (ms), and how much each time (cents), oldest first."""
    earlier: list[list[int]] = row.hidden.get("earlier_refunds", [])
    newest = row["refunded_cents"] - sum(amount for _, amount in earlier)
    if not newest:
        return earlier
    return [*earlier, [parse_iso(row["last_transaction"]["refunded_at"]), newest]]


def left(row: Row) -> int:
    """What was paid and not given back, in cents."""
    return int(row["paid_cents"] - row["refunded_cents"])


def check_amount(row: Row, amount: int | None, act: str) -> int:
    """The amount (cents) to `refund` or `dispute`, None for all that is left.

    Raises Conflict if less is left.
    """
    rest = left(row)
    if amount is None:
        return rest
    if amount > rest:
        raise Conflict.at(
            "amount", f"{text(rest)} is left to {act}, not {text(amount)}.", "refund_exceeds_amount"
        )
    return amount


def check_refundable(row: Row, amount: int | None, now: int, lifecycle: Lifecycle) -> int:
    """The amount to refund in cents, of all that is left if it is None.

    Raises Conflict: not refundable, more than is left, or later than 90 days after the payment.
    """
    refundable = lifecycle.sets["refundable"]
    paid_at = row["paid_at"]
    if row.status not in refundable:
        message = f"The order is {row.status}; only a {either(refundable)} one can be refunded."
        if not path(lifecycle, row.status, "refunded"):
            message += " It can no longer be paid."
        raise Conflict.at("status", message, "order_not_refundable")
    if now > paid_at + REFUND_WINDOW:
        message = f"The payment of {iso(paid_at)} is more than 90 days ago."
        raise Conflict.at("status", message, "refund_window_closed")
    return check_amount(row, amount, "refund")


def refunded(row: Row, amount: int, refund_id: str, now: int) -> Row:
    """The order after a refund of so many cents."""
    back = row["refunded_cents"]
    status = "paid"
    total = back + amount
    transaction = {
        "status": "partially_refunded",
        "refunded_amount": text(total),
        "refunded_at": iso(now),
        "refund_id": refund_id,
    }
    if total == row["paid_cents"]:
        status = transaction["status"] = "refunded"
    after = closed(row, status, now, transaction).keeping({"refunded_cents": total})
    if back:
        return after.keeping({"earlier_refunds": refunds(row)})
    return after


# -- disputes


def can_be_disputed(row: Row, now: int) -> bool:
    """Whether the payment of a paid order can still be taken back."""
    days = DISPUTE_DAYS.get(row["paymentMethod"])
    return days is not None and now <= row["paid_at"] + days * DAY


def disputed(row: Row, amount: int | None, reason: str | None, now: int) -> Row:
    """The order while it is disputed. `amount` is cents, None for all that is left.

    Raises Conflict: a boleto, more than is left, or too late.
    """
    method = row["paymentMethod"]
    if method not in DISPUTE_DAYS:
        message = "A payment by boleto cannot be disputed; one by pix or credit_card can."
        raise Conflict.at("paymentMethod", message)
    if not can_be_disputed(row, now):
        paid_at = iso(row["paid_at"])
        message = f"The payment of {paid_at} is more than {DISPUTE_DAYS[method]} days ago."
        raise Conflict.at("status", message, "dispute_window_closed")
    transaction = {
        "status": "disputed",
        "disputed_amount": text(check_amount(row, amount, "dispute")),
        "disputed_at": iso(now),
    }
    if reason is not None:
        transaction["dispute_reason"] = reason
    earlier = without(row["last_transaction"], "dispute_reason")
    return closed(row.changed({"last_transaction": earlier}), "disputed", now, transaction)


def check_disputed(row: Row) -> None:
    """Check that an order is disputed. Raises Conflict."""
    if row.status != "disputed":
        raise Conflict.at(
            "status", f"The order is {row.status}; only a disputed one has a dispute to resolve."
        )


def won(row: Row, now: int) -> Row:
    """The order as it was before the dispute."""
    return closed(
        row, "paid", now, {"status": "partially_refunded" if row["refunded_cents"] else "paid"}
    )
