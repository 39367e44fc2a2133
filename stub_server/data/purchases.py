"""Draws purchases: what is put into a cart, how it is paid, and what becomes of the membership that
it opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import NamedTuple

from ..core.clock import DAY, HOUR, MINUTE
from ..core.money import cents
from ..core.record import Body
from ..domain.calendar import add_interval, lead_ms
from ..domain.customers import as_buyer
from ..domain.orders import life
from ..domain.subscriptions import CHARGED
from .rhythm import bank_morning, pay_delay
from .tables import pick, shares

# shares of first orders with an extra item, and of those by the year or once with a coupon
BUMP, COUPON = 0.12, 0.06
DISPUTED = ("disputed", "won", "lost")
PAYING = ("paid", "refunded", "partly", *DISPUTED)
# what members do about the bill of a period
PAID, LATE, LAPSE, CANCEL = "paid", "late", "lapse", "cancel"
FOR_EVER = 60  # periods: who has paid so many goes on
# so long after a first order it is paid or has expired
SETTLED = {"pix": 30 * HOUR, "boleto": 8 * DAY, CHARGED: 0}
NEVER = 1 << 62  # ms
LATEST_PAYMENT = 6 * MINUTE  # after an order that is placed just now, which is paid in the future


@dataclass(slots=True, eq=False)
class Offer:
    """A plan for sale, at a share of all sales, between `opens` and `closes` (ms).

    The project is suspended or archived when it `stops`, if that ever comes.
    """

    project: Body
    plan: Body
    share: float
    opens: int
    closes: int
    stops: int
    bumps: Sequence[tuple[str, float]] = ()

    def is_sold_at(self, instant: int) -> bool:
        """Whether the plan can be bought at an instant (ms) or later."""
        return self.closes >= instant and bool(self.plan["status"] == "active")

    @property
    def takes_pix(self) -> bool:
        """Whether the plan is paid by PIX."""
        return "pix" in self.plan["payment_methods"]


class Fate(NamedTuple):
    """How a first order is paid, and what becomes of it and of the membership that it opens.

    `outcome` is how the order ends (`partly` is a partial refund). `bills` says how the following
    periods are paid, in order; the last one repeats.
    """

    method: str
    outcome: str = "paid"
    bills: Sequence[str] = (PAID,)

    def bill(self, cycle: int) -> str:
        """How the period after this one is paid; a card that is late was declined once."""
        return self.bills[min(cycle, len(self.bills) - 1)]


class Purchase(NamedTuple):
    """An order that somebody is about to place.

    `body` is an OrderCreate without the method, `buyer` the customer as the order has it.
    """

    body: Body
    buyer: Body
    customer_id: str
    fate: Fate
    ident: str | None = None


class Visit(NamedTuple):
    """Somebody comes to buy at an instant (ms)."""

    at: int
    offer: Offer
    fate: Fate

    def purchase(self, rng: Random, customer: Body) -> Purchase:
        """What a customer orders then."""
        return Purchase(cart(rng, self.offer), as_buyer(customer), customer["id"], self.fate)


def is_of_one(plan: Body, interval: str) -> bool:
    """Whether a plan is paid every `interval`, not every second or third one."""
    return bool(plan["interval"] == interval and plan["interval_count"] == 1)


def cart(rng: Random, offer: Offer) -> Body:
    """The plan, total and items of a first order: sometimes with an extra item, sometimes
    with a coupon.
    """
    plan, project = offer.plan, offer.project
    price = cents(plan["amount"])
    total = price
    metadata: Body = {"utm_source": pick(rng, "habits", "sources")}
    extras: list[Body] = []
    if offer.bumps and rng.random() < BUMP:
        title, amount = rng.choices(offer.bumps)[0]
        extras.append({"description": title, "quantity": 1, "amount": amount})
        total += cents(amount)
    elif plan["interval"] in (None, "year") and rng.random() < COUPON:
        # the discount is for the first payment only
        percent = int(pick(rng, "habits", "discounts"))
        price -= price * percent // 100
        total = price
        metadata["coupon"] = f"{pick(rng, 'habits', 'coupons')}{percent}"
    items = [
        {"description": f"{project['name']}: {plan['name']}", "quantity": 1, "amount": price / 100},
        *extras,
    ]
    return {
        "projectId": project["id"],
        "planId": plan["id"],
        "totalAmount": total / 100,
        "items": items,
        "metadata": metadata,
    }


def draw_method(rng: Random, plan: Body) -> str:
    """One of the methods that a plan takes."""
    name = "methods_for_long" if plan["interval"] in (None, "year") else "methods"
    usual = shares("habits", name).of
    methods: list[str] = plan["payment_methods"]
    return rng.choices(methods, [usual[method] for method in methods])[0]


def draw_fate(rng: Random, offer: Offer, at: int, now: int) -> Fate:
    """A random fate of a first order at an instant.

    What may still wait for payment now is drawn apart.
    """
    method = draw_method(rng, offer.plan)
    if method == "boleto" and now - at < SETTLED[method] and offer.takes_pix:
        method = "pix"
    outcome = pick(rng, "habits", "outcomes", method)
    if outcome in ("expired", "canceled") and now - at < SETTLED[method]:
        outcome = "paid"
    return paying(rng, method, outcome) if outcome in PAYING else Fate(method, outcome)


def paying(rng: Random, method: str, outcome: str) -> Fate:
    """A random fate of a buyer who pays the first order and some periods, and then stops."""
    bills = []
    for bill in shares("habits", "bills", method).draw(rng, FOR_EVER):
        bills.append(bill)
        if bill not in (PAID, LATE):
            return Fate(method, outcome, bills)
    return Fate(method, outcome, [*bills, PAID])


def unpaid(method: str) -> Fate:
    """The fate of an order that nobody pays: a card is declined at once, a PIX or
    boleto expires.
    """
    return Fate(method, "failed" if method == CHARGED else "expired")


def pays_at(rng: Random, method: str, at: int, end: int) -> int:
    """When an order of an instant is paid, a PIX before the end of the past (ms), and a boleto on a
    bank's morning.
    """
    if method == "pix":
        longest = max(end - at, LATEST_PAYMENT) - MINUTE
        return at + pay_delay(rng, min(DAY, longest))
    ends = at + life(method, at)
    clears = bank_morning(rng, at + DAY + int(rng.random() * DAY))
    if clears < ends:
        return clears
    return min(bank_morning(rng, at), ends - MINUTE)


def count_orders(plan: Body, fate: Fate, begun: int, until: int) -> int:
    """About how many orders come of a purchase until an instant (ms): the first, and the renewals,
    of which a card that is declined is charged again.
    """
    if fate.outcome not in ("paid", "partly") or plan["interval"] is None:
        return 1
    rhythm = (plan["interval"], plan["interval_count"])
    lead = 0 if fate.method == CHARGED else lead_ms(*rhythm)
    begun += plan["trial_period_days"] * DAY
    orders = 1
    for cycle in count():
        bill, end = fate.bill(cycle), add_interval(begun, *rhythm, cycle + 1)
        if bill == CANCEL or end - lead > until:
            break
        orders += 1 + (fate.method == CHARGED and bill != PAID)
        if bill == LAPSE:
            break
    return orders
