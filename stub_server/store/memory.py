"""The in-memory store of one merchant: nine tables, written one whole change at a time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from ..kernel.money import reais
from ..kernel.record import Body, Change, Record, Row, exact
from .table import Check, Table
from .tables import LIVE_SUBSCRIPTION, TABLES


@dataclass(frozen=True, slots=True)
class Merchant:
    """Who owns a store. `user_id` is the person behind it: the subject of its tokens, the creator of its projects."""

    id: str
    user_id: str
    name: str
    city: str
    created_at: str


class Store:
    """One merchant's records. Every write goes through `write`, which does all of a change or nothing of it."""

    def __init__(self, merchant: Merchant, checks: Mapping[str, Check]) -> None:
        """`checks` holds each schema name's contract check."""
        self.merchant = merchant
        self._checks = checks
        self.tables = {name: Table(name, spec, checks[spec.schema]) for name, spec in TABLES.items()}
        self.usage: dict[str, tuple[int, str]] = {}
        self.callers: dict[str, Any] = {}  # API keys as callers, remembered by whoever authenticates
        self.listeners: dict[
            Any, Any
        ] = {}  # who wants which events, remembered by whoever tells them, until one changes
        self._bind()

    def _bind(self) -> None:
        tables = self.tables
        self.api_keys, self.customers, self.projects = tables["api_keys"], tables["customers"], tables["projects"]
        self.plans, self.products, self.orders = tables["plans"], tables["products"], tables["orders"]
        self.subscriptions, self.webhooks = tables["subscriptions"], tables["webhooks"]
        self.webhook_logs = tables["webhook_logs"]
        self._live: dict[str, Callable[[str], Body]] = {
            "projects": self._project_counters,
            "plans": self._plan_counters,
            "api_keys": self._key_counters,
        }

    # -- reading what a caller sees

    def shown(self, table: Table, record: Record) -> bytes:
        """A record's public bytes, its live members (counters) as they are now."""
        if not table.spec.live:
            return record.json
        known = table.shown.get(record.id)
        if known is None:
            public = orjson.loads(record.json) | self._live[table.name](record.id)
            self._checks[table.spec.schema](public)
            known = table.shown[record.id] = exact(orjson.dumps(public))
        return known

    def shown_row(self, table: Table, row: Row) -> Body:
        """A row's public part with its live members."""
        return row.public | self._live[table.name](row.id) if table.spec.live else row.public

    def _project_counters(self, ident: str) -> Body:
        return {
            "plans_count": self.plans.count("projectId", ident),
            "orders_count": self.orders.count("projectId", ident),
            "total_revenue": reais(self.orders.total("gross", ident) - self.orders.total("refunded", ident)),
            "total_subscribers": self.subscriptions.members("subscribers", ident),
            "active_subscribers": self.subscriptions.members("active_subscribers", ident),
        }

    def _plan_counters(self, ident: str) -> Body:
        return {"subscribers_count": self.running("planId", ident)}

    def _key_counters(self, ident: str) -> Body:
        count, last = self.usage.get(ident, (0, ""))
        return {"usage_count": count, "last_used_at": last or None}

    def running(self, index: str, ident: str) -> int:
        """How many subscriptions of a plan (`planId`) or a project (`projectId`) are trialing, active or past due."""
        count = self.subscriptions.count
        return sum([count(f"{index}+status", (ident, status)) for status in LIVE_SUBSCRIPTION])

    def use_key(self, ident: str, at: str) -> None:
        """Count one authenticated request of an API key: a counter beside the record, not a change of it."""
        self.usage[ident] = (self.usage.get(ident, (0, ""))[0] + 1, at)
        self.api_keys.shown.pop(ident, None)

    # -- writing

    def write(self, change: Change) -> dict[str, Record]:
        """Store a change whole. Answers the new versions by id.

        Raises before anything is written: the contract's check (a defect of ours), or `Taken`.
        """
        tables = self.tables
        prepared = [
            (tables[name], tables[name].prepare(ident, public, hidden, before), public, hidden, before)
            for name, ident, public, hidden, before in change.puts
        ]
        written: dict[str, Record] = {}
        for table, record, public, hidden, before in prepared:
            table.put(record, public, hidden, before)
            written[record.id] = record
            self._moved(table, public, hidden)
            if before is not None:
                self._moved(table, before.public, before.hidden)
            if table.spec.ring is not None and len(table) > table.spec.ring:
                table.settle()
                table.drop(table.parse(table.rows[table.order[0]]))
        for name, row in change.drops:
            table = tables[name]
            table.drop(row)
            self._moved(table, row.public, row.hidden)
        return written

    def add(self, name: str, ident: str, public: Body, hidden: Body, at: int) -> None:
        """Store one new record, made at `at` (ms), while many are loaded; checked as `write` checks it."""
        table = self.tables[name]
        table.enter(table.prepare(ident, public, hidden, None, at), public, hidden)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Many new records at once: checked and found by id and unique key as ever, in lists when the block ends."""
        for table in self.tables.values():
            table.loading = True
        try:
            yield
        finally:
            for table in self.tables.values():
                table.settle()
                table.sorts.settle()
                table.loading = False
                table.shown.clear()  # counters have moved

    def _moved(self, table: Table, public: Body, hidden: Body) -> None:
        """What was remembered of records that this one feeds or, as a webhook, listens to is out of date."""
        for name, ident_of in table.touches:
            shown = self.tables[name].shown
            if shown:
                shown.pop(ident_of(public, hidden), None)
        if table is self.webhooks:
            self.listeners.clear()

    def copy(self) -> "Store":
        """The same records, going their own way."""
        twin = Store.__new__(Store)
        twin.merchant, twin._checks = self.merchant, self._checks
        twin.tables = {name: table.copy() for name, table in self.tables.items()}
        twin.usage, twin.callers, twin.listeners = dict(self.usage), {}, {}
        twin._bind()
        return twin

    def counts(self) -> dict[str, Any]:
        """How many records each table has."""
        return {name: len(table) for name, table in self.tables.items()}
