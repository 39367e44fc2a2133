"""The model's calendar of a subscription: its periods, which of them runs, and until when the next
can be paid.
"""

from ..support.banking import banking_day_from
from .model import Order, Subscription
from .moments import DAY, iso, later, moment

CARD = "credit_card"


LENGTHS = {"day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}


def boundary(subscription: Subscription, number: int) -> int:
    """Where a period of the grid starts and the one before it ends."""
    moved = subscription.moved
    if number < len(moved):
        return moved[number]
    if moved:
        return later(moved[-1], subscription.unit, (number - len(moved) + 1) * subscription.count)
    return later(subscription.anchor, subscription.unit, number * subscription.count)


def paid_until(subscription: Subscription) -> int:
    """The end of the last paid period: when the next one is to be paid."""
    return boundary(subscription, len(subscription.paid))


def length(subscription: Subscription) -> int:
    """Of a period, about."""
    return LENGTHS[subscription.unit] * subscription.count


def running_period(subscription: Subscription, now: int) -> int:
    """The number of the period that has begun last.

    The first counts as running while the trial before it does.
    """
    stands = subscription.plan.project.suspended
    now = now if stands is None else stands
    number = len(subscription.paid) - 1
    while number and (subscription.status == "trialing" or boundary(subscription, number) > now):
        number -= 1
    return number


def place_of(subscription: Subscription, order: Order, now: int) -> str:
    """Where the period that an order paid lies: older, running or future.

    What is past due has no period that runs.
    """
    if order not in subscription.paid or subscription.status == "past_due":
        return "older"
    number = subscription.paid.index(order)
    running = running_period(subscription, now)
    return "running" if number == running else "future" if number > running else "older"


def lead(subscription: Subscription) -> int:
    """How long before its end a period's successor is billed: a card needs no time."""
    return 0 if subscription.method == CARD else min(3 * DAY, length(subscription) // 2)


def billed_at(subscription: Subscription) -> int:
    """When time makes the next bill."""
    return paid_until(subscription) - lead(subscription)


def grace_end(subscription: Subscription) -> int:
    """Until when the next period can be paid: seven days from its due date, or one period; by
    boleto a banking day.
    """
    end = paid_until(subscription) + min(7 * DAY, length(subscription))
    if subscription.method == "boleto":
        return round(banking_day_from(moment(end)).timestamp() * 1000)
    return end


def due(subscription: Subscription) -> int:
    """When the next period's boleto is due."""
    return round(banking_day_from(moment(paid_until(subscription))).timestamp() * 1000)


def attempts(subscription: Subscription) -> dict[int, int]:
    """After how many days from the period's end a declined card is charged again, and when: only
    within the grace.
    """
    instants = {days: paid_until(subscription) + days * DAY for days in (1, 3, 5)}
    return {days: at for days, at in instants.items() if at < grace_end(subscription)}


def move(subscription: Subscription, since: int, wait: int) -> None:
    """All that lay ahead, and the end of what is paid, comes so much later."""
    last = len(subscription.paid)
    known = [boundary(subscription, number) for number in range(last + 1)]
    subscription.moved = [
        at + wait if at > since or number == last else at for number, at in enumerate(known)
    ]
    if subscription.trial is not None and subscription.status == "trialing":
        subscription.trial = (subscription.trial[0], subscription.trial[1] + wait)


def brazilian(subscription: Subscription) -> bool:
    """Whether its period ends at another time than it would if months were counted in UTC."""
    units = len(subscription.paid) * subscription.count
    return paid_until(subscription) != later(subscription.anchor, subscription.unit, units, zone=0)


def view(subscription: Subscription, now: int) -> dict[str, object]:
    """What the API must show of a subscription."""
    end = paid_until(subscription)
    trial = subscription.trial
    customer = subscription.customer
    plan = subscription.plan
    shown: dict[str, object] = {
        "id": subscription.id,
        "status": subscription.status,
        "projectId": plan.project.id,
        "planId": plan.id,
        "customerId": customer.id,
        "orderId": subscription.first.id,
        "lastOrderId": subscription.last.id,
        "customer": {"id": customer.id, "name": customer.name, "email": customer.email},
        "plan": {"id": plan.id, "name": plan.name},
        "paymentMethod": subscription.method,
        "amount": subscription.amount / 100,
        "currency": "BRL",
        "interval": subscription.unit,
        "interval_count": subscription.count,
        "cycle": subscription.cycle,
        "trial_start": None if trial is None else iso(trial[0]),
        "trial_end": None if trial is None else iso(trial[1]),
        "cancel_at_period_end": subscription.ends,
        "ended_at": None if subscription.ended is None else iso(subscription.ended),
        "createdAt": iso(subscription.created),
    }
    if subscription.status in ("active", "past_due"):
        start = boundary(subscription, running_period(subscription, now))
        shown |= {"current_period_start": iso(start), "current_period_end": iso(end)}
    shown["cancel_at"] = None
    if subscription.status == "canceled" and subscription.ended is not None:
        shown["cancel_at"] = iso(subscription.ended)
    elif subscription.running and subscription.ends:
        shown["cancel_at"] = iso(end)
    if not subscription.running or subscription.ends:
        shown["next_billing_at"] = None
    elif subscription.status != "past_due":
        shown["next_billing_at"] = iso(end)
    return shown
