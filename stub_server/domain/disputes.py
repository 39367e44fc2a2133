"""Rules of disputes: which orders can be disputed, and what they show meanwhile and afterwards."""

from ..kernel.clock import iso
from ..kernel.money import cents, text
from ..kernel.problem import Conflict, detail
from ..kernel.record import Body
from .orders import closed
from .payments import check_amount, left


def can_be_disputed(public: Body) -> bool:
    """Whether payments of the order's method can be taken back: nobody can take a boleto back."""
    return bool(public["paymentMethod"] != "boleto")


def opened(public: Body, hidden: Body, amount: int | None, reason: str | None, now: int) -> Body:
    """The order while it is disputed. `amount` is cents, None for all that is left.

    Raises Conflict: a boleto, or more than is left.
    """
    if not can_be_disputed(public):
        message = "A payment by boleto cannot be disputed; one by pix or credit_card can."
        raise Conflict(message, details=[detail("paymentMethod", "not_allowed", message)])
    amount = check_amount(hidden, amount, "dispute")
    at = iso(now)
    transaction = {"status": "disputed", "disputed_amount": text(amount), "disputed_at": at}
    if reason is not None:
        transaction["dispute_reason"] = reason
    earlier = {name: value for name, value in public["last_transaction"].items() if name != "dispute_reason"}
    return closed({**public, "last_transaction": earlier}, "disputed", at, transaction)


def check_disputed(public: Body) -> None:
    """Raises Conflict for an order that is not disputed."""
    if public["status"] != "disputed":
        message = f"The order is {public['status']}; only a disputed one has a dispute to resolve."
        raise Conflict(message, details=[detail("status", "not_allowed", message)])


def amount_of(public: Body) -> int:
    """How much of an order is disputed, in cents."""
    return cents(float(public["last_transaction"]["disputed_amount"]))


def won(public: Body, hidden: Body, now: int) -> Body:
    """The order as it was before the dispute."""
    status = "partially_refunded" if left(hidden) < hidden["paid_cents"] else "paid"
    return closed(public, "paid", iso(now), {"status": status})
