"""The model's figures: what projects, plans and statistics must count, folded from the
model's own records.
"""

from fractions import Fraction

from . import model_orders as sales
from .model import RUNNING, Json, Order, Plan, Project, World

STATES = ("pending", "paid", "failed", "expired", "canceled", "refunded", "disputed")
LIVES = ("trialing", "active", "past_due", "canceled", "expired")
PER_MONTH = {
    "day": Fraction(30),
    "week": Fraction(30, 7),
    "month": Fraction(1),
    "year": Fraction(1, 12),
}


def net(orders: list[Order]) -> int:
    """What orders brought and did not give back, in cents."""
    return sum(order.earned for order in orders)


def project_view(world: World, project: Project) -> Json:
    """What the API must show of a project."""
    orders = world.orders_of(project)
    members = [found for found in world.subscriptions if found.plan.project is project]
    return {
        "id": project.id,
        "name": project.name,
        "status": project.status,
        "description": project.description,
        "plans_count": sum(plan.project is project for plan in world.plans),
        "orders_count": len(orders),
        "total_revenue": net(orders) / 100,
        "total_subscribers": len({id(found.customer) for found in members}),
        "active_subscribers": len(
            {id(found.customer) for found in members if found.status in RUNNING}
        ),
    }


def plan_view(world: World, plan: Plan) -> Json:
    """What the API must show of a plan."""
    return {
        "id": plan.id,
        "projectId": plan.project.id,
        "name": plan.name,
        "amount": plan.amount / 100,
        "currency": "BRL",
        "billing_type": "recurring" if plan.recurring else "one_time",
        "interval": plan.unit,
        "interval_count": plan.count,
        "trial_period_days": plan.trial_days,
        "max_subscribers": plan.limit,
        "subscribers_count": len(sales.members(world, plan)),
        "status": plan.status,
    }


def stats_view(world: World, project: Project) -> Json:
    """What the statistics of a project must say for all time, without the figures
    that are rounded.
    """
    orders = world.orders_of(project)
    members = [found for found in world.subscriptions if found.plan.project is project]
    paid = [order for order in orders if order.paid is not None]
    lives = {state: sum(found.status == state for found in members) for state in LIVES}
    return {
        "projectId": project.id,
        "orders": (
            {"total": len(orders)}
            | {state: sum(order.status == state for order in orders) for state in STATES}
        ),
        "revenue": {
            "gross": sum(order.total for order in paid) / 100,
            "refunded": sum(order.refunded for order in paid) / 100,
            "net": net(orders) / 100,
            "currency": "BRL",
        },
        "subscribers": {"total": len({id(found.customer) for found in members})} | lives,
        "plans_count": sum(plan.project is project for plan in world.plans),
        "products_count": sum(product.project is project for product in world.products),
    }


def conversion(world: World, project: Project) -> Fraction | None:
    """Of first orders, those that renewed nothing: how many were ever paid over those that no
    longer wait.
    """
    first = [
        order
        for order in world.orders_of(project)
        if order.subscription is None or order.subscription.first is order
    ]
    settled = [order for order in first if order.status != "pending"]
    return (
        Fraction(sum(order.paid is not None for order in settled), len(settled))
        if settled
        else None
    )


def monthly(world: World, project: Project) -> Fraction:
    """What active subscriptions bring in thirty days, in reais; those of an archived project are
    not renewed.
    """
    if project.status == "archived":
        return Fraction(0)
    active = (
        found
        for found in world.subscriptions
        if found.plan.project is project and found.status == "active"
    )
    return sum(
        (PER_MONTH[found.unit] * found.amount / found.count / 100 for found in active), Fraction(0)
    )


def ticket(world: World, project: Project) -> Fraction:
    """What a paid order brings on average, in reais."""
    paid = [order for order in world.orders_of(project) if order.paid is not None]
    return Fraction(sum(order.total for order in paid), len(paid) * 100) if paid else Fraction(0)
