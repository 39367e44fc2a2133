"""Stories of personas: what the customers have bought whom tests ask for by name, whatever the now."""

from calendar import isleap
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from ..domain.calendar import add_interval
from ..kernel.clock import DAY, HOUR, MINUTE
from ..kernel.record import Body
from .files import Node
from .purchases import CANCEL, LAPSE, LATE, PAID, Fate, Offer, is_of_one
from .rhythm import moment

SWAY = 8 * HOUR  # no story depends on the hour
Purchase = tuple[Offer, int, Fate]  # what, when (ms), and what becomes of the order


class Story:
    """Chooses the plans and the instants of one persona's purchases. Plans on sale are sorted by sales, best first."""

    def __init__(self, offers: list[Offer], now: int, node: Node, rng: Random) -> None:
        self.now, self.node, self.rng = now, node, rng
        on_sale = [offer for offer in offers if offer.closes >= now and offer.plan["status"] == "active"]
        self.offers = sorted(on_sale, key=lambda offer: -offer.share)

    def plan(self, wanted: Callable[[Body], bool], what: str) -> Offer:
        """The best selling plan of the kind that a story needs. Raises ScenarioError."""
        for offer in self.offers:
            if wanted(offer.plan):
                return offer
        raise self.node.fail(f"the story {self.node.value['story']!r} needs {what} on sale in an active project")

    @property
    def monthly(self) -> Offer:
        """A monthly plan, one without a trial if there is one."""
        monthly = [offer for offer in self.offers if is_of_one(offer.plan, "month")]
        plain = (offer for offer in monthly if not offer.plan["trial_period_days"])
        return next(plain, None) or self.plan(lambda plan: is_of_one(plan, "month"), "a monthly plan")

    @property
    def one_time(self) -> Offer:
        return self.plan(lambda plan: bool(plan["billing_type"] == "one_time"), "a one-time plan")

    def days_ago(self, count: float, sway: int = SWAY) -> int:
        """About so many days ago, at a likely hour."""
        return moment(self.rng, self.now - int(count * DAY), sway)

    def bought(self, outcome: str, days: float, offer: Offer | None = None) -> list[Purchase]:
        """One purchase, of the monthly plan unless another is given, so many days ago."""
        return [(offer or self.monthly, self.days_ago(days), Fate(outcome, [PAID]))]

    def renewed(self, days: float, *renewals: str, sway: int = SWAY) -> list[Purchase]:
        """A monthly membership with one of these renewals a period; the last period ended about so many days ago."""
        offer, ended = self.monthly, self.days_ago(days, sway)
        trial: int = offer.plan["trial_period_days"] * DAY
        return [(offer, add_interval(ended, "month", 1, -len(renewals)) - trial, Fate("paid", renewals))]

    def spender(self) -> list[Purchase]:
        """The dearest membership of each project."""
        dearest: dict[str, Offer] = {}
        for offer in self.offers:
            found = dearest.get(offer.project["id"], offer)
            if offer.plan["billing_type"] == "recurring" and offer.plan["amount"] >= found.plan["amount"]:
                dearest[offer.project["id"]] = offer
        offers = [*dearest.values()] or [self.monthly]
        return [self.bought("paid", 290 - 19 * (number % 12), offer)[0] for number, offer in enumerate(offers)]

    def hundreds(self) -> list[Purchase]:
        """One purchase a day, which ends in every way."""
        offer = self.one_time
        ways = ("paid", "paid", "expired", "canceled", "failed", "refunded")
        return [(offer, self.days_ago(340 - number), Fate(ways[number % len(ways)])) for number in range(320)]

    def on_trial(self) -> list[Purchase]:
        offer = self.plan(lambda plan: bool(plan["trial_period_days"] > 1), "a plan with a trial")
        return self.bought("paid", offer.plan["trial_period_days"] * 0.4, offer)

    def on_leap_day(self, interval: str) -> list[Purchase]:
        offer = self.plan(
            lambda plan: is_of_one(plan, interval) and not plan["trial_period_days"],
            f"a plan of one {interval} without trial",
        )
        latest = datetime.fromtimestamp((self.now - 60 * DAY) / 1000, UTC)
        noons = (datetime(year, 2, 29, 12, tzinfo=UTC) for year in range(latest.year, 0, -1) if isleap(year))
        at = int(next(noon for noon in noons if noon <= latest).timestamp()) * 1000
        return [(offer, at + int(self.rng.random() * 6 * HOUR), Fate("paid", [PAID]))]


STORIES: dict[str, Callable[[Story], list[Purchase]]] = {
    "none": lambda story: [],
    "pending": lambda story: [(story.monthly, moment(story.rng, story.now - 25 * MINUTE, 8 * MINUTE), Fate("pending"))],
    "expired": lambda story: story.bought("expired", 6),
    "canceled": lambda story: story.bought("canceled", 8),
    "failed": lambda story: story.bought("failed", 2),
    "refunded": lambda story: story.bought("refunded", 20),
    "partly": lambda story: story.bought("partly", 20),
    "once": lambda story: story.bought("paid", 70, story.one_time),
    "trial": Story.on_trial,
    "active": lambda story: story.bought("paid", 12),
    "past_due": lambda story: story.renewed(1.6, PAID, PAID, LAPSE),
    # The wish to leave falls somewhere before the period's last three days, of which none has begun yet.
    "ending": lambda story: story.renewed(-3.4, PAID, CANCEL, sway=HOUR),
    "left": lambda story: story.renewed(35, PAID, CANCEL),
    "lapsed": lambda story: story.renewed(50, PAID, PAID, LATE, LAPSE),
    "loyal": lambda story: story.bought("paid", 345),
    "spender": Story.spender,
    "hundreds": Story.hundreds,
    "leap_month": lambda story: story.on_leap_day("month"),
    "leap_year": lambda story: story.on_leap_day("year"),
}
