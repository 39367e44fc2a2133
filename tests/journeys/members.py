"""Members and their bills: what the journeys of renewals share."""

from datetime import datetime, timedelta
from typing import Any

from ..support.make import Json, created, done, fresh_cpf, make_plan, order_body
from .stage import Stage

METHODS = ["pix", "boleto", "credit_card"]


def at(text: str) -> datetime:
    """A date-time of the service."""
    return datetime.fromisoformat(text)


def days(number: float) -> timedelta:
    """So many days."""
    return timedelta(days=number)


def plan_of(stage: Stage, **changes: Any) -> Json:
    """A weekly plan that takes every method, unless told otherwise."""
    return make_plan(stage.api, **({"interval": "week", "payment_methods": METHODS} | changes))


def waiting(method: str) -> Json:
    """A buyer whose order by a method waits for payment: a card's does so by a magic
    address alone.
    """
    document = fresh_cpf()
    return buyer(f"fill_never.{document}@example.com" if method == "credit_card" else None)


def buyer(email: str | None = None) -> Json:
    """Somebody whom no other call has named."""
    document = fresh_cpf()
    return {
        "name": "Marina Duarte",
        "email": email or f"m.{document}@example.com",
        "document": document,
    }


def order(stage: Stage, plan: Json, who: Json, method: str = "pix", **changes: Any) -> Json:
    """A new order, which waits for payment unless it is by card."""
    body = order_body(plan["projectId"], plan["id"], customer=who, paymentMethod=method, **changes)
    return created(stage.api.post("/v2/orders", json=body))


def member(stage: Stage, plan: Json, who: Json | None = None, method: str = "pix") -> Json:
    """A new subscription of a plan."""
    first = order(stage, plan, who or buyer(), method)
    if first["status"] == "pending":
        stage.drive("orders", first["id"], "pay")
    return stage.subscription_of(first["id"])


def bill_of(stage: Stage, held: Json) -> Json:
    """The newest order of a subscription."""
    return stage.get_order(stage.get_subscription(held["id"])["lastOrderId"])


def move(stage: Stage, held: Json, action: str) -> None:
    """Suspend, activate or archive the project of a subscription."""
    done(stage.api.post(f"/v2/projects/{held['projectId']}/{action}"))
