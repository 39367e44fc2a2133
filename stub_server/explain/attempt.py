"""A request that may succeed, how it differs from what was sent, and what a repair is given to change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from ..contract.document import Document, Operation
from ..engine.sandbox import Sandbox
from ..http.inside import Question
from ..kernel.clock import iso
from ..kernel.record import Row
from ..store.memory import Store
from ..store.query import Query, select
from ..store.table import Table
from .mending import Change, Mender
from .rehearsal import Answer, Rehearsal

BEFORE = "before"
NOTHING = object()  # as a body: none is sent


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request on its way to one that succeeds. It never changes: repairs make new ones."""

    question: Question
    before: tuple[Question, ...] = ()
    changes: tuple[Change, ...] = field(default=())

    @property
    def body(self) -> Any:
        """The body as JSON; `NOTHING` where there is none, or none that can be read."""
        try:
            return orjson.loads(self.question.body)
        except ValueError:
            return NOTHING

    def member(self, *path: str) -> Any:
        """A member of the body; None where it has none."""
        node = self.body
        for step in path:
            if not isinstance(node, dict):
                return None
            node = node.get(step)
        return None if node is NOTHING else node

    def with_changes(self, changes: Sequence[Change]) -> Attempt:
        """The same with further changes listed. A change replaces an earlier one at the same place."""
        kept = list(self.changes)
        for change in changes:
            earlier = next((c for c in kept if c.where == change.where and c.where != BEFORE), None)
            if earlier is not None:
                kept[kept.index(earlier)] = change._replace(from_=earlier.from_, why=earlier.why)
            else:
                kept.append(change)
        return replace(self, changes=tuple(c for c in kept if c.where == BEFORE or c.from_ != c.to))

    def asking(self, *changes: Change, **parts: Any) -> Attempt:
        """With other parts of the request: `method`, `path`, `query`, `headers` or `body` (bytes)."""
        return replace(self, question=self.question._replace(**parts)).with_changes(changes)

    def with_header(self, name: str, value: str, why: str) -> Attempt:
        """With another value of a header; its name is in lower case."""
        change = Change(f"header.{name.title()}", self.question.headers.get(name), value, why)
        return self.asking(change, headers={**self.question.headers, name: value})

    def with_body(self, body: Any, *changes: Change) -> Attempt:
        """With another body, which is JSON."""
        headers = {**self.question.headers, "content-type": "application/json"}
        return self.asking(*changes, body=orjson.dumps(body), headers=headers)

    def with_member(self, path: Sequence[str], value: Any, why: str) -> Attempt:
        """With another value of one member of the body."""
        body = self.body
        whole = node = dict(body) if isinstance(body, dict) else {}
        for step in path[:-1]:
            inner = node.get(step)
            node[step] = dict(inner) if isinstance(inner, dict) else {}
            node = node[step]
        change = Change(f"body.{'.'.join(path)}", node.get(path[-1]), value, why)
        node[path[-1]] = value
        return self.with_body(whole, change)

    def without_members(self, names: Sequence[str], why: str) -> Attempt:
        """Without some members of the body."""
        body = {name: value for name, value in self.body.items() if name not in names}
        return self.with_body(body, *(Change(f"body.{name}", self.body[name], None, why) for name in names))

    def after(self, call: Question, why: str) -> Attempt:
        """With a call made first."""
        shown = f"{call.method} {call.path}{' ' + call.body.decode() if call.body else ''}"
        return replace(self, before=(*self.before, call)).with_changes((Change(BEFORE, None, shown, why),))


class Routed(NamedTuple):
    """The operations of a path by method, and the values of its parameters."""

    operations: dict[str, Operation]
    values: dict[str, str]


def routed(document: Document, path: str) -> Routed | None:
    """The operations that a path has; a literal segment wins over a parameter. None for an unknown path."""
    segments = path.split("/")
    templates = [operation.path.split("/") for operation in document.operations.values()]
    found = [parts for parts in templates if _fits(parts, segments)]
    if not found:
        return None
    best = max(found, key=lambda parts: [not part.startswith("{") for part in parts])
    operations = {o.method: o for o in document.operations.values() if o.path == "/".join(best)}
    values = {part[1:-1]: given for part, given in zip(best, segments, strict=True) if part.startswith("{")}
    return Routed(operations, values)


def _fits(parts: list[str], segments: list[str]) -> bool:
    pairs = zip(parts, segments, strict=False)
    return len(parts) == len(segments) and all(
        bool(given) if part.startswith("{") else part == given for part, given in pairs
    )


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
    """One refusal on the way. `copy` is a copy of the sandbox after the calls before."""

    mender: Mender
    document: Document
    rehearsal: Rehearsal
    copy: Sandbox
    merchant_id: str
    attempt: Attempt
    answer: Answer

    @property
    def store(self) -> Store:
        """The merchant's records."""
        return self.copy.store_of(self.merchant_id)

    @property
    def now(self) -> str:
        """The time of the sandbox, as a date-time."""
        return iso(self.copy.clock.now)

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
        path = operation.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", value)
        return Question(operation.method, path, "", headers, raw)

    def after(self, why: str, *calls: Question | None) -> Iterator[Attempt]:
        """The attempt with calls before it, where the contract has them all."""
        made = self.attempt
        for call in calls:
            if call is None:
                return
            made = made.after(call, why)
        yield made
