"""Stories of personas: what the customers have bought whom tests ask for by name,
whatever the now.
"""

from calendar import isleap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random

from ..core.clock import DAY, HOUR, iso
from ..core.record import Body
from ..domain.calendar import add_interval
from ..domain.subscriptions import CHARGED
from .files import Node
from .purchases import Fate, Offer, Visit, is_of_one
from .rhythm import moment
from .tables import table

SWAY = 8  # hours: no story depends on them
SUITING: Mapping[str, tuple[Callable[[Body], bool], str]] = {
    "one_time": (
        lambda plan: plan["billing_type"] == "one_time" and CHARGED in plan["payment_methods"],
        "a one-time plan that takes cards",
    ),
    "trial": (lambda plan: bool(plan["trial_period_days"] > 1), "a plan with a trial"),
    "boleto": (lambda plan: "boleto" in plan["payment_methods"], "a plan that takes boletos"),
}
"""Which plans suit a story, and how an error calls them."""
BY = {"one_time": CHARGED, "boleto": "boleto"}
"""How such a plan is paid; others by PIX."""


class Story:
    """Chooses the plans and the instants of one persona's purchases.

    Plans on sale are sorted by sales, best first.
    """

    def __init__(self, offers: list[Offer], now: int, node: Node, rng: Random) -> None:
        self.now, self.node, self.rng = now, node, rng
        self.offers = sorted(
            [offer for offer in offers if offer.is_sold_at(now)], key=lambda offer: -offer.share
        )

    def purchases(self) -> list[Visit]:
        """All purchases of the persona. Raises ScenarioError, also if a plan was not there yet."""
        visits = self._visits()
        for at, offer, _ in visits:
            if at < offer.opens:
                story = self.node.value["story"]
                raise self.node.fail(
                    f"the story {story!r} begins on {iso(at)}, and its plan is of"
                    f" {iso(offer.opens)}"
                )
        return visits

    def _visits(self) -> list[Visit]:
        story = self.node.value["story"]
        if story == "spender":
            return self._dearest()
        if story in ("leap_month", "leap_year"):
            return [self._on_leap_day(story.removeprefix("leap_"))]
        if story == "none":
            return []
        return [self.visit(table("stories")[story])]

    def visit(self, row: Body) -> Visit:
        """The purchase of a row, as those of the table of stories are."""
        kind, bills = row.get("plan", ""), row.get("bills", [])
        offer = self._plan(*SUITING[kind]) if kind in SUITING else self._monthly()
        trial_days = offer.plan["trial_period_days"]
        days = row.get("days", row.get("share_of_trial", 0) * trial_days)
        at = self._days_ago(days, row.get("sway", SWAY))
        if bills:
            at = add_interval(at, "month", 1, -len(bills)) - trial_days * DAY
        method = BY.get(kind, "pix")
        return Visit(at, offer, Fate(method, row.get("outcome", "paid"), bills or ["paid"]))

    def _plan(self, wanted: Callable[[Body], bool], what: str) -> Offer:
        """The best selling plan of the kind that a story needs. Raises ScenarioError."""
        for offer in self.offers:
            if wanted(offer.plan):
                return offer
        raise self.node.fail(
            f"the story {self.node.value['story']!r} needs {what} on sale in an active project"
        )

    def _monthly(self) -> Offer:
        """A monthly plan, one without a trial if there is one."""
        for offer in self.offers:
            if is_of_one(offer.plan, "month") and not offer.plan["trial_period_days"]:
                return offer
        return self._plan(lambda plan: is_of_one(plan, "month"), "a monthly plan")

    def _days_ago(self, days: float, sway: float = SWAY) -> int:
        """About so many days ago, at a likely hour."""
        return moment(self.rng, self.now - int(days * DAY), int(sway * HOUR))

    def _dearest(self) -> list[Visit]:
        """The dearest membership of each project."""
        recurring = [offer for offer in self.offers if offer.plan["interval"] is not None]
        if not recurring:
            recurring.append(self._monthly())
        recurring.sort(key=lambda offer: offer.plan["amount"])
        dearest = {offer.project["id"]: offer for offer in recurring}
        visits = []
        for number, offer in enumerate(dearest.values()):
            visits.append(Visit(self._days_ago(290 - 19 * (number % 12)), offer, Fate("pix")))
        return visits

    def _on_leap_day(self, interval: str) -> Visit:
        offer = self._plan(
            lambda plan: is_of_one(plan, interval) and not plan["trial_period_days"],
            f"a plan of one {interval} without trial",
        )
        latest = datetime.fromtimestamp((self.now - 60 * DAY) / 1000, UTC)
        year = latest.year
        while not isleap(year) or datetime(year, 2, 29, 12, tzinfo=UTC) > latest:
            year -= 1
        at = int(datetime(year, 2, 29, 12, tzinfo=UTC).timestamp()) * 1000
        return Visit(at + int(self.rng.random() * 6 * HOUR), offer, Fate("pix"))
