"""Rules of orders: what can be bought, what a new order contains, and magic values in e-mail addresses."""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ..contract.formats import date_time_ms
from ..kernel.clock import DAY, SECOND, iso
from ..kernel.money import cents, items_cents, text
from ..kernel.problem import Conflict, detail, reference_missing
from ..kernel.record import Body, Extras, moved_from
from . import boleto
from .brcode import BASE, encode
from .customers import settled_types, with_plain_cep
from .documents import normalise

Names: TypeAlias = tuple[str, str, str]
"""The identifiers of a new order: its id, its code and its transaction's id."""
Seller: TypeAlias = tuple[str, str, str]
"""The receiver of a PIX code (name and city), and the base URL of its image."""

# How long an order can be paid, in ms. For PIX it is the default of the Central Bank's `calendario.expiracao`.
LIFE = {"pix": DAY, "boleto": 3 * DAY, "credit_card": DAY}


class MagicOutcome(NamedTuple):
    """The effect of a magic value: jobs with their delays in ms, a failure at once, or another lifetime in ms."""

    jobs: tuple[tuple[str, int], ...] = ()
    fails: bool = False
    life: int | None = None


NOTHING = MagicOutcome()

# A part of the e-mail's local part -> its effect. No token contains another; the first in this order applies.
MAGIC: dict[str, MagicOutcome] = {
    "refund_after_payment": MagicOutcome((("order.pay", SECOND), ("order.refund", 60 * SECOND))),
    "succeed_immediately": MagicOutcome((("order.pay", SECOND),)),
    "succeed_with_delay": MagicOutcome((("order.pay", 180 * SECOND),)),
    "expire_immediately": MagicOutcome(life=0),
    "expire_with_delay": MagicOutcome(life=180 * SECOND),
    "fail_immediately": MagicOutcome(fails=True),
    "fill_never": MagicOutcome(),
}


@lru_cache(maxsize=1024)
def magic_of(email: str) -> str | None:
    """The magic token in an e-mail's local part, if there is one."""
    local = email.rpartition("@")[0].lower()
    return next((token for token in MAGIC if token in local), None)


def is_refunding(email: str) -> bool:
    """Whether a magic token gives the money of every order back."""
    magic = magic_of(email)
    return magic is not None and any(job == "order.refund" for job, _ in MAGIC[magic].jobs)


def is_refusing(email: str) -> bool:
    """Whether an automatic charge stays unpaid, because of a magic token that does not pay."""
    magic = magic_of(email)
    return magic is not None and all(job != "order.pay" for job, _ in MAGIC[magic].jobs)


def check_buyable(project: Body, plan: Body, method: str, *, sold_out: bool) -> None:
    """Raises Conflict, with what to do about it, if the plan cannot be bought by this method."""
    if project["status"] != "active":
        message = f"The project is {project['status']}, and only an active one takes orders."
        if project["status"] == "archived":
            message += " An archived project sells no more."
            raise _conflict("projectId", "project_not_active", message)
        advice = f"Activate it: POST /v2/projects/{project['id']}/activate."
        raise _conflict("projectId", "project_not_active", message, advice=advice)
    if plan["status"] != "active":
        advice = f"Activate it: PUT /v2/plans/{plan['id']} with status active."
        raise _conflict("planId", "plan_not_active", "The plan is inactive.", advice=advice)
    if method not in plan["payment_methods"]:
        message = f"This plan takes {', '.join(plan['payment_methods'])}, not {method}."
        raise _conflict("paymentMethod", "payment_method_not_allowed", message)
    if sold_out:
        message = f"All {plan['max_subscribers']} places of this plan are taken (max_subscribers)."
        raise _conflict("planId", "plan_sold_out", message)


def check_plan(project_id: str, plan: Body | None) -> Body:
    """The plan of the project. Raises Missing for an unknown plan and for one of another project alike."""
    if plan is None or plan["projectId"] != project_id:
        raise reference_missing("planId", "plan of this project")
    return plan


def buyer(sent: Body) -> Body:
    """The order's own copy of its customer, normalised like a customer."""
    document_type, type_ = settled_types(sent["document"], sent.get("document_type"), sent.get("type"), "customer.")
    return {
        "name": sent["name"],
        "email": sent["email"].lower(),
        "document": normalise(sent["document"]),
        "document_type": document_type,
        "type": type_,
        "phones": sent.get("phones", {}),
        "address": with_plain_cep(sent.get("address", {})),
    }


def new_order(
    names: Names,
    body: Body,
    customer: Body,
    customer_id: str,
    method: str,
    seller: Seller,
    now: int,
    expires: int,
    failed: bool = False,
    subscription_id: str | None = None,
) -> tuple[Body, Body]:
    """A new order's public and hidden parts. `now` and `expires`, until when it can be paid, are in ms.

    `body` is the request, with ids spelled as in the records. A PIX order carries its BR Code also when it fails
    at once.
    """
    ident, code, transaction_id = names
    created = iso(now)
    transaction = new_transaction(transaction_id, method, cents(body["totalAmount"]), seller, created, expires)
    if failed:
        transaction |= failure(DEFAULT_FAILURE[method])
    public = {
        "id": ident,
        "code": code,
        "status": "failed" if failed else "pending",
        "paymentMethod": method,
        "totalAmount": body["totalAmount"],
        "customer": customer,
        "items": body["items"],
        "last_transaction": transaction,
        "createdAt": created,
        "updatedAt": created,
    }
    hidden = {
        "projectId": body["projectId"],
        "planId": body["planId"],
        "customerId": customer_id,
        "metadata": body.get("metadata", {}),
        "document": normalise(customer["document"]),
    }
    for name in ("success_url", "cancel_url"):
        if name in body:
            hidden[name] = body[name]
    if subscription_id is not None:
        hidden |= {"subscriptionId": subscription_id, "renewal": True}
    return public, hidden


def new_transaction(ident: str, method: str, amount: int, seller: Seller, created: str, expires: int) -> dict[str, str]:
    """The first state of an order's payment; every value is a string."""
    name, city, base_url = seller
    transaction = {
        "id": ident,
        "transaction_type": method,
        "status": "waiting_payment",
        "amount": text(amount),
        "currency": "BRL",
        "success": "true",
    }
    if method == "pix":
        txid = ident.replace("-", "")
        code = encode(amount, txid, BASE, name, city)
        transaction["txid"] = txid
        transaction["qr_code"] = code
        transaction["qr_code_url"] = f"{base_url}/_sandbox/qr.svg?code={_quoted(code)}"
    elif method == "boleto":
        barcode = boleto.barcode(amount, expires, int(ident.replace("-", ""), 16))
        transaction["line"], transaction["barcode"] = boleto.line(barcode), barcode
        transaction["due_at"] = iso(expires)
    transaction["expires_at"] = iso(expires)
    transaction["created_at"] = transaction["updated_at"] = created
    return transaction


def _quoted(code: str) -> str:
    """A BR Code in a query. Of the characters that it may contain, only these have another meaning there."""
    if "%" in code or "+" in code or "&" in code or "#" in code:
        code = code.replace("%", "%25").replace("+", "%2B").replace("&", "%26").replace("#", "%23")
    return code.replace(" ", "%20")


_PIX, _CARD, _BOLETO = frozenset(("pix",)), frozenset(("credit_card",)), frozenset(("boleto",))

FAILURES: dict[str, tuple[str, frozenset[str]]] = {
    "insufficient_funds": ("The balance of the payer is too low.", _PIX),
    "payer_limit_exceeded": ("The amount is above the limit of the payer for this time of day.", _PIX),
    "payer_account_blocked": ("The account of the payer is blocked or closed.", _PIX),
    "payer_bank_unavailable": ("The bank of the payer did not answer in time.", _PIX),
    "rejected_by_payer": ("The payer declined the payment in the app of the bank.", _PIX),
    "card_declined": ("The issuer of the card declined the payment.", _CARD),
    "card_limit_exceeded": ("The amount is above the limit of the card.", _CARD),
    "card_expired": ("The card has expired.", _CARD),
    "boleto_not_registered": ("The bank did not register the boleto.", _BOLETO),
    "suspected_fraud": ("The payment was refused by the fraud analysis.", _PIX | _CARD),
    "provider_unavailable": ("The payment provider could not open the charge.", _PIX | _CARD | _BOLETO),
}
"""Why a payment fails, and by which methods it can."""

DEFAULT_FAILURE = {"pix": "insufficient_funds", "credit_card": "card_declined", "boleto": "boleto_not_registered"}


def check_failure(code: str, method: str) -> None:
    """Raises Conflict for a failure code that the payment's method does not have."""
    if method not in FAILURES[code][1]:
        known = ", ".join(name for name, (_, methods) in FAILURES.items() if method in methods)
        message = f"A payment by {method} does not fail with {code}. Its codes are {known}."
        raise _conflict("code", "failure_code_not_applicable", message)


def failure(code: str) -> dict[str, str]:
    """The members of a failed payment's transaction."""
    return {"status": "failed", "success": "false", "failure_code": code, "failure_reason": FAILURES[code][0]}


def closed(public: Body, status: str, at: str, transaction: dict[str, str]) -> Body:
    """The order in another status since `at`, its payment updated with it."""
    payment = {**public["last_transaction"], **transaction, "updated_at": at}
    return {**public, "status": status, "last_transaction": payment, "updatedAt": at}


def expires_at(public: Body) -> int:
    """Until when the order can be paid, in ms."""
    return date_time_ms(public["last_transaction"]["expires_at"])


def warnings(body: Body, plan: Body) -> tuple[str, ...]:
    """Codes of what does not fit together in an order; the source states no rule, so it is accepted.

    `amount_mismatch`: the items do not add up to the total; `price_mismatch`: not to the plan's price.
    """
    items = items_cents(body["items"])
    found = [] if items == cents(body["totalAmount"]) else ["amount_mismatch"]
    if items != cents(plan["amount"]):
        found.append("price_mismatch")
    return tuple(found)


@lru_cache(maxsize=16)
def payload_extras(previous: str | None) -> Extras:
    """The members of an event's payload beside the order."""
    return moved_from(previous, "projectId", "planId", "customerId", "subscriptionId", "metadata")


def _conflict(field: str, code: str, message: str, *, advice: str = "") -> Conflict:
    return Conflict(message, advice=advice, code=code, details=[detail(field, code, message)])
