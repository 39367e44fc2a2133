"""Laws about the order of events in time, and about what the clock must have done by now."""

from __future__ import annotations

from collections.abc import Iterator

from ..contract.formats import date_time_ms
from ..domain.deliveries import MOST_TOLD
from ..domain.subscriptions import grace_end, is_held
from .inspection import Inspected, Law


def _moved_on(world: Inspected) -> Iterator[str | None]:
    """While its project is active, the clock moves a subscription on as soon as its trial or its grace is over."""
    now = world.sandbox.clock.now
    active = {row.id for row in world.store.projects.all_rows() if row.public["status"] == "active"}
    for row in world.rows(world.store.subscriptions):
        public = row.public
        if public["projectId"] not in active:
            yield ""
        elif public["status"] == "trialing" and date_time_ms(public["trial_end"]) <= now:
            yield f"subscription {row.id} is trialing, though its trial was over at {public['trial_end']}"
        elif public["status"] == "past_due" and not is_held(row.hidden) and grace_end(public, row.hidden) <= now:
            yield f"subscription {row.id} is past due after its grace"
        else:
            yield ""


def _after_its_plan(world: Inspected) -> Iterator[str | None]:
    """A plan that was deleted has left its orders behind."""
    store = world.store
    plans = {row.id: row.public["createdAt"] for row in store.plans.all_rows()}
    for row in world.rows(store.orders):
        created, plan = date_time_ms(row.public["createdAt"]), plans.get(row.hidden["planId"])
        customer = store.customers.peek(row.hidden["customerId"])
        if plan is not None and created < date_time_ms(plan):
            yield f"order {row.id} is older than its plan"
        elif customer is None or created < date_time_ms(customer["createdAt"]):
            yield f"order {row.id} is older than its customer, or has none"
        else:
            yield ""


def _attempts_told(world: Inspected) -> Iterator[str | None]:
    open_ = world.sandbox.rules.lifecycles["WebhookLogEntry"].sets["open"]
    for row in world.rows(world.store.webhook_logs):
        public, attempts = row.public, row.hidden["attempts"]
        waits = public["status"] in open_ and not public["is_test"]
        numbers, count = [attempt["number"] for attempt in attempts], public["attempt_count"]
        if numbers != [*range(max(1, count + 1 - MOST_TOLD), count + 1)]:
            yield f"delivery {row.id} counts {count} attempts and tells of {len(attempts)}"
        elif waits != (public["next_attempt_at"] is not None):
            yield f"delivery {row.id} is {public['status']}, its next attempt at {public['next_attempt_at']}"
        elif public["status"] == "delivered" and (not attempts or attempts[-1]["error"] is not None):
            yield f"delivery {row.id} is delivered, and its last attempt was none"
        else:
            yield ""


CHRONOLOGY = (
    Law("No trial and no grace lasts longer than it should, where its project is active", _moved_on),
    Law("Nothing is bought before its plan and its buyer are there", _after_its_plan),
    Law("A delivery tells of the newest of the attempts that it counts", _attempts_told),
)
