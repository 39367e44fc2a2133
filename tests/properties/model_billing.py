"""The model's subscriptions and its clock: what opens, renews and ends them, and which job is due next."""

from collections.abc import Callable, Iterator

from . import model_orders as orders
from .model import Order, Subscription, Verdict, World, granted, refused
from .moments import DAY, iso, later

Job = tuple[int, Callable[[], None]]


def period(subscription: Subscription) -> tuple[int, int]:
    """Start and end of the newest paid period."""
    step = subscription.count
    start = later(subscription.anchor, subscription.unit, (subscription.periods - 1) * step)
    return start, later(subscription.anchor, subscription.unit, subscription.periods * step)


def renewal_at(subscription: Subscription) -> int:
    """When the next order is made: three days before the end, or half a period."""
    start, end = period(subscription)
    return end - min(3 * DAY, (end - start) // 2)


def grace_end(subscription: Subscription) -> int:
    """Until when the next period can be paid: seven days after the end, or one period."""
    start, end = period(subscription)
    return end + min(7 * DAY, end - start)


def order_paid(world: World, order: Order) -> None:
    """Renew the subscription the order is for, or open one."""
    renewed = order.renews
    if renewed is not None:
        if renewed.renewal is not order or not renewed.running:
            return  # it ended meanwhile: the money came late and extends nothing
        renewed.periods += 1
        renewed.cycle += 1
        renewed.status = "active"
        renewed.renewal, renewed.renewal_done = None, False
        world.emit("subscription.renewed")
        return
    plan = order.plan
    if plan.unit is None or plan.count is None:
        return
    known = any(found.plan is plan and found.customer is order.customer for found in world.subscriptions)
    trial = plan.trial_days * DAY if not known else 0
    opened = Subscription(
        plan,
        order.customer,
        order,
        order,
        plan.amount,
        plan.unit,
        plan.count,
        order.method,
        "trialing" if trial else "active",
        world.now + trial,
        world.now,
        world.now if trial else None,
    )
    world.subscriptions.append(opened)
    order.subscription = opened
    world.emit("subscription.created", *(() if trial else ("subscription.activated",)))


def cancel(world: World, subscription: Subscription) -> None:
    """End it now."""
    subscription.status, subscription.ended = "canceled", world.now
    world.emit("subscription.canceled")


def may_cancel(subscription: Subscription) -> Verdict:
    """What has expired cannot be canceled any more."""
    return refused(409, "invalid_state_transition") if subscription.status == "expired" else granted()


def cancel_later(subscription: Subscription) -> None:
    """Let the paid period run out. What is past due has none left, and its grace goes on."""
    subscription.ends = True


def may_renew(subscription: Subscription) -> Verdict:
    """Only what is active or past due."""
    return granted() if subscription.status in ("active", "past_due") else refused(409, "invalid_state_transition")


def make_renewal(world: World, subscription: Subscription) -> Order:
    """The order for the next period: open until the grace after the present one ends."""
    first = subscription.first
    order = orders.add(
        world,
        subscription.plan,
        subscription.customer,
        first.document,
        first.email,
        subscription.method,
        subscription.amount,
        grace_end(subscription) if subscription.method == "pix" else None,
    )
    order.renews = order.subscription = subscription
    subscription.renewal, subscription.renewal_done, subscription.last = order, True, order
    return order


def renew(world: World, subscription: Subscription) -> Order:
    """Pay the open renewal order, or a new one."""
    order = subscription.renewal
    if order is None or order.status != "pending":
        order = make_renewal(world, subscription)
    orders.pay(world, order)
    return order


def may_expire(subscription: Subscription) -> Verdict:
    """Only what is past due, and again without effect."""
    if subscription.status in ("past_due", "expired"):
        return granted()
    return refused(409, "invalid_state_transition")


def expire(world: World, subscription: Subscription) -> None:
    """The grace is over; an open renewal order goes with it."""
    order = subscription.renewal
    if order is not None and order.status == "pending":
        orders.end(world, order, "expired", "order.expired")
    subscription.status, subscription.ended = "expired", world.now
    world.emit("subscription.expired")


def _renewal_due(world: World, subscription: Subscription) -> None:
    make_renewal(world, subscription)
    world.emit("subscription.renewal_due")


def _period_over(world: World, subscription: Subscription) -> None:
    if subscription.ends:
        cancel(world, subscription)
    else:
        subscription.status = "past_due"
        world.emit("subscription.past_due")


def _trial_over(world: World, subscription: Subscription) -> None:
    subscription.status = "active"
    world.emit("subscription.activated")


def _subscription_jobs(world: World, found: Subscription) -> Iterator[Job]:
    if found.status == "trialing":
        yield found.anchor, lambda: _trial_over(world, found)
    elif found.status == "active":
        if not found.renewal_done and not found.ends and found.plan.project.status != "suspended":
            yield renewal_at(found), lambda: _renewal_due(world, found)
        yield period(found)[1], lambda: _period_over(world, found)
    elif found.status == "past_due":
        yield grace_end(found), lambda: expire(world, found)


def _order_jobs(world: World, order: Order) -> Iterator[Job]:
    if order.status == "pending":
        if (at := orders.paid_at(order)) is not None:
            yield at, lambda: orders.pay(world, order)
        if (at := orders.expires_at(order)) is not None:
            yield at, lambda: orders.end(world, order, "expired", "order.expired")
    elif order.status == "paid" and (at := orders.refunded_at(order)) is not None:
        yield at, lambda: orders.refund(world, order, None)


def jobs(world: World) -> Iterator[Job]:
    """Everything that time alone will do, in no order."""
    for order in world.orders:
        yield from _order_jobs(world, order)
    for found in world.subscriptions:
        yield from _subscription_jobs(world, found)
    for key in world.keys:
        if key.active and key.expires is not None:

            def lapse(key: object = key) -> None:
                # Declared as an object for the default that keeps this turn's key; it is a key of the model.
                key.active = False  # type: ignore[attr-defined]
                world.emit("api_key.expired")

            yield key.expires, lapse


def advance(world: World, to: int) -> None:
    """Move the clock, doing what falls due in the order of time. What is overdue is done now."""
    while True:
        due = min(jobs(world), key=lambda job: job[0], default=None)
        if due is None or due[0] > to:
            break
        world.now = max(world.now, due[0])
        due[1]()
    world.now = max(world.now, to)


def view(subscription: Subscription) -> dict[str, object]:
    """What the API must show of a subscription."""
    start, end = period(subscription)
    trial = subscription.trial_start
    shown: dict[str, object] = {
        "id": subscription.id,
        "status": subscription.status,
        "projectId": subscription.plan.project.id,
        "planId": subscription.plan.id,
        "customerId": subscription.customer.id,
        "orderId": subscription.first.id,
        "lastOrderId": subscription.last.id,
        "paymentMethod": subscription.method,
        "amount": subscription.amount / 100,
        "currency": "BRL",
        "interval": subscription.unit,
        "interval_count": subscription.count,
        "cycle": subscription.cycle,
        "trial_start": None if trial is None else iso(trial),
        "trial_end": None if trial is None else iso(subscription.anchor),
        "cancel_at_period_end": subscription.ends,
        "ended_at": None if subscription.ended is None else iso(subscription.ended),
        "createdAt": iso(subscription.created),
    }
    if subscription.status in ("active", "past_due"):
        shown |= {"current_period_start": iso(start), "current_period_end": iso(end)}
    if not subscription.running or subscription.ends:
        shown["next_billing_at"] = None
    elif subscription.status != "past_due":
        shown["next_billing_at"] = iso(end)
    return shown
