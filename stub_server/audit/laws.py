"""The laws: each yields one text for each record that it checks, empty if the record keeps the law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms
from ..domain.brcode import BrCodeError, parse
from ..domain.deliveries import MOST_ATTEMPTS
from ..domain.documents import cpf_region, kind
from ..domain.orders import items_cents
from ..domain.places import warnings_for
from ..domain.stats import OrderFold
from ..domain.subscriptions import grace_end, has_dispute, period_end
from ..domain.webhooks import subscriber_of
from ..engine.sandbox import Sandbox
from ..kernel.clock import iso
from ..kernel.money import cents, reais
from ..kernel.record import Row
from ..store.memory import Store
from ..store.table import Table


class Inspected(NamedTuple):
    """The sandbox to check. `budget` limits how many records of a table a costly law parses."""

    sandbox: Sandbox
    store: Store
    budget: int

    def rows(self, table: Table) -> Iterator[Row]:
        """The parsed records of a table: all, or every n-th so that `budget` is kept."""
        step = max(1, -(-len(table) // self.budget))
        keys = list(table.order)
        for key in keys[::step]:
            yield table.parse(table.rows[key])


PAUSE = None
"""What a law yields where it has looked at something and judges nothing yet: others may be served."""


class Law(NamedTuple):
    """`look` yields one text per record looked at, empty when it keeps the law, and PAUSE in between.

    `of_files`: a sandbox that breaks it cannot come from a file. What users write, or flags, may break the others.
    """

    name: str
    look: Callable[[Inspected], Iterator[str | None]]
    seeds_only: bool = False
    of_files: bool = True


SECRETS = (b'"private_key"', b'"signing_key"', b"sk_sandbox_", b"whsec_")


def _orders_counted(inspected: Inspected) -> Iterator[str | None]:
    counted: dict[str, int] = {}
    for order in inspected.store.orders.all_rows():
        counted[order.hidden["projectId"]] = counted.get(order.hidden["projectId"], 0) + 1
        yield PAUSE
    for project in inspected.store.projects.all_rows():
        shown = inspected.store.shown_row(inspected.store.projects, project)["orders_count"]
        real = counted.get(project.id, 0)
        yield "" if shown == real else f"project {project.id} shows {shown} orders and has {real}"


def _revenue(inspected: Inspected) -> Iterator[str | None]:
    lifecycle = inspected.sandbox.rules.lifecycles["Order"]
    folds: dict[str, OrderFold] = {}
    sums: dict[str, int] = {}
    for row in inspected.store.orders.all_rows():
        project = row.hidden["projectId"]
        folds.setdefault(project, OrderFold(lifecycle)).add(row)
        sums[project] = sums.get(project, 0) + row.hidden["paid_cents"] - row.hidden["refunded_cents"]
        yield PAUSE
    for project in inspected.store.projects.all_rows():
        shown = inspected.store.shown_row(inspected.store.projects, project)["total_revenue"]
        real = reais(sums.get(project.id, 0))
        net = folds.get(project.id, OrderFold(lifecycle)).revenue()["net"]
        same = shown == real == net
        yield "" if same else f"project {project.id} shows {shown}; its orders add up to {real}, its stats show {net}"


def _subscribers(inspected: Inspected) -> Iterator[str | None]:
    table, running = inspected.store.subscriptions, inspected.sandbox.rules.lifecycles["Subscription"].sets["running"]
    for project in inspected.store.projects.all_rows():
        ever: set[str] = set()
        live: set[str] = set()
        for row in table.rows_of("projectId", project.id):
            ever.add(row.public["customerId"])
            if row.public["status"] in running:
                live.add(row.public["customerId"])
            yield PAUSE
        shown = inspected.store.shown_row(inspected.store.projects, project)
        said = shown["active_subscribers"], shown["total_subscribers"]
        if said != (len(live), len(ever)):
            real = f"{len(live)} of {len(ever)}"
            yield f"project {project.id} shows {said[0]} of {said[1]} subscribers as active, and has {real}"
        elif len(ever) > len(inspected.store.customers):
            yield f"project {project.id} has more subscribers than there are customers"
        else:
            yield ""


def _plans_counted(inspected: Inspected) -> Iterator[str | None]:
    store = inspected.store
    real: dict[str, int] = {}
    for plan in store.plans.all_rows():
        real[plan.public["projectId"]] = real.get(plan.public["projectId"], 0) + 1
        yield PAUSE
    for project in store.projects.all_rows():
        shown = store.shown_row(store.projects, project)["plans_count"]
        counted = real.get(project.id, 0)
        yield "" if shown == counted else f"project {project.id} shows {shown} plans and has {counted}"


def _items_add_up(inspected: Inspected) -> Iterator[str | None]:
    for row in inspected.rows(inspected.store.orders):
        items, total = items_cents(row.public["items"]), cents(row.public["totalAmount"])
        yield "" if items == total else f"order {row.id} has items of {items} and a total of {total} cents"


def _plan_of_project(inspected: Inspected) -> Iterator[str | None]:
    plans = {plan.id: plan.public["projectId"] for plan in inspected.store.plans.all_rows()}
    for row in inspected.rows(inspected.store.orders):
        project = plans.get(row.hidden["planId"])
        # The project of a deleted plan is unknown.
        wrong = project is not None and project != row.hidden["projectId"]
        yield f"order {row.id} has a plan of project {project}" if wrong else ""
    for row in inspected.rows(inspected.store.subscriptions):
        project = plans.get(row.public["planId"])
        wrong = project is not None and project != row.public["projectId"]
        yield f"subscription {row.id} has a plan of project {project}" if wrong else ""


def _payments(inspected: Inspected) -> Iterator[str | None]:
    settled = inspected.sandbox.rules.lifecycles["Order"].sets["settled"]
    for row in inspected.rows(inspected.store.orders):
        order, payment = row.public, row.public["last_transaction"]
        if order["status"] in settled and order["paymentMethod"] == "pix":
            name = payment.get("end_to_end_id", "")
            yield "" if len(name) == 32 and name.isalnum() else f"order {row.id} is paid with end_to_end_id {name!r}"
        elif order["status"] == "expired" and "expires_at" in payment:
            same = order["updatedAt"] == payment["expires_at"]
            yield "" if same else f"order {row.id} expired at {order['updatedAt']}, not at {payment['expires_at']}"
        else:
            yield ""


def _reachable(inspected: Inspected) -> Iterator[str | None]:
    now = inspected.sandbox.clock.now
    lifecycles = inspected.sandbox.rules.lifecycles
    for name, table in (("Order", "orders"), ("Subscription", "subscriptions"), ("Project", "projects")):
        states = _reached(lifecycles[name])
        for row in inspected.rows(inspected.store.tables[table]):
            status = row.public["status"]
            wrong = "" if status in states else f"no move leads to {status}"
            if not wrong and table == "orders":
                wrong = order_trace(row, lifecycles["Order"], now)
            elif not wrong and table == "subscriptions":
                wrong = subscription_trace(inspected.store, row, lifecycles, now)
            yield f"{name.lower()} {row.id}: {wrong}" if wrong else ""


def _reached(lifecycle: Lifecycle) -> set[str]:
    states = {"new"}
    while True:
        more = {move.to for move in lifecycle.moves if move.from_ in states} - states
        if not more:
            return states
        states |= more


def _codes(inspected: Inspected) -> Iterator[str | None]:
    for row in inspected.rows(inspected.store.orders):
        code = row.public["last_transaction"].get("qr_code")
        if code is None:
            yield "" if row.public["paymentMethod"] != "pix" else f"order {row.id} has no PIX code"
            continue
        try:
            amount = parse(code).amount_cents
        except BrCodeError as error:
            yield f"order {row.id}: {error}"
            continue
        total = cents(row.public["totalAmount"])
        yield "" if amount == total else f"order {row.id} asks for {amount} cents instead of {total}"


def _documents(inspected: Inspected) -> Iterator[str | None]:
    for row in inspected.rows(inspected.store.customers):
        found = kind(row.public["document"])
        right = row.public["document_type"] == (found or "passport")
        yield "" if right else f"customer {row.id}: {row.public['document']} is {found or 'no document'}"


def _places(inspected: Inspected) -> Iterator[str | None]:
    for row in inspected.rows(inspected.store.customers):
        public = row.public
        if public["address"].get("country") != "BR":
            yield ""
            continue
        wrong = list(warnings_for(public["phones"], public["address"]))
        if public["document_type"] == "cpf" and public["address"].get("state") not in cpf_region(public["document"]):
            wrong.append("the CPF is of another region")
        yield f"customer {row.id}: {', '.join(wrong)}" if wrong else ""


def _no_secrets(inspected: Inspected) -> Iterator[str | None]:
    for table in inspected.store.tables.values():
        for record in list(table.rows.values()):
            found = next((secret for secret in SECRETS if secret in record.public), None)
            yield f"{table.name} {record.id} contains {found.decode()}" if found else ""
    for (_, method, path, _), saved in inspected.sandbox.replies.items():
        parts = saved.body
        allowed = method == "POST" and (path.endswith(("/api-keys", "/webhooks", "/regenerate-key")))
        yield (
            "" if allowed or not any(s in parts for s in SECRETS) else f"the reply to {method} {path} contains a secret"
        )


_MAPS = ("metadata", "last_transaction")


def _strings_only(inspected: Inspected) -> Iterator[str | None]:
    for table in inspected.store.tables.values():
        for row in inspected.rows(table):
            maps: list[Any] = [row.public.get(name, {}) for name in _MAPS]
            maps += [value for name, value in row.hidden.items() if name == "metadata" or name.endswith("_settings")]
            if table.name == "orders":
                maps += [row.public["customer"]["phones"], row.public["customer"]["address"]]
            good = all(isinstance(value, str) for each in maps for value in (each or {}).values())
            yield "" if good else f"{table.name} {row.id} has a map with a value that is not a string"


def _one_log_each(inspected: Inspected) -> Iterator[str | None]:
    events = {event.id: event for event in inspected.sandbox.events if event.merchant_id == inspected.store.merchant.id}
    logs = inspected.store.webhook_logs
    seen: set[tuple[str, str]] = set()
    for row in inspected.store.webhook_logs.all_rows():
        public = row.public
        pair = public["event_id"], public["webhookId"]
        if pair in seen:
            yield f"log {row.id} repeats event {pair[0]} for webhook {pair[1]}"
        elif not public["is_test"] and pair[0] not in events and len(events) == inspected.sandbox.events.raised:
            yield f"log {row.id} is for an unknown event"
        else:
            yield ""
        seen.add(pair)
    if logs.may_have_dropped():
        return  # the oldest have made room
    for row in inspected.store.webhooks.all_rows():
        subscriber = subscriber_of(row.record.public)
        since = max(date_time_ms(row.public["createdAt"]), _changed(row))
        disabled = date_time_ms(row.public["disabled_at"]) if row.public["disabled_at"] else None
        until = disabled or inspected.sandbox.clock.now + 1
        if not row.public["is_active"]:
            # Of a webhook that was switched off, the last change before that is known in an untouched sandbox only.
            fresh = disabled is not None and not inspected.sandbox.touched
            since = date_time_ms(row.public["createdAt"]) if fresh else until
        for event in events.values():
            yield PAUSE
            # What happened in the very millisecond of a change may have met the webhook before it or after it.
            if (
                since < event.at < until
                and event.type != "webhook.test"
                and subscriber.wants(event.type, event.project_id)
            ):
                absent = (event.id, row.id) not in seen
                yield f"event {event.id} has no delivery to webhook {row.id}" if absent else ""


def _changed(row: Row) -> int:
    """When the merchant last changed the webhook, in ms; deliveries do not set `updatedAt`."""
    return date_time_ms(row.public["updatedAt"])


def _times(inspected: Inspected) -> Iterator[str | None]:
    now = inspected.sandbox.clock.now
    ids: set[str] = set()
    for table in inspected.store.tables.values():
        for record in list(table.rows.values()):
            yield f"{record.id} is the id of two records" if record.id in ids else PAUSE
            ids.add(record.id)
        for row in inspected.rows(table):
            created = date_time_ms(row.public[table.spec.created])
            updated = date_time_ms(row.public["updatedAt"]) if "updatedAt" in row.public else created
            times = f"{iso(created)}, changed {iso(updated)}, now is {iso(now)}"
            yield "" if created <= updated <= now else f"{table.name} {row.id} was created at {times}"


def _contract(inspected: Inspected) -> Iterator[str | None]:
    checks = inspected.sandbox.rules.layout.checks
    for table in inspected.store.tables.values():
        step = max(1, -(-len(table) // inspected.budget))
        for key in list(table.order)[::step]:
            record = table.rows[key]
            try:
                checks[table.spec.schema](orjson.loads(inspected.store.shown(table, record)))
            except Exception as error:  # the check may raise anything, and all of it is a violation
                yield f"{table.name} {record.id}: {error}"
            else:
                yield ""


def order_trace(row: Row, lifecycle: Lifecycle, now: int) -> str:
    """What contradicts an order's status; empty if nothing does."""
    order, hidden, payment = row.public, row.hidden, row.public["last_transaction"]
    status = order["status"]
    expected = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}.get(status, (status,))
    if payment["status"] not in expected:
        return f"is {status}, its payment {payment['status']}"
    settled = status in lifecycle.sets["settled"]
    if settled != (hidden["paid_at"] is not None) or settled != ("paid_at" in payment):
        return f"is {status} and was paid at {hidden['paid_at']}"
    if settled and not date_time_ms(order["createdAt"]) <= hidden["paid_at"] <= now:
        return "was paid before it was placed, or in the future"
    if settled and hidden["paid_cents"] != cents(order["totalAmount"]):
        return f"was paid with {hidden['paid_cents']} cents"
    back = hidden["refunded_cents"]
    if not 0 <= back <= hidden["paid_cents"] or (status == "refunded") != (back > 0 and back == hidden["paid_cents"]):
        return f"is {status} with {back} cents refunded"
    return ""


def subscription_trace(store: Store, row: Row, lifecycles: Mapping[str, Lifecycle], now: int) -> str:
    """What contradicts a subscription's status; empty if nothing does."""
    public, hidden = row.public, row.hidden
    status = public["status"]
    ended = status not in lifecycles["Subscription"].sets["running"]
    if ended != (public["ended_at"] is not None) or (ended and public["next_billing_at"] is not None):
        return f"is {status}, ended at {public['ended_at']}, next billing at {public['next_billing_at']}"
    order = store.orders.open(public["orderId"])
    if order is None or order.hidden["subscriptionId"] != row.id or order.hidden["renewal"]:
        return "has no first order that refers to it"
    end = period_end(public, hidden)
    in_trial = public["current_period_end"] == public["trial_end"] and public["trial_end"] is not None
    if not in_trial and public["current_period_end"] != iso(end):
        return f"its period ends at {public['current_period_end']}, not at {iso(end)}"
    paid, left = public["cycle"] + 1, len(hidden["paid_by"])
    if not 1 <= left <= paid or ("ends" in hidden and len(hidden["ends"]) != left):
        return f"has {paid} paid periods, {left} of them not over yet"
    if "ends" not in hidden and hidden["periods"] != paid:  # after a suspension the count begins again
        return f"has {hidden['periods']} paid periods after {public['cycle']} renewals"
    for ident in hidden["dispute"]["orders"] if has_dispute(hidden) else ():
        disputed = store.orders.open(ident)
        if disputed is None or disputed.public["status"] != "disputed" or disputed.hidden["subscriptionId"] != row.id:
            return f"waits for the dispute of order {ident}, which is not one of its disputed orders"
    project = store.projects.peek(public["projectId"])
    paused = project is not None and project["status"] in lifecycles["Project"].sets["paused"]
    if status == "trialing" and date_time_ms(public["trial_end"]) < now and not paused:
        return "is trialing after its trial"
    if status == "past_due" and end > now:
        return "is past due before its period is over"
    customer = store.customers.find(public["customerId"])
    if customer is None or public["customer"]["id"] != public["customerId"]:
        return "has no customer"
    return ""


def _period_runs(inspected: Inspected) -> Iterator[str | None]:
    now = iso(inspected.sandbox.clock.now)
    store = inspected.store
    for row in inspected.rows(store.subscriptions):
        found = row.public
        project = store.projects.peek(found["projectId"])
        if found["status"] != "active" or has_dispute(row.hidden) or project is None or project["status"] != "active":
            yield PAUSE
            continue
        start, end = found["current_period_start"], found["current_period_end"]
        yield "" if start <= now < end else f"subscription {row.id} is active from {start} to {end}, now is {now}"


def _ended_without_bills(inspected: Inspected) -> Iterator[str | None]:
    store, lifecycles = inspected.store, inspected.sandbox.rules.lifecycles
    running, payable = lifecycles["Subscription"].sets["running"], lifecycles["Order"].sets["payable"]
    for status in payable:
        for row in store.orders.rows_of("status", status):
            ident = row.hidden["subscriptionId"]
            found = None if ident is None else store.subscriptions.peek(ident)
            wrong = found is not None and found["status"] not in running
            yield f"order {row.id} is {status}, its subscription {ident} is over" if wrong else ""


def _pending_in_time(inspected: Inspected) -> Iterator[str | None]:
    now = inspected.sandbox.clock.now
    lifecycles = inspected.sandbox.rules.lifecycles
    stopped = lifecycles["Project"].sets["paused"]
    paused = {row.id for row in inspected.store.projects.all_rows() if row.public["status"] in stopped}
    for status in lifecycles["Order"].sets["payable"]:
        for row in inspected.store.orders.rows_of("status", status):
            end = row.public["last_transaction"].get("expires_at")
            if end is None:
                yield f"order {row.id} is {status} and has no expiry"
            else:
                # The renewals of a suspended project, and of a disputed subscription, wait with it.
                found = (
                    inspected.store.subscriptions.open(row.hidden["subscriptionId"]) if row.hidden["renewal"] else None
                )
                waits = found is not None and (has_dispute(found.hidden) or row.hidden["projectId"] in paused)
                over = date_time_ms(end) <= now and not waits
                yield f"order {row.id} is still {status}, though it expired at {end}" if over else ""


def _one_each(inspected: Inspected) -> Iterator[str | None]:
    seen: dict[tuple[str, str], str] = {}
    table = inspected.store.subscriptions
    for status in inspected.sandbox.rules.lifecycles["Subscription"].sets["running"]:
        for row in table.rows_of("status", status):
            pair = row.public["customerId"], row.public["planId"]
            other = seen.setdefault(pair, row.id)
            yield "" if other == row.id else f"subscriptions {other} and {row.id} are of the same customer and plan"


def _moved_on(inspected: Inspected) -> Iterator[str | None]:
    """While its project is active, the clock moves a subscription on as soon as its trial or its grace is over."""
    now = inspected.sandbox.clock.now
    active = {row.id for row in inspected.store.projects.all_rows() if row.public["status"] == "active"}
    for row in inspected.rows(inspected.store.subscriptions):
        public = row.public
        if public["projectId"] not in active:
            yield ""
        elif public["status"] == "trialing" and date_time_ms(public["trial_end"]) <= now:
            yield f"subscription {row.id} is trialing, though its trial was over at {public['trial_end']}"
        elif public["status"] == "past_due" and not has_dispute(row.hidden) and grace_end(public, row.hidden) <= now:
            yield f"subscription {row.id} is past due after its grace period"
        else:
            yield ""


def _after_its_plan(inspected: Inspected) -> Iterator[str | None]:
    """A plan that was deleted has left its orders behind."""
    store = inspected.store
    plans = {row.id: row.public["createdAt"] for row in store.plans.all_rows()}
    for row in inspected.rows(store.orders):
        created, plan = date_time_ms(row.public["createdAt"]), plans.get(row.hidden["planId"])
        customer = store.customers.peek(row.hidden["customerId"])
        if plan is not None and created < date_time_ms(plan):
            yield f"order {row.id} is older than its plan"
        elif customer is None or created < date_time_ms(customer["createdAt"]):
            yield f"order {row.id} is older than its customer, or has none"
        else:
            yield ""


def _attempts_listed(inspected: Inspected) -> Iterator[str | None]:
    open_ = inspected.sandbox.rules.lifecycles["WebhookLogEntry"].sets["open"]
    for row in inspected.rows(inspected.store.webhook_logs):
        public, attempts = row.public, row.hidden["attempts"]
        waits = public["status"] in open_ and not public["is_test"]
        numbers, count = [attempt["number"] for attempt in attempts], public["attempt_count"]
        if numbers != [*range(max(1, count + 1 - MOST_ATTEMPTS), count + 1)]:
            yield f"delivery {row.id} counts {count} attempts and lists {len(attempts)}"
        elif waits != (public["next_attempt_at"] is not None):
            yield f"delivery {row.id} is {public['status']}, its next attempt at {public['next_attempt_at']}"
        elif public["status"] == "delivered" and (not attempts or attempts[-1]["error"] is not None):
            yield f"delivery {row.id} is delivered, but its last attempt failed"
        else:
            yield ""


LAWS = (
    Law("Every project counts its orders", _orders_counted),
    Law("Every project's revenue is its payments less its refunds", _revenue),
    Law("Every active subscriber is a subscriber, and every subscriber a customer", _subscribers),
    Law("Every project counts its plans", _plans_counted),
    Law("The items of an order add up to its total", _items_add_up, seeds_only=True),
    Law("Every order's plan belongs to its project", _plan_of_project),
    Law("Every paid PIX order has an end-to-end id, and every order expires when its payment does", _payments),
    Law("Every status can be reached by moves of the lifecycle", _reachable),
    Law("Every PIX code is valid and has the order's total", _codes),
    Law("Every document is valid", _documents, of_files=False),
    Law("Area code, postal code and CPF agree with the state", _places, seeds_only=True),
    Law("No stored record or reply contains a secret", _no_secrets, of_files=False),
    Law("Maps of strings contain only strings", _strings_only),
    Law("Every event has one delivery for each webhook that subscribes to it", _one_log_each, of_files=False),
    Law("Ids are unique, and no record was changed before its creation or in the future", _times),
    Law("Every record matches the contract", _contract),
    Law("In an active project, the period of every active subscription includes now", _period_runs),
    Law("No ended subscription has an order that can be paid", _ended_without_bills),
    Law("No order is pending after its expiry", _pending_in_time),
    Law("No customer has two running subscriptions of the same plan", _one_each),
    Law("In an active project, no trial and no grace period lasts too long", _moved_on),
    Law("No order is older than its plan or its customer", _after_its_plan),
    Law("Every delivery lists its newest attempts", _attempts_listed),
)
