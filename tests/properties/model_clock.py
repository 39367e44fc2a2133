"""The model's clock: what time alone will do, and when."""

from collections.abc import Callable, Iterator
from functools import partial

from . import model_billing as billing
from . import model_orders as orders
from . import model_periods as periods
from .model import Key, Order, Subscription, World

Job = tuple[int, int, Callable[[], None]]
"""When it is due, when it was set, and what it does."""


def _subscription_jobs(world: World, found: Subscription) -> Iterator[Job]:
    if found.stopped:
        return
    if found.status == "trialing" and found.trial is not None:
        yield found.trial[1], found.planned, lambda: billing.trial_over(world, found)
    elif found.status == "active":
        end = periods.paid_until(found)
        if found.disputed and not found.ends:
            return
        if found.billed != end and not found.ends:
            yield periods.billed_at(found), found.planned, lambda: billing.renewal_due(world, found)
        yield end, found.planned, lambda: billing.period_over(world, found)
    elif found.status == "past_due" and not found.disputed:
        if found.method == periods.CARD:
            for days, at in periods.attempts(found).items():
                if days not in found.tried:
                    yield at, found.planned, partial(billing.charge_again, world, found, days)
        yield periods.grace_end(found), found.planned, lambda: billing.expire(world, found)


def _order_jobs(world: World, order: Order) -> Iterator[Job]:
    if order.status == "pending":
        if (at := orders.paid_at(order)) is not None:
            yield at, order.created, lambda: orders.pay(world, order)
        if order.renews is None or not order.renews.waits:
            yield (
                order.expires,
                order.created,
                lambda: orders.end(world, order, "expired", "order.expired"),
            )
    elif (
        order.status in ("paid", "disputed")
        and (at := orders.refunded_at(order)) is not None
        and not order.spared
    ):
        yield at, order.updated, lambda: _take_back(world, order)


def _take_back(world: World, order: Order) -> None:
    if order.status == "paid":
        orders.refund(world, order, None)
    else:
        order.spared = True


def _lapse(world: World, key: Key) -> None:
    key.active = False
    world.emit("api_key.expired")


def jobs(world: World) -> Iterator[Job]:
    """Everything that time alone will do, in no order; of what was set and is due at one instant,
    orders come first.
    """
    for order in world.orders:
        yield from _order_jobs(world, order)
    for found in world.subscriptions:
        yield from _subscription_jobs(world, found)
    for key in world.keys:
        if key.active and key.expires is not None:
            # a lambda has no annotation
            yield key.expires, world.now, partial(_lapse, world, key)


def advance(world: World, to: int) -> None:
    """Move the clock, doing what falls due in the order of time. What is overdue is done now."""
    while True:
        due = min(jobs(world), key=lambda job: job[:2], default=None)
        if due is None or due[0] > to:
            break
        world.now = max(world.now, due[0])
        due[2]()
    world.now = max(world.now, to)
