"""The laws of a sandbox, and what checks them in one pass over its records.

They find what no rule expects of records that each match the contract: in a file, or by a defect.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..core.clock import iso, parse_iso
from ..core.money import cents, reais
from ..core.record import Body, Row
from ..core.slices import Sliced
from ..domain.payments import left
from ..domain.subscriptions import has_dispute, period_end
from .sandbox import Sandbox
from .tables.store import Store
from .tables.table import Table

SHOWN = 20  # violations of a law
_PAYMENTS = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}
"""The states of the payment of an order in a state; in others both have the same name."""


class Inspected:
    """The records of a merchant, and what laws about several of them have met so far.

    `sums` and `members` are what projects have to show, by project and figure.
    """

    def __init__(self, sandbox: Sandbox, store: Store) -> None:
        self.store, self.now = store, sandbox.clock.now
        self.settled = sandbox.rules.lifecycles["Order"].sets["settled"]
        self.running = sandbox.rules.lifecycles["Subscription"].sets["running"]
        self.ids = set[str]()
        self.subscribers: dict[tuple[str, str], str] = {}
        self.sums = Counter[tuple[str, str]]()
        self.members = defaultdict[tuple[str, str], set[str]](set)


Judge = Callable[[Inspected, Table, Row], str]
"""What is wrong with a record, after its kind and id; empty if nothing is."""


class Law(NamedTuple):
    """`tables` are those whose records are judged, all if there are none."""

    name: str
    judge: Judge
    tables: tuple[str, ...] = ()


def _figures(inspected: Inspected, table: Table, row: Row) -> str:
    """What each project shows is what its orders, plans and subscriptions add up to, which are met
    before it.
    """
    sums, members = inspected.sums, inspected.members
    project: str = (row.hidden | row.public).get("projectId", row.id)
    if table.name == "orders":
        sums[project, "orders"] += 1
        sums[project, "cents"] += left(row)
    elif table.name == "plans":
        sums[project, "plans"] += 1
    elif table.name == "subscriptions":
        members[project, "total"].add(row.public["customerId"])
        if row.status in inspected.running:
            members[project, "active"].add(row.public["customerId"])
    else:
        expected = {
            "orders_count": sums[row.id, "orders"],
            "total_revenue": reais(sums[row.id, "cents"]),
            "plans_count": sums[row.id, "plans"],
            "active_subscribers": len(members[row.id, "active"]),
            "total_subscribers": len(members[row.id, "total"]),
        }
        shown = inspected.store.shown_row(row)
        for name, number in expected.items():
            if shown[name] != number:
                return f"shows {name} {shown[name]}, not {number}"
    return ""


def _plan_of_project(inspected: Inspected, table: Table, row: Row) -> str:
    of = row.hidden | row.public
    plan = inspected.store.plans.peek(of["planId"])
    # the project of a deleted plan is unknown
    if plan is not None and plan["projectId"] != of["projectId"]:
        return "has a plan of another project"
    return ""


def _order(inspected: Inspected, table: Table, row: Row) -> str:
    """What contradicts an order's status; empty if nothing does."""
    order, hidden, payment = row.public, row.hidden, row.public["last_transaction"]
    status, settled = order["status"], order["status"] in inspected.settled
    if payment["status"] not in _PAYMENTS.get(status, (status,)):
        return f"is {status}, its payment {payment['status']}"
    paid, back = hidden["paid_cents"], hidden["refunded_cents"]
    if settled != (hidden["paid_at"] is not None):
        return f"is {status} and was paid at {hidden['paid_at']}"
    if paid != (cents(order["totalAmount"]) if settled else 0):
        return f"is {status} and was paid with {paid} cents"
    if not 0 <= back <= paid or (status == "refunded") != (0 < back == paid):
        return f"is {status} with {back} cents refunded"
    if settled and order["paymentMethod"] == "pix" and "end_to_end_id" not in payment:
        return f"is {status} without end_to_end_id"
    if status == "expired" and order["updatedAt"] != payment.get("expires_at"):
        return f"expired at {order['updatedAt']}, not at its expires_at"
    return ""


def _subscription(inspected: Inspected, table: Table, row: Row) -> str:
    """What contradicts a subscription's status; empty if nothing does."""
    public, hidden, store = row.public, row.hidden, inspected.store
    status, order = public["status"], store.orders.open(public["orderId"])
    if (status in inspected.running) != (public["ended_at"] is None):
        return f"is {status} and ended at {public['ended_at']}"
    if order is None or order.hidden["subscriptionId"] != row.id or order.hidden["renewal"]:
        return "has no first order that refers to it"
    if store.customers.find(public["customerId"]) is None:
        return "has no customer"
    paid, left_over = public["cycle"] + 1, len(hidden["paid_by"])
    if not 1 <= left_over <= paid or len(hidden["ends"]) != left_over:
        return f"has {paid} paid periods, {left_over} of them not over yet"
    end = iso(period_end(row))
    if public["current_period_end"] not in (end, public["trial_end"]):
        return f"its period ends at {public['current_period_end']}, not at {end}"
    for ident in hidden["dispute"]["orders"] if has_dispute(row) else ():
        disputed = store.orders.open(ident)
        if disputed is None or disputed.status != "disputed":
            return f"waits for the dispute of order {ident}, which is not disputed"
    return ""


def _one_each(inspected: Inspected, table: Table, row: Row) -> str:
    if row.status not in inspected.running:
        return ""
    kept = row.public["customerId"], row.public["planId"]
    other = inspected.subscribers.setdefault(kept, row.id)
    return "" if other == row.id else f"and subscription {other} are of the same customer and plan"


def _times(inspected: Inspected, table: Table, row: Row) -> str:
    if row.id in inspected.ids:
        return "has the id of another record"
    inspected.ids.add(row.id)
    created = parse_iso(row.public[table.spec.created])
    updated = parse_iso(row.public.get("updatedAt", iso(created)))
    if created <= updated <= inspected.now:
        return ""
    return f"was created at {iso(created)}, changed {iso(updated)}, now is {iso(inspected.now)}"


def _contract(inspected: Inspected, table: Table, row: Row) -> str:
    try:
        table.validate(inspected.store.shown_row(row))
    except Exception as error:  # the check may raise anything, and all of it is a violation
        return f"does not fit: {error}"
    return ""


LAWS = (
    Law(
        "Every project shows what its orders, plans and subscriptions add up to",
        _figures,
        ("orders", "plans", "subscriptions", "projects"),
    ),
    Law("Every order's plan belongs to its project", _plan_of_project, ("orders", "subscriptions")),
    Law("Every order's payment agrees with its status", _order, ("orders",)),
    Law(
        "Every subscription's periods and orders agree with its status",
        _subscription,
        ("subscriptions",),
    ),
    Law(
        "No customer has two running subscriptions of the same plan", _one_each, ("subscriptions",)
    ),
    Law("Ids are unique, and no record was changed before its creation or in the future", _times),
    Law("Every record matches the contract", _contract),
)


# -- checking them


def _judged(sandbox: Sandbox, store: Store) -> Iterator[tuple[Law, str]]:
    """Each record with each law about its kind, and what is wrong, if anything is."""
    inspected = Inspected(sandbox, store)
    # whose sums come last
    for table in sorted(store.tables.values(), key=lambda table: table.name == "projects"):
        laws = [law for law in LAWS if not law.tables or table.name in law.tables]
        for row in table.all_rows():
            for law in laws:
                fault = law.judge(inspected, table, row)
                yield law, f"{table.name[:-1]} {row.id} {fault}" if fault else ""


def broken(sandbox: Sandbox) -> Iterator[str]:
    """What breaks laws in a sandbox that came from a file, of all its merchants."""
    for store in sandbox.stores.values():
        for law, violation in _judged(sandbox, store):
            if violation:
                yield f"{law.name}: {violation}"


def checking(sandbox: Sandbox) -> Sliced[list[Body]]:
    """Check all laws on the seeded merchant's records, with a pause after each. The sandbox must
    not change meanwhile.

    Of each law the result says how many records were `checked`.
    """
    checked, violations = Counter[Law](), defaultdict[Law, list[str]](list)
    for law, violation in _judged(sandbox, sandbox.store):
        yield
        checked[law] += 1
        if violation and len(violations[law]) < SHOWN:
            violations[law].append(violation)
    found = []
    for number, law in enumerate(LAWS, start=1):
        report = {
            "id": number,
            "name": law.name,
            "ok": not violations[law],
            "checked": checked[law],
            "violations": violations[law],
        }
        found.append(report)
    return found
