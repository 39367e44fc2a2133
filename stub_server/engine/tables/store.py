"""The in-memory store of one merchant: nine tables, and the counters that they feed."""

from collections.abc import Collection
from dataclasses import dataclass

import orjson

from ...core.money import reais
from ...core.record import Body, Record, Row
from .specs import Layout
from .table import Table, encoded

Usage = tuple[int, str]
"""How many requests of a key were authenticated, and when the last one was."""
UNUSED: Usage = (0, "")


def restriction(projects: Collection[str]) -> str:
    """The projects that a key is restricted to, as a customer keeps those of the key that
    created it.
    """
    return ",".join(sorted(projects))


MOST_MERCHANTS = 100  # of a sandbox


@dataclass(frozen=True, slots=True)
class Merchant:
    """Who owns a store.

    `user_id` is the person behind it: the subject of its tokens, the creator of its projects.
    """

    id: str
    user_id: str
    name: str
    city: str
    created_at: str


class Store:
    """One merchant's records, and how its API keys were used.

    Keys in `unrecorded` were used since the last step; it has what that knew.
    """

    api_keys: Table
    customers: Table
    projects: Table
    plans: Table
    products: Table
    orders: Table
    subscriptions: Table
    webhooks: Table
    webhook_logs: Table

    def __init__(self, merchant: Merchant, layout: Layout) -> None:
        self.merchant = merchant
        self.usage: dict[str, Usage] = {}
        self.unrecorded: dict[str, Usage | None] = {}
        self._layout = layout
        self.tables: dict[str, Table] = {}
        for name, spec in layout.tables.items():
            self.tables[name] = Table(name, spec, layout.checks[spec.schema])
        self._name_tables()

    def _name_tables(self) -> None:
        """Have each table as an attribute of its name."""
        for name, table in self.tables.items():
            setattr(self, name, table)

    # -- reading what a caller sees

    def shown(self, name: str, record: Record) -> bytes:
        """The public bytes of a table's record, its live members (counters and mirrors) as they are
        now.
        """
        table = self.tables[name]
        if table.is_plain:
            return record.public
        row = Row(name, record, orjson.loads(record.public), {})
        now = self.shown_row(row)
        if table.spec.live:
            table.validate(now)
        return record.public if now is row.public else encoded(now)

    def shown_row(self, row: Row) -> Body:
        """A row's public part with its live members; a mirror of a record that was deleted is as it
        was last written.
        """
        public = row.public
        spec = self.tables[row.table].spec
        if spec.live:
            return public | self._counters(row)
        for name in spec.mirrors:
            now = self.tables[f"{name}s"].peek(public[f"{name}Id"])
            if now is None:
                continue
            shown = {member: now[member] for member in public[name]}
            if shown == public[name] or (name == "customer" and self.has_copy_only(row)):
                continue
            public = public | {name: shown}
        return public

    # -- customers that keys of some projects see

    def sees_customer(self, projects: Collection[str], ident: str) -> bool:
        """Whether a key that is restricted to these projects sees a customer.

        It does if one of them has an order of theirs, or if a key with the same restriction created
        them.
        """
        for project in projects:
            if ident in self.orders.members("customers", project):
                return True
        return self.customers.is_in(ident, "made_by", [restriction(projects)])

    def has_copy_only(self, subscription: Row) -> bool:
        """Whether keys of a subscription's project see no more of its customer than what its first
        order says.
        """
        order = self.orders.open(subscription["orderId"])
        # it is in the same draft, so that the subscription says what it may of the customer
        if order is None:
            return True
        if not order["copy_only"]:
            return False
        return subscription["customerId"] not in self.orders.members(
            "customers", subscription["projectId"]
        )

    def _counters(self, row: Row) -> Body:
        """The live members of a record: what other records add up to."""
        ident = row.id
        if row.table == "api_keys":
            count, last = self.usage.get(ident, UNUSED)
            return {"usage_count": count, "last_used_at": last or None}
        if row.table == "plans":
            if row["billing_type"] == "one_time":
                return {"subscribers_count": len(self.orders.members("plan_buyers", ident))}
            return {"subscribers_count": self.running("planId", ident)}
        return {
            "plans_count": self.plans.count("projectId", ident),
            "orders_count": self.orders.count("projectId", ident),
            "total_revenue": reais(
                self.orders.total("gross", ident) - self.orders.total("refunded", ident)
            ),
            "total_subscribers": len(self.subscriptions.members("subscribers", ident)),
            "active_subscribers": len(self.subscriptions.members("active_subscribers", ident)),
        }

    def running(self, index: str, ident: str) -> int:
        """How many subscriptions of a plan (`planId`) or a project (`projectId`) are in a
        running state.
        """
        return sum(
            [
                self.subscriptions.count(f"{index}+status", (ident, status))
                for status in self._layout.running
            ]
        )

    def running_of(self, customer_id: str, plan_id: str) -> Row | None:
        """The running subscription of a customer to a plan; there are never two."""
        table = self.subscriptions
        for key in reversed(table.bucket("customerId+planId", (customer_id, plan_id))):
            record = table.rows[key]
            if table.is_in(
                record.id, "planId+status", [(plan_id, state) for state in self._layout.running]
            ):
                return table.parse(record)
        return None

    def is_sold_out(self, plan: Body, customer_id: str | None) -> bool:
        """Whether a plan has no seat for a customer; None is a customer who is not known yet.

        A seat is a running subscription or, on a one-time plan, a paid order; an open first order
        holds one. Nobody takes two.
        """
        most = plan["max_subscribers"]
        ident = plan["id"]
        if most is None:
            return False
        seated = self.subscriptions.members("plan_subscribers", ident)
        if plan["billing_type"] == "one_time":
            seated = self.orders.members("plan_buyers", ident)
        waiting = self.orders.members("plan_waiting", ident)
        if customer_id in seated or customer_id in waiting:
            return False
        return bool(len(seated) + len(waiting.keys() - seated.keys()) >= most)

    def set_usage(self, ident: str, usage: Usage | None) -> None:
        """Have a key been used so often; None forgets it."""
        if usage is None:
            self.usage.pop(ident, None)
        else:
            self.usage[ident] = usage

    def forget_unrecorded(self) -> None:
        """Have keys been used as often as the newest step says."""
        for ident, before in self.unrecorded.items():
            self.set_usage(ident, before)
        self.unrecorded = {}

    def use_key(self, ident: str, at: str) -> None:
        """Count one authenticated request of an API key: a counter beside the record, which the
        next step records.
        """
        before = self.usage.get(ident)
        self.unrecorded.setdefault(ident, before)
        self.usage[ident] = ((before or UNUSED)[0] + 1, at)

    # -- writing, which only the fold of a step does

    def replace(self, name: str, before: Row | None, after: Row | None) -> None:
        """Store a version of a table in place of the one before; None where there is none."""
        table = self.tables[name]
        if table.readers:
            table = self.tables[name] = table.copy()
            self._name_tables()
        table.replace(before, after)

    def adopt(self, other: "Store") -> None:
        """Have all that another store of the same merchant has, which nobody uses any more."""
        self.tables = other.tables
        self.usage = other.usage
        self.unrecorded = {}
        self._name_tables()

    def copy(self) -> "Store":
        """An independent copy. Tables are shared until one of the two writes to them."""
        twin = Store.__new__(Store)
        twin.merchant = self.merchant
        twin._layout = self._layout
        twin.tables = dict(self.tables)
        for table in self.tables.values():
            table.readers += 1
        twin.usage = dict(self.usage)
        twin.unrecorded = dict(self.unrecorded)
        twin._name_tables()
        return twin

    def counts(self) -> dict[str, int]:
        """How many records each table has."""
        return {name: len(table) for name, table in self.tables.items()}
