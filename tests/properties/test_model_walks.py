"""Whatever happens to it, the model keeps the promises that the rules make of every world."""

import random
from collections.abc import Callable

from . import model_billing as billing
from . import model_catalogue as catalogue
from . import model_clock as clock
from . import model_orders as orders
from . import model_periods as periods
from .model import Buyer, Plan, Project, World
from .moments import DAY, HOUR, parse

ADDRESSES = ("ana", *orders.MAGIC)


class Walk:
    """A world of three plans and three people in which anything may happen that is granted."""

    def __init__(self, seed: int) -> None:
        """All is drawn from the seed."""
        self.draw = random.Random(seed)
        self.world = World(parse("2027-01-30T01:30:00.000Z"))
        self.project = Project("p", "Clube", "active")
        shapes = (("month", "pix", 7), ("week", "credit_card", 0), ("day", "boleto", 0))
        self.plans = [
            Plan(unit, self.project, unit, 100, unit, 1, trial, methods=(method,), limit=2)
            for unit, method, trial in shapes
        ]
        self.world.projects.append(self.project)
        self.world.plans.extend(self.plans)

    def order(self) -> None:
        plan, document = self.draw.choice(self.plans), self.draw.choice("123")
        if orders.may_place(self.world, self.project, plan, plan.methods[0], document).granted:
            who = Buyer("Ana", f"{self.draw.choice(ADDRESSES)}@example.com", document)
            orders.place(self.world, plan, who, plan.methods[0], 100)

    def pay(self) -> None:
        waiting = [order for order in self.world.orders if order.status == "pending"]
        if waiting:
            orders.pay(self.world, self.draw.choice(waiting))

    def refund(self) -> None:
        paid = [order for order in self.world.orders if orders.may_refund(self.world, order, 50).granted]
        if paid:
            orders.refund(self.world, self.draw.choice(paid), self.draw.choice((50, None)))

    def steer(self) -> None:
        running = [found for found in self.world.subscriptions if found.running]
        if not running:
            return
        found = self.draw.choice(running)
        verb = self.draw.choice(("cancel", "later", "renew", "renew", "expire", "move"))
        if verb == "cancel":
            billing.cancel(self.world, found)
        elif verb == "later":
            billing.cancel_later(self.world, found)
        elif verb == "renew" and billing.may_renew(found).granted:
            billing.renew(self.world, found)
        elif verb == "expire" and found.status == "past_due":
            billing.expire(self.world, found)
        elif verb == "move":
            found.customer.email = f"{self.draw.choice(ADDRESSES)}@example.com"

    def toggle(self) -> None:
        catalogue.move(self.world, self.project, "active" if self.project.status == "suspended" else "suspended")

    def wait(self) -> None:
        due = min((job[0] for job in clock.jobs(self.world)), default=self.world.now)
        leap = self.draw.choice((HOUR, DAY, 3 * DAY, 20 * DAY, max(0, due - self.world.now)))
        clock.advance(self.world, self.world.now + leap)

    def step(self) -> None:
        does: tuple[Callable[[], None], ...] = (
            *(self.order, self.order, self.pay, self.pay),
            *(self.refund, self.steer, self.toggle, self.wait, self.wait, self.wait),
        )
        self.draw.choice(does)()
        clock.advance(self.world, self.world.now)


def promises(walk: Walk) -> None:
    """What holds at every instant."""
    world = walk.world
    running = [found for found in world.subscriptions if found.running]
    assert len(running) == len({(found.customer, found.plan) for found in running})
    for found in running:
        assert found.paid
        if found.status == "active" and not found.stopped:
            start = periods.boundary(found, periods.running_period(found, world.now))
            assert start <= world.now < periods.paid_until(found)
    for order in world.orders:
        if order.status == "pending" and (order.renews is None or not order.renews.stopped):
            assert world.now < order.expires
            assert order.renews is None or (order.renews.running and not order.renews.ends)
            assert order.renews is None or order.renews.renewal is order
    for plan in walk.plans:
        assert len(orders.seats(world, plan)) <= 2


def test_no_walk_breaks_a_promise() -> None:
    """And together they get everywhere: what no walk reaches, none of them proves."""
    reached: set[str] = set()
    for seed in range(400):
        walk = Walk(seed)
        for _ in range(60):
            walk.step()
            promises(walk)
        reached |= walk.world.reached
    assert {
        *(f"paid again (S2) while {status}" for status in ("trialing", "active", "past_due")),
        *(f"suspended for a while, {status} (T1)" for status in ("trialing", "active", "past_due")),
        *(f"{place} period refunded (S7)" for place in ("older", "running", "future")),
        *("open bill dropped (S1, S2)", "renewed after a suspension (T1)", "payable after its end (T1)"),
        *("renewed early (S4)", "card charged (S5)", "card refused (S5)", "seat held by an open order (O36)"),
        "money taken back once",
    } <= reached
