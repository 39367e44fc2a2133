"""A year of sales: who bought what when, until the world has as many orders as were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ..contract.formats import date_time_ms
from ..domain.calendar import add_interval
from ..kernel.clock import DAY, HOUR, MINUTE
from ..kernel.record import Body
from ..store.memory import Store
from .buyers import Buyers, Comer
from .draw import Weighted
from .lives import Fate, Life, live
from .market import Market, Offer
from .people import People
from .rhythm import Rhythm, moment
from .scenario import ScenarioError
from .streams import Numbered

#: How first orders end, in percent. Renewals are paid far more often, so that all orders together come to
#: paid 64, expired 21, canceled 4, refunded 4, failed 2, pending 5.
OUTCOMES = Weighted(
    (Fate(outcome), weight)
    for outcome, weight in (
        ("paid", 38),
        ("expired", 38),
        ("canceled", 8.5),
        ("refunded", 9),
        ("failed", 5),
        ("partly", 1.5),
    )
)
ORDERS_A_LIFE = 1.75
BUYERS = 0.93  # the rest of the customers have been entered and have not bought yet
OTHER_METHODS = 0.14  # of the orders of a plan that takes more than PIX
FAILED_BY_OTHERS = 0.8  # a payer's bank seldom tells the merchant of a PIX that it refused; an issuer always does
OF_OTHER_METHODS = ("paid", "refunded", "failed", "expired")
SECOND_TRIES, OF_THEM_PAID = 0.28, 0.8
LIVES_A_STREAM = 64  # to begin a stream costs as much as a tenth of a life


class Sales:
    """Sells until there are enough orders."""

    def __init__(
        self, store: Store, market: Market, offers: list[Offer], people: People, seed: int, blank: Body, start: int
    ) -> None:
        self.store, self.market, self.start = store, market, start
        self.rhythm = Rhythm(start, market.now)
        self.offers = offers
        self.lives = Numbered(seed, "lives")
        self.waiting = Numbered(seed, "waiting")
        self.buyers = Buyers(store, market, people, seed, blank, self.rhythm)
        self.orders = 0

    @property
    def selling(self) -> bool:
        """Whether anything is for sale to the crowd."""
        return any(offer.share for offer in self.offers)

    def run(self, customers: int, orders: int, pending: int, *, owing: bool = False) -> None:
        """Make the crowd and its orders, beside those already there: `customers` and `orders` count all of them.

        `pending` orders were placed today and wait for payment. `owing` leaves everybody past due instead.
        """
        since = self.start if owing else self.market.now
        crowd = self.buyers.crowd(max(0, customers - len(self.store.customers)), since)
        if owing and self.selling:
            self._owe(crowd)
        elif self.selling and orders > self.orders:
            buyers = max(1, round(customers * BUYERS) - len(self.store.customers))
            lives = max(1.0, (orders - self.orders) / ORDERS_A_LIFE)
            self._sell(crowd, buyers, orders, min(pending, orders), min(1.0, buyers / lives * 1.02))
        self.buyers.enter_rest(crowd)

    def _owe(self, crowd: Iterator[Comer]) -> None:
        """Everybody has a monthly membership whose last period is over and not paid."""
        monthly = [
            (number, offer.share)
            for number, offer in enumerate(self.offers)
            if offer.plan["interval"] == "month" and offer.plan["interval_count"] == 1 and offer.share
        ]
        if not monthly:
            raise ScenarioError("Nobody can owe where no monthly plan is on sale in an active project.")
        choices = Weighted(monthly)
        for turn, comer in enumerate(crowd):
            rng = self.lives.at(turn)
            number = choices.draw(rng)
            offer = self.offers[number]
            paid = int(rng.random() * 5)
            trial = offer.plan["trial_period_days"] * DAY
            over = moment(rng, self.market.now - int((1.5 + 2 * rng.random()) * DAY), 8 * HOUR)
            at = max(add_interval(over, "month", 1, -1 - paid) - trial, offer.opens + MINUTE)
            customer, buyer = self.buyers.newcomer(comer, at, offer.project["id"], rng)
            self.keep(live(self.market, rng, offer, customer, buyer, at, Fate("paid", ("paid",) * paid + ("lapse",))))

    def _sell(
        self,
        crowd: Iterator[Comer],
        buyers: int,
        wanted: int,
        pending: int,
        fresh: float,
    ) -> None:
        now = self.market.now
        weighted = Weighted((number, offer.share) for number, offer in enumerate(self.offers))
        reach = [(self.rhythm.share(offer.opens), self.rhythm.share(offer.closes)) for offer in self.offers]
        open_now = [number for number, offer in enumerate(self.offers) if offer.closes >= now and offer.share]
        today = Weighted((number, self.offers[number].share) for number in open_now) if open_now else None
        turn = 0

        def lives(until: int, buyers: int) -> None:
            nonlocal turn
            rng = self.lives.at(turn // LIVES_A_STREAM)
            while self.orders < until:
                if turn % LIVES_A_STREAM == 0:
                    rng = self.lives.at(turn // LIVES_A_STREAM)
                turn += 1
                number = weighted.draw(rng)
                low, high = reach[number]
                at = self.rhythm.at(low + (high - low) * rng.random())
                self._life(rng, number, at, OUTCOMES.draw(rng), crowd, buyers, fresh, until - self.orders)

        waiting = pending if today is not None else 0
        # Those who wait today are new for the most part, and the others have bought before.
        lives(wanted - waiting, buyers - round(waiting * fresh))
        day = self.rhythm.share(now - 20 * HOUR)
        for place in range(waiting):
            rng = self.waiting.at(place)
            assert today is not None
            at = min(self.rhythm.at(day + (1 - day) * rng.random()), now - 4 * MINUTE)
            number = today.draw(rng)
            if at > self.offers[number].opens:
                self._life(rng, number, at, Fate("pending"), crowd, buyers, fresh, wanted - self.orders)
        lives(wanted, buyers)

    def _life(
        self,
        rng: Random,
        number: int,
        at: int,
        fate: Fate,
        crowd: Iterator[Comer],
        buyers: int,
        fresh: float,
        most: int,
    ) -> None:
        """One purchase and what came of it: at most `most` orders."""
        offer = self.offers[number]
        project = offer.project["id"]
        at = max(at, offer.opens + MINUTE)
        new = rng.random() < fresh and self.buyers.newcomers < buyers
        if new or not self.buyers.at_hand:
            first_time = True
            customer, buyer = self.buyers.newcomer(self.buyers.coming(crowd, at), at, project, rng)
        else:
            customer, buyer, first, bought = self.buyers.returning(rng, project, at)
            first_time = project not in bought
            if not first_time and fate.outcome not in ("pending", "expired", "canceled", "failed"):
                fate = Fate("expired")  # nobody holds the same membership twice
            if at <= first:
                low, high = self.rhythm.share(first), self.rhythm.share(offer.closes)
                at = self.rhythm.at(low + (high - low) * rng.random())
            if not first < at <= offer.closes:
                return
            bought.add(project)
        method = "pix"
        others = offer.plan["payment_methods"]
        by_other = FAILED_BY_OTHERS if fate.outcome == "failed" else OTHER_METHODS
        if fate.outcome in OF_OTHER_METHODS and len(others) > 1 and rng.random() < by_other:
            method = others[1 + int(rng.random() * (len(others) - 1))]
            if fate.outcome == "failed" and method == "boleto":
                method = "credit_card"
            elif fate.outcome == "expired" and method == "credit_card":  # a card is charged or refused at once
                method = "boleto" if "boleto" in others else "pix"
        told, due = len(self.market.told), len(self.market.due)
        life = live(self.market, rng, offer, customer, buyer, at, fate, method=method)
        if len(life.orders) > most:  # it would bring more orders than are wanted; nobody renews what was never paid
            del self.market.told[told:], self.market.due[due:]
            life = live(self.market, rng, offer, customer, buyer, at, Fate("expired"))
        self.keep(life)
        if first_time and len(life.orders) < most and rng.random() < SECOND_TRIES:
            self._again(rng, offer, customer, buyer, life, most - len(life.orders))

    def _again(self, rng: Random, offer: Offer, customer: Body, buyer: Body, life: Life, most: int) -> None:
        """Whose code expired or payment failed tries once more, soon or on the next day: at most `most` orders."""
        first = life.orders[0].public
        if len(life.orders) > 1 or first["status"] not in ("expired", "failed"):
            return
        over = date_time_ms(first["updatedAt"])
        if first["status"] == "failed":
            at = over + MINUTE + int(rng.random() ** 2 * 40 * MINUTE)
        else:
            at = moment(rng, over + 15 * HOUR, 14 * HOUR)
        if at >= min(offer.closes, self.market.now - DAY):
            return
        fate = Fate("paid" if rng.random() < OF_THEM_PAID else "expired")
        told, due = len(self.market.told), len(self.market.due)
        second = live(self.market, rng, offer, customer, buyer, at, fate)
        if len(second.orders) <= most:
            self.keep(second)
        else:
            del self.market.told[told:], self.market.due[due:]

    def keep(self, life: Life) -> None:
        """Write what a life has left."""
        for order in life.orders:
            self.store.add("orders", order.id, order.public, order.hidden, order.at)
        if life.subscription is not None:
            public, hidden, at = life.subscription
            self.store.add("subscriptions", public["id"], public, hidden, at)
        self.orders += len(life.orders)
