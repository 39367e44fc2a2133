"""A year of sales: people come as planned, and in the last days as many more as orders are lacking."""

from collections.abc import Iterator
from itertools import pairwise

from ..domain.orders import expires_at
from ..domain.subscriptions import CHARGED
from ..drawing.draw import Weighted
from ..drawing.purchases import PAYING, Fate, Offer, cart, expected_orders, unpaid
from ..drawing.rhythm import moment
from ..engine.draft import Draft
from ..kernel.clock import DAY, HOUR, MINUTE
from ..kernel.record import Body, Record
from ..kernel.timers import Timer
from ..scenarios.scenario import Scenario
from .buyers import Buyer, Buyers
from .planning import LAST_DAYS, Planner, Visit
from .script import Script
from .shop import Shop

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
NEW = 0.95  # of the visits at most: a few buyers come back
SLOTS = 12  # of the last days, each with its share of what is lacking; they get shorter towards now
QUIET = 5 * MINUTE  # before now, in which nobody comes
UNPAID_FOR = 30 * HOUR  # so long before now a PIX is still open: who does not pay is among those who wait


class Sales:
    """The crowd, which buys until there are as many orders as the scenario wants."""

    def __init__(self, script: Script, scenario: Scenario, shop: Shop, buyers: Buyers, planner: Planner) -> None:
        self.script, self.scenario, self.shop, self.buyers, self.planner = script, scenario, shop, buyers, planner
        self.luck = shop.luck
        self._named: list[tuple[int, str]] = []  # when those whom the scenario names buy, and which plan
        self._stops = {offer.project["id"]: offer.stopped for offer in planner.offers if offer.stopped is not None}
        self._waiting = 0  # visits to come whose order waits for payment now
        self._lacking = 0  # purchases of the last days to come
        self._newcomers = 0  # new buyers among them

    # -- before time passes

    def foresee(self, plan: Body, at: int, fate: Fate) -> None:
        """Count a purchase of somebody whom the scenario names."""
        self.planner.planned += expected_orders(plan, "pix", fate, at, self.script.end)
        self._named.append((at, plan["id"]))

    def plan(self) -> None:
        """Plan what everybody does whom the scenario does not name. Raises ScenarioError."""
        scenario, node = self.scenario, self.scenario.root
        people = max(0, scenario.customers - self.buyers.named)
        is_lacking = scenario.orders > self.planner.planned
        if (scenario.owing or is_lacking) and not any(offer.share for offer in self.planner.offers):
            asked = node["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        if scenario.owing:
            self.buyers.gather(people, self.planner.rhythm.start)
            self._come(iter(self.planner.debts(people, node["everybody"])))
        else:
            self.buyers.gather(people, self.script.end)
            newcomers = self._plan_visits(people) if is_lacking else 0
            self.buyers.plan_others(people - newcomers)

    def _plan_visits(self, people: int) -> int:
        """Plan the visits, and when to plan those of the last days; returns how many of the people buy."""
        planner, orders, end = self.planner, self.scenario.orders, self.script.end
        waiting = planner.waiting(min(self.scenario.pending, orders - round(planner.planned)))
        visits = planner.crowd(orders, len(waiting)) + waiting
        later = max(0, orders - len(waiting) - round(planner.planned))
        newcomers = min(people, max(1, round(min(people * BUYERS, (len(visits) + later) * NEW))))
        visits, self._newcomers = planner.introduce(visits, later, newcomers)
        self._waiting = len(waiting)
        self._come(iter(visits))
        limits = [end - int(LAST_DAYS * 0.55**slot) - 10 * MINUTE for slot in range(SLOTS)]
        for begins, until in pairwise([*limits, end - QUIET]):
            self.script.add(begins, self._fill, until)
        return newcomers

    # -- one visit, from its begin to a second try

    def _come(self, visits: Iterator[Visit]) -> None:
        """Queue the next visit, which queues the one after it: so the queue stays short."""
        visit = next(visits, None)
        if visit is not None:
            self.script.add(visit.begins, self._begin, visit, visits)

    def _begin(self, visit: Visit, visits: Iterator[Visit]) -> None:
        """Somebody orders, or signs up to order later."""
        self._come(visits)
        if visit.signs_up is None:
            self._purchase(visit)
        else:
            buyer = self.script.step(self.buyers.newcomer, self.luck)
            self.script.add(visit.at, self._purchase, visit._replace(is_new=False), buyer)

    def _purchase(self, visit: Visit, buyer: Buyer | None = None) -> None:
        """Somebody orders: `buyer`, who has signed up before, or else somebody new or one who comes back."""
        if visit.fate.outcome == "pending":
            self._waiting -= 1
        if self._is_sold_out(visit.offer.plan):
            other = self._instead(visit)
            if other is None:  # they leave as they came, and somebody else comes in the last days
                self._newcomers += visit.is_new
                return
            visit = other
        draft, project = self.script.draft(), visit.offer.project["id"]
        if buyer is None and (visit.is_new or not self.buyers.recent):
            buyer = self.buyers.newcomer(draft, self.luck)
            self._newcomers -= buyer is not None and not visit.is_new
        if buyer is not None:
            self.buyers.remember(buyer)
        elif not self.buyers.recent:
            raise self.scenario.root["orders"].fail(
                "nobody is left to buy: raise `customers`, which counts named ones too"
            )
        else:
            buyer = self.buyers.returning(self.luck, project)
            if project in buyer.joined:  # nobody holds the same membership twice
                fate = unpaid(visit.method) if visit.fate.outcome in PAYING else visit.fate
                visit = visit._replace(fate=fate, second=None)
        buyer.joined.add(project)
        order = self._order(draft, visit, buyer)
        if visit.second is not None:
            self.script.add(self._tries_again(order, visit.fate), self._try_again, visit.second, buyer)

    def _instead(self, visit: Visit) -> Visit | None:
        """What somebody buys whose plan has no seat left; None if nothing is on sale."""
        on_sale = self._on_sale()
        if on_sale is None:
            return None
        other = visit._replace(offer=on_sale.draw(self.luck), second=None)
        if self.planner.expected(other) > self.planner.expected(visit):
            other = other._replace(fate=unpaid(other.method))  # or more orders would come of it than were planned
        methods = other.offer.plan["payment_methods"]
        if other.method not in methods:
            other = other._replace(method=methods[0])
        if other.method == CHARGED and other.fate.outcome not in PAYING:
            other = other._replace(fate=unpaid(CHARGED))
        return other

    def _order(self, draft: Draft, visit: Visit, buyer: Buyer) -> Record:
        body = cart(self.luck, visit.offer)
        return self.shop.buy(draft, body, buyer.order_copy, buyer.id, visit.method, visit.fate, below=visit.pays_within)

    def _tries_again(self, order: Record, fate: Fate) -> int:
        """When somebody whose order failed or expires tries once more: soon, or on the day after."""
        if fate.outcome == "failed":
            return self.script.now + MINUTE + int(self.luck.random() ** 2 * 40 * MINUTE)
        over = expires_at(self.script.store.orders.parse(order).public)
        return moment(self.luck, over + 15 * HOUR, 14 * HOUR)

    def _try_again(self, visit: Visit, buyer: Buyer) -> None:
        if not self._is_sold_out(visit.offer.plan, buyer.id):
            self._order(self.script.draft(), visit, buyer)

    # -- what is on sale

    def _on_sale(self) -> Weighted[Offer] | None:
        """What somebody new can buy now."""
        now = self.script.now
        return self.planner.weighted(
            lambda offer: offer.opens < now <= offer.closes and not self._is_sold_out(offer.plan)
        )

    def _is_sold_out(self, plan: Body, customer_id: str | None = None) -> bool:
        """Whether a plan has no seat for one of the crowd; those whom the scenario names have theirs reserved."""
        most = plan["max_subscribers"]
        if most is None:
            return False
        named = sum(at > self.script.now and ident == plan["id"] for at, ident in self._named)
        return self.script.store.is_sold_out(plan | {"max_subscribers": most - named}, customer_id)

    # -- the last days, which make good what the plan did not foresee

    def _fill(self, until: int) -> None:
        """Queue purchases until an instant: its share of what is lacking by now, and at last all of it."""
        script, now, end = self.script, self.script.now, self.script.end
        rng, rhythm = self.planner.rng, self.planner.rhythm
        named = sum(at > now for at, _ in self._named)
        renewals = sum(self._will_order(timer) for timer in script.sandbox.timers.pending(end))
        lacking = self.scenario.orders - len(script.store.orders) - self._waiting - named - renewals
        low, high = rhythm.share(now), rhythm.share(until)
        is_last = until == end - QUIET
        wanted = lacking if is_last else round(lacking * (high - low) / max(high - low, 1 - low))
        for _ in range(self._newcomers - max(0, lacking)):  # more than will buy
            self._newcomers -= 1
            script.add(now + int((until - now) * rng.random()), self.buyers.enter_other)
        for _ in range(wanted):
            script.add(rhythm.at(low + (high - low) * rng.random()), self._sell)
        self._lacking = lacking

    def _will_order(self, timer: Timer) -> bool:
        """Whether a job of the clock will create an order: of the next period, or of another attempt at a card.

        It creates none for a project that is stopped by then.
        """
        is_renewal = timer.job == "subscription.renew"
        if is_renewal and not self._stops:
            return True
        if not is_renewal and timer.job != "subscription.charge":
            return False
        row = self.script.store.subscriptions.open(timer.subject)
        if row is None or timer.due > self._stops.get(row.public["projectId"], timer.due):
            return False
        return is_renewal or bool(row.public["status"] == "past_due")

    def _sell(self) -> None:
        """One of the purchases of the last days. It is settled by now, since those who wait are planned already."""
        on_sale, now = self._on_sale(), self.script.now
        if on_sale is None:
            return
        left = self.script.end - now
        visit = self.planner.visit(self.luck, on_sale.draw(self.luck), now)
        if visit.fate.outcome in ("expired", "canceled") and left <= UNPAID_FOR:
            visit = visit._replace(fate=Fate("paid"))
        if self.planner.expected(visit) > max(1, self._lacking):
            visit = visit._replace(fate=unpaid(visit.method))
        is_new = self.luck.random() * self._lacking < self._newcomers
        self._lacking -= 1
        self._newcomers -= is_new
        self._purchase(visit._replace(is_new=is_new, pays_within=min(left - MINUTE, DAY)))
