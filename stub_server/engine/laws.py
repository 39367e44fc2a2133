"""The laws of a sandbox, and what checks them in one pass over its records."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..core.clock import iso, parse_iso
from ..core.money import cents
from ..core.record import Body, Row
from ..core.slices import Sliced
from ..domain.stats import OrderFold
from ..domain.subscriptions import grace_end, has_dispute, period_end
from .sandbox import Sandbox
from .tables.store import Store
from .tables.table import Table

SHOWN = 20  # violations of a law


class Inspected:
    """The records of a merchant, and what laws about several of them have met so far."""

    def __init__(self, sandbox: Sandbox, store: Store) -> None:
        self.sandbox, self.store, self.now = sandbox, store, sandbox.clock.now
        self._lifecycles = lifecycles = sandbox.rules.lifecycles
        self.ids = set[str]()
        self.running: dict[tuple[str, str], str] = {}
        # a function that knew `self` would keep the sandbox until a full garbage collection
        self.orders = defaultdict[str, OrderFold](lambda: OrderFold(lifecycles["Order"]))
        self.plans = Counter[str]()
        self.ever, self.live = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)

    def states(self, resource: str) -> Mapping[str, Sequence[str]]:
        """The named sets of the states of a resource."""
        return self._lifecycles[resource].sets

    def project_is(self, ident: str, *states: str) -> bool:
        """Whether a project is there and in one of these states."""
        project = self.store.projects.peek(ident)
        return project is not None and project["status"] in states


Judge = Callable[[Inspected, Table, Row], str | None]
"""What is wrong with a record, after its kind and id; empty if nothing is, None if the law does not
concern it.
"""


class Law(NamedTuple):
    """`tables` are those whose records are judged, all if there are none."""

    name: str
    judge: Judge
    tables: tuple[str, ...] = ()


def _figures(inspected: Inspected, table: Table, row: Row) -> str | None:
    """What each project shows is what its orders, plans and subscriptions add up to, which are met
    before it.
    """
    if table.name == "orders":
        inspected.orders[row.hidden["projectId"]].add(row)
        return None
    if table.name == "plans":
        inspected.plans[row.public["projectId"]] += 1
        return None
    if table.name == "subscriptions":
        project, customer = row.public["projectId"], row.public["customerId"]
        inspected.ever[project].add(customer)
        if row.public["status"] in inspected.states("Subscription")["running"]:
            inspected.live[project].add(customer)
        return None
    shown = inspected.store.shown_row(table, row)
    expected = {
        "orders_count": inspected.orders[row.id].orders()["total"],
        "total_revenue": inspected.orders[row.id].revenue()["net"],
        "plans_count": inspected.plans[row.id],
        "active_subscribers": len(inspected.live[row.id]),
        "total_subscribers": len(inspected.ever[row.id]),
    }
    wrong = []
    for name, number in expected.items():
        if shown[name] != number:
            wrong.append(f"{name} {shown[name]}, not {number}")
    if wrong:
        return f"shows {', '.join(wrong)}"
    return ""


def _plan_of_project(inspected: Inspected, table: Table, row: Row) -> str:
    of = row.hidden | row.public
    plan = inspected.store.plans.peek(of["planId"])
    # the project of a deleted plan is unknown
    if plan is not None and plan["projectId"] != of["projectId"]:
        return "has a plan of another project"
    return ""


def _pending_in_time(inspected: Inspected, table: Table, row: Row) -> str | None:
    if row.public["status"] not in inspected.states("Order")["payable"]:
        return None
    end = row.public["last_transaction"].get("expires_at")
    if end is None:
        return f"is {row.public['status']} and has no expiry"
    if parse_iso(end) <= inspected.now and not _waits(inspected, row.hidden):
        return f"is still {row.public['status']}, though it expired at {end}"
    return ""


def _waits(inspected: Inspected, order: Body) -> bool:
    """Whether an order is the renewal of a disputed subscription, or one in a suspended project,
    and waits with it.
    """
    if not order["renewal"]:
        return False
    found = inspected.store.subscriptions.open(order["subscriptionId"])
    if found is None:
        return False
    paused = inspected.states("Project")["paused"]
    return has_dispute(found.hidden) or inspected.project_is(order["projectId"], *paused)


def _order(inspected: Inspected, table: Table, row: Row) -> str:
    """What contradicts an order's status; empty if nothing does."""
    order, hidden, payment = row.public, row.hidden, row.public["last_transaction"]
    status = order["status"]
    expected = {"pending": ("waiting_payment",), "paid": ("paid", "partially_refunded")}.get(
        status, (status,)
    )
    if payment["status"] not in expected:
        return f"is {status}, its payment {payment['status']}"
    settled = status in inspected.states("Order")["settled"]
    if settled != (hidden["paid_at"] is not None) or settled != ("paid_at" in payment):
        return f"is {status} and was paid at {hidden['paid_at']}"
    if settled and not parse_iso(order["createdAt"]) <= hidden["paid_at"] <= inspected.now:
        return "was paid before it was placed, or in the future"
    if settled and hidden["paid_cents"] != cents(order["totalAmount"]):
        return f"was paid with {hidden['paid_cents']} cents"
    back = hidden["refunded_cents"]
    if not 0 <= back <= hidden["paid_cents"] or (status == "refunded") != (
        back > 0 and back == hidden["paid_cents"]
    ):
        return f"is {status} with {back} cents refunded"
    name = payment.get("end_to_end_id", "")
    if settled and order["paymentMethod"] == "pix" and not (len(name) == 32 and name.isalnum()):
        return f"is paid with end_to_end_id {name!r}"
    if status == "expired" and order["updatedAt"] != payment.get("expires_at", order["updatedAt"]):
        return f"expired at {order['updatedAt']}, not at {payment['expires_at']}"
    return ""


def _subscription(inspected: Inspected, table: Table, row: Row) -> str:
    """What contradicts a subscription's status; empty if nothing does."""
    public, store = row.public, inspected.store
    status = public["status"]
    ended = status not in inspected.states("Subscription")["running"]
    if ended != (public["ended_at"] is not None) or (
        ended and public["next_billing_at"] is not None
    ):
        return (
            f"is {status}, ended at {public['ended_at']}, next billing at"
            f" {public['next_billing_at']}"
        )
    order = store.orders.open(public["orderId"])
    if order is None or order.hidden["subscriptionId"] != row.id or order.hidden["renewal"]:
        return "has no first order that refers to it"
    if (
        store.customers.find(public["customerId"]) is None
        or public["customer"]["id"] != public["customerId"]
    ):
        return "has no customer"
    return _periods(inspected, row) or _disputes(store, row)


def _periods(inspected: Inspected, row: Row) -> str:
    public, hidden = row.public, row.hidden
    end = period_end(hidden)
    in_trial = (
        public["current_period_end"] == public["trial_end"] and public["trial_end"] is not None
    )
    if not in_trial and public["current_period_end"] != iso(end):
        return f"its period ends at {public['current_period_end']}, not at {iso(end)}"
    paid, left = public["cycle"] + 1, len(hidden["paid_by"])
    if not 1 <= left <= paid or len(hidden["ends"]) != left:
        return f"has {paid} paid periods, {left} of them not over yet"
    if public["status"] == "past_due" and end > inspected.now:
        return "is past due before its period is over"
    return ""


def _disputes(store: Store, row: Row) -> str:
    if not has_dispute(row.hidden):
        return ""
    for ident in row.hidden["dispute"]["orders"]:
        order = store.orders.open(ident)
        if (
            order is None
            or order.public["status"] != "disputed"
            or order.hidden["subscriptionId"] != row.id
        ):
            return (
                f"waits for the dispute of order {ident}, which is not one of its disputed orders"
            )
    return ""


def _moved_on(inspected: Inspected, table: Table, row: Row) -> str | None:
    """While its project is active, the clock moves a subscription on as soon as a period, trial or
    grace is over.
    """
    public, now = row.public, inspected.now
    if has_dispute(row.hidden) or not inspected.project_is(public["projectId"], "active"):
        return None
    start, end = public["current_period_start"], public["current_period_end"]
    if public["status"] == "active" and not start <= iso(now) < end:
        return f"is active from {start} to {end}, now is {iso(now)}"
    if public["status"] == "trialing" and parse_iso(public["trial_end"]) <= now:
        return f"is trialing, though its trial was over at {public['trial_end']}"
    if public["status"] == "past_due" and grace_end(public, row.hidden) <= now:
        return "is past due after its grace period"
    return ""


def _ended_without_bills(inspected: Inspected, table: Table, row: Row) -> str | None:
    ident, status = row.hidden["subscriptionId"], row.public["status"]
    if ident is None or status not in inspected.states("Order")["payable"]:
        return None
    found = inspected.store.subscriptions.peek(ident)
    if found is None or found["status"] in inspected.states("Subscription")["running"]:
        return ""
    return f"is {status}, its subscription {ident} is over"


def _one_each(inspected: Inspected, table: Table, row: Row) -> str | None:
    if row.public["status"] not in inspected.states("Subscription")["running"]:
        return None
    other = inspected.running.setdefault((row.public["customerId"], row.public["planId"]), row.id)
    if other == row.id:
        return ""
    return f"and subscription {other} are of the same customer and plan"


def _times(inspected: Inspected, table: Table, row: Row) -> str:
    if row.id in inspected.ids:
        return "has the id of another record"
    inspected.ids.add(row.id)
    created = updated = parse_iso(row.public[table.spec.created])
    if "updatedAt" in row.public:
        updated = parse_iso(row.public["updatedAt"])
    if created <= updated <= inspected.now:
        return ""
    return f"was created at {iso(created)}, changed {iso(updated)}, now is {iso(inspected.now)}"


def _contract(inspected: Inspected, table: Table, row: Row) -> str:
    try:
        table.validate(inspected.store.shown_row(table, row))
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
    Law("Ids are unique, and no record was changed before its creation or in the future", _times),
    Law("Every record matches the contract", _contract),
    Law("No ended subscription has an order that can be paid", _ended_without_bills, ("orders",)),
    Law("No order is pending after its expiry", _pending_in_time, ("orders",)),
    Law(
        "No customer has two running subscriptions of the same plan", _one_each, ("subscriptions",)
    ),
    Law(
        "In an active project, no period, trial or grace period of a subscription is over",
        _moved_on,
        ("subscriptions",),
    ),
)


# -- checking them


def _judged(sandbox: Sandbox, store: Store) -> Iterator[tuple[Law, str]]:
    """Each record with each law that concerns it, and what is wrong, if anything is."""
    inspected = Inspected(sandbox, store)
    # whose sums come last
    for table in sorted(store.tables.values(), key=lambda table: table.name == "projects"):
        laws = [law for law in LAWS if not law.tables or table.name in law.tables]
        for row in table.all_rows():
            for law in laws:
                fault = law.judge(inspected, table, row)
                if fault is not None:
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
    checked, violations = Counter[str](), defaultdict[str, list[str]](list)
    for law, violation in _judged(sandbox, sandbox.store):
        yield
        checked[law.name] += 1
        if violation and len(violations[law.name]) < SHOWN:
            violations[law.name].append(violation)
    found = []
    for number, law in enumerate(LAWS, start=1):
        report = {
            "id": number,
            "name": law.name,
            "ok": not violations[law.name],
            "checked": checked[law.name],
            "violations": violations[law.name],
        }
        found.append(report)
    return found
