"""Plans visits: who comes to buy, when and what, before any time passes in the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ..domain.calendar import add_interval
from ..domain.subscriptions import CHARGED
from ..drawing import purchases
from ..drawing.draw import Weighted, stream
from ..drawing.purchases import LAPSE, PAID, Fate, Offer, draw_fate, expected_orders, is_of_one, paying, unpaid
from ..drawing.rhythm import Rhythm, moment
from ..kernel.clock import DAY, HOUR, MINUTE
from ..scenarios.files import Node

LAST_DAYS = 24 * DAY  # before now: their visits are planned when it is known how many orders are still lacking
SIGN_UP_FIRST = 0.21  # of the new buyers; the others become customers as they order
SHORTEST_LEAD, LONGEST_LEAD = 4 * MINUTE, 42 * DAY  # from signing up to the first order
SECOND_TRIES = {"pix": 0.25, "boleto": 0.25, CHARGED: 0.75}  # of first orders that expired or failed
OF_THEM_PAID, BY_CARD_AGAIN = 0.8, 0.7
FORGOTTEN_SLIPS = 0.35  # of those who wait for payment now
SETTLED = 8 * DAY  # so long after a first order everything that comes of it has begun


class Visit(NamedTuple):
    """Somebody comes to buy: at an instant (ms), by a method; `fate` is what becomes of the order.

    `second` is another try, planned for the next day, if the order expires or fails. Somebody who `is_new` becomes a
    customer with the order, or when they sign up before it. A PIX is paid in less than `pays_within` ms.
    """

    at: int
    offer: Offer
    method: str
    fate: Fate
    second: Visit | None = None
    is_new: bool = False
    signs_up: int | None = None
    pays_within: int = DAY

    @property
    def begins(self) -> int:
        """When somebody first does something."""
        return self.at if self.signs_up is None else self.signs_up


def in_turn(visits: list[Visit]) -> list[Visit]:
    """Visits in the order of time; also those of one instant have an order that does not depend on how they came."""
    return sorted(visits, key=lambda visit: (visit.begins, visit.offer.number, visit.method, visit.fate))


class Planner:
    """Draws visits. `planned` is about how many orders come, by now, of all that is planned so far."""

    def __init__(self, seed: int, offers: list[Offer], rhythm: Rhythm) -> None:
        self.offers, self.rhythm, self.now = offers, rhythm, rhythm.end
        self.rng = stream(seed, "arrivals")
        self.planned = 0.0

    def expected(self, visit: Visit) -> float:
        """About how many orders come of a visit by now; nothing is renewed in a project that is stopped."""
        offer = visit.offer
        until = self.now if offer.stopped is None else min(self.now, offer.stopped)
        return expected_orders(offer.plan, visit.method, visit.fate, visit.at, until)

    def weighted(self, is_wanted: Callable[[Offer], bool]) -> Weighted[Offer] | None:
        """The offers of a kind, to draw from by their shares; None if nothing of the kind is sold."""
        found = [(offer, offer.share) for offer in self.offers if offer.share and is_wanted(offer)]
        return Weighted(found) if found else None

    def visit(self, rng: Random, offer: Offer, at: int) -> Visit:
        """Somebody comes for an offer, and pays by one of the methods that the plan takes."""
        methods = offer.plan["payment_methods"]
        usual = purchases.METHODS_FOR_LONG if offer.plan["interval"] in (None, "year") else purchases.METHODS
        method = Weighted((method, share) for method, share in usual.items() if method in methods).draw(rng)
        if method == "boleto" and self.now - at < SETTLED and "pix" in methods:
            method = "pix"  # a boleto would not be settled by now
        return Visit(at, offer, method, draw_fate(rng, method))

    # -- whole plans

    def debts(self, count: int, asked: Node) -> list[Visit]:
        """So many people with a monthly membership whose last period is over and not paid. Raises ScenarioError."""
        rng, found = self.rng, []
        offers = self.weighted(lambda offer: is_of_one(offer.plan, "month"))
        if offers is None:
            raise asked.fail("past-due members need a monthly plan in an active project of `projects`: add one")
        for _ in range(count):
            offer, paid = offers.draw(rng), int(rng.random() * 5)
            trial = offer.plan["trial_period_days"] * DAY
            over = moment(rng, self.now - int((1.5 + 2 * rng.random()) * DAY), 8 * HOUR)
            at = max(add_interval(over, "month", 1, -1 - paid) - trial, offer.opens + MINUTE)
            methods = offer.plan["payment_methods"]
            method = "pix" if "pix" in methods else methods[0]
            found.append(Visit(at, offer, method, Fate("paid", (PAID,) * paid + (LAPSE,)), is_new=True))
        return in_turn(found)

    def waiting(self, count: int) -> list[Visit]:
        """So many people who have ordered lately and whose orders are not paid yet; none if only cards are taken."""
        rng, now, found = self.rng, self.now, []
        offers = self.weighted(lambda offer: offer.closes >= now and offer.plan["payment_methods"] != [CHARGED])
        if offers is None:
            return []
        for _ in range(count):
            offer = offers.draw(rng)
            methods = offer.plan["payment_methods"]
            forgotten = rng.random() < FORGOTTEN_SLIPS or "pix" not in methods
            method = "boleto" if "boleto" in methods and forgotten else "pix"
            low = self.rhythm.share(now - (60 if method == "boleto" else 20) * HOUR)
            at = min(self.rhythm.at(low + (1 - low) * rng.random()), now - 4 * MINUTE)
            found.append(Visit(max(at, offer.opens + MINUTE), offer, method, Fate("pending")))
        return found

    def crowd(self, orders: int, waiting: int) -> list[Visit]:
        """Visits from the beginning until the last days, so many that `orders` come of them and of the last days.

        In the last days as many people come as before: `waiting` of them are planned already, the others later.
        """
        rng, share = self.rng, self.rhythm.share
        last = share(self.now - LAST_DAYS)
        spans = [(offer, share(offer.opens), min(share(offer.closes), last)) for offer in self.offers]
        weighted = Weighted(((offer, low, high), offer.share) for offer, low, high in spans)
        later = sum(
            offer.share * max(0, share(offer.closes) - last) / (high - low) for offer, low, high in spans if high > low
        )
        later /= weighted.sums[-1]  # visits in the last days for each one before
        found: list[Visit] = []
        turns = 0
        while (room := orders - self.planned - max(waiting, len(found) * later)) >= 1 and turns < 2 * orders + 100:
            turns += 1
            offer, low, high = weighted.draw(rng)
            visit = self.visit(rng, offer, max(self.rhythm.at(low + (high - low) * rng.random()), offer.opens + MINUTE))
            if self.expected(visit) > room:
                visit = visit._replace(fate=unpaid(visit.method))  # nobody renews what was never paid
            second = self._second(visit)
            if second is not None and self.expected(second) < room:
                visit = visit._replace(second=second)
                self.planned += self.expected(second)
            if high > low or visit.at < offer.closes:
                found.append(visit)
                self.planned += self.expected(visit)
        return found

    def _second(self, visit: Visit) -> Visit | None:
        """Another try after an order that came to nothing: a declined card mostly once more, what expired by PIX."""
        rng, offer, method = self.rng, visit.offer, visit.method
        if visit.fate.outcome not in ("expired", "failed") or rng.random() >= SECOND_TRIES[method]:
            return None
        if visit.at + 2 * SETTLED >= min(offer.closes, self.now):
            return None
        if "pix" in offer.plan["payment_methods"] and not (method == CHARGED and rng.random() < BY_CARD_AGAIN):
            method = "pix"
        fate = paying(rng, "paid", method) if rng.random() < OF_THEM_PAID else unpaid(method)
        return Visit(visit.at + DAY, offer, method, fate)

    # -- new buyers

    def introduce(self, visits: list[Visit], later: int, newcomers: int) -> tuple[list[Visit], int]:
        """Spread new buyers over visits and `later` ones; returns those visits in turn, and how many are left."""
        found, left = [], len(visits) + later
        for visit in in_turn(visits):
            is_new = self.rng.random() * left < newcomers
            left -= 1
            newcomers -= is_new
            found.append(self._introduced(visit) if is_new else visit)
        return in_turn(found), newcomers

    def _introduced(self, visit: Visit) -> Visit:
        """The visit of a new buyer, who may sign up minutes to weeks before it."""
        rng, signs_up = self.rng, None
        if rng.random() < SIGN_UP_FIRST:
            lead = int(SHORTEST_LEAD * (LONGEST_LEAD / SHORTEST_LEAD) ** rng.random())
            wanted = moment(rng, visit.at - lead, min(8 * HOUR, lead // 2))
            if wanted > max(self.rhythm.start, visit.offer.opens):
                signs_up = wanted
        return visit._replace(is_new=True, signs_up=signs_up)
