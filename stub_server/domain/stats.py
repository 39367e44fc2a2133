"""The figures of a project, all calculated from its orders and subscriptions so that they agree."""

from collections import Counter
from collections.abc import Mapping

from ..kernel.money import reais
from ..kernel.record import Body, Row
from .calendar import monthly_cents

ORDER_STATES = ("pending", "paid", "failed", "expired", "canceled", "refunded")
SUBSCRIPTION_STATES = ("trialing", "active", "past_due", "canceled", "expired")


class OrderFold:
    """Sums of orders, in all and by plan. Amounts are cents, and reais when shown."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.renewals: Counter[str] = Counter()
        self.gross = self.refunded = 0
        self.plan_orders: Counter[str] = Counter()
        self.plan_net: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        """Count one order."""
        hidden = row.hidden
        plan = hidden["planId"]
        self.states[row.public["status"]] += 1
        if hidden["renewal"]:
            self.renewals[row.public["status"]] += 1
        self.plan_orders[plan] += 1
        self.gross += hidden["paid_cents"]
        self.refunded += hidden["refunded_cents"]
        self.plan_net[plan] += hidden["paid_cents"] - hidden["refunded_cents"]

    @property
    def paid(self) -> int:
        """How many orders were ever paid."""
        return self.states["paid"] + self.states["refunded"]

    def orders(self) -> Body:
        """Counts by status."""
        return {"total": sum(self.states.values()), **{state: self.states[state] for state in ORDER_STATES}}

    def revenue(self) -> Body:
        """Paid, refunded and what is left, in reais; the average ticket is per order that was ever paid."""
        return {
            "gross": reais(self.gross),
            "refunded": reais(self.refunded),
            "net": reais(self.gross - self.refunded),
            "average_ticket": reais(round(self.gross / self.paid)) if self.paid else 0.0,
            "currency": "BRL",
        }

    def conversion(self) -> float | None:
        """The share of paid first orders, with those refunded later, among those not pending; None if there are none.

        Renewals are not counted, as they are not checkouts.
        """
        first = self.states - self.renewals
        decided = first.total() - first["pending"]
        return round((first["paid"] + first["refunded"]) / decided, 4) if decided else None

    def top_plans(self, names: dict[str, str], most: int = 5) -> list[Body]:
        """The plans with the highest revenue; a deleted one is shown as "(deleted)"."""
        ranked = sorted(self.plan_orders, key=lambda plan: (-self.plan_net[plan], -self.plan_orders[plan], plan))
        return [
            {
                "planId": plan,
                "name": names.get(plan, "(deleted)"),
                "orders_count": self.plan_orders[plan],
                "revenue": reais(self.plan_net[plan]),
            }
            for plan in ranked[:most]
        ]


def monthly_revenue(terms: Mapping[tuple[int, str, int], int]) -> float:
    """What active subscriptions are worth per month of thirty days, in reais; the sum is rounded, half to even.

    `terms` maps (cents, interval, interval count) to the number of subscriptions with them.
    """
    return reais(round(sum(number * monthly_cents(*term) for term, number in terms.items())))
