"""Draws purchases: what is put into a cart, how it is paid, and what becomes of the membership that it opens."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from random import Random
from typing import Any, NamedTuple

from ..core.clock import DAY, MINUTE
from ..core.money import cents
from ..core.record import Body
from ..domain.calendar import add_interval, lead_ms
from ..domain.orders import life
from ..domain.subscriptions import ATTEMPTS, CHARGED
from .rhythm import bank_morning, pay_delay
from .tables import pick, shares

BUMP, COUPON = 0.12, 0.06  # shares of first orders with an extra item, and of those by the year or once with a coupon
DISPUTED = ("disputed", "won", "lost")
PAYING = ("paid", "refunded", "partly", *DISPUTED)
PAID, LATE, LAPSE, CANCEL = "paid", "late", "lapse", "cancel"  # what members do about the bill of a period
FOR_EVER = 60  # periods: who has paid so many goes on


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A plan for sale, at a share of all sales, between `opens` and `closes` (ms).

    `stopped` is when the project is suspended or archived; None while it stays active.
    """

    project: Body
    plan: Body
    share: float
    opens: int
    closes: int
    stopped: int | None
    bumps: Sequence[tuple[str, float]]


def is_of_one(plan: Body, interval: str) -> bool:
    """Whether a plan is paid every `interval`, not every second or third one."""
    return bool(plan["interval"] == interval and plan["interval_count"] == 1)


def cart(rng: Random, offer: Offer) -> Body:
    """The plan, total and items of a first order: sometimes with an extra item, sometimes with a coupon."""
    plan, project = offer.plan, offer.project
    price = cents(plan["amount"])
    total = price
    metadata: dict[str, Any] = {"utm_source": pick(rng, "habits", "sources")}
    extras: list[Body] = []
    if offer.bumps and rng.random() < BUMP:
        title, amount = rng.choices(offer.bumps)[0]
        extras.append({"description": title, "quantity": 1, "amount": amount})
        total += cents(amount)
    elif plan["interval"] in (None, "year") and rng.random() < COUPON:  # the discount is for the first payment only
        percent = int(pick(rng, "habits", "discounts"))
        price -= price * percent // 100
        total = price
        metadata["coupon"] = f"{pick(rng, 'habits', 'coupons')}{percent}"
    items = [{"description": f"{project['name']}: {plan['name']}", "quantity": 1, "amount": price / 100}, *extras]
    return {
        "projectId": project["id"],
        "planId": plan["id"],
        "totalAmount": total / 100,
        "items": items,
        "metadata": metadata,
    }


class Fate(NamedTuple):
    """What becomes of a purchase. `outcome` is how the first order ends (`partly` is a partial refund).

    `bills` says how the following periods are paid, in order; the last one repeats.
    """

    outcome: str
    bills: Sequence[str] = (PAID,)

    def bill(self, cycle: int) -> str:
        """How the period after this one is paid; a card that is late was declined once."""
        return self.bills[min(cycle, len(self.bills) - 1)]


def draw_method(rng: Random, plan: Body) -> str:
    """One of the methods that a plan takes."""
    usual = shares("habits", "methods_for_long" if plan["interval"] in (None, "year") else "methods").of
    methods: list[str] = plan["payment_methods"]
    return rng.choices(methods, [usual[method] for method in methods])[0]


def draw_fate(rng: Random, method: str) -> Fate:
    """A random fate of a first order by a method."""
    outcome = pick(rng, "habits", "outcomes", method)
    return paying(rng, outcome, method) if outcome in PAYING else Fate(outcome)


def paying(rng: Random, outcome: str, method: str) -> Fate:
    """A random fate of a buyer who pays the first order and some periods, and then stops."""
    drawn = shares("habits", "bills", method).draw(rng, FOR_EVER)
    paid = [*takewhile(lambda bill: bill in (PAID, LATE), drawn)]
    return Fate(outcome, paid + (drawn[len(paid) : len(paid) + 1] or [PAID]))


def unpaid(method: str) -> Fate:
    """The fate of an order that nobody pays: a card is declined at once, a PIX or boleto expires."""
    return Fate("failed" if method == CHARGED else "expired")


def pays_at(rng: Random, method: str, at: int, until: int) -> int:
    """When an order of an instant is paid, before another one (ms): by card at once, a boleto on a bank's morning."""
    if method == CHARGED:
        return at
    if method == "pix":
        return at + pay_delay(rng, min(DAY, until - at - MINUTE))
    ends = at + life(method, at)
    clears = bank_morning(rng, at + DAY + int(rng.random() * DAY))
    return clears if clears < ends else min(bank_morning(rng, at), ends - MINUTE)


def count_orders(plan: Body, method: str, fate: Fate, paid: int, until: int) -> int:
    """How many orders come of a purchase until an instant (ms): the first, paid at another one, and its renewals."""
    if fate.outcome not in ("paid", "partly") or plan["interval"] is None:
        return 1
    rhythm = (plan["interval"], plan["interval_count"])
    lead = 0 if method == CHARGED else lead_ms(*rhythm)
    begun = paid + plan["trial_period_days"] * DAY
    orders = 1
    for cycle in count():
        bill, end = fate.bill(cycle), add_interval(begun, *rhythm, cycle + 1)
        if bill == CANCEL or end - lead > until:
            break
        orders += 1
        if method == CHARGED and bill in (LATE, LAPSE):
            attempts = ATTEMPTS if bill == LAPSE else ATTEMPTS[:1]
            orders += sum(end + after <= until for after in attempts)
        if bill == LAPSE:
            break
    return orders
