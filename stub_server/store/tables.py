"""The nine tables of a merchant: what is unique, what is indexed, what is summed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..kernel.money import cents
from ..kernel.record import Body
from ..kernel.text import fold
from .spec import Check, Distinct, Mirror, Sum, TableSpec, hidden, public

LOG_ROWS = 10_000


class Layout(NamedTuple):
    """How every store of a server is laid out.

    `tables` by name, `checks` by schema name; `running` are the states in which a subscription counts as a subscriber.
    """

    tables: Mapping[str, TableSpec]
    checks: Mapping[str, Check]
    running: tuple[str, ...]


def _folded(member: str) -> Any:
    return lambda shown, kept: fold(shown[member])


def _casefolded_name(shown: Body, kept: Body) -> Any:
    return shown["name"].casefold()


def _name_and_description(shown: Body, kept: Body) -> str:
    return fold(f"{shown['name'] or ''}\n{shown.get('description') or ''}")


def _name_in_project(shown: Body, kept: Body) -> tuple[str, str]:
    return shown["projectId"], shown["name"].casefold()


def _sku_in_project(shown: Body, kept: Body) -> tuple[str, str] | None:
    return (shown["projectId"], shown["sku"]) if shown["sku"] is not None else None


def _url_in_project(shown: Body, kept: Body) -> tuple[str, str | None]:
    return shown["url"], shown["projectId"]


def _active_terms(shown: Body, kept: Body) -> tuple[int, str, int] | None:
    """What an active subscription brings in, and how often: few different ones, so their number by kind is kept."""
    if shown["status"] != "active":
        return None
    return cents(shown["amount"]), shown["interval"], shown["interval_count"]


def _total_cents(shown: Body, kept: Body) -> int:
    return cents(shown["totalAmount"])


def _billing_instant(shown: Body, kept: Body) -> str:
    return shown["next_billing_at"] or ""


_project, _plan = public("projectId"), public("planId")
_order_project, _order_plan = hidden("projectId"), hidden("planId")


def _renewal_status(shown: Body, kept: Body) -> str | None:
    return shown["status"] if kept.get("renewal") else None


def _buyer(shown: Body, kept: Body) -> str | None:
    return kept["customerId"] if shown["status"] == "paid" else None


def table_specs(running: tuple[str, ...], payable: tuple[str, ...]) -> Mapping[str, TableSpec]:
    """The tables by name; `running` are the states in which a subscription counts as a subscriber, `payable` those in
    which an order waits for payment.
    """

    def running_customer(shown: Body, kept: Body) -> str | None:
        return shown["customerId"] if shown["status"] in running else None

    def waiting_customer(shown: Body, kept: Body) -> str | None:
        return kept["customerId"] if shown["status"] in payable and not kept.get("renewal") else None

    return {
        "api_keys": TableSpec(
            "ApiKey",
            created="created_at",
            unique={"public_key": public("public_key"), "digest": hidden("digest")},
            indexes={"is_active": public("is_active")},
            sorts={"name": _folded("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "customers": TableSpec(
            "Customer",
            unique={"document": public("document")},
            indexes={"email": public("email"), "type": public("type"), "document_type": public("document_type")},
            sorts={"name": _folded("name")},
            search={"name": _folded("name")},
        ),
        "projects": TableSpec(
            "Project",
            unique={"name": _casefolded_name},
            indexes={"status": public("status"), "visibility": public("visibility")},
            sorts={"name": _folded("name")},
            search={"search": _name_and_description},
            live=True,
        ),
        "plans": TableSpec(
            "Plan",
            unique={"name": _name_in_project},
            indexes={"projectId": _project, "status": public("status"), "billing_type": public("billing_type")},
            sorts={"name": _folded("name"), "amount": lambda shown, kept: cents(shown["amount"])},
            search={"search": _name_and_description},
            touches={"projects": _project},
            live=True,
        ),
        "products": TableSpec(
            "Product",
            unique={"sku": _sku_in_project},
            indexes={"projectId": _project, "type": public("type"), "status": public("status")},
            sorts={"name": _folded("name")},
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
                "document": hidden("document"),
                "paymentMethod": public("paymentMethod"),
            },
            pairs=("projectId+status", "planId+status"),
            sorts={"totalAmount": _total_cents},
            sums={
                "gross": Sum("projectId", hidden("paid_cents")),
                "refunded": Sum("projectId", hidden("refunded_cents")),
                "plan_gross": Sum("planId", hidden("paid_cents")),
                "plan_refunded": Sum("planId", hidden("refunded_cents")),
            },
            distinct={
                "plans": Distinct("projectId", _order_plan),
                "renewals": Distinct("projectId", _renewal_status),
                "plan_buyers": Distinct("planId", _buyer),
                "plan_waiting": Distinct("planId", waiting_customer),
            },
            touches={"projects": _order_project, "plans": _order_plan},
            defaults={
                "subscriptionId": None,
                "success_url": None,
                "cancel_url": None,
                "paid_cents": 0,
                "refunded_cents": 0,
                "paid_at": None,
                "renewal": False,
            },
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
            touches={"projects": _project, "plans": _plan},
            mirrors={"customer": Mirror("customers", "customerId"), "plan": Mirror("plans", "planId")},
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
            ring=LOG_ROWS,
        ),
    }
