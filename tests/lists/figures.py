"""The figures of a project, added up from its orders and subscriptions one by one."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from .filters import Json

ORDERS = ("pending", "paid", "failed", "expired", "canceled", "refunded", "disputed")
TOP = 5


def money(amount: Fraction | Decimal) -> float:
    """Reais with two decimals."""
    exact = Fraction(amount) * 100
    return round(exact) / 100


Period = tuple[str | None, str | None]
ALWAYS: Period = (None, None)


def covers(period: Period, at: str | None) -> bool:
    """Whether something happened in a period: from its start, included, to its end, excluded."""
    if at is None:
        return False
    moment, (since, until) = datetime.fromisoformat(at), period
    after = since is None or moment >= datetime.fromisoformat(since)
    return after and (until is None or moment < datetime.fromisoformat(until))


def within(orders: Iterable[Json], period: Period) -> list[Json]:
    """The orders created in a period."""
    return [order for order in orders if covers(period, order["createdAt"])]


def payments(orders: Iterable[Json], period: Period) -> list[Decimal]:
    """What was paid in a period."""
    paid = (order for order in orders if covers(period, order["last_transaction"].get("paid_at")))
    return [Decimal(str(order["totalAmount"])) for order in paid]


def refunded(orders: Iterable[Json], period: Period) -> Decimal:
    """What was given back in a period, in whole or in part; no order of this world was
    refunded twice.
    """
    given = (order["last_transaction"] for order in orders)
    return sum(
        (Decimal(o["refunded_amount"]) for o in given if covers(period, o.get("refunded_at"))),
        Decimal(0),
    )


def order_figures(orders: list[Json], period: Period) -> Json:
    """What the statistics say of these orders."""
    made = within(orders, period)
    states = Counter(order["status"] for order in made)
    paid = payments(orders, period)
    given = refunded(orders, period)
    taken = sum(paid, Decimal(0))
    return {
        "orders": {"total": len(made)} | {state: states[state] for state in ORDERS},
        "revenue": {
            "gross": money(taken),
            "refunded": money(given),
            "net": money(taken - given),
            "average_ticket": money(Fraction(taken) / len(paid)) if paid else 0,
            "currency": "BRL",
        },
    }


def plan_figures(orders: list[Json], names: dict[str, str], period: Period) -> list[Json]:
    """Every plan that was ordered, paid or refunded in a period, with the highest revenue first."""
    by_plan: dict[str, list[Json]] = {}
    for order in orders:
        moments = (
            order["createdAt"],
            *(order["last_transaction"].get(name) for name in ("paid_at", "refunded_at")),
        )
        if any(covers(period, at) for at in moments):
            by_plan.setdefault(order["planId"], []).append(order)
    figures = [
        {
            "planId": plan,
            "name": names[plan],
            "orders_count": len(within(of_plan, period)),
            "revenue": money(
                sum(payments(of_plan, period), Decimal(0)) - refunded(of_plan, period)
            ),
        }
        for plan, of_plan in by_plan.items()
    ]
    return sorted(figures, key=lambda figure: -figure["revenue"])
