"""A year of sales: everybody comes as planned."""

from collections.abc import Iterable, Iterator
from random import Random

from ..core.record import Body
from .buyers import Buyers
from .lives import Lives, Purchase
from .purchases import Fate, cart, count_orders
from .scenario import Scenario
from .script import Script
from .visits import Planner, Visit

BUYERS = 0.93  # the rest of the customers have signed up and have not bought yet
NEW = 0.95  # of the visits at most: a few buyers come back


class Sales:
    """The crowd, which places as many orders as the scenario wants."""

    def __init__(self, script: Script, scenario: Scenario, buyers: Buyers, planner: Planner, rng: Random) -> None:
        self.script, self.scenario, self.buyers, self.planner, self.rng = script, scenario, buyers, planner, rng
        self.lives = Lives(script, rng)
        self._foreseen = 0  # orders of those whom the scenario names

    # -- before time passes

    def foresee(self, plan: Body, at: int, fate: Fate) -> None:
        """Count a purchase of somebody whom the scenario names."""
        self._foreseen += count_orders(plan, "pix", fate, at, self.script.end)
        self.planner.reserve(plan["id"])

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
            self.script.follow(self._come(sorted(debts, key=lambda visit: visit.at)))
            return
        waiting = [[visit] for visit in self.planner.waiting(min(scenario.pending, max(0, orders)))]
        crowd = [*waiting, *self.planner.crowd(orders - len(waiting))]
        newcomers = min(len(crowd), max(1, round(min(people * BUYERS, len(crowd) * NEW))))
        self.script.follow(self._come(self.planner.assign(crowd, newcomers, orders)))
        self.buyers.plan_others(people - newcomers)

    # -- one visit

    def _come(self, visits: Iterable[Visit]) -> Iterator[int]:
        for visit in visits:
            yield visit.at
            self.script.follow(self._buy(visit))

    def _buy(self, visit: Visit) -> Iterator[int]:
        """Somebody orders, and becomes a customer with the first order."""
        draft = self.script.draft()
        ident, buyer = self.buyers.buyer(draft, visit.buyer, self.rng)
        body = cart(self.rng, visit.offer)
        return self.lives.live(draft, Purchase(body, buyer, ident, visit.method, visit.fate, visit.pays))
