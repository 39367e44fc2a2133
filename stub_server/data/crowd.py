"""The crowd: those whom a scenario does not name sign up, buy, and live as it was
drawn for them.
"""

from collections.abc import Iterator
from random import Random

from ..core.clock import DAY, HOUR, MINUTE
from ..core.ids import uuid_text
from ..core.record import Body
from ..domain.customers import changed_customer
from ..engine import resources
from ..engine.draft import Draft
from .lives import live
from .past import Past
from .people import ALPHANUMERIC_SINCE_MS
from .personas import visit_of
from .purchases import (
    LAPSE,
    PAID,
    SETTLED,
    Fate,
    Offer,
    Visit,
    count_orders,
    draw_fate,
    is_of_one,
    paying,
    unpaid,
)
from .rhythm import moment
from .scenario import Node
from .tables import pick

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
AGAIN = 0.05  # of the visits until all have come: by somebody who has bought before
# of orders that came to nothing, by how
TRY_AGAIN = {"expired": 0.2, "failed": 0.6}
QUIET = 5 * MINUTE  # before now, in which nobody comes


class Crowd:
    """Places as many orders as the scenario wants; all that people do is drawn before any time
    passes.

    Nobody gets a document that a record has which the scenario names.
    """

    def __init__(self, past: Past) -> None:
        self.past = past
        self._rng, self._idle = past.stream("arrivals"), past.stream("idle")
        self._idents, self._people = past.stream("people", "ids"), past.faker("people")

    # -- before time passes

    def plan(self) -> None:
        """Plan all visits. Raises ScenarioError."""
        past, scenario, node = self.past, self.past.scenario, self.past.scenario.root
        people = max(0, scenario.customers - len(past.planned["customers"]))
        orders = max(0, scenario.orders - past.foreseen)
        if (scenario.owing or orders) and not past.offers:
            asked = node["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        if orders and not people:
            raise node["orders"].fail(
                "nobody is left to buy: raise `customers`, which counts named ones too"
            )
        if scenario.owing:
            buyers = [*self._debts(people, node["everybody"])]
        else:
            buyers = [*self._waiting(min(scenario.pending, orders, people))]
            self._paying(orders - len(buyers), buyers, max(1, round(people * BUYERS)))
        for visits in buyers:
            past.follow(self._come(sorted(visits, key=lambda visit: visit.at)))
        for _ in range(people - len(buyers)):
            past.plan(
                past.rhythm.instant(self._idle, past.rhythm.start, past.end),
                self._sign_up,
                self._idle,
                "metadata_of_others",
            )

    def _visit(self, offers: list[Offer], since: int = 0) -> Visit:
        """Somebody buys one of some offers, chosen by their shares, while it is sold."""
        rng, rhythm, now = self._rng, self.past.rhythm, self.past.end
        offer = rng.choices(offers, [offer.share for offer in offers])[0]
        closes = min(offer.closes, now) - QUIET
        opens = min(max(since, rhythm.start, offer.opens + MINUTE), closes)
        at = rhythm.instant(rng, opens, closes)
        return Visit(at, offer, draw_fate(rng, offer, at, now))

    def _paying(self, orders: int, buyers: list[list[Visit]], most: int) -> None:
        """Draw so many visits of the whole period that about `orders` come of them, by `most`
        buyers.

        Some buyers come back to join another project. Nobody holds the same membership twice: who
        comes back for it lets the order expire.
        """
        while orders > 0:
            visits: list[Visit] = []
            if len(buyers) >= most or (buyers and self._rng.random() < AGAIN):
                visits = self._rng.choices(buyers)[0]
            else:
                buyers.append(visits)
            visit = self._visit(self.past.offers)
            method, project = visit.fate.method, visit.offer.project
            tries = [visit, *self._again(visit)]
            is_member = any(each.offer.project is project for each in visits)
            is_over = self.past.end - visit.at > SETTLED[method]
            if is_member or (is_over and self._count(visit) > orders):
                tries = [visit._replace(fate=unpaid(method))]
            visits += tries
            orders -= sum(map(self._count, tries))

    def _count(self, visit: Visit) -> int:
        """About how many orders come of a visit; nothing is renewed in a project that is
        stopped.
        """
        return count_orders(
            visit.offer.plan, visit.fate, visit.at, min(visit.offer.stops, self.past.end)
        )

    def _again(self, visit: Visit) -> Iterator[Visit]:
        """The second try after an order that came to nothing, for some."""
        at, offer, fate = visit
        rng, later = self._rng, at + SETTLED[fate.method] + DAY
        share = TRY_AGAIN.get(fate.outcome, 0)
        if rng.random() < share and later + DAY < min(offer.closes, self.past.end):
            yield Visit(moment(rng, later, 20 * HOUR), offer, paying(rng, fate.method, "paid"))

    def _waiting(self, count: int) -> Iterator[list[Visit]]:
        """So many people who have ordered by PIX lately and whose orders are not paid yet; none
        where PIX is not taken.
        """
        now = self.past.end
        offers = [each for each in self.past.offers if each.closes >= now and each.takes_pix]
        for _ in range(count if offers else 0):
            visit = self._visit(offers, now - 20 * HOUR)
            yield [visit._replace(fate=Fate("pix", "pending"))]

    def _debts(self, count: int, asked: Node) -> Iterator[list[Visit]]:
        """So many people with a monthly membership whose last period is over and not paid.

        Raises ScenarioError.
        """
        now, rng, offers = self.past.end, self._rng, []
        for offer in self.past.offers:
            if offer.is_sold_at(now) and is_of_one(offer.plan, "month") and offer.takes_pix:
                offers.append(offer)
        if not offers:
            raise asked.fail(
                "past-due members need a monthly plan that takes PIX in an active project of"
                " `projects`: add one"
            )
        for _ in range(count):
            offer = self._visit(offers).offer
            bills = [PAID] * int(rng.random() * 5) + [LAPSE]
            visit = visit_of({"days": 1.5 + 2 * rng.random(), "bills": bills}, offer, now, rng)
            yield [visit._replace(at=max(visit.at, offer.opens + MINUTE))]

    # -- as time passes

    def _come(self, visits: list[Visit]) -> Iterator[int]:
        """Somebody comes for the first time, and perhaps again."""
        customer: Body = {}
        for visit in visits:
            yield visit.at
            draft = self.past.draft()
            customer = customer or self._sign_up(draft, self._rng, "metadata_of_buyers")
            self.past.follow(live(self.past, draft, visit.purchase(self._rng, customer)))

    def _sign_up(self, draft: Draft, rng: Random, metadata: str) -> Body:
        """Create the next customer, who follows from the seed, whatever the time."""
        person = self._people.stranger(self.past.in_use, letters=draft.now >= ALPHANUMERIC_SINCE_MS)
        ident = uuid_text(self._idents.getrandbits(128))
        words = pick(rng, "habits", metadata).split()
        customer = changed_customer(
            draft.new("customers", ident), person | {"metadata": dict([words]) if words else {}}
        )
        return resources.add(draft, customer).public
