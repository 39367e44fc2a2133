"""A year of sales: who buys what when, until the world has as many orders as were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from ..domain.calendar import add_interval, lead_ms
from ..domain.orders import expires_at
from ..drawing.carts import cart
from ..drawing.draw import Weighted
from ..drawing.fates import LAPSE, PAID, Fate, drawn, paying
from ..drawing.market import Offer
from ..drawing.rhythm import Rhythm, moment
from ..kernel.clock import DAY, HOUR, MINUTE
from ..kernel.record import Body, Record
from ..scenarios.scenario import ScenarioError
from .buyers import Buyers, Known
from .script import Script
from .shop import Shop

BUYERS = 0.93  # the rest of the customers have been entered and have not bought yet
OTHER_METHODS = 0.14  # of the orders of a plan that takes more than PIX
FAILED_BY_OTHERS = 0.8  # a payer's bank seldom tells the merchant of a PIX that it refused; an issuer always does
PIX_FAILS = 0.25  # of the failures: the charge is not even opened; else the code just expires
OF_OTHER_METHODS = ("paid", "refunded", "failed", "expired")
SECOND_TRIES, OF_THEM_PAID = 0.28, 0.8
SETTLED = 5 * DAY  # so long after a first try everything that comes of it has begun
LAST_DAYS = 4 * DAY  # before now: sales are taken as they are still wanted
SLOTS = 12  # of the last days, each with its share of what is wanted
LENGTH = {"day": DAY, "week": 7 * DAY, "month": 365.25 / 12 * DAY, "year": 365.25 * DAY}


class Arrival(NamedTuple):
    """A first order to be: when, the number of the offer, what becomes of it, and of a second try if it fails."""

    at: int
    offer: int
    fate: Fate
    again: Fate | None


class Sales:
    """Plans the crowd's purchases and lives them. `planned` is about how many orders the plan comes to by now."""

    def __init__(self, script: Script, shop: Shop, buyers: Buyers, offers: list[Offer], rhythm: Rhythm, rng: Random):
        self.script, self.shop, self.buyers, self.offers, self.rhythm = script, shop, buyers, offers, rhythm
        self.rng, self.luck = rng, shop.luck
        self.planned = 0
        self._named: list[tuple[int, str]] = []  # when they come, and to which plan
        self._newcomers = self._arrivals = self._waiting = 0
        self._wanted = 0

    @property
    def selling(self) -> bool:
        """Whether anything is for sale to the crowd."""
        return any(offer.share for offer in self.offers)

    def expected(self, offer: Offer, at: int, fate: Fate) -> int:
        """About how many orders a purchase comes to by now."""
        plan, until = offer.plan, self.script.end
        if fate.outcome not in ("paid", "partly") or plan["interval"] is None:
            return 1
        length = LENGTH[plan["interval"]] * plan["interval_count"]
        until = until if offer.stopped is None else min(until, offer.stopped)
        begun = at + plan["trial_period_days"] * DAY
        return 1 + max(
            0,
            min(
                int((until + lead_ms(plan["interval"], plan["interval_count"]) - begun) / length),
                int(min(fate.bills, 10_000)),
            ),
        )

    # -- planning

    def foresee(self, offer: Offer, at: int, fate: Fate) -> None:
        """Reckon with a purchase of somebody whom the scenario names."""
        self.planned += self.expected(offer, at, fate)
        self._named.append((at, offer.plan["id"]))

    def owe(self, people: int) -> None:
        """Plan that everybody has a monthly membership whose last period is over and not paid."""
        self.buyers.gather(people, self.rhythm.start)
        monthly = [
            (number, offer.share)
            for number, offer in enumerate(self.offers)
            if offer.plan["interval"] == "month" and offer.plan["interval_count"] == 1 and offer.share
        ]
        if not monthly:
            raise ScenarioError("Nobody can owe where no monthly plan is on sale in an active project.")
        choices, rng, found = Weighted(monthly), self.rng, []
        for _ in range(people):
            number = choices.draw(rng)
            offer, paid = self.offers[number], int(rng.random() * 5)
            trial = offer.plan["trial_period_days"] * DAY
            over = moment(rng, self.script.end - int((1.5 + 2 * rng.random()) * DAY), 8 * HOUR)
            at = max(add_interval(over, "month", 1, -1 - paid) - trial, offer.opens + MINUTE)
            found.append(Arrival(at, number, Fate("paid", (PAID,) * paid + (LAPSE,)), None))
        self._newcomers = self._arrivals = people
        self._next(iter(sorted(found)))

    def plan(self, people: int, orders: int, pending: int) -> None:
        """Plan the crowd of `people` and as many orders as the world still lacks.

        `orders` counts all of them; `pending` are placed today and wait for payment.
        """
        buying = orders > self.planned and self.selling
        self._wanted = orders
        self._newcomers = min(people, max(1, round(people * BUYERS))) if buying else 0
        self.buyers.gather(people, self.script.end)
        if buying:
            today = self._today(min(pending, orders - self.planned))
            arrivals = self._crowd(orders - len(today)) + today
            self._arrivals, self._waiting = len(arrivals), len(today)
            arrivals.sort()
            self._next(iter(arrivals))
            for slot in range(SLOTS):
                self.script.add(self._slot(slot), self._fill, slot)
        self.buyers.plan_others(people - self._newcomers)

    def _crowd(self, wanted: int) -> list[Arrival]:
        """Purchases from the beginning until the last days, as many as it takes."""
        rng, last = self.rng, self.rhythm.share(self.script.end - LAST_DAYS)
        weighted = Weighted((number, offer.share) for number, offer in enumerate(self.offers))
        reach = [(self.rhythm.share(offer.opens), min(self.rhythm.share(offer.closes), last)) for offer in self.offers]
        found: list[Arrival] = []
        turns = 0
        while (room := wanted - self.planned - len(found) * (1 - last)) >= 1 and turns < 2 * wanted + 100:
            turns += 1
            number = weighted.draw(rng)
            (low, high), offer, fate = reach[number], self.offers[number], drawn(rng)
            at = max(self.rhythm.at(low + (high - low) * rng.random()), offer.opens + MINUTE)
            if self.expected(offer, at, fate) > room:
                fate = Fate("expired")  # nobody renews what was never paid
            again = None
            if (
                fate.outcome in ("expired", "failed")
                and rng.random() < SECOND_TRIES
                and at + 2 * SETTLED < min(offer.closes, self.script.end)
            ):
                again = paying(rng, "paid") if rng.random() < OF_THEM_PAID else Fate("expired")
                bills = self.expected(offer, at + DAY, again)
                if bills < room:
                    self.planned += bills
                else:
                    again = None
            if high > low or at < offer.closes:
                found.append(Arrival(at, number, fate, again))
                self.planned += self.expected(offer, at, fate)
        return found

    def _today(self, count: int) -> list[Arrival]:
        """Those who wait for payment now."""
        rng, now = self.rng, self.script.end
        open_now = [(n, offer.share) for n, offer in enumerate(self.offers) if offer.closes >= now and offer.share]
        if not open_now:
            return []
        offers, day = Weighted(open_now), self.rhythm.share(now - 20 * HOUR)
        found = []
        for _ in range(count):
            at = min(self.rhythm.at(day + (1 - day) * rng.random()), now - 4 * MINUTE)
            number = offers.draw(rng)
            found.append(Arrival(max(at, self.offers[number].opens + MINUTE), number, Fate("pending"), None))
        return found

    def _next(self, arrivals: Iterator[Arrival]) -> None:
        """Have the next one arrive, and after it the others."""
        arrival = next(arrivals, None)
        if arrival is not None:
            self.script.add(arrival.at, self._arrive, arrival, arrivals)

    # -- living

    def _arrive(self, arrival: Arrival, arrivals: Iterator[Arrival]) -> None:
        self._next(arrivals)
        if arrival.fate.outcome == "pending":
            self._waiting -= 1
        self._purchase(self.offers[arrival.offer], arrival.fate, arrival.again)

    def _purchase(self, offer: Offer, fate: Fate, again: Fate | None, below: int = DAY) -> None:
        """Somebody new or known buys: the newcomers are spread over all purchases."""
        rng, draft, known = self.luck, self.shop.draft(), None
        if self._is_sold_out(offer.plan):
            on_sale = self._on_sale(self.script.now)
            if not on_sale:  # so they leave as they came
                self._arrivals -= 1
                return
            offer, again = self.offers[Weighted(on_sale).draw(rng)], None
        project = offer.project["id"]
        if rng.random() * max(1, self._arrivals) < self._newcomers or not self.buyers.at_hand:
            known = self.buyers.newcomer(draft, rng)
            self._newcomers -= known is not None
        self._arrivals -= 1
        if known is None:
            known = self.buyers.returning(rng, project)
            if project in known.joined and fate.outcome not in ("pending", "expired", "canceled", "failed"):
                fate, again = Fate("expired"), None  # nobody holds the same membership twice
        if project in known.joined:
            again = None
        known.joined.add(project)
        method = self._method(offer, fate)
        if fate.outcome == "failed" and method == "pix" and rng.random() >= PIX_FAILS:
            fate = Fate("expired")
        if fate.outcome == "expired" and method == "credit_card":
            fate = Fate("failed")  # a card is charged or refused at once
        order = self.shop.buy(draft, cart(rng, offer), known.buyer, known.id, method, fate, below=below)
        if again is not None:
            self.script.add(self._tries_again(order, fate), self._again, offer, known, again)

    def _method(self, offer: Offer, fate: Fate) -> str:
        rng, others = self.luck, offer.plan["payment_methods"]
        if "pix" not in others:
            return str(others[int(rng.random() * len(others))])
        by_other = FAILED_BY_OTHERS if fate.outcome == "failed" else OTHER_METHODS
        if fate.outcome not in OF_OTHER_METHODS or len(others) == 1 or rng.random() >= by_other:
            return "pix"
        method = str(others[1 + int(rng.random() * (len(others) - 1))])
        if method == "boleto" and self.script.end - self.script.now < SETTLED:
            return "pix"
        if fate.outcome == "failed" and method == "boleto":
            return "credit_card"
        if method == "credit_card" and fate.outcome == "expired":
            return "pix"  # a card is charged or refused at once
        if method == "credit_card" and LAPSE in fate.renewals:  # renewals by card need nobody who pays
            return "boleto" if "boleto" in others else "pix"
        return method

    def _tries_again(self, order: Record, fate: Fate) -> int:
        """Whose code expired or payment failed tries once more, soon or on the next day."""
        rng, now = self.luck, self.script.now
        if fate.outcome == "failed":
            return now + MINUTE + int(rng.random() ** 2 * 40 * MINUTE)
        over = expires_at(self.script.store.orders.parse(order).public)
        return moment(rng, over + 15 * HOUR, 14 * HOUR)

    def _again(self, offer: Offer, known: Known, fate: Fate) -> None:
        if not self._is_sold_out(offer.plan, known.id):
            method = "pix" if "pix" in offer.plan["payment_methods"] else offer.plan["payment_methods"][0]
            self.shop.buy(self.shop.draft(), cart(self.luck, offer), known.buyer, known.id, method, fate)

    def _on_sale(self, at: int) -> list[tuple[int, float]]:
        """The numbers and shares of the offers that somebody new can take at an instant."""
        return [
            (number, offer.share)
            for number, offer in enumerate(self.offers)
            if offer.share and offer.opens < at <= offer.closes and not self._is_sold_out(offer.plan)
        ]

    def _is_sold_out(self, plan: Body, customer_id: str | None = None) -> bool:
        """Whether a plan has no seat for one of the crowd: those whom the scenario names find theirs."""
        most = plan["max_subscribers"]
        if most is None:
            return False
        named = sum(at > self.script.now and ident == plan["id"] for at, ident in self._named)
        return self.shop.store.is_sold_out(plan | {"max_subscribers": most - named}, customer_id)

    # -- the last days

    def _slot(self, slot: int) -> int:
        """When a slot of the last days begins: they get shorter towards now, the last one ends a while before it."""
        return self.script.end - int(LAST_DAYS * 0.55**slot) - 10 * MINUTE

    def _fill(self, slot: int) -> None:
        """Have somebody buy for what is still lacking; what the plan did not foresee is made good here."""
        script, end = self.script, self.script.end
        due = sum(timer.job == "subscription.renew" for timer in script.sandbox.timers.due_by(end))
        named = sum(at > script.now for at, _ in self._named)
        lacking = self._wanted - len(script.store.orders) - self._waiting - named - due
        now, last = script.now, slot == SLOTS - 1
        until = end - 5 * MINUTE if last else self._slot(slot + 1)
        low, high = self.rhythm.share(now), self.rhythm.share(until)
        wanted = lacking if last else round(lacking * (high - low) / max(high - low, 1 - low))
        open_now = [(n, share) for n, share in self._on_sale(now) if self.offers[n].closes >= end]
        if open_now:
            offers = Weighted(open_now)
            for _ in range(wanted):
                at = self.rhythm.at(low + (high - low) * self.rng.random())
                script.add(at, self._sell, self.offers[offers.draw(self.rng)])
        if last:
            for _ in range(max(0, self._newcomers)):
                script.add(now + int((end - now) * self.rng.random()), self.buyers.enter_other)

    def _sell(self, offer: Offer) -> None:
        """One of the last purchases: it is settled by now, for those who wait have been counted."""
        left = self.script.end - self.script.now
        fate = Fate("canceled") if left > DAY and self.luck.random() < 0.12 else Fate("paid")
        if left > 30 * HOUR and self.luck.random() < 0.4:
            fate = Fate("expired")
        self._purchase(offer, fate, None, below=min(left - MINUTE, DAY))
