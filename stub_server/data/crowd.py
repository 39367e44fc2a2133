"""The crowd: those whom a scenario does not name sign up, buy, and live as it was
drawn for them.
"""

from collections.abc import Iterator
from random import Random

from ..core.clock import HOUR, MINUTE
from ..core.ids import uuid_text
from ..domain.customers import as_buyer, changed_customer
from ..engine import resources
from ..engine.draft import Draft
from .lives import Purchase, live
from .past import Past
from .people import ALPHANUMERIC_SINCE_MS
from .personas import Story
from .purchases import (
    LAPSE,
    PAID,
    SETTLED,
    Fate,
    Offer,
    Visit,
    cart,
    count_orders,
    draw_fate,
    is_of_one,
    unpaid,
)
from .scenario import Node
from .tables import pick

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
NEW = 0.95  # of the visits until all have come: a few buyers come back
RECENT = 512  # who comes back is one of so many newest buyers, all equally likely
QUIET = 5 * MINUTE  # before now, in which nobody comes


class Crowd:
    """Places as many orders as the scenario wants; all its visits are drawn before any time passes.

    Nobody gets a document that a record has which the scenario names.
    """

    def __init__(self, past: Past) -> None:
        self.past = past
        self._rng, self._idle = past.stream("arrivals"), past.stream("idle")
        self._idents, self._people = past.stream("people", "ids"), past.faker("people")
        # each with the projects of which it has bought a plan
        self._buyers: list[tuple[str, set[str]]] = []

    # -- before time passes

    def plan(self) -> None:
        """Plan all visits. Raises ScenarioError."""
        past, scenario, node = self.past, self.past.scenario, self.past.scenario.root
        people = max(0, scenario.customers - len(past.customers))
        orders = scenario.orders - past.foreseen
        if (scenario.owing or orders > 0) and not past.offers:
            asked = node["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        if orders > 0 and not people:
            raise node["orders"].fail(
                "nobody is left to buy: raise `customers`, which counts named ones too"
            )
        if scenario.owing:
            visits = list(self._debts(people, node["everybody"]))
        else:
            visits = list(self._waiting(min(scenario.pending, max(0, orders))))
            visits += self._paying(orders - len(visits), max(1, round(people * BUYERS)))
        visits.sort(key=lambda visit: visit.at)
        newcomers = min(people, sum(visit.is_new for visit in visits))
        past.follow(self._come(visits, newcomers))
        for _ in range(people - newcomers):
            at = past.rhythm.instant(self._idle, past.rhythm.start, past.end)
            past.plan(at, self._sign_up, self._idle, "metadata_of_others")

    def _choose(self, offers: list[Offer]) -> Offer:
        """One of some offers, by their shares."""
        return self._rng.choices(offers, [offer.share for offer in offers])[0]

    def _at(self, offer: Offer, since: int = 0) -> int:
        """A likely instant at which an offer is sold."""
        closes = offer.closes - QUIET
        rhythm = self.past.rhythm
        opens = min(max(since, rhythm.start, offer.opens + MINUTE), closes)
        return rhythm.instant(self._rng, opens, closes)

    def _paying(self, orders: int, buyers: int) -> Iterator[Visit]:
        """Visits of the whole period, so many that about `orders` come of them.

        Of the buyers, some come back to join another project. Once all have come, those that come
        back leave what they order unpaid: nobody holds the same membership twice.
        """
        now = first = self.past.end
        joins_another = len({each.project["id"] for each in self.past.offers}) > 1
        while orders > 0 and self.past.offers:
            offer = self._choose(self.past.offers)
            comes_back = joins_another and first < now and self._rng.random() > NEW
            is_new = buyers > 0 and not comes_back
            at = self._at(offer, 0 if is_new else first)
            fate = draw_fate(self._rng, offer, at, now)
            # Nothing is renewed in a project that is stopped.
            expected = count_orders(offer.plan, fate, at, offer.stopped or now)
            is_too_much = expected > orders and now - at > SETTLED[fate.method]
            if is_too_much or not buyers:
                fate, expected = unpaid(fate.method), 1
            if is_new:
                buyers, first = buyers - 1, min(first, at)
            orders -= expected
            yield Visit(at, offer, fate, is_new)

    def _waiting(self, count: int) -> Iterator[Visit]:
        """So many people who have ordered by PIX lately and whose orders are not paid yet; none
        where PIX is not taken.
        """
        now = self.past.end
        offers = [each for each in self.past.offers if each.closes >= now and each.takes("pix")]
        if not offers:
            return
        for _ in range(count):
            offer = self._choose(offers)
            yield Visit(
                self._at(offer, now - 20 * HOUR), offer, Fate("pix", "pending"), is_new=True
            )

    def _debts(self, count: int, asked: Node) -> Iterator[Visit]:
        """So many people with a monthly membership whose last period is over and not paid.

        Raises ScenarioError.
        """
        now, offers = self.past.end, []
        for offer in self.past.offers:
            if offer.is_sold_at(now) and is_of_one(offer.plan, "month") and offer.takes("pix"):
                offers.append(offer)
        if not offers:
            raise asked.fail(
                "past-due members need a monthly plan that takes PIX in an active project of"
                " `projects`: add one"
            )
        for _ in range(count):
            story = Story([self._choose(offers)], now, asked, self._rng)
            paid = int(self._rng.random() * 5)
            bills = [PAID] * paid + [LAPSE]
            at, offer, fate, _ = story.visit({"days": 1.5 + 2 * self._rng.random(), "bills": bills})
            yield Visit(max(at, offer.opens + MINUTE), offer, fate, is_new=True)

    # -- as time passes

    def _come(self, visits: list[Visit], newcomers: int) -> Iterator[int]:
        """Everybody comes at their time, the first one for the first time."""
        for visit in visits:
            yield visit.at
            has_room = visit.is_new and len(self._buyers) < newcomers
            self.past.follow(self._buy(visit, is_new=has_room or not self._buyers))

    def _buy(self, visit: Visit, *, is_new: bool) -> Iterator[int]:
        """Somebody orders.

        Nobody holds the same membership twice: who has it lets the order expire.
        """
        draft, project, fate = self.past.draft(), visit.offer.project["id"], visit.fate
        if is_new:
            self._buyers.append((self._sign_up(draft, self._rng, "metadata_of_buyers"), set()))
        ident, joined = self._buyers[-1] if is_new else self._returning(project)
        if project in joined:
            fate = unpaid(fate.method)
        joined.add(project)
        buyer = as_buyer(draft.get("customers", ident).public)
        purchase = Purchase(cart(self._rng, visit.offer), buyer, ident, fate)
        return live(self.past, draft, purchase)

    def _returning(self, project: str) -> tuple[str, set[str]]:
        """One of the recent buyers, one who has not joined the project if there is any."""
        recent = self._buyers[-RECENT:]
        others = [each for each in recent if project not in each[1]]
        return self._rng.choices(others or recent)[0]

    def _sign_up(self, draft: Draft, rng: Random, metadata: str) -> str:
        """Create the next customer, who follows from the seed, whatever the time;
        returns the id.
        """
        letters = draft.now >= ALPHANUMERIC_SINCE_MS
        person = self._people.stranger(self.past.in_use, letters=letters)
        ident = uuid_text(self._idents.getrandbits(128))
        words = pick(rng, "habits", metadata).split()
        fields = person | {"metadata": dict([words]) if words else {}}
        return resources.add(draft, changed_customer(draft.new("customers", ident), fields)).id
