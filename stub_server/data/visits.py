"""Draws visits: who comes to buy, when and what, and all that comes of it, before any time passes in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from random import Random
from typing import NamedTuple

from ..domain.calendar import add_interval
from ..domain.orders import life
from ..domain.subscriptions import CHARGED
from ..kernel.clock import DAY, HOUR, MINUTE
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
SIGN_UP_FIRST = 0.21  # of the new buyers; the others become customers as they order
SHORTEST_LEAD, LONGEST_LEAD = 4 * MINUTE, 42 * DAY  # from signing up to the first order
SECOND_TRIES = {"pix": 0.25, "boleto": 0.25, CHARGED: 0.75}  # of first orders that expired or failed
OF_THEM_PAID, BY_CARD_AGAIN = 0.8, 0.7
FORGOTTEN_SLIPS = 0.35  # of those who wait for payment now
SETTLED = {"pix": 30 * HOUR, "boleto": 8 * DAY, CHARGED: 0}  # so long after a first order it is paid or has expired


class Visit(NamedTuple):
    """Somebody comes to buy: at an instant (ms), by a method; `fate` is what becomes of the order, paid at `pays`.

    `second` is another try if the order expires or fails. Somebody who `is_new` becomes a customer with the order, or
    when they sign up before it.
    """

    at: int
    offer: Offer
    method: str
    fate: Fate
    pays: int
    second: Visit | None = None
    is_new: bool = False
    signs_up: int | None = None

    @property
    def begins(self) -> int:
        """When somebody first does something."""
        return self.at if self.signs_up is None else self.signs_up

    def orders(self, now: int) -> int:
        """How many orders come of it by now; nothing is renewed in a project that is stopped."""
        offer = self.offer
        until = now if offer.stopped is None else min(now, offer.stopped)
        others = 0 if self.second is None else self.second.orders(now)
        return others + count_orders(offer.plan, self.method, self.fate, self.pays, until)


class Planner:
    """Draws visits of the period that a rhythm has."""

    def __init__(self, rng: Random, offers: list[Offer], rhythm: Rhythm) -> None:
        self.rng, self.offers, self.rhythm, self.now = rng, offers, rhythm, rhythm.end

    def choose(self, offers: list[Offer]) -> Offer:
        """One of some offers, by their shares."""
        return self.rng.choices(offers, [offer.share for offer in offers])[0]

    def visit(self, offer: Offer, at: int, room: int) -> Visit:
        """Somebody comes for an offer. No more orders come of it than there is `room` for."""
        method = draw_method(self.rng, offer.plan)
        if method == "boleto" and self.now - at < SETTLED[method] and "pix" in offer.plan["payment_methods"]:
            method = "pix"
        fate = draw_fate(self.rng, method)
        if fate.outcome in ("expired", "canceled") and self.now - at < SETTLED[method]:
            fate = Fate("paid")  # those who have not paid yet are drawn apart
        visit = self._visit(offer, at, method, fate)
        if visit.orders(self.now) > room:
            return self._visit(offer, at, method, unpaid(method) if self.now - at > SETTLED[method] else Fate("paid"))
        tried = visit._replace(second=self._second(visit))
        return tried if tried.orders(self.now) <= room else visit

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
        offers = [offer for offer in self.offers if offer.share and is_of_one(offer.plan, "month")]
        if not offers:
            raise asked.fail("past-due members need a monthly plan in an active project of `projects`: add one")
        for _ in range(count):
            offer, paid = self.choose(offers), int(self.rng.random() * 5)
            methods = offer.plan["payment_methods"]
            over = moment(self.rng, self.now - int((1.5 + 2 * self.rng.random()) * DAY), 8 * HOUR)
            begun = add_interval(over, "month", 1, -1 - paid) - offer.plan["trial_period_days"] * DAY
            fate, method = Fate("paid", [PAID] * paid + [LAPSE]), "pix" if "pix" in methods else methods[0]
            visit = self._visit(offer, max(begun, offer.opens + MINUTE), method, fate)
            yield visit._replace(is_new=True)

    def waiting(self, count: int) -> Iterator[Visit]:
        """So many people who have ordered lately and whose orders are not paid yet; none if only cards are taken."""
        offers = [
            offer
            for offer in self.offers
            if offer.share and offer.closes >= self.now and offer.plan["payment_methods"] != [CHARGED]
        ]
        for _ in range(count if offers else 0):
            offer = self.choose(offers)
            methods = offer.plan["payment_methods"]
            is_slip = "boleto" in methods and ("pix" not in methods or self.rng.random() < FORGOTTEN_SLIPS)
            latest = self.rhythm.share(self.now - (60 if is_slip else 20) * HOUR)
            at = self._at(offer, latest)
            yield Visit(at, offer, "boleto" if is_slip else "pix", Fate("pending"), at)

    def crowd(self, orders: int) -> Iterator[Visit]:
        """Visits of the whole period, so many that `orders` come of them."""
        offers = [offer for offer in self.offers if offer.share]
        shares = [*accumulate(offer.share for offer in offers)]
        while orders > 0:
            offer = self.rng.choices(offers, cum_weights=shares)[0]
            visit = self.visit(offer, self._at(offer), orders)
            orders -= visit.orders(self.now)
            yield visit

    def _at(self, offer: Offer, since: float = 0.0) -> int:
        """A likely instant at which an offer is sold, after a share of the period."""
        low = max(since, self.rhythm.share(offer.opens))
        high = self.rhythm.share(offer.closes)
        at = max(self.rhythm.at(low + (high - low) * self.rng.random()), offer.opens + MINUTE)
        return min(at, offer.closes - QUIET)

    # -- new buyers

    def introduce(self, visits: Iterable[Visit], newcomers: int) -> list[Visit]:
        """Visits in the order of time, the first of them and as many others as there are `newcomers` by new buyers."""
        found: list[Visit] = []
        in_turn = sorted(visits, key=lambda visit: visit.at)
        for number, visit in enumerate(in_turn):
            is_new = number == 0 or self.rng.random() * (len(in_turn) - number) < newcomers
            newcomers -= is_new
            found.append(self._introduced(visit) if is_new else visit)
        return sorted(found, key=lambda visit: visit.begins)

    def _introduced(self, visit: Visit) -> Visit:
        """The visit of a new buyer, who may sign up minutes to weeks before it."""
        rng, signs_up = self.rng, None
        if rng.random() < SIGN_UP_FIRST:
            lead = int(SHORTEST_LEAD * (LONGEST_LEAD / SHORTEST_LEAD) ** rng.random())
            wanted = moment(rng, visit.at - lead, min(8 * HOUR, lead // 2))
            if wanted > max(self.rhythm.start, visit.offer.opens):
                signs_up = wanted
        return visit._replace(is_new=True, signs_up=signs_up)
