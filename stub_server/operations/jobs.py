"""What the clock does when something is due: job name -> function. A job finds the moment gone and does nothing."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..domain import orders, subscriptions
from ..domain.api_keys import state
from ..kernel.record import Change, Row, moved_from
from ..sandbox import Job, Sandbox
from ..store.memory import Store
from . import billing
from .billing import World


def _on_order(step: Callable[[World, Row], Change | None]) -> Job:
    def job(sandbox: Sandbox, store: Store, subject: str) -> bool:
        row = store.orders.open(subject)
        change = None if row is None else step(World(sandbox, store), row)
        return _done(sandbox, store, change)

    return job


def _on_subscription(step: Callable[[World, Row], Change | None]) -> Job:
    def job(sandbox: Sandbox, store: Store, subject: str) -> bool:
        row = store.subscriptions.open(subject)
        change = None if row is None else step(World(sandbox, store), row)
        return _done(sandbox, store, change)

    return job


def _done(sandbox: Sandbox, store: Store, change: Change | None) -> bool:
    if change is None:
        return False
    sandbox.apply(store, change)
    return True


def _pay(world: World, row: Row) -> Change | None:
    return billing.pay(world, row) if row.public["status"] == "pending" else None


def _expire(world: World, row: Row) -> Change | None:
    if row.public["status"] != "pending" or (orders.expires_at(row.public) or 0) > world.now:
        return None
    return billing.expire(world, row)


def _refund(world: World, row: Row) -> Change | None:
    return billing.refund(world, row, None) if row.public["status"] == "paid" else None


def _activate(world: World, row: Row) -> Change | None:
    """The trial is over."""
    if row.public["status"] != "trialing":
        return None
    public = subscriptions.activated(row.public, row.hidden, world.now)
    change = Change().update("subscriptions", row, public)
    billing.tell_subscription(change, "subscription.activated", public, "trialing")
    billing.schedule(change, row.id, public, row.hidden)
    return change


def _renew(world: World, row: Row) -> Change | None:
    """The renewal order is made, unless the project stands still or the subscription is about to end."""
    public, hidden = row.public, row.hidden
    if public["status"] != "active" or public["cancel_at_period_end"] or hidden["renewal_order"] is not None:
        return None
    if subscriptions.renewal_at(public, hidden) > world.now:
        return None
    project = world.store.projects.open(public["projectId"])
    if project is None or project.public["status"] != "active":
        return None
    change, _ = billing.renewal_order(world, row)
    return billing.tell_subscription(change, "subscription.renewal_due", public, "active")


def _end(world: World, row: Row) -> Change | None:
    """The paid period is over: the next one has not been paid, or was never wanted."""
    public, hidden = row.public, row.hidden
    if public["status"] != "active" or subscriptions.period_end(public, hidden) > world.now:
        return None
    if public["cancel_at_period_end"]:
        return billing.cancel_subscription(world, row)
    after = subscriptions.past_due(public, world.now)
    change = Change().update("subscriptions", row, after)
    billing.tell_subscription(change, "subscription.past_due", after, "active")
    return change.at(subscriptions.grace_end(public, hidden), "subscription.expire", row.id)


def _give_up(world: World, row: Row) -> Change | None:
    """The grace is over too."""
    if row.public["status"] != "past_due" or subscriptions.grace_end(row.public, row.hidden) > world.now:
        return None
    return billing.expire_subscription(world, row)


def _expire_key(sandbox: Sandbox, store: Store, subject: str) -> bool:
    row = store.api_keys.open(subject)
    if row is None or not row.public["is_active"] or state(row.public, sandbox.clock.now) != "expired":
        return False
    change = Change().update("api_keys", row, row.public | {"is_active": False})
    sandbox.apply(store, change.emit("api_key.expired", "api_keys", subject, moved_from("active")))
    return True


JOBS: Mapping[str, Job] = MappingProxyType(
    {
        "order.pay": _on_order(_pay),
        "order.expire": _on_order(_expire),
        "order.refund": _on_order(_refund),
        "subscription.activate": _on_subscription(_activate),
        "subscription.renew": _on_subscription(_renew),
        "subscription.end": _on_subscription(_end),
        "subscription.expire": _on_subscription(_give_up),
        "api_key.expire": _expire_key,
    }
)
