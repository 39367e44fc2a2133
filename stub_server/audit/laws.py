"""The laws: each yields one text per record checked, empty if the record keeps the law."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms
from ..domain.brcode import BrCodeError, parse
from ..domain.documents import cpf_region, kind
from ..domain.orders import items_cents
from ..domain.places import warnings_for
from ..domain.stats import OrderFold
from ..domain.webhooks import subscriber_of
from ..kernel.clock import iso
from ..kernel.money import cents, reais
from ..kernel.record import Row
from .inspection import PAUSE, Inspected, Law
from .memberships import MEMBERSHIPS
from .traces import order_trace, subscription_trace

SECRETS = (b'"private_key"', b'"signing_key"', b"sk_sandbox_", b"whsec_")


def _orders_counted(world: Inspected) -> Iterator[str | None]:
    counted: dict[str, int] = {}
    for order in world.store.orders.all_rows():
        counted[order.hidden["projectId"]] = counted.get(order.hidden["projectId"], 0) + 1
        yield PAUSE
    for project in world.store.projects.all_rows():
        shown = world.store.shown_row(world.store.projects, project)["orders_count"]
        real = counted.get(project.id, 0)
        yield "" if shown == real else f"project {project.id} shows {shown} orders and has {real}"


def _revenue(world: Inspected) -> Iterator[str | None]:
    lifecycle = world.sandbox.rules.lifecycles["Order"]
    folds: dict[str, OrderFold] = {}
    sums: dict[str, int] = {}
    for row in world.store.orders.all_rows():
        project = row.hidden["projectId"]
        folds.setdefault(project, OrderFold(lifecycle)).add(row)
        sums[project] = sums.get(project, 0) + row.hidden["paid_cents"] - row.hidden["refunded_cents"]
        yield PAUSE
    for project in world.store.projects.all_rows():
        shown = world.store.shown_row(world.store.projects, project)["total_revenue"]
        real = reais(sums.get(project.id, 0))
        net = folds.get(project.id, OrderFold(lifecycle)).revenue()["net"]
        same = shown == real == net
        yield "" if same else f"project {project.id} shows {shown}, its orders come to {real}, its stats to {net}"


def _subscribers(world: Inspected) -> Iterator[str | None]:
    held, running = world.store.subscriptions, world.sandbox.rules.lifecycles["Subscription"].sets["running"]
    for project in world.store.projects.all_rows():
        ever: set[str] = set()
        live: set[str] = set()
        for row in held.rows_of("projectId", project.id):
            ever.add(row.public["customerId"])
            if row.public["status"] in running:
                live.add(row.public["customerId"])
            yield PAUSE
        shown = world.store.shown_row(world.store.projects, project)
        said = shown["active_subscribers"], shown["total_subscribers"]
        if said != (len(live), len(ever)):
            yield f"project {project.id} shows {said[0]} of {said[1]} subscribers, it has {len(live)} of {len(ever)}"
        elif len(ever) > len(world.store.customers):
            yield f"project {project.id} has more subscribers than there are customers"
        else:
            yield ""


def _plans_counted(world: Inspected) -> Iterator[str | None]:
    store = world.store
    real: dict[str, int] = {}
    for plan in store.plans.all_rows():
        real[plan.public["projectId"]] = real.get(plan.public["projectId"], 0) + 1
        yield PAUSE
    for project in store.projects.all_rows():
        shown = store.shown_row(store.projects, project)["plans_count"]
        counted = real.get(project.id, 0)
        yield "" if shown == counted else f"project {project.id} shows {shown} plans and has {counted}"


def _items_add_up(world: Inspected) -> Iterator[str | None]:
    for row in world.rows(world.store.orders):
        items, total = items_cents(row.public["items"]), cents(row.public["totalAmount"])
        yield "" if items == total else f"order {row.id} has items of {items} and a total of {total} cents"


def _plan_of_project(world: Inspected) -> Iterator[str | None]:
    plans = {plan.id: plan.public["projectId"] for plan in world.store.plans.all_rows()}
    for row in world.rows(world.store.orders):
        project = plans.get(row.hidden["planId"])
        # The project of a deleted plan is unknown.
        wrong = project is not None and project != row.hidden["projectId"]
        yield f"order {row.id} has a plan of project {project}" if wrong else ""
    for row in world.rows(world.store.subscriptions):
        project = plans.get(row.public["planId"])
        wrong = project is not None and project != row.public["projectId"]
        yield f"subscription {row.id} has a plan of project {project}" if wrong else ""


def _payments(world: Inspected) -> Iterator[str | None]:
    settled = world.sandbox.rules.lifecycles["Order"].sets["settled"]
    for row in world.rows(world.store.orders):
        order, payment = row.public, row.public["last_transaction"]
        if order["status"] in settled and order["paymentMethod"] == "pix":
            name = payment.get("end_to_end_id", "")
            yield "" if len(name) == 32 and name.isalnum() else f"order {row.id} is paid with end_to_end_id {name!r}"
        elif order["status"] == "expired" and "expires_at" in payment:
            same = order["updatedAt"] == payment["expires_at"]
            yield "" if same else f"order {row.id} expired at {order['updatedAt']}, not at {payment['expires_at']}"
        else:
            yield ""


def _reachable(world: Inspected) -> Iterator[str | None]:
    now = world.sandbox.clock.now
    lifecycles = world.sandbox.rules.lifecycles
    for name, table in (("Order", "orders"), ("Subscription", "subscriptions"), ("Project", "projects")):
        states = _reached(lifecycles[name])
        for row in world.rows(world.store.tables[table]):
            status = row.public["status"]
            wrong = "" if status in states else f"nothing leads to {status}"
            if not wrong and table == "orders":
                wrong = order_trace(row, lifecycles["Order"], now)
            elif not wrong and table == "subscriptions":
                wrong = subscription_trace(world.store, row, lifecycles, now)
            yield f"{name.lower()} {row.id}: {wrong}" if wrong else ""


def _reached(lifecycle: Lifecycle) -> set[str]:
    states = {"new"}
    while True:
        more = {move.to for move in lifecycle.moves if move.from_ in states} - states
        if not more:
            return states
        states |= more


def _codes(world: Inspected) -> Iterator[str | None]:
    for row in world.rows(world.store.orders):
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


def _documents(world: Inspected) -> Iterator[str | None]:
    for row in world.rows(world.store.customers):
        found = kind(row.public["document"])
        right = row.public["document_type"] == (found or "passport")
        yield "" if right else f"customer {row.id}: {row.public['document']} is {found or 'no document'}"


def _places(world: Inspected) -> Iterator[str | None]:
    for row in world.rows(world.store.customers):
        public = row.public
        if public["address"].get("country") != "BR":
            yield ""
            continue
        wrong = list(warnings_for(public["phones"], public["address"]))
        if public["document_type"] == "cpf" and public["address"].get("state") not in cpf_region(public["document"]):
            wrong.append("the CPF is of another region")
        yield f"customer {row.id}: {', '.join(wrong)}" if wrong else ""


def _no_secrets(world: Inspected) -> Iterator[str | None]:
    for table in world.store.tables.values():
        for record in list(table.rows.values()):
            found = next((secret for secret in SECRETS if secret in record.public), None)
            yield f"{table.name} {record.id} holds {found.decode()}" if found else ""
    for (_, method, path, _), saved in world.sandbox.replies.items():
        parts = saved.body
        allowed = method == "POST" and (path.endswith(("/api-keys", "/webhooks", "/regenerate-key")))
        yield "" if allowed or not any(s in parts for s in SECRETS) else f"the reply to {method} {path} holds a secret"


_MAPS = ("metadata", "last_transaction")


def _strings_only(world: Inspected) -> Iterator[str | None]:
    for table in world.store.tables.values():
        for row in world.rows(table):
            maps: list[Any] = [row.public.get(name, {}) for name in _MAPS]
            maps += [value for name, value in row.hidden.items() if name == "metadata" or name.endswith("_settings")]
            if table.name == "orders":
                maps += [row.public["customer"]["phones"], row.public["customer"]["address"]]
            good = all(isinstance(value, str) for held in maps for value in (held or {}).values())
            yield "" if good else f"{table.name} {row.id} has a map with a value that is no string"


def _one_log_each(world: Inspected) -> Iterator[str | None]:
    events = {event.id: event for event in world.sandbox.events if event.merchant_id == world.store.merchant.id}
    logs = world.store.webhook_logs
    seen: set[tuple[str, str]] = set()
    for row in world.store.webhook_logs.all_rows():
        public = row.public
        pair = public["event_id"], public["webhookId"]
        if pair in seen:
            yield f"log {row.id} repeats event {pair[0]} for webhook {pair[1]}"
        elif not public["is_test"] and pair[0] not in events and len(events) == world.sandbox.events.raised:
            yield f"log {row.id} is of no known event"
        else:
            yield ""
        seen.add(pair)
    if logs.may_have_dropped():
        return  # the oldest have made room
    for row in world.store.webhooks.all_rows():
        subscriber = subscriber_of(row.record.public)
        since = max(date_time_ms(row.public["createdAt"]), _changed(row))
        disabled = date_time_ms(row.public["disabled_at"]) if row.public["disabled_at"] else None
        until = disabled or world.sandbox.clock.now + 1
        if not row.public["is_active"]:
            # Of a webhook that was switched off, the last change before that is known in an untouched world only.
            fresh = disabled is not None and not world.sandbox.touched
            since = date_time_ms(row.public["createdAt"]) if fresh else until
        for event in events.values():
            yield PAUSE
            # What happened in the very millisecond of a change may have met the webhook before it or after it.
            if (
                since < event.at < until
                and event.type != "webhook.test"
                and subscriber.wants(event.type, event.project_id)
            ):
                missing = (event.id, row.id) not in seen
                yield f"event {event.id} has no delivery to webhook {row.id}" if missing else ""


def _changed(row: Row) -> int:
    """When the merchant last changed the webhook, in ms; deliveries do not set `updatedAt`."""
    return date_time_ms(row.public["updatedAt"])


def _times(world: Inspected) -> Iterator[str | None]:
    now = world.sandbox.clock.now
    ids: set[str] = set()
    for table in world.store.tables.values():
        for record in list(table.rows.values()):
            yield f"{record.id} stands twice" if record.id in ids else PAUSE
            ids.add(record.id)
        for row in world.rows(table):
            created = date_time_ms(row.public[table.spec.created])
            updated = date_time_ms(row.public["updatedAt"]) if "updatedAt" in row.public else created
            times = f"{iso(created)}, changed {iso(updated)}, now is {iso(now)}"
            yield "" if created <= updated <= now else f"{table.name} {row.id} is of {times}"


def _contract(world: Inspected) -> Iterator[str | None]:
    checks = world.sandbox.rules.layout.checks
    for table in world.store.tables.values():
        step = max(1, -(-len(table) // world.budget))
        for key in list(table.order)[::step]:
            record = table.rows[key]
            try:
                checks[table.spec.schema](orjson.loads(world.store.shown(table, record)))
            except Exception as error:  # the check may raise anything, and all of it is a violation
                yield f"{table.name} {record.id}: {error}"
            else:
                yield ""


LAWS = (
    Law("Every project counts its orders", _orders_counted),
    Law("Every project's revenue is what was paid less what was refunded", _revenue),
    Law("Active subscribers are subscribers, and subscribers are customers", _subscribers),
    Law("Every project counts its plans", _plans_counted),
    Law("The items of an order add up to its total", _items_add_up, seeds_only=True),
    Law("Every order's plan belongs to its project", _plan_of_project),
    Law("A paid PIX has an end-to-end id, an expired order ended when its code did", _payments),
    Law("Every status has been reached by moves that exist", _reachable),
    Law("Every PIX code can be read and asks for the order's total", _codes),
    Law("Every document is valid", _documents, of_files=False),
    Law("Area code, postal code and CPF agree with the state", _places, seeds_only=True),
    Law("No stored record or reply holds a secret", _no_secrets, of_files=False),
    Law("Maps of strings hold nothing but strings", _strings_only),
    Law("Every event has one delivery for each webhook that wants it", _one_log_each, of_files=False),
    Law("Ids are unique, and nothing is older than its creation or younger than now", _times),
    Law("Every record keeps the contract", _contract),
    *MEMBERSHIPS,
)
