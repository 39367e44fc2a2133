"""Draws purchases: what is on sale, what a first order is for, how it ends, and how its renewals are paid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from ..domain.calendar import lead_ms
from ..domain.subscriptions import ATTEMPTS, CHARGED
from ..kernel.clock import DAY
from ..kernel.money import cents
from ..kernel.record import Body
from .draw import Weighted, pick

SOURCES = ("instagram",) * 6 + ("google",) * 4 + ("youtube",) * 2 + ("facebook", "indicacao")  # where buyers come from
BUMP, COUPON = 0.12, 0.03  # shares of first orders with an extra item, and with a coupon
DISCOUNTS = (10, 10, 15, 20)
COUPONS = ("BEMVINDO", "AMIGO", "SEMANA")
PAID, LATE, LAPSE, CANCEL, ANY = "paid", "late", "lapse", "cancel", "any"
#: Shares of first orders, where a plan takes all methods: what is paid again every few weeks is left to a card.
METHODS = {"pix": 43.5, CHARGED: 47.5, "boleto": 9}
METHODS_FOR_LONG = {"pix": 56.5, CHARGED: 29.5, "boleto": 14}  # of plans that are paid once or by the year
#: How first orders end, in percent. A provider that cannot open the charge fails a PIX; nobody cancels a boleto.
OUTCOMES = {
    "pix": Weighted(
        (("paid", 34), ("expired", 50), ("canceled", 9), ("refunded", 5), ("partly", 1.5), ("failed", 0.5))
    ),
    CHARGED: Weighted((("paid", 75.5), ("refunded", 10.5), ("partly", 2), ("failed", 12))),
    "boleto": Weighted((("paid", 38), ("expired", 56), ("refunded", 5), ("partly", 1))),
}
#: Shares of ending periods that nobody pays any more, and that end what was canceled: by card, and by PIX and boleto.
ENDS = {CHARGED: (0.01, 0.03), "pix": (0.055, 0.025), "boleto": (0.055, 0.025)}
LATE_SHARE = 0.06  # of the bills that are paid by PIX or boleto
DECLINED, RECOVERED = 0.03, 0.75  # of charges of cards at first, and of each further attempt at those of steady members
FOR_EVER = 60  # periods: more than any scenario seeds
PAYING = ("paid", "refunded", "partly")
MEAN_LENGTH = {"day": DAY, "week": 7 * DAY, "month": 365.25 / 12 * DAY, "year": 365.25 * DAY}  # of an interval
#: Why a card is refused, in percent: at the first payment, and when a member's is charged again.
REFUSALS = Weighted((("card_declined", 58), ("card_limit_exceeded", 28), ("suspected_fraud", 8), ("card_expired", 6)))
REFUSALS_OF_MEMBERS = Weighted((("card_declined", 55), ("card_limit_exceeded", 33), ("card_expired", 12)))


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan for sale, at a share of all sales, between `opens` and `closes` (ms).

    `number` counts the offers of a sandbox. `stopped` is when the project is suspended or archived; None while it stays
    active.
    """

    number: int
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
    metadata: dict[str, Any] = {"utm_source": pick(rng, SOURCES)}
    extras: list[Body] = []
    luck = rng.random()
    if luck < BUMP and offer.bumps:
        title, amount = pick(rng, offer.bumps)
        extras.append({"description": title, "quantity": 1, "amount": amount})
    elif luck > 1 - COUPON * 2 and plan["interval"] in (None, "year"):  # the discount is for the first payment only
        percent = pick(rng, DISCOUNTS)
        price -= price * percent // 100
        metadata["coupon"] = f"{pick(rng, COUPONS)}{percent}"
    items = [{"description": f"{project['name']}: {plan['name']}", "quantity": 1, "amount": price / 100}, *extras]
    return {
        "projectId": project["id"],
        "planId": plan["id"],
        "totalAmount": (price + sum([cents(extra["amount"]) for extra in extras])) / 100,
        "items": items,
        "metadata": metadata,
    }


class Fate(NamedTuple):
    """What becomes of a purchase. `outcome` is how the first order ends (`partly` is a partial refund).

    `renewals` are the outcomes of the periods in order; the last one repeats. `any` is in time, late or
    declined at first, at random.
    """

    outcome: str
    renewals: Sequence[str] = (ANY,)

    def renewal(self, cycle: int) -> str:
        """How the period after this one is paid."""
        return self.renewals[min(cycle, len(self.renewals) - 1)]

    @property
    def bills(self) -> float:
        """The highest number of renewal orders."""
        last = self.renewals[-1]
        return len(self.renewals) if last == LAPSE else len(self.renewals) - 1 if last == CANCEL else math.inf


def draw_fate(rng: Random, method: str) -> Fate:
    """A random fate of a first order by a method."""
    outcome = OUTCOMES[method].draw(rng)
    return paying(rng, outcome, method) if outcome in PAYING else Fate(outcome)


def paying(rng: Random, outcome: str, method: str) -> Fate:
    """A random fate of a buyer who pays the first order and some periods, and then stops."""
    lapsed, left = ENDS[method]
    periods = int(math.log(1 - rng.random()) / math.log(1 - lapsed - left))
    end = LAPSE if rng.random() * (lapsed + left) < lapsed else CANCEL
    return Fate(outcome) if periods >= FOR_EVER else Fate(outcome, (ANY,) * periods + (end,))


def unpaid(method: str) -> Fate:
    """The fate of an order that nobody pays: a card is declined at once, a PIX or boleto expires."""
    return Fate("failed" if method == CHARGED else "expired")


def expected_orders(plan: Body, method: str, fate: Fate, at: int, until: int) -> float:
    """About how many orders come of a purchase at an instant until another one (ms): the first and its renewals."""
    if fate.outcome not in ("paid", "partly") or plan["interval"] is None:
        return 1
    interval, count = plan["interval"], plan["interval_count"]
    begun = at + plan["trial_period_days"] * DAY
    lead = 0 if method == CHARGED else lead_ms(interval, count)
    bills = max(0, min(int((until + lead - begun) / (MEAN_LENGTH[interval] * count)), fate.bills))
    if method != CHARGED:
        return 1 + bills
    attempts = len(ATTEMPTS) if bills == fate.bills and fate.renewals[-1] == LAPSE else 0
    return 1 + bills * (1 + DECLINED * 1.3) + attempts
