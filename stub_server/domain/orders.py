"""Rules of orders: what can be bought, what a new order contains, and magic values in
e-mail addresses.
"""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import NamedTuple

from ..contract.source import fixture
from ..core.clock import DAY, SECOND, iso, parse_iso
from ..core.money import cents, text
from ..core.problem import Conflict, reference_not_found
from ..core.record import Body, Row, without
from . import boleto
from .brcode import encode


def life(method: str, now: int) -> int:
    """How long a buyer's order can be paid, in ms; for PIX the default of the Central
    Bank's `calendario.expiracao`.
    """
    return boleto.due_at(now) - now if method == "boleto" else DAY


class Magic(NamedTuple):
    """The effect of a magic value: when the order is paid and refunded (ms after it was made), a
    failure at once, or another lifetime in ms. One without a name is none.
    """

    name: str = ""
    pays: int | None = None
    refunds: int | None = None
    fails: bool = False
    life: int | None = None

    @property
    def refuses(self) -> bool:
        """Whether an automatic charge stays unpaid."""
        return self.name != "" and self.pays is None

    @property
    def is_prompt(self) -> bool:
        """Whether a card is charged as its order is made: nothing refuses, delays or expires the
        payment.
        """
        return self.name == "" or self.pays == SECOND


# What a part of the e-mail's local part does. No name contains another; the first in this order
# applies.
MAGIC = (
    Magic("refund_after_payment", pays=SECOND, refunds=60 * SECOND),
    Magic("succeed_immediately", pays=SECOND),
    Magic("succeed_with_delay", pays=180 * SECOND),
    Magic("expire_immediately", life=0),
    Magic("expire_with_delay", life=180 * SECOND),
    Magic("fail_immediately", fails=True),
    Magic("fill_never"),
)
BEHAVIOURS = {"succeeds": "succeed_immediately", "fails": "fail_immediately", "never": "fill_never"}
"""What a customer was set to do with orders -> the magic value that does the same."""


@lru_cache(maxsize=64)
def magic_of(email: str, behaviour: str | None = None) -> Magic:
    """What a customer's behaviour does, else the magic value in the e-mail's local part."""
    wanted = email.rpartition("@")[0].lower() if behaviour is None else BEHAVIOURS[behaviour]
    return next((magic for magic in MAGIC if magic.name in wanted), Magic())


def magic_for(order: Row) -> Magic:
    """What governs an order: its customer's behaviour, else the e-mail."""
    return magic_of(order["customer"]["email"], order.hidden.get("behaviour"))


def used_up(customer: Row) -> Row:
    """A customer whose behaviour is set, after one more order."""
    behaviour = customer["behaviour"]
    times = behaviour["times"]
    if times is None:
        return customer
    if times == 1:
        return customer.replaced(customer.public, without(customer.hidden, "behaviour"))
    return customer.keeping({"behaviour": behaviour | {"times": times - 1}})


def check_buyable(project: Body, plan: Body, method: str, *, sold_out: bool, renews: bool) -> None:
    """Raises Conflict, with what to do about it, if the plan cannot be bought by this method.

    A customer who `renews` has a running subscription of the plan, and may pay for it when it is
    inactive too.
    """
    if project["status"] != "active":
        message = f"The project is {project['status']}, and only an active one takes orders."
        advice = f"Activate it: POST /v2/projects/{project['id']}/activate."
        if project["status"] == "archived":
            advice = "Use another project."
        raise Conflict.at("projectId", message, "project_not_active", advice=advice)
    if plan["status"] != "active" and not renews:
        advice = f"Activate it: PUT /v2/plans/{plan['id']} with status active."
        raise Conflict.at("planId", "The plan is inactive.", "plan_not_active", advice=advice)
    if method not in plan["payment_methods"]:
        message = f"This plan takes {', '.join(plan['payment_methods'])}, not {method}."
        raise Conflict.at("paymentMethod", message, "payment_method_not_allowed")
    if sold_out:
        message = f"The plan is sold out: max_subscribers is {plan['max_subscribers']}."
        advice = f"Raise it with PUT /v2/plans/{plan['id']}, or order another plan."
        raise Conflict.at("planId", message, "plan_sold_out", advice=advice)


def check_plan(project_id: str, plan: Body | None) -> Body:
    """The plan of the project.

    Raises Conflict for an unknown plan and for one of another project.
    """
    if plan is None or plan["projectId"] != project_id:
        raise reference_not_found("planId", "plan of this project")
    return plan


class NewOrder(NamedTuple):
    """What is ordered, by whom, and how it is paid. `body` is a request, with ids as in the
    records.

    It can be paid for `life` ms, and a boleto is `due` (ms) at the end of that, unless told
    otherwise. An order that a scenario names has the id `ident`; one that fails at once has the
    failure code `refused`. With `no_magic`, magic values have no effect. With `copy_only`, the keys
    of its project see what the order says of its customer, and not the customer. The order of a
    further period names its subscription.
    """

    body: Body
    customer: Body
    customer_id: str
    method: str
    copy_only: bool = False
    ident: str | None = None
    refused: str | None = None
    no_magic: bool = False
    life: int | None = None
    due: int | None = None
    subscription_id: str | None = None


def new_order(blank: Row, new: NewOrder, code: str, transaction: dict[str, str]) -> Row:
    """A new order; one that is refused has failed at once."""
    body = new.body
    if new.refused is not None:
        transaction |= failure(new.refused)
    public = {
        "code": code,
        "status": "pending" if new.refused is None else "failed",
        "paymentMethod": new.method,
        "totalAmount": body["totalAmount"],
        "customer": new.customer,
        "items": body["items"],
        "last_transaction": transaction,
    }
    hidden = {
        "projectId": body["projectId"],
        "planId": body["planId"],
        "subscriptionId": new.subscription_id,
        "document": new.customer["document"],
        "metadata": body.get("metadata", {}),
        "success_url": body.get("success_url"),
        "cancel_url": body.get("cancel_url"),
        "paid_at": None,
        "paid_cents": 0,
        "refunded_cents": 0,
        "renewal": new.subscription_id is not None,
        "copy_only": new.copy_only,
        "customerId": new.customer_id,
    }
    return blank.changed(public, hidden)


_ESCAPED = (("%", "%25"), ("+", "%2B"), ("&", "%26"), ("#", "%23"), (" ", "%20"))


def new_transaction(
    new: NewOrder, ident: str, seller: tuple[str, str, str], now: int, expires: int
) -> dict[str, str]:
    """The first state of an order's payment, until when (ms) it can be paid; every value is a
    string.

    `seller` is the receiver of a PIX code (name and city), and the base URL of its image. A PIX
    order carries its BR Code also when it is refused.
    """
    amount, (name, city, base_url) = cents(new.body["totalAmount"]), seller
    transaction = {
        "id": ident,
        "transaction_type": new.method,
        "status": "waiting_payment",
        "amount": text(amount),
        "currency": "BRL",
        "success": "true",
    }
    if new.method == "pix":
        txid = ident.replace("-", "")
        code = encode(amount, txid, name, city)
        transaction["txid"] = txid
        transaction["qr_code"] = code
        for sign, escaped in _ESCAPED:
            code = code.replace(sign, escaped)
        transaction["qr_code_url"] = f"{base_url}/_sandbox/qr.svg?code={code}"
    elif new.method == "boleto":
        due = expires if new.due is None else new.due
        barcode = boleto.barcode(amount, due, int(ident.replace("-", ""), 16))
        transaction["line"] = boleto.line(barcode)
        transaction["barcode"] = barcode
        transaction["due_at"] = iso(due)
    transaction["expires_at"] = iso(expires)
    transaction["created_at"] = transaction["updated_at"] = iso(now)
    return transaction


FAILURES = fixture("failures.yaml")
"""Why a payment fails, and by which methods it can."""

DEFAULT_FAILURE = {
    "pix": "insufficient_funds",
    "credit_card": "card_declined",
    "boleto": "boleto_not_registered",
}


def check_failure(code: str, method: str) -> None:
    """Raises Conflict for a failure code that the payment's method does not have."""
    if method not in FAILURES[code]["methods"]:
        known = ", ".join(name for name, about in FAILURES.items() if method in about["methods"])
        raise Conflict.at(
            "code",
            f"A payment by {method} does not fail with {code}. Its codes are {known}.",
            "failure_code_not_applicable",
        )


def failure(code: str) -> dict[str, str]:
    """What a payment that failed says: its status, the code and the reason."""
    return {
        "status": "failed",
        "success": "false",
        "failure_code": code,
        "failure_reason": FAILURES[code]["reason"],
    }


def closed(row: Row, status: str, at: int, transaction: dict[str, str]) -> Row:
    """The order in another status since an instant (ms), its payment updated with it."""
    return row.changed(
        {
            "status": status,
            "last_transaction": {**row["last_transaction"], **transaction, "updated_at": iso(at)},
        }
    )


def postponed(row: Row, ends: int, due: int, at: int) -> Row:
    """The order with another end (ms) of the time in which it can be paid, as it is since `at`.

    A boleto is due on another day; its line stays, as the payer has it already.
    """
    later = {"expires_at": iso(ends)}
    if row["paymentMethod"] == "boleto":
        later["due_at"] = iso(due)
    return closed(row, row.status, at, later)


def expires_at(row: Row) -> int:
    """Until when the order can be paid, in ms."""
    return parse_iso(row["last_transaction"]["expires_at"])


def items_cents(items: Iterable[Body]) -> int:
    """The total of order items in cents: each amount x quantity, rounded half to even."""
    total = 0
    for item in items:
        amount = item["amount"]
        quantity = item["quantity"]
        if quantity == 1:
            total += cents(amount)
        else:
            exact = Decimal(repr(amount)) * Decimal(repr(quantity)) * 100
            total += int(exact.to_integral_value(ROUND_HALF_EVEN))
    return total


def warnings(body: Body, price: float, *, strict_amounts: bool) -> tuple[str, ...]:
    """Codes of what does not fit together in an order; the source states no rule, so it is
    accepted.

    `amount_mismatch`: the items do not add up to the total; `price_mismatch`: not to the buyer's
    price, in reais. Where amounts are strict, the first is refused. Raises Conflict.
    """
    items = items_cents(body["items"])
    total = cents(body["totalAmount"])
    found = []
    if items != total:
        if strict_amounts:
            raise Conflict.at(
                "totalAmount",
                f"The items add up to {text(items)}, not to {text(total)}.",
                "amount_mismatch",
            )
        found.append("amount_mismatch")
    if items != cents(price):
        found.append("price_mismatch")
    return tuple(found)
