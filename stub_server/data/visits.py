"""Draws visits: who comes to buy, when and what, and all that comes of it, before any time passes in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from ..core.clock import DAY, HOUR, MINUTE
from ..domain.calendar import add_interval
from ..domain.orders import life
from ..domain.subscriptions import CHARGED
from .files import Node
from .purchases import (
    LAPSE,
    PAID,
    Fate,
    Offer,
    count_orders,
    draw_fate,
    draw_method,
    is_of_one,
    paying,
    pays_at,
    unpaid,
)
from .rhythm import Rhythm, moment

QUIET = 5 * MINUTE  # before now, in which nobody comes
RECENT = 512  # who comes back is one of so many newest buyers, all equally likely
SECOND_TRIES = {"pix": 0.25, "boleto": 0.25, CHARGED: 0.75}  # of first orders that expired or failed
OF_THEM_PAID, BY_CARD_AGAIN = 0.8, 0.7
FORGOTTEN_SLIPS = 0.35  # of those who wait for payment now
SETTLED = {"pix": 30 * HOUR, "boleto": 8 * DAY, CHARGED: 0}  # so long after a first order it is paid or has expired


class Visit(NamedTuple):
    """Somebody comes to buy: at an instant (ms), by a method; `fate` is what becomes of the order, paid at `pays`.

    `buyer` is the number of who comes, as `Planner.assign` gives it.
    """

    at: int
    offer: Offer
    method: str
    fate: Fate
    pays: int
    buyer: int = 0

    def orders(self, now: int) -> int:
        """How many orders come of it by now; nothing is renewed in a project that is stopped."""
        offer = self.offer
        until = now if offer.stopped is None else min(now, offer.stopped)
        return count_orders(offer.plan, self.method, self.fate, self.pays, until)


class Planner:
    """Draws visits of the period that a rhythm has.

    Of a plan with `max_subscribers` the crowd buys only as many as those leave whom the scenario names.
    """

    def __init__(self, rng: Random, offers: list[Offer], rhythm: Rhythm) -> None:
        self.rng, self.offers, self.rhythm, self.now = rng, offers, rhythm, rhythm.end
        most = {offer.plan["id"]: offer.plan["max_subscribers"] for offer in offers}
        self._seats = {ident: seats for ident, seats in most.items() if seats is not None}

    def reserve(self, plan_id: str) -> None:
        """Somebody takes a seat of a plan, if its seats are counted."""
        if plan_id in self._seats:
            self._seats[plan_id] -= 1

    def _on_sale(self) -> list[Offer]:
        """The offers that the crowd may buy, as often as their shares say."""
        return [offer for offer in self.offers if offer.share and self._seats.get(offer.plan["id"], 1) > 0]

    def _unlimited(self) -> list[Offer]:
        return [offer for offer in self._on_sale() if offer.plan["id"] not in self._seats]

    def choose(self, offers: list[Offer]) -> Offer:
        """One of some offers, by their shares."""
        return self.rng.choices(offers, [offer.share for offer in offers])[0]

    def visit(self, offer: Offer, at: int, room: int) -> list[Visit]:
        """Somebody comes for an offer, and perhaps tries again. No more orders come of it than there is `room` for."""
        method = draw_method(self.rng, offer.plan)
        if method == "boleto" and self.now - at < SETTLED[method] and "pix" in offer.plan["payment_methods"]:
            method = "pix"
        fate = draw_fate(self.rng, method)
        if fate.outcome in ("expired", "canceled") and self.now - at < SETTLED[method]:
            fate = Fate("paid")  # those who have not paid yet are drawn apart
        first = self._visit(offer, at, method, fate)
        if first.orders(self.now) > room:
            return [self._visit(offer, at, method, unpaid(method) if self.now - at > SETTLED[method] else Fate("paid"))]
        second = self._second(first)
        if second is None or first.orders(self.now) + second.orders(self.now) > room:
            return [first]
        return [first, second]

    def _visit(self, offer: Offer, at: int, method: str, fate: Fate) -> Visit:
        return Visit(at, offer, method, fate, pays_at(self.rng, method, at, self.now))

    def _second(self, visit: Visit) -> Visit | None:
        """Another try after an order that came to nothing: a declined card mostly once more, what expired by PIX."""
        rng, offer, method = self.rng, visit.offer, visit.method
        if visit.fate.outcome not in ("expired", "failed") or rng.random() >= SECOND_TRIES[method]:
            return None
        at = visit.at + MINUTE + int(rng.random() ** 2 * 40 * MINUTE)
        if visit.fate.outcome == "expired":
            at = moment(rng, visit.at + life(method, visit.at) + 15 * HOUR, 14 * HOUR)
        by_card = method == CHARGED and rng.random() < BY_CARD_AGAIN
        if "pix" in offer.plan["payment_methods"] and not by_card:
            method = "pix"
        if at + SETTLED[method] > min(offer.closes, self.now - QUIET):
            return None
        fate = paying(rng, "paid", method) if rng.random() < OF_THEM_PAID else unpaid(method)
        return self._visit(offer, at, method, fate)

    # -- whole plans

    def debts(self, count: int, asked: Node) -> Iterator[Visit]:
        """So many people with a monthly membership whose last period is over and not paid. Raises ScenarioError."""
        offers = [offer for offer in self._unlimited() if is_of_one(offer.plan, "month")]
        if not offers:
            raise asked.fail("past-due members need a monthly plan in an active project of `projects`: add one")
        for number in range(count):
            offer, paid = self.choose(offers), int(self.rng.random() * 5)
            methods = offer.plan["payment_methods"]
            over = moment(self.rng, self.now - int((1.5 + 2 * self.rng.random()) * DAY), 8 * HOUR)
            begun = add_interval(over, "month", 1, -1 - paid) - offer.plan["trial_period_days"] * DAY
            fate, method = Fate("paid", [PAID] * paid + [LAPSE]), "pix" if "pix" in methods else methods[0]
            visit = self._visit(offer, max(begun, offer.opens + MINUTE), method, fate)
            yield visit._replace(buyer=number)

    def waiting(self, count: int) -> Iterator[Visit]:
        """So many people who have ordered lately and whose orders are not paid yet; none if only cards are taken."""
        offers = [
            offer
            for offer in self._unlimited()
            if offer.closes >= self.now and offer.plan["payment_methods"] != [CHARGED]
        ]
        for _ in range(count if offers else 0):
            offer = self.choose(offers)
            methods = offer.plan["payment_methods"]
            is_slip = "boleto" in methods and ("pix" not in methods or self.rng.random() < FORGOTTEN_SLIPS)
            at = self._at(offer, self.now - (60 if is_slip else 20) * HOUR)
            yield Visit(at, offer, "boleto" if is_slip else "pix", Fate("pending"), at)

    def crowd(self, orders: int) -> Iterator[list[Visit]]:
        """Visits of the whole period, so many that `orders` come of them; each with a second try if there is one."""
        offers = self._on_sale()
        while orders > 0 and offers:
            offer = self.choose(offers)
            tries = self.visit(offer, self._at(offer), orders)
            orders -= sum(visit.orders(self.now) for visit in tries)
            self.reserve(offer.plan["id"])
            if self._seats.get(offer.plan["id"]) == 0:
                offers = self._on_sale()
            yield tries

    def _at(self, offer: Offer, since: int = 0) -> int:
        """A likely instant at which an offer is sold."""
        closes = offer.closes - QUIET
        opens = min(max(since, self.rhythm.start, offer.opens + MINUTE), closes)
        return self.rhythm.instant(self.rng, opens, closes)

    # -- who comes

    def assign(self, crowd: Iterable[list[Visit]], newcomers: int, orders: int) -> list[Visit]:
        """Visits in the order of time, each with its buyer: as many buyers as `newcomers`, of whom some come back.

        Nobody holds the same membership twice: who has it lets the order expire. Others make up for the orders that
        were expected then, so that `orders` come of all.
        """
        found: list[Visit] = []
        joined: list[set[str]] = []  # the projects of which each buyer has bought a plan
        in_turn = sorted(crowd, key=lambda tries: tries[0].at)
        for number, tries in enumerate(in_turn):
            project = tries[0].offer.project["id"]
            if number == 0 or self.rng.random() * (len(in_turn) - number) < newcomers - len(joined):
                joined.append(set())
                buyer = len(joined) - 1
            else:
                buyer = self._returning(joined, project)
            if project in joined[buyer]:
                tries = [tries[0]._replace(fate=unpaid(tries[0].method))]
            joined[buyer].add(project)
            found += [visit._replace(buyer=buyer) for visit in tries]
        offers = self._unlimited()
        missing = orders - sum(visit.orders(self.now) for visit in found)
        for _ in range(missing if offers and joined else 0):
            offer = self.choose(offers)
            method = draw_method(self.rng, offer.plan)
            at = self._at(offer) - SETTLED[method]
            if at > offer.opens:
                visit = self._visit(offer, at, method, unpaid(method))
                found.append(visit._replace(buyer=self.rng.randrange(len(joined))))
        return sorted(found, key=lambda visit: visit.at)

    def _returning(self, joined: list[set[str]], project: str) -> int:
        """One of the recent buyers, in most cases one who has not joined the project."""
        for _ in range(12):
            buyer = self.rng.randrange(max(0, len(joined) - RECENT), len(joined))
            if project not in joined[buyer]:
                break
        return buyer
