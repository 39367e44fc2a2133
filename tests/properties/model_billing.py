"""The model's subscriptions: what opens, renews, bills, stops and ends them."""

from . import model_orders as orders
from . import model_periods as periods
from .model import Buyer, Order, Project, Subscription, Verdict, World, granted, refused, unless
from .moments import DAY

UNPAID = ("fail_immediately", "fill_never", "expire_immediately", "expire_with_delay")
"""The magic values under which a card's charge at the end of a period does not succeed."""


def order_paid(world: World, order: Order) -> None:
    """Renew what the customer already has of the plan, or open a subscription."""
    plan = order.plan
    if plan.unit is None or plan.count is None or plan not in world.plans:
        return
    running = world.subscription_of(plan, order.customer)
    if running is not None:
        _extend(world, running, order)
        return
    known = any(
        found.plan is plan and found.customer is order.customer for found in world.subscriptions
    )
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
        [order],
        (world.now, world.now + trial) if trial else None,
    )
    opened.planned = world.now
    world.subscriptions.append(opened)
    order.subscription = opened
    order.renews = None
    world.emit("subscription.created")
    if plan.project.status == "archived":
        world.reached.add("opened in an archived project (T10)")
        opened.ends = True


def _extend(world: World, found: Subscription, order: Order) -> None:
    """One period more, whichever order of the customer paid it; a bill that is still open is not
    needed any more.
    """
    world.reached.add(
        f"{'renewal paid' if order.renews else 'paid again (S2)'} while {found.status}"
    )
    if found.moved:
        world.reached.add("renewed after a suspension (T1)")
    if found.status == "active" and periods.paid_until(found) > world.now:
        world.reached.add("renewed early (S4)")
    found.planned = world.now
    found.paid.append(order)
    found.cycle += 1
    if found.status == "past_due":
        found.status = "active"
    if found.ends and found.plan.project.status != "archived":
        world.reached.add("cancellation taken back by a payment (T3)")
        found.ends = False
    if found.method != order.method:
        world.reached.add("the method follows the payment (T6)")
    found.last = order
    found.method = order.method
    found.tried = set()
    order.subscription = found
    drop_bill(world, found)
    world.emit("subscription.renewed")


def drop_bill(world: World, found: Subscription) -> None:
    """Cancel the renewal order that is open."""
    bill = found.renewal
    if bill is not None and bill.status == "pending":
        orders.end(world, bill, "canceled", "order.canceled")
        world.reached.add("open bill dropped (S1, S2)")


def order_refunded(world: World, order: Order) -> None:
    """All of its money is back: the running period ends the subscription, a future one is
    taken off again.
    """
    found = order.subscription
    if found is None or not found.running:
        return
    place = periods.place_of(found, order, world.now)
    world.reached.add(f"{place} period refunded (S7)")
    if place == "running":
        cancel(world, found)
    elif place == "future":
        found.paid.remove(order)
        found.cycle -= 1
        found.planned = world.now
        found.billed = None  # what was paid is due again, and so is its bill


def hold(world: World, order: Order) -> None:
    """An order of it is disputed: nothing is billed and nothing ends for want of money."""
    found = order.subscription
    if found is not None and found.running:
        found.disputed.append(order)
        found.held = world.now if found.held is None else found.held


def release(world: World, order: Order) -> None:
    """After the last dispute, what fell into the time of disputes comes later by as much."""
    found = order.subscription
    if found is None or order not in found.disputed:
        return
    found.disputed.remove(order)
    since = found.held
    if found.disputed or since is None:
        return
    found.held = None
    if not found.running:
        return
    stood = found.plan.project.suspended if found.stopped else None
    wait = (world.now if stood is None else stood) - max(since, periods.paid_until(found))
    found.planned = world.now
    if wait > 0:
        world.reached.add(f"disputed over an end, {found.status}")
        postpone(world, found, world.now, wait)


def cancel(world: World, found: Subscription) -> None:
    """End it now; nothing stays to be paid."""
    drop_bill(world, found)
    found.status = "canceled"
    found.ended = world.now
    world.emit("subscription.canceled")


def may_cancel(found: Subscription) -> Verdict:
    """What has expired cannot be canceled any more."""
    return refused(409, "invalid_state_transition") if found.status == "expired" else granted()


def cancel_later(world: World, found: Subscription) -> None:
    """Let the paid period run out: nothing will be renewed. What is past due has no period left."""
    if found.status == "past_due":
        cancel(world, found)
    else:
        drop_bill(world, found)
        found.ends = True


def may_resume(found: Subscription) -> Verdict:
    """Only what is to be canceled, and of a project that is not archived."""
    conflicts = set() if found.ends and found.running else {"invalid_state_transition"}
    if found.plan.project.status == "archived":
        conflicts.add("project_archived")
    return unless(conflicts)


def resume(world: World, found: Subscription) -> None:
    """Not to be canceled any more; time makes the bill again."""
    world.reached.add("resumed (T3)")
    found.ends = False
    found.billed = None
    found.planned = world.now


def may_renew(found: Subscription) -> Verdict:
    """Only what is active or past due, and whose clock runs."""
    conflicts = set() if found.status in ("active", "past_due") else {"invalid_state_transition"}
    if found.disputed:
        conflicts.add("invalid_state_transition")
    if found.stopped:
        conflicts.add("project_not_active")
    if found.plan.project.status == "archived":
        conflicts.add("project_archived")
    return unless(conflicts)


def make_bill(world: World, found: Subscription) -> Order:
    """The order for the next period, addressed to the customer as it is now and open until the
    grace ends.
    """
    customer = found.customer
    bill = orders.add(
        world,
        found.plan,
        customer,
        Buyer(customer.name, customer.email, customer.document),
        found.method,
        found.amount,
        periods.grace_end(found),
        renews=found,
    )
    if bill.method == "boleto":
        bill.due = periods.due(found)
    found.last = bill
    if bill.status == "pending" or periods.billed_at(found) <= world.now:
        found.renewal = bill
        found.billed = periods.paid_until(found)
    else:
        world.reached.add("an early attempt failed (U1)")
    if found.first.buyer.name != customer.name:
        world.reached.add("renewal addressed anew (S6)")
    return bill


def renew(world: World, found: Subscription) -> Order:
    """Pay the open renewal order, or a new one, which an address may let fail as it is made."""
    bill = found.renewal
    if bill is None or bill.status != "pending":
        bill = make_bill(world, found)
    if bill.status == "pending":
        orders.pay(world, bill)
    return bill


def charge(world: World, bill: Order) -> None:
    """A card pays its bill by itself, unless the customer's address says that it does not."""
    if bill.method != periods.CARD:
        return
    if bill.magic in UNPAID:
        world.reached.add("card refused (S5)")
    else:
        world.reached.add("card charged (S5)")
        orders.pay(world, bill)


def charge_again(world: World, found: Subscription, days: int) -> None:
    """A card that was declined is charged once more, by an order of its own, unless one can still
    be paid.
    """
    found.tried.add(days)
    if found.renewal is not None and found.renewal.status != "pending":
        world.reached.add("card charged again (T7)")
        charge(world, make_bill(world, found))


def may_expire(found: Subscription) -> Verdict:
    """Only what is past due, and again without effect."""
    if found.status in ("past_due", "expired"):
        return granted()
    return refused(409, "invalid_state_transition")


def expire(world: World, found: Subscription) -> None:
    """The grace is over; nothing stays to be paid."""
    drop_bill(world, found)
    found.status = "expired"
    found.ended = world.now
    world.emit("subscription.expired")


def renewal_due(world: World, found: Subscription) -> None:
    """Time bills the next period."""
    bill = make_bill(world, found)
    world.emit("subscription.renewal_due")
    charge(world, bill)


def period_over(world: World, found: Subscription) -> None:
    """Nothing is paid any more."""
    if found.ends:
        cancel(world, found)
    else:
        found.status = "past_due"
        found.planned = world.now
        world.emit("subscription.past_due")


def trial_over(world: World, found: Subscription) -> None:
    """The first paid period begins."""
    found.planned = world.now
    found.status = "active"
    world.emit("subscription.activated")


def go_on(world: World, project: Project, suspended: int) -> None:
    """A project is not suspended any more: what lay ahead of its subscriptions comes later by the
    time in between.
    """
    for found in [
        found for found in world.subscriptions if found.plan.project is project and found.running
    ]:
        since = max(suspended, found.created)
        wait = world.now - since
        found.planned = world.now
        if not wait:
            continue
        world.reached.add(f"suspended for a while, {found.status} (T1)")
        if found.held is not None:  # that time is not counted twice
            found.held += world.now - max(found.held, since)
        postpone(world, found, since, wait)


def postpone(world: World, found: Subscription, since: int, wait: int) -> None:
    """What lay ahead of it after `since` comes later, its open bill's end too."""
    billed = found.billed == periods.paid_until(found)
    grace = periods.grace_end(found)
    periods.move(found, since, wait)
    if billed:
        found.billed = periods.paid_until(found)
    bill = found.renewal
    if bill is not None and bill.status == "pending":
        if bill.expires <= world.now:
            world.reached.add("payable after its end (T1)")
        bill.expires = bill.expires + periods.grace_end(found) - grace
        bill.updated = world.now
        if bill.due is not None:
            bill.due = periods.due(found)
