"""The figures of a project, all calculated from its orders and subscriptions so that they agree.

In a period an order counts when it is created, its payment when it is paid, and each refund when it
is made.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from heapq import nsmallest

from ..contract.lifecycles import Lifecycle
from ..core.clock import EARLIEST, LATEST
from ..core.money import reais
from ..core.record import Body, Row
from ..core.slices import Sliced, batched
from .calendar import monthly_cents
from .payments import refunds


class OrderFold:
    """Sums of orders, in all and by plan. Amounts are cents, and reais when shown."""

    def __init__(
        self, lifecycle: Lifecycle, since: int | None = None, until: int | None = None
    ) -> None:
        """`lifecycle` is that of orders; `since` and `until` are ms, from inclusive to exclusive;
        None is open.
        """
        self._lifecycle = lifecycle
        self._since = EARLIEST if since is None else since
        self._until = LATEST + 1 if until is None else until
        self.states: Counter[str] = Counter()
        self.renewals: Counter[str] = Counter()
        self.paid = self.gross = self.refunded = 0
        self.plan_orders: Counter[str] = Counter()
        self.plan_net: Counter[str] = Counter()

    def _covers(self, at: int) -> bool:
        return self._since <= at < self._until

    def add(self, row: Row) -> None:
        """Add an order, its payment and its refunds, each if the period covers it."""
        plan = row["planId"]
        if self._covers(row.record.created):
            self.states[row.status] += 1
            if row["renewal"]:
                self.renewals[row.status] += 1
            self.plan_orders[plan] += 1
        if row["paid_at"] is not None and self._covers(row["paid_at"]):
            self.paid += 1
            self.gross += row["paid_cents"]
            self.plan_net[plan] += row["paid_cents"]
        for at, amount in refunds(row):
            if self._covers(at):
                self.refunded += amount
                self.plan_net[plan] -= amount

    def orders(self) -> Body:
        """How many orders were created, in all and by their present state."""
        counts = {state: self.states[state] for state in self._lifecycle.states}
        return {"total": self.states.total(), **counts}

    def revenue(self) -> Body:
        """Paid, refunded and what is left, in reais; the average ticket is per payment."""
        return {
            "gross": reais(self.gross),
            "refunded": reais(self.refunded),
            "net": reais(self.gross - self.refunded),
            "average_ticket": reais(round(self.gross / self.paid)) if self.paid else 0.0,
            "currency": "BRL",
        }

    def conversion(self) -> float | None:
        """The share of paid first orders, with those refunded later, among those not pending; None
        if there are none.

        Renewals are not counted, as they are not checkouts.
        """
        first = self.states - self.renewals
        sets = self._lifecycle.sets
        decided = first.total() - sum(first[state] for state in sets["payable"])
        if not decided:
            return None
        return round(sum(first[state] for state in sets["settled"]) / decided, 4)

    def top_plans(self, plan_of: Callable[[str], Body | None]) -> Sliced[list[Body]]:
        """The five plans with the highest revenue; a deleted one is shown as "(deleted)"."""
        best: list[tuple[int, int, str]] = []
        for few in batched(self.plan_orders.keys() | self.plan_net.keys()):
            ranked = [(-self.plan_net[plan], -self.plan_orders[plan], plan) for plan in few]
            best = nsmallest(5, best + ranked)
            yield
        shown = []
        for net, orders, plan in best:
            found = plan_of(plan)
            name = "(deleted)" if found is None else found["name"]
            shown.append(
                {"planId": plan, "name": name, "orders_count": -orders, "revenue": reais(-net)}
            )
        return shown


def monthly_revenue(terms: Mapping[tuple[int, str, int], int]) -> Sliced[float]:
    """What active subscriptions are worth per month of thirty days, in reais; the sum is rounded,
    half to even.

    `terms` maps (cents, interval, interval count) to the number of subscriptions with them.
    """
    sums = Counter[tuple[str, int]]()  # few: a fraction for each price takes long
    for few in batched(terms.items()):
        for (amount, interval, count), number in few:
            sums[interval, count] += number * amount
        yield
    return reais(round(sum(monthly_cents(total, *period) for period, total in sums.items())))
