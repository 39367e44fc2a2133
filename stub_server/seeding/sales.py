"""A year of sales: who buys what when, until the sandbox has as many orders as were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from ..domain.calendar import add_interval, lead_ms
from ..domain.orders import expires_at
from ..domain.subscriptions import ATTEMPTS
from ..drawing import purchases
from ..drawing.draw import Weighted, stream
from ..drawing.purchases import CARD, DECLINED, LAPSE, PAID, PAYING, Fate, Offer, cart, drawn, paying, unpaid
from ..drawing.rhythm import Rhythm, moment
from ..kernel.clock import DAY, HOUR, MINUTE
from ..kernel.record import Body, Record
from ..kernel.timers import Timer
from ..scenarios.scenario import Scenario, ScenarioError
from .buyers import Buyer, Buyers
from .script import Script
from .shop import Shop

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
NEW = 0.95  # of the purchases at most: a few buyers come back
SIGN_UP_FIRST = 0.21  # of the new buyers; the others become customers as they order
SHORTEST_LEAD, LONGEST_LEAD = 4 * MINUTE, 42 * DAY  # from signing up to the first order
SECOND_TRIES = {"pix": 0.25, "boleto": 0.25, CARD: 0.75}  # of first orders that expired or failed
OF_THEM_PAID, BY_CARD_AGAIN = 0.8, 0.7
FORGOTTEN_SLIPS = 0.35  # of those who wait for payment now
SETTLED = 8 * DAY  # so long after a first try everything that comes of it has begun
LAST_DAYS = 24 * DAY  # before now: sales are planned as they are still wanted
SLOTS = 12  # of the last days, each with its share of what is wanted
UNPAID_FOR = 30 * HOUR  # so long before now a PIX is still open: who does not pay is among those who wait
LENGTH = {"day": DAY, "week": 7 * DAY, "month": 365.25 / 12 * DAY, "year": 365.25 * DAY}


class Arrival(NamedTuple):
    """A first order to be: when, the number of the offer, by which method, what becomes of it, and a second try.

    A new buyer may sign up at `at` and order `lead` ms later.
    """

    at: int
    offer: int
    method: str
    fate: Fate
    again: tuple[str, Fate] | None = None
    is_new: bool = False
    lead: int = 0


class Sales:
    """Plans the crowd's purchases and makes them. `planned` is about how many orders the plan comes to by now."""

    def __init__(self, script: Script, shop: Shop, buyers: Buyers, offers: list[Offer], rhythm: Rhythm) -> None:
        self.script, self.shop, self.buyers, self.offers, self.rhythm = script, shop, buyers, offers, rhythm
        self.rng, self.luck = stream(script.sandbox.seed, "arrivals"), shop.luck
        self.planned = 0.0
        self._named: list[tuple[int, str]] = []  # when those whom the scenario names buy, and which plan
        self._newcomers = self._late = self._waiting = 0  # new buyers and sales of the last days, open orders
        self._wanted = 0
        self._stops = {offer.project["id"]: offer.stopped for offer in offers if offer.stopped is not None}

    def expected(self, offer: Offer, at: int, method: str, fate: Fate) -> float:
        """About how many orders a purchase comes to by now."""
        plan, until = offer.plan, self.script.end
        if fate.outcome not in ("paid", "partly") or plan["interval"] is None:
            return 1
        length = LENGTH[plan["interval"]] * plan["interval_count"]
        until = until if offer.stopped is None else min(until, offer.stopped)
        begun = at + plan["trial_period_days"] * DAY
        lead = 0 if method == CARD else lead_ms(plan["interval"], plan["interval_count"])
        bills = max(0, min(int((until + lead - begun) / length), int(min(fate.bills, 10_000))))
        if method != CARD:
            return 1 + bills
        attempts = len(ATTEMPTS) if bills == fate.bills and fate.renewals[-1] == LAPSE else 0
        return 1 + bills * (1 + DECLINED * 1.3) + attempts

    # -- planning

    def foresee(self, offer: Offer, at: int, fate: Fate) -> None:
        """Count a purchase of somebody whom the scenario names."""
        self.planned += self.expected(offer, at, "pix", fate)
        self._named.append((at, offer.plan["id"]))

    def plan(self, scenario: Scenario) -> None:
        """Plan everybody else: the crowd, and as many orders as the sandbox still lacks. Raises ScenarioError."""
        people = max(0, scenario.customers - self.buyers.named)
        if not any(offer.share for offer in self.offers) and (scenario.owing or scenario.orders > self.planned):
            asked = scenario.root["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        if scenario.owing:
            self._owe(people)
        else:
            self._plan(people, scenario.orders, scenario.pending)

    def _owe(self, people: int) -> None:
        """Plan that everybody has a monthly membership whose last period is over and not paid."""
        self.buyers.gather(people, self.rhythm.start)
        monthly = self._shares(lambda offer: (offer.plan["interval"], offer.plan["interval_count"]) == ("month", 1))
        if not monthly:
            raise ScenarioError("Nobody can owe where no monthly plan is on sale in an active project.")
        choices, rng, found = Weighted(monthly), self.rng, []
        for _ in range(people):
            number = choices.draw(rng)
            offer, paid = self.offers[number], int(rng.random() * 5)
            trial = offer.plan["trial_period_days"] * DAY
            over = moment(rng, self.script.end - int((1.5 + 2 * rng.random()) * DAY), 8 * HOUR)
            at = max(add_interval(over, "month", 1, -1 - paid) - trial, offer.opens + MINUTE)
            methods = offer.plan["payment_methods"]
            method = "pix" if "pix" in methods else methods[0]
            found.append(Arrival(at, number, method, Fate("paid", (PAID,) * paid + (LAPSE,)), is_new=True))
        self._next(iter(sorted(found)))

    def _plan(self, people: int, orders: int, pending: int) -> None:
        """`orders` counts all of them; `pending` are placed today and wait for payment."""
        self._wanted = orders
        newcomers = 0
        self.buyers.gather(people, self.script.end)
        if orders > self.planned:
            today = self._today(min(pending, orders - round(self.planned)))
            arrivals = self._crowd(orders, len(today)) + today
            self._late, self._waiting = max(0, orders - len(today) - round(self.planned)), len(today)
            visits = len(arrivals) + self._late
            newcomers = min(people, max(1, round(min(people * BUYERS, visits * NEW))))
            self._next(iter(sorted(self._introduced(sorted(arrivals), visits, newcomers))))
            for slot in range(SLOTS):
                self.script.add(self._slot(slot), self._fill, slot)
        self.buyers.plan_others(people - newcomers)

    def _shares(self, wanted: Callable[[Offer], bool]) -> list[tuple[int, float]]:
        """The numbers and shares of the offers to the crowd that are of a kind."""
        return [(number, offer.share) for number, offer in enumerate(self.offers) if offer.share and wanted(offer)]

    def _introduced(self, arrivals: list[Arrival], visits: int, newcomers: int) -> Iterator[Arrival]:
        """The arrivals with new buyers spread over them and over the last days, some of whom sign up before."""
        for arrival in arrivals:
            is_new = self.rng.random() * visits < newcomers
            visits -= 1
            newcomers -= is_new
            yield self._signing_up(arrival) if is_new else arrival
        self._newcomers = newcomers

    def _signing_up(self, arrival: Arrival) -> Arrival:
        """The arrival of a new buyer, who may sign up minutes to weeks before the order."""
        rng, at, lead = self.rng, arrival.at, 0
        if rng.random() < SIGN_UP_FIRST:
            lead = int(SHORTEST_LEAD * (LONGEST_LEAD / SHORTEST_LEAD) ** rng.random())
            lead = at - moment(rng, at - lead, min(8 * HOUR, lead // 2))
            if at - lead <= max(self.rhythm.start, self.offers[arrival.offer].opens):
                lead = 0
        return arrival._replace(at=at - lead, is_new=True, lead=lead)

    def _crowd(self, wanted: int, waiting: int) -> list[Arrival]:
        """Purchases from the beginning until the last days, as many as it takes: then as many come as before.

        `waiting` of those who come in the last days are planned separately.
        """
        rng, share = self.rng, self.rhythm.share
        last = share(self.script.end - LAST_DAYS)
        weighted = Weighted((number, offer.share) for number, offer in enumerate(self.offers))
        spans = [(share(offer.opens), min(share(offer.closes), last)) for offer in self.offers]
        later = sum(
            offer.share * max(0, share(offer.closes) - last) / (high - low)
            for offer, (low, high) in zip(self.offers, spans, strict=True)
            if high > low
        )
        later /= weighted.sums[-1]
        found: list[Arrival] = []
        turns = 0
        while (room := wanted - self.planned - max(waiting, len(found) * later)) >= 1 and turns < 2 * wanted + 100:
            turns += 1
            number = weighted.draw(rng)
            (low, high), offer = spans[number], self.offers[number]
            at = max(self.rhythm.at(low + (high - low) * rng.random()), offer.opens + MINUTE)
            method = self._method(rng, offer, at)
            fate = drawn(rng, method)
            if self.expected(offer, at, method, fate) > room:
                fate = unpaid(method)  # nobody renews what was never paid
            again = None
            if (
                fate.outcome in ("expired", "failed")
                and rng.random() < SECOND_TRIES[method]
                and at + 2 * SETTLED < min(offer.closes, self.script.end)
            ):
                again = self._second(rng, offer, method)
                bills = self.expected(offer, at + DAY, *again)
                if bills < room:
                    self.planned += bills
                else:
                    again = None
            if high > low or at < offer.closes:
                found.append(Arrival(at, number, method, fate, again))
                self.planned += self.expected(offer, at, method, fate)
        return found

    def _today(self, count: int) -> list[Arrival]:
        """Those who wait for payment now."""
        rng, now = self.rng, self.script.end
        open_now = self._shares(lambda offer: offer.closes >= now and offer.plan["payment_methods"] != [CARD])
        if not open_now:
            return []
        offers, found = Weighted(open_now), []
        for _ in range(count):
            number = offers.draw(rng)
            offer = self.offers[number]
            methods = offer.plan["payment_methods"]
            forgotten = rng.random() < FORGOTTEN_SLIPS or "pix" not in methods
            method = "boleto" if "boleto" in methods and forgotten else "pix"
            low = self.rhythm.share(now - (60 if method == "boleto" else 20) * HOUR)
            at = min(self.rhythm.at(low + (1 - low) * rng.random()), now - 4 * MINUTE)
            found.append(Arrival(max(at, offer.opens + MINUTE), number, method, Fate("pending")))
        return found

    def _method(self, rng: Random, offer: Offer, at: int) -> str:
        """How somebody pays, of the methods that the plan takes. A boleto takes longer than the last days."""
        methods = offer.plan["payment_methods"]
        usual = purchases.METHODS_FOR_LONG if offer.plan["interval"] in (None, "year") else purchases.METHODS
        method = Weighted((method, share) for method, share in usual.items() if method in methods).draw(rng)
        return "pix" if method == "boleto" and self.script.end - at < SETTLED and "pix" in methods else method

    def _second(self, rng: Random, offer: Offer, method: str) -> tuple[str, Fate]:
        """A second try: a declined card mostly once more, what expired by PIX."""
        if "pix" in offer.plan["payment_methods"] and not (method == CARD and rng.random() < BY_CARD_AGAIN):
            method = "pix"
        return method, paying(rng, "paid", method) if rng.random() < OF_THEM_PAID else unpaid(method)

    def _next(self, arrivals: Iterator[Arrival]) -> None:
        """Have the next one arrive, and after it the others."""
        arrival = next(arrivals, None)
        if arrival is not None:
            self.script.add(arrival.at, self._arrive, arrival, arrivals)

    # -- buying

    def _arrive(self, arrival: Arrival, arrivals: Iterator[Arrival]) -> None:
        self._next(arrivals)
        _, number, method, fate, again, is_new, lead = arrival
        offer = self.offers[number]
        if lead:
            buyer = self.buyers.sign_up(self.luck)
            self.script.add(self.script.now + lead, self._purchase, offer, method, fate, again, False, buyer)
        else:
            self._purchase(offer, method, fate, again, is_new)

    def _purchase(
        self,
        offer: Offer,
        method: str,
        fate: Fate,
        again: tuple[str, Fate] | None,
        is_new: bool,
        buyer: Buyer | None = None,
        below: int = DAY,
    ) -> None:
        """Somebody buys: `buyer` who signed up before, somebody new, or one who comes back."""
        rng, now, draft = self.luck, self.script.now, self.script.draft()
        if fate.outcome == "pending":
            self._waiting -= 1
        if self._is_sold_out(offer.plan):
            on_sale = self._on_sale(now)
            if not on_sale:  # so they leave as they came, and somebody else comes in the last days
                self._newcomers += is_new
                return
            sold_out, offer, again = offer, self.offers[Weighted(on_sale).draw(rng)], None
            methods = offer.plan["payment_methods"]
            if self.expected(offer, now, method, fate) > self.expected(sold_out, now, method, fate):
                fate = unpaid(method)  # or more orders would come of it than were planned
            method = method if method in methods else methods[0]
            if method == CARD and fate.outcome not in PAYING:
                fate = unpaid(method)
        project = offer.project["id"]
        if buyer is None and (is_new or not self.buyers.recent):
            buyer = self.buyers.newcomer(draft, rng)
            self._newcomers -= buyer is not None and not is_new
        if buyer is not None:
            self.buyers.remember(buyer)
        else:
            buyer = self.buyers.returning(rng, project)
            if project in buyer.joined and fate.outcome in PAYING:
                fate, again = unpaid(method), None  # nobody holds the same membership twice
        if project in buyer.joined:
            again = None
        buyer.joined.add(project)
        order = self.shop.buy(draft, cart(rng, offer), buyer.order_copy, buyer.id, method, fate, below=below)
        if again is not None:
            self.script.add(self._tries_again(order, fate), self._again, offer, buyer, *again)

    def _tries_again(self, order: Record, fate: Fate) -> int:
        """When somebody whose code expired or payment failed tries once more: soon or on the next day."""
        rng, now = self.luck, self.script.now
        if fate.outcome == "failed":
            return now + MINUTE + int(rng.random() ** 2 * 40 * MINUTE)
        over = expires_at(self.script.store.orders.parse(order).public)
        return moment(rng, over + 15 * HOUR, 14 * HOUR)

    def _again(self, offer: Offer, buyer: Buyer, method: str, fate: Fate) -> None:
        if not self._is_sold_out(offer.plan, buyer.id):
            self.shop.buy(self.script.draft(), cart(self.luck, offer), buyer.order_copy, buyer.id, method, fate)

    def _on_sale(self, at: int) -> list[tuple[int, float]]:
        """The numbers and shares of the offers that somebody new can take at an instant."""
        return self._shares(lambda offer: offer.opens < at <= offer.closes and not self._is_sold_out(offer.plan))

    def _is_sold_out(self, plan: Body, customer_id: str | None = None) -> bool:
        """Whether a plan has no seat for one of the crowd: those whom the scenario names find theirs."""
        most = plan["max_subscribers"]
        if most is None:
            return False
        named = sum(at > self.script.now and ident == plan["id"] for at, ident in self._named)
        return self.script.store.is_sold_out(plan | {"max_subscribers": most - named}, customer_id)

    # -- the last days

    def _slot(self, slot: int) -> int:
        """When a slot of the last days begins: they get shorter towards now, the last one ends a while before it."""
        return self.script.end - int(LAST_DAYS * 0.55**slot) - 10 * MINUTE

    def _fill(self, slot: int) -> None:
        """Have somebody buy for what is still lacking; what the plan did not foresee is made good here."""
        script, now, end = self.script, self.script.now, self.script.end
        due = sum(self._will_order(timer) for timer in script.sandbox.timers.pending(end))
        named = sum(at > now for at, _ in self._named)
        lacking = self._wanted - len(script.store.orders) - self._waiting - named - due
        last = slot == SLOTS - 1
        until = end - 5 * MINUTE if last else self._slot(slot + 1)
        low, high = self.rhythm.share(now), self.rhythm.share(until)
        wanted = lacking if last else round(lacking * (high - low) / max(high - low, 1 - low))
        for _ in range(self._newcomers - max(0, lacking)):  # more than will buy
            self._newcomers -= 1
            script.add(now + int((until - now) * self.rng.random()), self.buyers.enter_other)
        self._late = lacking
        for _ in range(wanted):
            script.add(self.rhythm.at(low + (high - low) * self.rng.random()), self._sell)

    def _will_order(self, timer: Timer) -> bool:
        """Whether the clock makes an order: of the next period, or of another attempt at a card.

        It makes none for a project that is stopped by then.
        """
        is_charge = timer.job == "subscription.charge"
        if not is_charge and (timer.job != "subscription.renew" or not self._stops):
            return timer.job == "subscription.renew"
        row = self.script.store.subscriptions.open(timer.subject)
        if row is None or timer.due > self._stops.get(row.public["projectId"], timer.due):
            return False
        return not is_charge or bool(row.public["status"] == "past_due")

    def _sell(self) -> None:
        """One of the last purchases: it is settled by now, for those who wait have been counted."""
        rng, now = self.luck, self.script.now
        on_sale = self._on_sale(now)
        if not on_sale:
            return
        offer, left = self.offers[Weighted(on_sale).draw(rng)], self.script.end - now
        method = self._method(rng, offer, now)
        fate = drawn(rng, method)
        if fate.outcome in ("expired", "canceled") and left <= UNPAID_FOR:
            fate = Fate(PAID)
        if self.expected(offer, now, method, fate) > max(1, self._late):
            fate = unpaid(method)
        is_new = rng.random() * self._late < self._newcomers
        self._late -= 1
        self._newcomers -= is_new
        self._purchase(offer, method, fate, None, is_new, below=min(left - MINUTE, DAY))
