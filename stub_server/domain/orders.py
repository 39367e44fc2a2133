"""Rules of orders: who may buy what, what a new order holds, and what a payer's e-mail address decides."""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ..contract.formats import date_time_ms
from ..kernel.clock import DAY, SECOND, iso
from ..kernel.money import cents, items_cents, text
from ..kernel.problem import Conflict, detail, reference_missing
from ..kernel.record import Beside, Body, moved_from
from .brcode import BASE, encode
from .customers import settled_types
from .documents import normalise

Names: TypeAlias = tuple[str, str, str]
"""What a new order is called: its id, its code and its transaction's id."""
Seller: TypeAlias = tuple[str, str, str]
"""Whom a PIX code pays, name and city, and the base URL where its picture is."""

PIX_LIFE = DAY  # the default of the Brazilian Central Bank's `calendario.expiracao`


class Outcome(NamedTuple):
    """What a magic value has happen: jobs and their delays in ms, or a failure at once."""

    jobs: tuple[tuple[str, int], ...] = ()
    fails: bool = False
    life: int | None = None


NOTHING = Outcome()

# A part of the e-mail's local part -> what happens. No token contains another; of two in one address the first counts.
MAGIC: dict[str, Outcome] = {
    "refund_after_payment": Outcome((("order.pay", SECOND), ("order.refund", 60 * SECOND))),
    "succeed_immediately": Outcome((("order.pay", SECOND),)),
    "succeed_with_delay": Outcome((("order.pay", 180 * SECOND),)),
    "expire_immediately": Outcome(life=0),
    "expire_with_delay": Outcome(life=180 * SECOND),
    "fail_immediately": Outcome(fails=True),
    "fill_never": Outcome(),
}


@lru_cache(maxsize=1024)
def magic_of(email: str) -> str | None:
    """The magic token in an e-mail's local part, if there is one."""
    local = email.rpartition("@")[0].lower()
    return next((token for token in MAGIC if token in local), None)


def check_buyable(project: Body, plan: Body, method: str, *, sold_out: bool) -> None:
    """Whether a plan is for sale. Raises Conflict, with what to do about it."""
    if project["status"] != "active":
        ident = project["id"]
        way = (
            "An archived project sells no more."
            if project["status"] == "archived"
            else f"Activate it: POST /v2/projects/{ident}/activate."
        )
        message = f"The project is {project['status']}, and only an active one takes orders. {way}"
        raise _conflict("projectId", "project_not_active", message)
    if plan["status"] != "active":
        message = f"The plan is inactive. Activate it: PUT /v2/plans/{plan['id']} with status active."
        raise _conflict("planId", "plan_not_active", message)
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
    """The order's own copy of its customer: as sent, with document_type and type filled in."""
    document_type, type_ = settled_types(sent["document"], sent.get("document_type"), sent.get("type"), "customer.")
    return {
        "name": sent["name"],
        "email": sent["email"],
        "document": sent["document"],
        "document_type": document_type,
        "type": type_,
        "phones": sent.get("phones", {}),
        "address": sent.get("address", {}),
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
    """A new order's public and hidden parts. `now` and `expires`, when its PIX code ends, are in ms.

    `body` is what was asked for, its ids as the records spell them. A PIX order carries its BR Code also when it fails
    at once.
    """
    ident, code, transaction_id = names
    created = iso(now)
    transaction = new_transaction(transaction_id, method, cents(body["totalAmount"]), seller, created, expires)
    if failed:
        transaction |= failure("insufficient_funds")
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
        transaction["expires_at"] = iso(expires)
    transaction["created_at"] = transaction["updated_at"] = created
    return transaction


def _quoted(code: str) -> str:
    """A BR Code in a query: of what it may hold, these are the characters that a query reads otherwise."""
    if "%" in code or "+" in code or "&" in code or "#" in code:
        code = code.replace("%", "%25").replace("+", "%2B").replace("&", "%26").replace("#", "%23")
    return code.replace(" ", "%20")


FAILURES = {
    "insufficient_funds": "The balance of the payer is too low.",
    "payer_limit_exceeded": "The amount is above the limit of the payer for this time of day.",
    "payer_account_blocked": "The account of the payer is blocked or closed.",
    "payer_bank_unavailable": "The bank of the payer did not answer in time.",
    "rejected_by_payer": "The payer declined the payment in the app of the bank.",
    "suspected_fraud": "The payment was refused by the fraud analysis.",
    "card_declined": "The issuer of the card declined the payment.",
}


def failure(code: str) -> dict[str, str]:
    """What a failed payment shows."""
    return {"status": "failed", "success": "false", "failure_code": code, "failure_reason": FAILURES[code]}


def closed(public: Body, status: str, at: str, transaction: dict[str, str]) -> Body:
    """The order in another status since `at`, its payment updated with it."""
    payment = {**public["last_transaction"], **transaction, "updated_at": at}
    return {**public, "status": status, "last_transaction": payment, "updatedAt": at}


def expires_at(public: Body) -> int | None:
    """When the order's PIX code ends, in ms; None for other methods."""
    end = public["last_transaction"].get("expires_at")
    return None if end is None else date_time_ms(end)


def warnings(body: Body) -> tuple[str, ...]:
    """`amount_mismatch` when the items do not add up to the total; the source states no rule between them."""
    return () if items_cents(body["items"]) == cents(body["totalAmount"]) else ("amount_mismatch",)


@lru_cache(maxsize=16)
def beside(previous: str | None) -> Beside:
    """What stands beside the order in its events."""
    return moved_from(previous, "projectId", "planId", "customerId", "subscriptionId", "metadata")


def _conflict(field: str, code: str, message: str) -> Conflict:
    return Conflict(message, code=code, details=[detail(field, code, message)])
