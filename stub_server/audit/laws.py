"""The laws of a sandbox, and what checks them.

Each law yields one text for each record that it checks, empty if the record keeps the law.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeAlias

from ..contract.document import Lifecycle
from ..domain.brcode import BrCodeError, amount_of
from ..domain.deliveries import MOST_ATTEMPTS
from ..domain.documents import cpf_region, kind
from ..domain.lifecycle import path
from ..domain.orders import items_cents
from ..domain.places import warnings_for
from ..domain.stats import OrderFold
from ..domain.subscriptions import grace_end, has_dispute, period_end
from ..domain.webhooks import wants
from ..engine.sandbox import Sandbox
from ..kernel.clock import iso, parse_iso
from ..kernel.money import cents, reais
from ..kernel.record import Body, Row
from ..store.memory import Store
from ..store.table import Table


class Inspected(NamedTuple):
    sandbox: Sandbox
    store: Store

    def lifecycle(self, resource: str) -> Lifecycle:
        return self.sandbox.rules.lifecycles[resource]

    def is_active(self, project_id: str) -> bool:
        project = self.store.projects.peek(project_id)
        return project is not None and project["status"] == "active"

    def is_paused(self, project_id: str) -> bool:
        """Whether the subscriptions of a project wait."""
        project = self.store.projects.peek(project_id)
        return project is not None and project["status"] in self.lifecycle("Project").sets["paused"]

    def rows_in(self, resource: str, states: str, table: Table) -> Iterator[Row]:
        for status in self.lifecycle(resource).sets[states]:
            yield from table.rows_of("status", status)

    def rows(self, table: Table) -> Iterator[Row]:
        """The parsed records of a table: all, or every n-th so that BUDGET is kept."""
        step = max(1, -(-len(table) // BUDGET))
        keys = list(table.order)
        for key in keys[::step]:
            yield table.parse(table.rows[key])


SHOWN = 20  # violations of a law
BUDGET = 20_000  # records of a table that a costly law parses; of larger tables it takes every n-th

Look: TypeAlias = Callable[[Inspected], Iterator[str | None]]
Judge: TypeAlias = Callable[[Inspected, Row], str | None]
"""What is wrong with a record, after its kind and id; empty if nothing is."""
PAUSE = None
"""What a law yields where it has looked at something and judges nothing yet: others may be served."""


class Law(NamedTuple):
    """`look` yields one text per record looked at, empty when it keeps the law, and PAUSE in between.

    `of_files`: a sandbox that breaks it cannot come from a file. What users write, or flags, may break the others.
    """

    name: str
    look: Look
    seeds_only: bool = False
    of_files: bool = True


SECRETS = (b'"private_key"', b'"signing_key"', b"sk_sandbox_", b"whsec_")


def _each(judge: Judge, *tables: str) -> Look:
    """The law that a judge finds nothing wrong with any record of these tables."""

    def look(inspected: Inspected) -> Iterator[str | None]:
        for table in tables:
            for row in inspected.rows(inspected.store.tables[table]):
                fault = judge(inspected, row)
                yield f"{table[:-1]} {row.id} {fault}" if fault else fault

    return look


def _counts(table: str, member: str) -> Look:
    """The law that each project shows how many records of a table it has."""

    def look(inspected: Inspected) -> Iterator[str | None]:
        store, real = inspected.store, Counter[str]()
        for row in store.tables[table].all_rows():
            real[(row.hidden | row.public)["projectId"]] += 1
            yield PAUSE
        for project in store.projects.all_rows():
            shown, counted = store.shown_row(store.projects, project)[member], real[project.id]
            yield "" if shown == counted else f"project {project.id} shows {shown} {table} and has {counted}"

    return look


def _revenue(inspected: Inspected) -> Iterator[str | None]:
    store, lifecycle, sums = inspected.store, inspected.lifecycle("Order"), Counter[str]()
    folds: defaultdict[str, OrderFold] = defaultdict(lambda: OrderFold(lifecycle))
    for row in store.orders.all_rows():
        folds[row.hidden["projectId"]].add(row)
        sums[row.hidden["projectId"]] += row.hidden["paid_cents"] - row.hidden["refunded_cents"]
        yield PAUSE
    for project in store.projects.all_rows():
        shown = store.shown_row(store.projects, project)["total_revenue"]
        real, net = reais(sums[project.id]), folds[project.id].revenue()["net"]
        same = shown == real == net
        yield "" if same else f"project {project.id} shows {shown}; its orders add up to {real}, its stats show {net}"


def _subscribers(inspected: Inspected) -> Iterator[str | None]:
    store, running = inspected.store, inspected.lifecycle("Subscription").sets["running"]
    for project in store.projects.all_rows():
        ever: set[str] = set()
        live: set[str] = set()
        for row in store.subscriptions.rows_of("projectId", project.id):
            ever.add(row.public["customerId"])
            if row.public["status"] in running:
                live.add(row.public["customerId"])
            yield PAUSE
        shown = store.shown_row(store.projects, project)
        said = shown["active_subscribers"], shown["total_subscribers"]
        fault = "has more subscribers than there are customers" if len(ever) > len(store.customers) else ""
        if said != (len(live), len(ever)):
            fault = f"shows {said[0]} of {said[1]} subscribers as active, and has {len(live)} of {len(ever)}"
        yield f"project {project.id} {fault}" if fault else ""


def _items_add_up(_: Inspected, row: Row) -> str:
    items, total = items_cents(row.public["items"]), cents(row.public["totalAmount"])
    return "" if items == total else f"has items of {items} and a total of {total} cents"


def _plan_of_project(inspected: Inspected, row: Row) -> str:
    of = row.hidden | row.public
    plan = inspected.store.plans.peek(of["planId"])
    wrong = plan is not None and plan["projectId"] != of["projectId"]  # the project of a deleted plan is unknown
    return "has a plan of another project" if wrong else ""


def _payments(inspected: Inspected, row: Row) -> str:
    order, payment = row.public, row.public["last_transaction"]
    if order["status"] in inspected.lifecycle("Order").sets["settled"] and order["paymentMethod"] == "pix":
        name = payment.get("end_to_end_id", "")
        return "" if len(name) == 32 and name.isalnum() else f"is paid with end_to_end_id {name!r}"
    if order["status"] == "expired" and order["updatedAt"] != payment.get("expires_at", order["updatedAt"]):
        return f"expired at {order['updatedAt']}, not at {payment['expires_at']}"
    return ""


def _codes(_: Inspected, row: Row) -> str:
    code = row.public["last_transaction"].get("qr_code")
    if code is None:
        return "" if row.public["paymentMethod"] != "pix" else "has no PIX code"
    try:
        amount = amount_of(code)
    except BrCodeError as error:
        return f"has a wrong PIX code: {error}"
    total = cents(row.public["totalAmount"])
    return "" if amount == total else f"asks for {amount} cents instead of {total}"


def _after_its_plan(inspected: Inspected, row: Row) -> str:
    """A plan that was deleted has left its orders behind."""
    created, store = parse_iso(row.public["createdAt"]), inspected.store
    plan, customer = store.plans.peek(row.hidden["planId"]), store.customers.peek(row.hidden["customerId"])
    if plan is not None and created < parse_iso(plan["createdAt"]):
        return "is older than its plan"
    is_younger = customer is not None and created >= parse_iso(customer["createdAt"])
    return "" if is_younger else "is older than its customer, or has none"


def _pending_in_time(inspected: Inspected) -> Iterator[str | None]:
    now, store = inspected.sandbox.clock.now, inspected.store
    for row in inspected.rows_in("Order", "payable", store.orders):
        end = row.public["last_transaction"].get("expires_at")
        if end is None:
            yield f"order {row.id} is {row.public['status']} and has no expiry"
            continue
        # The renewals of a suspended project, and of a disputed subscription, wait with it.
        found = store.subscriptions.open(row.hidden["subscriptionId"]) if row.hidden["renewal"] else None
        waits = found is not None and (has_dispute(found.hidden) or inspected.is_paused(row.hidden["projectId"]))
        over = parse_iso(end) <= now and not waits
        yield f"order {row.id} is still {row.public['status']}, though it expired at {end}" if over else ""


def _reachable(inspected: Inspected) -> Iterator[str | None]:
    traces: tuple[tuple[str, str, Judge], ...] = (
        ("Order", "orders", order_trace),
        ("Subscription", "subscriptions", subscription_trace),
        ("Project", "projects", lambda *_: ""),
    )
    for name, table, trace in traces:
        lifecycle = inspected.lifecycle(name)
        states = {state for state in lifecycle.states if path(lifecycle, "new", state)}
        for row in inspected.rows(inspected.store.tables[table]):
            status = row.public["status"]
            wrong = trace(inspected, row) if status in states else f"no move leads to {status}"
            yield f"{name.lower()} {row.id}: {wrong}" if wrong else ""


def order_trace(inspected: Inspected, row: Row) -> str:
    """What contradicts an order's status; empty if nothing does."""
    order, hidden, payment = row.public, row.hidden, row.public["last_transaction"]
    status = order["status"]
    expected = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}.get(status, (status,))
    if payment["status"] not in expected:
        return f"is {status}, its payment {payment['status']}"
    settled = status in inspected.lifecycle("Order").sets["settled"]
    if settled != (hidden["paid_at"] is not None) or settled != ("paid_at" in payment):
        return f"is {status} and was paid at {hidden['paid_at']}"
    if settled and not parse_iso(order["createdAt"]) <= hidden["paid_at"] <= inspected.sandbox.clock.now:
        return "was paid before it was placed, or in the future"
    if settled and hidden["paid_cents"] != cents(order["totalAmount"]):
        return f"was paid with {hidden['paid_cents']} cents"
    back = hidden["refunded_cents"]
    if not 0 <= back <= hidden["paid_cents"] or (status == "refunded") != (back > 0 and back == hidden["paid_cents"]):
        return f"is {status} with {back} cents refunded"
    return ""


def subscription_trace(inspected: Inspected, row: Row) -> str:
    """What contradicts a subscription's status; empty if nothing does."""
    public, hidden, store = row.public, row.hidden, inspected.store
    status = public["status"]
    ended = status not in inspected.lifecycle("Subscription").sets["running"]
    if ended != (public["ended_at"] is not None) or (ended and public["next_billing_at"] is not None):
        return f"is {status}, ended at {public['ended_at']}, next billing at {public['next_billing_at']}"
    order = store.orders.open(public["orderId"])
    if order is None or order.hidden["subscriptionId"] != row.id or order.hidden["renewal"]:
        return "has no first order that refers to it"
    end = period_end(hidden)
    in_trial = public["current_period_end"] == public["trial_end"] and public["trial_end"] is not None
    if not in_trial and public["current_period_end"] != iso(end):
        return f"its period ends at {public['current_period_end']}, not at {iso(end)}"
    paid, left = public["cycle"] + 1, len(hidden["paid_by"])
    if not 1 <= left <= paid or len(hidden["ends"]) != left:
        return f"has {paid} paid periods, {left} of them not over yet"
    for ident in hidden["dispute"]["orders"] if has_dispute(hidden) else ():
        disputed = store.orders.open(ident)
        if disputed is None or disputed.public["status"] != "disputed" or disputed.hidden["subscriptionId"] != row.id:
            return f"waits for the dispute of order {ident}, which is not one of its disputed orders"
    now = inspected.sandbox.clock.now
    if status == "trialing" and parse_iso(public["trial_end"]) < now and not inspected.is_paused(public["projectId"]):
        return "is trialing after its trial"
    if status == "past_due" and end > now:
        return "is past due before its period is over"
    if store.customers.find(public["customerId"]) is None or public["customer"]["id"] != public["customerId"]:
        return "has no customer"
    return ""


def _period_runs(inspected: Inspected, row: Row) -> str | None:
    found, now = row.public, iso(inspected.sandbox.clock.now)
    if found["status"] != "active" or has_dispute(row.hidden) or not inspected.is_active(found["projectId"]):
        return PAUSE
    start, end = found["current_period_start"], found["current_period_end"]
    return "" if start <= now < end else f"is active from {start} to {end}, now is {now}"


def _moved_on(inspected: Inspected, row: Row) -> str:
    """While its project is active, the clock moves a subscription on as soon as its trial or its grace is over."""
    public, now = row.public, inspected.sandbox.clock.now
    if not inspected.is_active(public["projectId"]):
        return ""
    if public["status"] == "trialing" and parse_iso(public["trial_end"]) <= now:
        return f"is trialing, though its trial was over at {public['trial_end']}"
    late = public["status"] == "past_due" and not has_dispute(row.hidden) and grace_end(public, row.hidden) <= now
    return "is past due after its grace period" if late else ""


def _ended_without_bills(inspected: Inspected) -> Iterator[str | None]:
    running = inspected.lifecycle("Subscription").sets["running"]
    for row in inspected.rows_in("Order", "payable", inspected.store.orders):
        ident = row.hidden["subscriptionId"]
        found = None if ident is None else inspected.store.subscriptions.peek(ident)
        wrong = found is not None and found["status"] not in running
        yield f"order {row.id} is {row.public['status']}, its subscription {ident} is over" if wrong else ""


def _one_each(inspected: Inspected) -> Iterator[str | None]:
    seen: dict[tuple[str, str], str] = {}
    for row in inspected.rows_in("Subscription", "running", inspected.store.subscriptions):
        other = seen.setdefault((row.public["customerId"], row.public["planId"]), row.id)
        yield "" if other == row.id else f"subscriptions {other} and {row.id} are of the same customer and plan"


def _documents(_: Inspected, row: Row) -> str:
    found = kind(row.public["document"])
    right = row.public["document_type"] == (found or "passport")
    return "" if right else f"has {row.public['document']}, which is {found or 'no document'}"


def _places(_: Inspected, row: Row) -> str:
    public = row.public
    if public["address"].get("country") != "BR":
        return ""
    wrong = list(warnings_for(public["phones"], public["address"]))
    if public["document_type"] == "cpf" and public["address"].get("state") not in cpf_region(public["document"]):
        wrong.append("the CPF is of another region")
    return ", ".join(wrong)


def _attempts_listed(inspected: Inspected, row: Row) -> str:
    public, attempts = row.public, row.hidden["attempts"]
    waits = public["status"] in inspected.lifecycle("WebhookLogEntry").sets["open"] and not public["is_test"]
    numbers, count = [attempt["number"] for attempt in attempts], public["attempt_count"]
    if numbers != [*range(max(1, count + 1 - MOST_ATTEMPTS), count + 1)]:
        return f"counts {count} attempts and lists {len(attempts)}"
    if waits != (public["next_attempt_at"] is not None):
        return f"is {public['status']}, its next attempt at {public['next_attempt_at']}"
    failed = public["status"] == "delivered" and (not attempts or attempts[-1]["error"] is not None)
    return "is delivered, but its last attempt failed" if failed else ""


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
        since = parse_iso(row.public["updatedAt"])  # when the merchant last changed it: deliveries do not set this
        disabled = parse_iso(row.public["disabled_at"]) if row.public["disabled_at"] else None
        until = disabled or inspected.sandbox.clock.now + 1
        if not row.public["is_active"]:
            # Of a webhook that was switched off, the last change before that is known in an untouched sandbox only.
            fresh = disabled is not None and not inspected.sandbox.touched
            since = parse_iso(row.public["createdAt"]) if fresh else until
        for event in events.values():
            yield PAUSE
            # What happened in the very millisecond of a change may have met the webhook before it or after it.
            in_time = since < event.at < until and event.type != "webhook.test"
            if in_time and wants(row.public, event.type, event.project_id):
                absent = (event.id, row.id) not in seen
                yield f"event {event.id} has no delivery to webhook {row.id}" if absent else ""


def _no_secrets(inspected: Inspected) -> Iterator[str | None]:
    for table in inspected.store.tables.values():
        for record in list(table.rows.values()):
            found = next((secret for secret in SECRETS if secret in record.public), None)
            yield f"{table.name} {record.id} contains {found.decode()}" if found else ""
    for (_, method, to, _), saved in inspected.sandbox.replies.items():
        allowed = method == "POST" and to.endswith(("/api-keys", "/webhooks", "/regenerate-key"))
        wrong = not allowed and any(secret in saved.body for secret in SECRETS)
        yield f"the reply to {method} {to} contains a secret" if wrong else ""


def _times(inspected: Inspected) -> Iterator[str | None]:
    now = inspected.sandbox.clock.now
    ids: set[str] = set()
    for table in inspected.store.tables.values():
        for record in list(table.rows.values()):
            yield f"{record.id} is the id of two records" if record.id in ids else PAUSE
            ids.add(record.id)
        for row in inspected.rows(table):
            created = parse_iso(row.public[table.spec.created])
            updated = parse_iso(row.public["updatedAt"]) if "updatedAt" in row.public else created
            times = f"{iso(created)}, changed {iso(updated)}, now is {iso(now)}"
            yield "" if created <= updated <= now else f"{table.name} {row.id} was created at {times}"


def _contract(inspected: Inspected) -> Iterator[str | None]:
    checks = inspected.sandbox.rules.layout.checks
    for table in inspected.store.tables.values():
        for row in inspected.rows(table):
            try:
                checks[table.spec.schema](inspected.store.shown_row(table, row))
            except Exception as error:  # the check may raise anything, and all of it is a violation
                yield f"{table.name} {row.id}: {error}"
            else:
                yield ""


LAWS = (
    Law("Every project counts its orders", _counts("orders", "orders_count")),
    Law("Every project's revenue is its payments less its refunds", _revenue),
    Law("Every active subscriber is a subscriber, and every subscriber a customer", _subscribers),
    Law("Every project counts its plans", _counts("plans", "plans_count")),
    Law("The items of an order add up to its total", _each(_items_add_up, "orders"), seeds_only=True),
    Law("Every order's plan belongs to its project", _each(_plan_of_project, "orders", "subscriptions")),
    Law(
        "Every paid PIX order has an end-to-end id, and every order expires when its payment does",
        _each(_payments, "orders"),
    ),
    Law("Every status can be reached by moves of the lifecycle", _reachable),
    Law("Every PIX code is valid and has the order's total", _each(_codes, "orders")),
    Law("Every document is valid", _each(_documents, "customers"), of_files=False),
    Law("Area code, postal code and CPF agree with the state", _each(_places, "customers"), seeds_only=True),
    Law("No stored record or reply contains a secret", _no_secrets, of_files=False),
    Law("Every event has one delivery for each webhook that subscribes to it", _one_log_each, of_files=False),
    Law("Ids are unique, and no record was changed before its creation or in the future", _times),
    Law("Every record matches the contract", _contract),
    Law(
        "In an active project, the period of every active subscription includes now",
        _each(_period_runs, "subscriptions"),
    ),
    Law("No ended subscription has an order that can be paid", _ended_without_bills),
    Law("No order is pending after its expiry", _pending_in_time),
    Law("No customer has two running subscriptions of the same plan", _one_each),
    Law("In an active project, no trial and no grace period lasts too long", _each(_moved_on, "subscriptions")),
    Law("No order is older than its plan or its customer", _each(_after_its_plan, "orders")),
    Law("Every delivery lists its newest attempts", _each(_attempts_listed, "webhook_logs")),
)


# -- checking them


def broken(sandbox: Sandbox) -> Iterator[str]:
    """What breaks laws in a sandbox that came from a file, of all its merchants."""
    for store in sandbox.stores.values():
        for law in LAWS:
            if law.of_files and not law.seeds_only:
                found = law.look(Inspected(sandbox, store))
                yield from (f"{law.name}: {violation}" for violation in found if violation)


def checking(sandbox: Sandbox, seeded: bool) -> Generator[None, None, list[Body]]:
    """Check all laws on the seeded merchant's records, with a pause after each. The sandbox must not change meanwhile.

    Of each law the result says how many records were `checked`. `seeded` says that nothing has changed since the
    seeding: otherwise laws with `seeds_only` pass unchecked.
    """
    inspected = Inspected(sandbox, sandbox.store)
    checks = []
    for number, law in enumerate(LAWS, start=1):
        applies, checked = seeded or not law.seeds_only, 0
        violations: list[str] = []
        for violation in law.look(inspected) if applies else ():
            yield
            if violation is not PAUSE:
                checked += 1
                if violation and len(violations) < SHOWN:
                    violations.append(violation)
        result = {"id": number, "name": law.name, "applies": applies, "ok": not violations}
        checks.append(result | {"checked": checked, "violations": violations})
    return checks
