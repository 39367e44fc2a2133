"""Laws about subscriptions: current periods, open orders, and one subscription per customer and plan."""

from __future__ import annotations

from collections.abc import Iterator

from ..contract.formats import date_time_ms
from ..domain.subscriptions import is_held
from ..kernel.clock import iso
from .inspection import PAUSE, Inspected, Law


def _period_runs(world: Inspected) -> Iterator[str | None]:
    now = iso(world.sandbox.clock.now)
    store = world.store
    for row in world.rows(store.subscriptions):
        held = row.public
        project = store.projects.peek(held["projectId"])
        if held["status"] != "active" or is_held(row.hidden) or project is None or project["status"] != "active":
            yield PAUSE
            continue
        start, end = held["current_period_start"], held["current_period_end"]
        yield "" if start <= now < end else f"subscription {row.id} is active from {start} to {end}, now is {now}"


def _ended_without_bills(world: Inspected) -> Iterator[str | None]:
    store, lifecycles = world.store, world.sandbox.rules.lifecycles
    running, payable = lifecycles["Subscription"].sets["running"], lifecycles["Order"].sets["payable"]
    for status in payable:
        for row in store.orders.rows_of("status", status):
            ident = row.hidden["subscriptionId"]
            held = None if ident is None else store.subscriptions.peek(ident)
            wrong = held is not None and held["status"] not in running
            yield f"order {row.id} is {status}, its subscription {ident} is over" if wrong else ""


def _pending_in_time(world: Inspected) -> Iterator[str | None]:
    now = world.sandbox.clock.now
    lifecycles = world.sandbox.rules.lifecycles
    stopped = lifecycles["Project"].sets["paused"]
    paused = {row.id for row in world.store.projects.all_rows() if row.public["status"] in stopped}
    for status in lifecycles["Order"].sets["payable"]:
        for row in world.store.orders.rows_of("status", status):
            end = row.public["last_transaction"].get("expires_at")
            if end is None:
                yield f"order {row.id} is {status} and has no end"
            else:
                # The renewals of a suspended project, and of a disputed subscription, wait with it.
                held = world.store.subscriptions.open(row.hidden["subscriptionId"]) if row.hidden["renewal"] else None
                waits = held is not None and (is_held(held.hidden) or row.hidden["projectId"] in paused)
                over = date_time_ms(end) <= now and not waits
                yield f"order {row.id} is {status} since it ended at {end}" if over else ""


def _one_each(world: Inspected) -> Iterator[str | None]:
    seen: dict[tuple[str, str], str] = {}
    held = world.store.subscriptions
    for status in world.sandbox.rules.lifecycles["Subscription"].sets["running"]:
        for row in held.rows_of("status", status):
            pair = row.public["customerId"], row.public["planId"]
            other = seen.setdefault(pair, row.id)
            yield "" if other == row.id else f"subscriptions {other} and {row.id} are of one customer and one plan"


MEMBERSHIPS = (
    Law("The period of an active subscription contains now, where its project is active", _period_runs),
    Law("No subscription that is over has an order that can be paid", _ended_without_bills),
    Law("No order is pending past its end", _pending_in_time),
    Law("No customer has two running subscriptions of one plan", _one_each),
)
