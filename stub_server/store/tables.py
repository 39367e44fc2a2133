"""The nine tables of a merchant: what is unique, what is indexed, what is summed."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ..kernel.money import cents
from ..kernel.record import Body
from ..kernel.text import NUMBERS_END, folded, search_key, search_numbers
from .spec import Check, Distinct, Mirror, Ring, Sum, TableSpec, hidden, public

LOG_ROWS, LOG_BYTES = 10_000, 64 * 1024 * 1024
MOST_LOG_ROWS, MOST_LOG_BYTES = 5 * LOG_ROWS, 2 * LOG_BYTES  # where that many deliveries are still open


class Layout(NamedTuple):
    """How every store of a server is laid out.

    `tables` by name, `checks` by schema name; `running` are the states in which a subscription counts as a subscriber.
    """

    tables: Mapping[str, TableSpec]
    checks: Mapping[str, Check]
    running: tuple[str, ...]


def _search_key(member: str) -> Any:
    return lambda public, hidden: search_key(public[member])


def _casefolded_name(public: Body, hidden: Body) -> Any:
    return public["name"].casefold()


def _name_and_description(public: Body, hidden: Body) -> str:
    # No text that is searched for contains the sign between them, so none runs from the one into the other.
    return search_key(f"{public['name'] or ''}\0{public.get('description') or ''}")


def _name_in_project(public: Body, hidden: Body) -> tuple[str, str]:
    return public["projectId"], public["name"].casefold()


def _sku_in_project(public: Body, hidden: Body) -> tuple[str, str] | None:
    return (public["projectId"], public["sku"]) if public["sku"] is not None else None


def _url_in_project(public: Body, hidden: Body) -> tuple[str, str | None]:
    return public["url"], public["projectId"]


def _active_terms(public: Body, hidden: Body) -> tuple[int, str, int] | None:
    """What an active subscription brings in, and how often: few different ones, so their number by kind is counted."""
    if public["status"] != "active":
        return None
    return cents(public["amount"]), public["interval"], public["interval_count"]


def _buyer_and_code(public: Body, hidden: Body) -> str:
    customer = public["customer"]
    numbers = search_numbers("\0".join((customer["document"], *customer["phones"].values())))
    email, name = search_key(customer["email"]), search_key(customer["name"])
    return f"{numbers}{NUMBERS_END}{folded(public['code'])}\0{email}\0{name}"


def _total_cents(public: Body, hidden: Body) -> int:
    return cents(public["totalAmount"])


def _billing_instant(public: Body, hidden: Body) -> str:
    return public["next_billing_at"] or ""


_project, _plan = public("projectId"), public("planId")
_order_project, _order_plan = hidden("projectId"), hidden("planId")


def _renewal_status(public: Body, hidden: Body) -> str | None:
    return public["status"] if hidden.get("renewal") else None


def _is_being_renewed(public: Body, hidden: Body) -> bool:
    return hidden["renewal_order"] is not None or len(hidden["paid_by"]) > 1


def _shown_customer(public: Body, hidden: Body) -> str | None:
    return None if hidden.get("copy_only") else hidden["customerId"]


def table_specs(sets: Mapping[str, Mapping[str, Collection[str]]]) -> Mapping[str, TableSpec]:
    """The tables by name; `sets` are the named sets of states of each schema."""
    running, open_deliveries = sets["Subscription"]["running"], tuple(sets["WebhookLogEntry"]["open"])
    payable, kept = sets["Order"]["payable"], sets["Order"]["kept"]

    def buyer(public: Body, hidden: Body) -> str | None:
        return hidden["customerId"] if public["status"] in kept else None

    def running_customer(public: Body, hidden: Body) -> str | None:
        return public["customerId"] if public["status"] in running else None

    def waiting_customer(public: Body, hidden: Body) -> str | None:
        return hidden["customerId"] if public["status"] in payable and not hidden.get("renewal") else None

    def is_payable(public: Body, hidden: Body) -> bool:
        return public["status"] in payable

    return {
        "api_keys": TableSpec(
            "ApiKey",
            created="created_at",
            unique={"public_key": public("public_key"), "digest": hidden("digest")},
            indexes={"is_active": public("is_active")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "customers": TableSpec(
            "Customer",
            unique={"document": public("document")},
            indexes={
                "email": public("email"),
                "type": public("type"),
                "document_type": public("document_type"),
                "made_by": hidden("made_by"),
            },
            sorts={"name": _search_key("name")},
            search={"name": _search_key("name")},
        ),
        "projects": TableSpec(
            "Project",
            unique={"name": _casefolded_name},
            indexes={"status": public("status"), "visibility": public("visibility")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "plans": TableSpec(
            "Plan",
            unique={"name": _name_in_project},
            indexes={"projectId": _project, "status": public("status"), "billing_type": public("billing_type")},
            sorts={"name": _search_key("name"), "amount": lambda public, hidden: cents(public["amount"])},
            search={"search": _name_and_description},
            invalidates={"projects": _project},
            live=True,
        ),
        "products": TableSpec(
            "Product",
            unique={"sku": _sku_in_project},
            indexes={"projectId": _project, "type": public("type"), "status": public("status")},
            sorts={"name": _search_key("name")},
            search={"search": _name_and_description},
        ),
        "orders": TableSpec(
            "Order",
            unique={"code": public("code")},
            indexes={
                "projectId": _order_project,
                "planId": _order_plan,
                "status": public("status"),
                "customerId": hidden("customerId"),
                "subscriptionId": hidden("subscriptionId"),
                "document": hidden("document"),
                "paymentMethod": public("paymentMethod"),
            },
            pairs=("projectId+status", "planId+status"),
            sorts={"totalAmount": _total_cents},
            search={"search": _buyer_and_code},
            sums={
                "gross": Sum("projectId", hidden("paid_cents")),
                "refunded": Sum("projectId", hidden("refunded_cents")),
                "plan_gross": Sum("planId", hidden("paid_cents")),
                "plan_refunded": Sum("planId", hidden("refunded_cents")),
            },
            distinct={
                "plans": Distinct("projectId", _order_plan),
                "renewals": Distinct("projectId", _renewal_status),
                "customers": Distinct("projectId", _shown_customer),
                "plan_buyers": Distinct("planId", buyer),
                "plan_waiting": Distinct("planId", waiting_customer),
            },
            invalidates={"projects": _order_project, "plans": _order_plan},
            defaults={
                "subscriptionId": None,
                "success_url": None,
                "cancel_url": None,
                "paid_cents": 0,
                "refunded_cents": 0,
                "paid_at": None,
                "renewal": False,
                "copy_only": False,
            },
            is_moving=is_payable,
        ),
        "subscriptions": TableSpec(
            "Subscription",
            unique={"code": public("code")},
            indexes={
                "projectId": _project,
                "planId": _plan,
                "status": public("status"),
                "customerId": public("customerId"),
            },
            pairs=("projectId+status", "planId+status", "customerId+planId"),
            sorts={"next_billing_at": _billing_instant},
            distinct={
                "subscribers": Distinct("projectId", public("customerId")),
                "active_subscribers": Distinct("projectId", running_customer),
                "plan_subscribers": Distinct("planId", running_customer),
                "active_terms": Distinct("projectId", _active_terms),
            },
            invalidates={"projects": _project, "plans": _plan},
            mirrors={"customer": Mirror("customers", "customerId"), "plan": Mirror("plans", "planId")},
            lived=("customerId+planId",),
            is_moving=_is_being_renewed,
        ),
        "webhooks": TableSpec(
            "Webhook",
            unique={"url": _url_in_project},
            indexes={"is_active": public("is_active"), "projectId": _project},
            live=False,
        ),
        "webhook_logs": TableSpec(
            "WebhookLogEntry",
            indexes={
                "webhookId": public("webhookId"),
                "projectId": hidden("projectId"),
                "status": public("status"),
                "event_type": public("event_type"),
                "event_id": public("event_id"),
            },
            pairs=("webhookId+status",),
            ring=Ring(LOG_ROWS, LOG_BYTES, MOST_LOG_ROWS, MOST_LOG_BYTES, "status", open_deliveries),
        ),
    }
