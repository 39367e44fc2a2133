"""What a repair is given: the attempt that was refused, the refusal, and the world as it stands then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import orjson

from ..contract.document import Document, Operation
from ..engine.sandbox import Sandbox
from ..kernel.clock import iso
from ..kernel.record import Row
from ..store.memory import Store
from ..store.query import Query, select
from ..store.table import Table
from .attempt import Attempt
from .mending import Mender
from .rehearsal import Answer, Question
from .routes import Routed, filled, routed

LOOKED_AT = 50  # records of a table, the newest first
_SIMILAR = 0.8
_LONGEST_ID = 80
TABLES = {
    "projectId": "projects",
    "planId": "plans",
    "productId": "products",
    "orderId": "orders",
    "customerId": "customers",
    "subscriptionId": "subscriptions",
    "apiKeyId": "api_keys",
    "webhookId": "webhooks",
    "logId": "webhook_logs",
}
"""Which table the record of a path's parameter, or of a member that refers to one, is in."""


@dataclass
class Situation:
    """One refusal on the way. `stage` is a copy of the world, in which the calls before have been made."""

    mender: Mender
    document: Document
    stage: Sandbox
    merchant_id: str
    attempt: Attempt
    answer: Answer

    @property
    def store(self) -> Store:
        """The merchant's records."""
        return self.stage.store_of(self.merchant_id)

    @property
    def now(self) -> str:
        """The world's time, as a date-time."""
        return iso(self.stage.clock.now)

    @cached_property
    def routed(self) -> Routed | None:
        """The operations of the path."""
        return routed(self.document, self.attempt.question.path)

    @cached_property
    def operation(self) -> Operation:
        """The operation that refused."""
        assert self.routed is not None
        method = self.attempt.question.method
        return self.routed.operations["GET" if method == "HEAD" else method]

    @property
    def values(self) -> dict[str, str]:
        """The values of the path's parameters."""
        return {} if self.routed is None else self.routed.values

    @property
    def field(self) -> str:
        """The field that the refusal names first; empty where it names none."""
        return self.answer.details[0]["field"] if self.answer.details else ""

    # -- records

    def newest(self, table: Table, limit: int = LOOKED_AT, **equal: Any) -> list[Row]:
        """The newest records of a table whose indexes have these values."""
        found, _ = select(table, Query(equal=dict(equal), limit=limit))
        return [table.parse(record) for record in found]

    def like(self, table: Table, ident: str) -> list[Row]:
        """Records of a table: one whose id is nearly the given one first, else the newest."""
        rows = self.newest(table)
        ident = ident[:_LONGEST_ID].lower()
        near = [row for row in rows if SequenceMatcher(None, row.id, ident).ratio() >= _SIMILAR]
        return near or rows

    def table(self, parameter: str) -> Table | None:
        """The table that a parameter's records are in."""
        name = TABLES.get(parameter)
        return None if name is None else self.store.tables[name]

    @property
    def target(self) -> Row | None:
        """The record that the path names."""
        for name, value in self.values.items():
            table = self.table(name)
            if table is not None:
                return table.open(value.lower())
        return None

    # -- requests

    def call(self, operation_id: str, values: dict[str, str], body: Any = None) -> Question | None:
        """A call to make first, with the credential of the attempt; None where the contract has no such operation."""
        operation = self.document.operations.get(operation_id)
        if operation is None:
            return None
        headers = {"authorization": self.attempt.question.headers["authorization"]}
        if body is not None:
            headers["content-type"] = "application/json"
        raw = b"" if body is None else orjson.dumps(body)
        return Question(operation.method, filled(operation.path, values), "", headers, raw)

    def after(self, why: str, *calls: Question | None) -> Iterator[Attempt]:
        """The attempt with calls before it, where the contract has them all."""
        made = self.attempt
        for call in calls:
            if call is None:
                return
            made = made.after(call, why)
        yield made
