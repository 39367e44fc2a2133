"""The figures of a project, added up from its orders and subscriptions one by one."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from .filters import Json

ORDERS = ("pending", "paid", "failed", "expired", "canceled", "refunded")
SUBSCRIPTIONS = ("trialing", "active", "past_due", "canceled", "expired")
PER_MONTH = {"day": Fraction(30), "week": Fraction(30, 7), "month": Fraction(1), "year": Fraction(1, 12)}
TOP = 5


def money(amount: Fraction | Decimal) -> float:
    """Reais with two decimals."""
    exact = Fraction(amount) * 100
    return round(exact) / 100


def within(orders: Iterable[Json], since: str | None, until: str | None) -> list[Json]:
    """The orders created in a period: from its start, included, to its end, excluded."""
    first = None if since is None else datetime.fromisoformat(since)
    last = None if until is None else datetime.fromisoformat(until)
    return [
        order
        for order in orders
        if (first is None or datetime.fromisoformat(order["createdAt"]) >= first)
        and (last is None or datetime.fromisoformat(order["createdAt"]) < last)
    ]


def is_paid(order: Json) -> bool:
    """Whether an order was ever paid: a refunded one was."""
    return order["status"] in ("paid", "refunded")


def gross(orders: Iterable[Json]) -> Decimal:
    """What was paid."""
    return sum((Decimal(str(order["totalAmount"])) for order in orders if is_paid(order)), Decimal(0))


def refunded(orders: Iterable[Json]) -> Decimal:
    """What was given back, in whole or in part."""
    return sum((Decimal(order["last_transaction"].get("refunded_amount", "0")) for order in orders), Decimal(0))


def order_figures(orders: list[Json]) -> Json:
    """What the statistics say of these orders."""
    states = Counter(order["status"] for order in orders)
    paid = sum(map(is_paid, orders))
    taken, given = gross(orders), refunded(orders)
    return {
        "orders": {"total": len(orders)} | {state: states[state] for state in ORDERS},
        "revenue": {
            "gross": money(taken),
            "refunded": money(given),
            "net": money(taken - given),
            "average_ticket": money(Fraction(taken) / paid) if paid else 0,
            "currency": "BRL",
        },
    }


def conversion(orders: list[Json], renewals: set[str]) -> float | None:
    """First orders that were paid, over those that are decided: a renewal is no checkout."""
    decided = [order for order in orders if order["status"] != "pending" and order["id"] not in renewals]
    if not decided:
        return None
    rate = Decimal(sum(map(is_paid, decided))) / len(decided)
    return float(rate.quantize(Decimal("0.0001"), ROUND_HALF_EVEN))


def subscriber_figures(subscriptions: list[Json]) -> Json:
    """How many customers ever subscribed, and the subscriptions in each state."""
    states = Counter(held["status"] for held in subscriptions)
    customers = {held["customerId"] for held in subscriptions}
    return {"total": len(customers)} | {state: states[state] for state in SUBSCRIPTIONS}


def monthly(subscriptions: list[Json]) -> Fraction:
    """What active subscriptions bring in a month of thirty days, not rounded yet."""
    active = [held for held in subscriptions if held["status"] == "active"]
    return sum(
        (Fraction(str(held["amount"])) * PER_MONTH[held["interval"]] / held["interval_count"] for held in active),
        Fraction(0),
    )


def plan_figures(orders: list[Json], names: dict[str, str]) -> list[Json]:
    """Every plan that has orders, with the highest revenue first."""
    by_plan: dict[str, list[Json]] = {}
    for order in orders:
        by_plan.setdefault(order["planId"], []).append(order)
    figures = [
        {
            "planId": plan,
            "name": names[plan],
            "orders_count": len(placed),
            "revenue": money(gross(placed) - refunded(placed)),
        }
        for plan, placed in by_plan.items()
    ]
    return sorted(figures, key=lambda figure: -figure["revenue"])
