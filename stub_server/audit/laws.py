"""The laws of a sandbox, and what checks them.

Each law yields one text for each record that it checks, empty if the record keeps the law.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeAlias

from ..contract.document import Lifecycle
from ..domain.stats import OrderFold
from ..domain.subscriptions import grace_end, has_dispute, period_end
from ..engine.sandbox import Sandbox
from ..kernel.clock import iso, parse_iso
from ..kernel.money import cents
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
    """`look` yields one text per record looked at, empty when it keeps the law, and PAUSE in between."""

    name: str
    look: Look


def _each(judge: Judge, *tables: str) -> Look:
    """The law that a judge finds nothing wrong with any record of these tables."""

    def look(inspected: Inspected) -> Iterator[str | None]:
        for table in tables:
            for row in inspected.rows(inspected.store.tables[table]):
                fault = judge(inspected, row)
                yield f"{table[:-1]} {row.id} {fault}" if fault else fault

    return look


def _figures(inspected: Inspected) -> Iterator[str | None]:
    """What each project shows is what its orders, plans and subscriptions add up to."""
    store, lifecycle = inspected.store, inspected.lifecycle("Order")
    running = inspected.lifecycle("Subscription").sets["running"]
    orders: defaultdict[str, OrderFold] = defaultdict(lambda: OrderFold(lifecycle))
    plans = Counter[str]()
    ever, live = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in store.orders.all_rows():
        orders[row.hidden["projectId"]].add(row)
        yield PAUSE
    for row in store.plans.all_rows():
        plans[row.public["projectId"]] += 1
    for row in store.subscriptions.all_rows():
        project, customer = row.public["projectId"], row.public["customerId"]
        ever[project].add(customer)
        if row.public["status"] in running:
            live[project].add(customer)
        yield PAUSE
    for row in store.projects.all_rows():
        shown = store.shown_row(store.projects, row)
        expected = {
            "orders_count": orders[row.id].orders()["total"],
            "total_revenue": orders[row.id].revenue()["net"],
            "plans_count": plans[row.id],
            "active_subscribers": len(live[row.id]),
            "total_subscribers": len(ever[row.id]),
        }
        wrong = [f"{name} {shown[name]}, not {number}" for name, number in expected.items() if shown[name] != number]
        yield f"project {row.id} shows {', '.join(wrong)}" if wrong else ""


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


def _order(inspected: Inspected, row: Row) -> str:
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


def _subscription(inspected: Inspected, row: Row) -> str:
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
    if status == "past_due" and end > inspected.sandbox.clock.now:
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
    Law("Every project shows what its orders, plans and subscriptions add up to", _figures),
    Law("Every order's plan belongs to its project", _each(_plan_of_project, "orders", "subscriptions")),
    Law(
        "Every paid PIX order has an end-to-end id, and every order expires when its payment does",
        _each(_payments, "orders"),
    ),
    Law("Every order's payment agrees with its status", _each(_order, "orders")),
    Law("Every subscription's periods and orders agree with its status", _each(_subscription, "subscriptions")),
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
)


# -- checking them


def broken(sandbox: Sandbox) -> Iterator[str]:
    """What breaks laws in a sandbox that came from a file, of all its merchants."""
    for store in sandbox.stores.values():
        for law in LAWS:
            found = law.look(Inspected(sandbox, store))
            yield from (f"{law.name}: {violation}" for violation in found if violation)


def checking(sandbox: Sandbox) -> Generator[None, None, list[Body]]:
    """Check all laws on the seeded merchant's records, with a pause after each. The sandbox must not change meanwhile.

    Of each law the result says how many records were `checked`.
    """
    inspected = Inspected(sandbox, sandbox.store)
    checks = []
    for number, law in enumerate(LAWS, start=1):
        checked = 0
        violations: list[str] = []
        for violation in law.look(inspected):
            yield
            if violation is not PAUSE:
                checked += 1
                if violation and len(violations) < SHOWN:
                    violations.append(violation)
        result = {"id": number, "name": law.name, "ok": not violations}
        checks.append(result | {"checked": checked, "violations": violations})
    return checks
