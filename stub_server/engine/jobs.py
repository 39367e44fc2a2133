"""What the clock does when something is due: job name -> function. A job whose moment has passed changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from ..contract.formats import date_time_ms
from ..domain import deliveries, orders, subscriptions
from ..domain.api_keys import state
from ..kernel.clock import iso
from ..kernel.problem import Conflict
from ..kernel.record import Row
from ..kernel.timers import Timer
from ..store.memory import Store
from . import attempts, billing, renewals
from .draft import Draft
from .sandbox import Sandbox

# The job of an order -> the name of the states that it is for.
ON_ORDERS = MappingProxyType({"order.pay": "payable", "order.expire": "payable", "order.refund": "refundable"})
SLICE = 500  # so many records at most change in one step of a job that concerns many

Job: TypeAlias = Callable[[Draft, str], None]
"""Drafts what is due for a subject."""


def _on_order(states: str, step: Callable[[Draft, Row], None]) -> Job:
    """A job for an order in one of the `states` of that name."""

    def job(draft: Draft, subject: str) -> None:
        row = draft.open(draft.store.orders, subject)
        if row is not None and row.public["status"] in billing.states(draft, "Order", states):
            step(draft, row)

    return job


def has_moved_on(sandbox: Sandbox, store: Store, timer: Timer) -> bool:
    """Whether a timer's order is not in the state for its job any more, as most are paid when their time is over."""
    states = ON_ORDERS.get(timer.job)
    if states is None:
        return False
    order = store.orders.peek(timer.subject)
    return order is None or order["status"] not in sandbox.rules.lifecycles["Order"].sets[states]


def _on_subscription(step: Callable[[Draft, Row], None]) -> Job:
    def job(draft: Draft, subject: str) -> None:
        row = draft.open(draft.store.subscriptions, subject)
        if row is not None and not renewals.stands_still(draft, row.public["projectId"]):
            step(draft, row)

    return job


def _pay(draft: Draft, row: Row) -> None:
    billing.pay(draft, row)


def _expire(draft: Draft, row: Row) -> None:
    if row.hidden["renewal"] and _waits(draft, row):
        return
    if orders.expires_at(row.public) <= draft.now:
        billing.expire(draft, row)


def _waits(draft: Draft, bill: Row) -> bool:
    """Whether the subscription of a renewal order stands still, so that the order waits with it."""
    held = draft.open(draft.store.subscriptions, bill.hidden["subscriptionId"])
    is_held = held is not None and subscriptions.is_held(held.hidden)
    return is_held or renewals.stands_still(draft, bill.hidden["projectId"])


def _refund(draft: Draft, row: Row) -> None:
    billing.refund(draft, row, None)


def _activate(draft: Draft, row: Row) -> None:
    """The trial is over."""
    if row.public["status"] == "trialing" and date_time_ms(row.public["trial_end"]) <= draft.now:
        renewals.activate_subscription(draft, row)


def _renew(draft: Draft, row: Row) -> None:
    """The renewal order is made, unless the subscription is about to end."""
    public, hidden = row.public, row.hidden
    if public["status"] != "active" or public["cancel_at_period_end"] or hidden["renewal_order"] is not None:
        return
    if subscriptions.is_held(hidden):
        return
    if subscriptions.renewal_at(public, hidden) <= draft.now:
        renewals.renewal_due(draft, row)


def _end(draft: Draft, row: Row) -> None:
    """A paid period is over: the next one was paid early, or has not been paid, or was never wanted."""
    public, hidden = row.public, row.hidden
    if public["status"] != "active":
        return
    is_held = subscriptions.is_held(hidden) and not public["cancel_at_period_end"]
    if subscriptions.period_end(public, hidden) > draft.now or is_held:
        if len(hidden["paid_by"]) > 1 and subscriptions.running_end(public, hidden) <= draft.now:
            renewals.roll(draft, row)
    elif public["cancel_at_period_end"]:
        billing.end_subscription(draft, row, "canceled")
    else:
        renewals.fall_past_due(draft, row)


def _give_up(draft: Draft, row: Row) -> None:
    """The grace is over too."""
    is_late = row.public["status"] == "past_due" and not subscriptions.is_held(row.hidden)
    if is_late and subscriptions.grace_end(row.public, row.hidden) <= draft.now:
        billing.end_subscription(draft, row, "expired")


def _charge_again(draft: Draft, row: Row) -> None:
    is_late = row.public["status"] == "past_due" and not subscriptions.is_held(row.hidden)
    if is_late and row.public["paymentMethod"] == subscriptions.CHARGED:
        renewals.charge_again(draft, row)


def _expire_key(draft: Draft, subject: str) -> None:
    table = draft.store.api_keys
    row = draft.open(table, subject)
    if row is None or not row.public["is_active"] or state(row.public, draft.now) != "expired":
        return
    record = draft.update(table, row, row.public | {"is_active": False})
    draft.emit_move(table, record, billing.lifecycle(draft, "ApiKey").find("active", "expired"))


def _call_off(draft: Draft, subject: str) -> None:
    """The webhook was switched off or deleted: its open deliveries are canceled."""
    table = draft.store.webhook_logs
    states = billing.states(draft, "WebhookLogEntry", "open")
    for row in _some(
        draft, "webhook.call_off", subject, [table.rows_of("webhookId+status", (subject, s)) for s in states]
    ):
        draft.update(table, row, deliveries.called_off(row.public, iso(draft.now)))


def _close_project(draft: Draft, subject: str) -> None:
    """The project was archived: nobody pays any more, what is paid for is served, and who is past due is let go."""
    orders_, held = draft.store.orders, draft.store.subscriptions
    payable = billing.states(draft, "Order", "payable")
    for row in _some(
        draft, "project.close", subject, [orders_.rows_of("projectId+status", (subject, s)) for s in payable]
    ):
        billing.cancel(draft, row)
    running = billing.states(draft, "Subscription", "running")
    unaware = (
        row
        for status in running
        for row in held.rows_of("projectId+status", (subject, status))
        if not row.public["cancel_at_period_end"]
    )
    for row in _some(draft, "project.close", subject, [unaware]):
        billing.end_later(draft, row)


def _reopen_project(draft: Draft, subject: str) -> None:
    """The project is not suspended any more: each of its subscriptions goes on."""
    for status in billing.states(draft, "Subscription", "running"):
        for row in draft.store.subscriptions.rows_of("projectId+status", (subject, status)):
            draft.at(draft.now, "subscription.resume", row.id)


def _some(draft: Draft, job: str, subject: str, many: Iterable[Iterator[Row]]) -> Iterator[Row]:
    """The first records of several, as many as one step changes; where there are more, the job is due again."""
    for number, row in enumerate(chain.from_iterable(many)):
        if number == SLICE:
            draft.at(draft.now, job, subject)
            return
        yield row


def _unless_refused(job: Job) -> Job:
    """A move that the contract does not have any more is refused to the clock too: then nothing happens."""

    def careful(draft: Draft, subject: str) -> None:
        try:
            job(draft, subject)
        except Conflict:
            draft.clear()

    return careful


JOBS: Mapping[str, Job] = MappingProxyType(
    {
        name: _unless_refused(job)
        for name, job in {
            "order.pay": _on_order(ON_ORDERS["order.pay"], _pay),
            "order.expire": _on_order(ON_ORDERS["order.expire"], _expire),
            "order.refund": _on_order(ON_ORDERS["order.refund"], _refund),
            "subscription.activate": _on_subscription(_activate),
            "subscription.renew": _on_subscription(_renew),
            "subscription.resume": _on_subscription(renewals.end_suspension),
            "subscription.end": _on_subscription(_end),
            "subscription.charge": _on_subscription(_charge_again),
            "subscription.expire": _on_subscription(_give_up),
            "api_key.expire": _expire_key,
            "project.close": _close_project,
            "project.reopen": _reopen_project,
            "webhook.answer": attempts.answer,
            "webhook.call_off": _call_off,
        }.items()
    }
)


def table_of(job: str) -> str:
    """The table of the records that a job is about: `order.expire` -> `orders`."""
    kind = job.partition(".")[0]
    if kind == "webhook":
        return "webhooks" if job == "webhook.call_off" else "webhook_logs"
    return f"{kind}s"
