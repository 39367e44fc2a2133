"""Named customers: people a test can ask for by name, each with a story that is true at every now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from ..domain.calendar import add_interval
from ..domain.customers import new_customer
from ..drawing.carts import cart
from ..drawing.fates import CANCEL, CARD, LAPSE, LATE, PAID, Fate
from ..drawing.market import Offer
from ..drawing.rhythm import moment
from ..drawing.streams import stream
from ..engine import resources
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import named_uuid
from ..kernel.problem import Refusal
from ..kernel.record import Body
from ..scenarios.scenario import PersonaSpec
from .buyers import flat
from .sales import Sales
from .script import Script

SWAY = 8 * HOUR  # no story depends on the hour


def plan_persona(sales: Sales, spec: PersonaSpec, body: Body, seed: int, taken: set[str]) -> str:
    """Plan a persona and its story; answers the customer's id. `body` is a checked CustomerCreate."""
    rng, script = stream(seed, "personas", spec.name), sales.script
    story = _Story(sales, spec, rng)
    plans = _STORIES[spec.story](story)
    first = min((at for _, at, _ in plans), default=moment(rng, script.end - 3 * HOUR, 2 * HOUR))
    fields = dict(body)
    ident = str(fields.pop("id", None) or named_uuid("customer", spec.name)).lower()
    public = new_customer(fields, sales.buyers.defaults, iso(first)) | {"id": ident}
    if not taken.isdisjoint((ident, public["document"])):
        raise spec.node["customer"].fail("another customer has this document or id")
    taken.update((ident, public["document"]))
    sales.buyers.named += 1
    script.add(first, enter, script, public)
    buyer = flat(public)
    for offer, at, fate in plans:
        sales.foresee(offer, at, fate)
        script.add(at, _buy, sales, spec, offer, buyer, ident, fate)
    return ident


def enter(script: Script, public: Body) -> None:
    """Somebody becomes a customer."""
    draft = script.draft()
    resources.add_customer(draft, public)
    script.record(draft)


def _buy(sales: Sales, spec: PersonaSpec, offer: Offer, buyer: Body, customer_id: str, fate: Fate) -> None:
    shop = sales.shop
    # PIX takes an account in Brazil; only what is paid once can be left to a card, as no story tells of its renewals.
    abroad = buyer["address"].get("country") not in (None, "BR")
    once = fate.outcome == "paid" and offer.plan["interval"] is None and CARD in offer.plan["payment_methods"]
    method = CARD if abroad and once else "pix"
    try:
        shop.buy(shop.draft(), cart(shop.luck, offer), buyer, customer_id, method, fate)
    except Refusal as refusal:
        raise spec.node.fail(refusal.message) from None


Purchase = tuple[Offer, int, Fate]


class _Story:
    """What a story is made of: the plans on sale, and ways to name moments."""

    def __init__(self, sales: Sales, spec: PersonaSpec, rng: Random) -> None:
        self.now = sales.script.end
        self.spec, self.rng = spec, rng
        self.offers = sorted(
            (o for o in sales.offers if o.closes >= self.now and o.plan["status"] == "active"),
            key=lambda offer: -offer.share,
        )

    def plan(self, wanted: Callable[[Body], bool], what: str) -> Offer:
        """The best selling plan of the kind that a story needs."""
        for offer in self.offers:
            if wanted(offer.plan):
                return offer
        raise self.spec.node.fail(f"the story {self.spec.story!r} needs {what} on sale in an active project")

    @property
    def monthly(self) -> Offer:
        """A monthly plan, one without a trial if there is one."""
        plain = [o for o in self.offers if _monthly(o.plan) and not o.plan["trial_period_days"]]
        return plain[0] if plain else self.plan(_monthly, "a monthly plan")

    def days(self, count: float, sway: int = SWAY) -> int:
        """About so many days ago, at a likely hour."""
        return moment(self.rng, self.now - int(count * DAY), sway)

    def months(self, offer: Offer, count: int, days: float, sway: int = SWAY) -> int:
        """A first payment whose period number `count` ended about so many days ago."""
        trial: int = offer.plan["trial_period_days"] * DAY
        return add_interval(self.days(days, sway), "month", 1, -count) - trial

    def one(self, outcome: str, days: float, *renewals: str, offer: Offer | None = None) -> list[Purchase]:
        """One purchase of the monthly plan."""
        return [(offer or self.monthly, self.days(days), Fate(outcome, renewals or (PAID,)))]


def _monthly(plan: Body) -> bool:
    return bool(plan["interval"] == "month" and plan["interval_count"] == 1)


def _past_due(story: _Story) -> list[Purchase]:
    offer = story.monthly
    return [(offer, story.months(offer, 3, 1.6), Fate("paid", (PAID, PAID, LAPSE)))]


def _lapsed(story: _Story) -> list[Purchase]:
    offer = story.monthly
    return [(offer, story.months(offer, 4, 50), Fate("paid", (PAID, PAID, LATE, LAPSE)))]


def _left(story: _Story) -> list[Purchase]:
    offer = story.monthly
    return [(offer, story.months(offer, 2, 35), Fate("paid", (PAID, CANCEL)))]


def _ending(story: _Story) -> list[Purchase]:
    # The wish to leave falls somewhere before the period's last three days, of which none has begun yet.
    offer = story.monthly
    at = story.months(offer, 2, -3.4, HOUR)
    return [(offer, at, Fate("paid", (PAID, CANCEL)))]


def _trial(story: _Story) -> list[Purchase]:
    offer = story.plan(lambda plan: plan["trial_period_days"] > 1, "a plan with a trial")
    return [(offer, story.days(offer.plan["trial_period_days"] * 0.4), Fate("paid", (PAID,)))]


def _spender(story: _Story) -> list[Purchase]:
    memberships: dict[str, Offer] = {}  # of each project the dearest
    for offer in story.offers:
        dearest = memberships.get(offer.project["id"], offer)
        if offer.plan["billing_type"] == "recurring" and offer.plan["amount"] >= dearest.plan["amount"]:
            memberships[offer.project["id"]] = offer
    found = [
        (offer, story.days(290 - 19 * (number % 12)), Fate("paid", (PAID,)))
        for number, offer in enumerate(memberships.values())
    ]
    return found or story.one("paid", 290)


def _loyal(story: _Story) -> list[Purchase]:
    return story.one("paid", 345)


def _hundreds(story: _Story) -> list[Purchase]:
    offer = story.plan(lambda plan: plan["billing_type"] == "one_time", "a one-time plan")
    ways = ("paid", "paid", "expired", "canceled", "failed", "refunded")
    return [(offer, story.days(340 - number), Fate(ways[number % len(ways)])) for number in range(320)]


def _leap(interval: str) -> Callable[[_Story], list[Purchase]]:
    def story_of(story: _Story) -> list[Purchase]:
        offer = story.plan(
            lambda plan: plan["interval"] == interval and plan["interval_count"] == 1 and not plan["trial_period_days"],
            f"a plan of one {interval} without trial",
        )
        year = datetime.fromtimestamp((story.now - 60 * DAY) / 1000, UTC).year
        while not (at := _leap_day(year)) or at > story.now - 60 * DAY:
            year -= 1
        return [(offer, at + int(story.rng.random() * 6 * HOUR), Fate("paid", (PAID,)))]

    return story_of


def _leap_day(year: int) -> int:
    """The ms of noon on 29 February, 0 in a year without one."""
    if year % 4 or (year % 100 == 0 and year % 400):
        return 0
    return int(datetime(year, 2, 29, 12, tzinfo=UTC).timestamp()) * 1000


_STORIES: dict[str, Callable[[_Story], list[Purchase]]] = {
    "none": lambda story: [],
    "pending": lambda story: [(story.monthly, moment(story.rng, story.now - 25 * MINUTE, 8 * MINUTE), Fate("pending"))],
    "expired": lambda story: story.one("expired", 6),
    "canceled": lambda story: story.one("canceled", 8),
    "failed": lambda story: story.one("failed", 2),
    "refunded": lambda story: story.one("refunded", 20),
    "partly": lambda story: story.one("partly", 20),
    "once": lambda story: story.one(
        "paid", 70, offer=story.plan(lambda plan: plan["billing_type"] == "one_time", "a one-time plan")
    ),
    "trial": _trial,
    "active": lambda story: story.one("paid", 12),
    "past_due": _past_due,
    "ending": _ending,
    "left": _left,
    "lapsed": _lapsed,
    "loyal": _loyal,
    "spender": _spender,
    "hundreds": _hundreds,
    "leap_month": _leap("month"),
    "leap_year": _leap("year"),
}
