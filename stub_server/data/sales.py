"""A year of sales: everybody comes as planned, and who finds nothing to buy is made up for by others."""

from collections.abc import Iterable, Iterator
from random import Random

from ..kernel.clock import HOUR
from ..kernel.record import Body
from .buyers import Buyer, Buyers
from .lives import Lives, Purchase
from .purchases import PAYING, Fate, cart, count_orders, unpaid
from .scenario import Scenario
from .script import Script
from .visits import Planner, Visit

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
NEW = 0.95  # of the visits at most: a few buyers come back
UNTIL = 30 * HOUR  # before now others come in place of those who found nothing to buy


class Sales:
    """The crowd, which buys until there are as many orders as the scenario wants."""

    def __init__(self, script: Script, scenario: Scenario, buyers: Buyers, planner: Planner, rng: Random) -> None:
        self.script, self.scenario, self.buyers, self.planner, self.rng = script, scenario, buyers, planner, rng
        self.lives = Lives(script, rng)
        self._foreseen = 0  # orders of those whom the scenario names
        self._reserved: list[tuple[int, str]] = []  # when they buy, and which plan

    # -- before time passes

    def foresee(self, plan: Body, at: int, fate: Fate) -> None:
        """Count a purchase of somebody whom the scenario names."""
        self._foreseen += count_orders(plan, "pix", fate, at, self.script.end)
        self._reserved.append((at, plan["id"]))

    def plan(self) -> None:
        """Plan what everybody does whom the scenario does not name. Raises ScenarioError."""
        scenario, node = self.scenario, self.scenario.root
        people = max(0, scenario.customers - self.buyers.named)
        orders = scenario.orders - self._foreseen
        if (scenario.owing or orders > 0) and not any(offer.share for offer in self.planner.offers):
            asked = node["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        if orders > 0 and not people:
            raise node["orders"].fail("nobody is left to buy: raise `customers`, which counts named ones too")
        self.buyers.gather(people)
        if scenario.owing:
            debts = self.planner.debts(people, node["everybody"])
            self._follow(sorted(debts, key=lambda visit: visit.at))
            return
        visits = [*self.planner.waiting(min(scenario.pending, max(0, orders)))]
        visits += self.planner.crowd(orders - len(visits))
        newcomers = min(len(visits), max(1, round(min(people * BUYERS, len(visits) * NEW))))
        self._follow(self.planner.introduce(visits, newcomers))
        self.buyers.plan_others(people - newcomers)

    def _follow(self, visits: Iterable[Visit]) -> None:
        self.script.follow(self._come(visits))

    # -- one visit

    def _come(self, visits: Iterable[Visit]) -> Iterator[int]:
        for visit in visits:
            yield visit.begins
            self.script.follow(self._visit(visit))

    def _visit(self, visit: Visit) -> Iterator[int]:
        """Somebody orders, or signs up to order later; who was not successful may try again."""
        draft, project = self.script.draft(), visit.offer.project["id"]
        if visit.is_new:
            buyer = self.buyers.newcomer(draft, self.rng)
            self.buyers.recent.append(buyer)
        else:
            buyer = self.buyers.returning(self.rng, project)
        if visit.signs_up is not None:
            draft.record()
            yield visit.at
            draft = self.script.draft()
        if self._is_sold_out(visit.offer.plan, buyer):
            draft.record()
            self._make_up_for(visit.orders(self.script.end))
            return
        if project in buyer.joined and visit.fate.outcome in PAYING:  # nobody holds the same membership twice
            self._make_up_for(visit.orders(self.script.end) - 1)
            visit = visit._replace(fate=unpaid(visit.method))
        buyer.joined.add(project)
        yield from self.lives.live(draft, self._purchase(visit, buyer))
        second = visit.second
        if second is not None:
            yield second.at
            if self._is_sold_out(second.offer.plan, buyer):
                self._make_up_for(second.orders(self.script.end))
            else:
                yield from self.lives.live(self.script.draft(), self._purchase(second, buyer))

    def _purchase(self, visit: Visit, buyer: Buyer) -> Purchase:
        body = cart(self.rng, visit.offer)
        return Purchase(body, buyer.order_copy, buyer.id, visit.method, visit.fate, visit.pays)

    def _make_up_for(self, orders: int) -> None:
        """Have others place so many orders that somebody else was expected to place."""
        for _ in range(orders):
            left = max(0, self.script.end - UNTIL - self.script.now)
            self.script.add(self.script.now + int(left * self.rng.random()), self._buy_instead)

    def _buy_instead(self) -> None:
        now = self.script.now
        on_sale = [
            offer
            for offer in self.planner.offers
            if offer.share and offer.opens < now < offer.closes and not self._is_sold_out(offer.plan)
        ]
        if on_sale:
            self.script.follow(self._visit(self.planner.visit(self.planner.choose(on_sale), now, 1)))

    def _is_sold_out(self, plan: Body, buyer: Buyer | None = None) -> bool:
        """Whether a plan has no seat for one of the crowd; those whom the scenario names have theirs reserved."""
        most = plan["max_subscribers"]
        if most is None:
            return False
        reserved = sum(at > self.script.now and ident == plan["id"] for at, ident in self._reserved)
        ident = None if buyer is None else buyer.id
        return self.script.store.is_sold_out(plan | {"max_subscribers": most - reserved}, ident)
