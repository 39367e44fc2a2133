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

SHOWN = 20  # violations of a law
MOST_REAIS = 1e10  # of a record: sums of more cents are no numbers of 64 bits
_AMOUNTS = {"orders": "totalAmount", "plans": "amount", "subscriptions": "amount"}
_PAYMENTS = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}
"""The states of the payment of an order in a state; in others both have the same name."""


class Inspected:
    """The records of a merchant, with what they have shown so far, and the laws, each of which
    says what is wrong with a record, after its kind and id; an empty text if nothing is.

    `sums` and `members` are what projects have to show, by project and figure.
    """

    def __init__(self, sandbox: Sandbox, store: Store) -> None:
        self._store = store
        self._now = sandbox.clock.now
        self._settled = sandbox.rules.lifecycles["Order"].sets["settled"]
        self._running = sandbox.rules.lifecycles["Subscription"].sets["running"]
        self._ids = set[str]()
        self._subscribers: dict[tuple[str, str], str] = {}
        self._sums = Counter[tuple[str, str]]()
        self._members = defaultdict[tuple[str, str], set[str]](set)

    def figures(self, row: Row) -> str:
        """What each project shows is what its orders, plans and subscriptions add up to, which are
        met before it.
        """
        if row.table == "projects":
            return self._shown(row)
        project = row["projectId"]
        self._sums[project, row.table] += 1
        if row.table == "orders":
            self._sums[project, "cents"] += left(row)
        elif row.table == "subscriptions":
            self._members[project, "total"].add(row["customerId"])
            if row.status in self._running:
                self._members[project, "active"].add(row["customerId"])
        return ""

    def _shown(self, project: Row) -> str:
        ident = project.id
        sums = self._sums
        members = self._members
        expected = {
            "orders_count": sums[ident, "orders"],
            "total_revenue": reais(sums[ident, "cents"]),
            "plans_count": sums[ident, "plans"],
            "active_subscribers": len(members[ident, "active"]),
            "total_subscribers": len(members[ident, "total"]),
        }
        shown = self._store.shown_row(project)
        for name, number in expected.items():
            if shown[name] != number:
                return f"shows {name} {shown[name]}, not {number}"
        return ""

    def plan_of_project(self, row: Row) -> str:
        plan = self._store.plans.peek(row["planId"])
        # the project of a deleted plan is unknown
        if plan is not None and plan["projectId"] != row["projectId"]:
            return "has a plan of another project"
        return ""

    def order(self, row: Row) -> str:
        """What contradicts an order's status."""
        payment = row["last_transaction"]
        status = row.status
        settled = status in self._settled
        if payment["status"] not in _PAYMENTS.get(status, (status,)):
            return f"is {status}, its payment {payment['status']}"
        paid = row["paid_cents"]
        back = row["refunded_cents"]
        if settled != (row["paid_at"] is not None):
            return f"is {status} and was paid at {row['paid_at']}"
        if paid != (cents(row["totalAmount"]) if settled else 0):
            return f"is {status} and was paid with {paid} cents"
        if not 0 <= back <= paid or (status == "refunded") != (0 < back == paid):
            return f"is {status} with {back} cents refunded"
        if settled and row["paymentMethod"] == "pix" and "end_to_end_id" not in payment:
            return f"is {status} without end_to_end_id"
        if status == "expired" and row["updatedAt"] != payment.get("expires_at"):
            return f"expired at {row['updatedAt']}, not at its expires_at"
        return ""

    def subscription(self, row: Row) -> str:
        """What contradicts a subscription's status."""
        orders = self._store.orders
        status = row.status
        order = orders.open(row["orderId"])
        if (status in self._running) != (row["ended_at"] is None):
            return f"is {status} and ended at {row['ended_at']}"
        if order is None or order["subscriptionId"] != row.id or order["renewal"]:
            return "has no first order that refers to it"
        if self._store.customers.find(row["customerId"]) is None:
            return "has no customer"
        paid = row["cycle"] + 1
        left_over = len(row["paid_by"])
        if not 1 <= left_over <= paid or len(row["ends"]) != left_over:
            return f"has {paid} paid periods, {left_over} of them not over yet"
        end = iso(period_end(row))
        if row["current_period_end"] not in (end, row["trial_end"]):
            return f"its period ends at {row['current_period_end']}, not at {end}"
        for ident in row["dispute"]["orders"] if has_dispute(row) else ():
            disputed = orders.open(ident)
            if disputed is None or disputed.status != "disputed":
                return f"waits for the dispute of order {ident}, which is not disputed"
        return ""

    def one_each(self, row: Row) -> str:
        if row.status not in self._running:
            return ""
        other = self._subscribers.setdefault((row["customerId"], row["planId"]), row.id)
        if other == row.id:
            return ""
        return f"and subscription {other} are of the same customer and plan"

    def times(self, row: Row) -> str:
        if row.id in self._ids:
            return "has the id of another record"
        self._ids.add(row.id)
        created = row[self._store.tables[row.table].spec.created]
        updated = row.public.get("updatedAt", created)
        if parse_iso(created) <= parse_iso(updated) <= self._now:
            return ""
        return f"was created at {created}, changed {updated}, now is {iso(self._now)}"

    def contract(self, row: Row) -> str:
        name = _AMOUNTS.get(row.table)
        if name is not None and row[name] >= MOST_REAIS:
            return f"has a {name} of {row[name]}"
        try:
            self._store.tables[row.table].validate(self._store.shown_row(row))
        except Exception as error:  # the check may raise anything, and all of it is a violation
            return f"does not fit: {error}"
        return ""


class Law(NamedTuple):
    """`tables` are those whose records are judged, all if there are none."""

    name: str
    judge: Callable[[Inspected, Row], str]
    tables: tuple[str, ...] = ()


LAWS = (
    Law(
        "Every project shows what its orders, plans and subscriptions add up to",
        Inspected.figures,
        ("orders", "plans", "subscriptions", "projects"),
    ),
    Law(
        "Every order's plan belongs to its project",
        Inspected.plan_of_project,
        ("orders", "subscriptions"),
    ),
    Law("Every order's payment agrees with its status", Inspected.order, ("orders",)),
    Law(
        "Every subscription's periods and orders agree with its status",
        Inspected.subscription,
        ("subscriptions",),
    ),
    Law(
        "No customer has two running subscriptions of the same plan",
        Inspected.one_each,
        ("subscriptions",),
    ),
    Law(
        "Ids are unique, and no record was changed before its creation or in the future",
        Inspected.times,
    ),
    Law("Every record matches the contract", Inspected.contract),
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
                fault = law.judge(inspected, row)
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
    checked = Counter[Law]()
    violations = defaultdict[Law, list[str]](list)
    for law, violation in _judged(sandbox, sandbox.store):
        yield
        checked[law] += 1
        if violation and len(violations[law]) < SHOWN:
            violations[law].append(violation)
    found = []
    for number, law in enumerate(LAWS, start=1):
        found.append(
            {
                "id": number,
                "name": law.name,
                "ok": not violations[law],
                "checked": checked[law],
                "violations": violations[law],
            }
        )
    return found
