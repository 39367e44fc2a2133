"""A refused request on its way to one that succeeds: as repairs have made it so far, and what they
may look at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from ...contract.document import JSON, Operation
from ...contract.source import Json
from ...core.clock import DAY, iso
from ...core.problem import Refusal
from ...core.record import Body, Row
from ...core.slices import at_once
from ...engine.sandbox import Sandbox
from ...engine.tables.query import Query, select
from ...engine.tables.store import Store
from ...engine.tables.table import Table
from ..journal.entries import brief
from ..layers.inside import Question
from .mending import ABSENT, Mender
from .rehearsal import Rehearsal

BEFORE = "before"
_LOOKED_AT = 50  # records of a table, the newest first
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
"""Which table the record of a path's parameter is in."""


@dataclass
class Situation:
    """One request and its refusal. `copy` is a copy of the sandbox after the calls that come
    `before`.

    `changes` are those of the request, by their place: `path`, or `body.customer.name`. `rules` are
    the contract's by error code.
    """

    mender: Mender
    rehearsal: Rehearsal
    copy: Sandbox
    merchant_id: str
    question: Question
    refusal: Refusal
    rules: Json
    before: list[Question] = field(default_factory=list)
    changes: dict[str, Body] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.document = self.mender.document
        self.operations, self.values = self.document.routed(self.question.path)
        """The operations of the path by method, and the values of its parameters; of an unknown
        path none.
        """

    @property
    def operation(self) -> Operation:
        """The operation that is called; HEAD calls that of GET."""
        return self.operations["GET" if self.question.method == "HEAD" else self.question.method]

    @property
    def later(self) -> str:
        """A date-time that ends nothing."""
        return iso(self.copy.clock.now + 365 * DAY)

    # -- the request

    @property
    def body(self) -> Any:
        """The body as JSON; `ABSENT` where there is none, or none that can be read."""
        try:
            return orjson.loads(self.question.body)
        except ValueError:
            return ABSENT

    def member(self, name: str) -> Any:
        """A member of the body; None where it has none."""
        body = self.body
        if not isinstance(body, dict):
            return None
        return body.get(name)

    def change(self, place: str, given: Any, made: Any, why: str, **parts: Any) -> None:
        """Note that a value becomes another one, and replace `path`, `query`, `headers` or `body`
        (bytes) for it.
        """
        if given != made:
            change = self.changes.setdefault(place, changed(place, given, made, why))
            change["to"] = _shown(made)
            self.question = self.question._replace(**parts)

    def set_header(self, name: str, value: str | None, why: str) -> None:
        """Replace a header, whose name is in lower case; None leaves it out."""
        headers = dict(self.question.headers)
        given = headers.pop(name, None)
        if value is not None:
            headers[name] = value
        self.change(f"header.{name.title()}", given, value, why, headers=headers)

    def send_json(self, body: Any) -> None:
        """Replace the body by JSON."""
        self.question = self.question._replace(body=orjson.dumps(body))
        if "content-type" not in self.question.headers:
            self.set_header("content-type", JSON, "Bodies are JSON, in UTF-8.")

    def set_member(self, name: str, value: Any, why: str) -> None:
        """Replace a member of the body, or add it."""
        body = self.body
        if not isinstance(body, dict):
            body = {}
        self.change(f"body.{name}", body.get(name, ABSENT), value, why)
        self.send_json(body | {name: value})

    def drop_member(self, path: str, why: str) -> None:
        """Leave out a member such as `customer.type`, if the body has it."""
        body = node = self.body
        *above, name = path.split(".")
        for step in above:
            if not isinstance(node, dict):
                return
            node = node.get(step)
        if isinstance(node, dict) and name in node:
            self.change(f"body.{path}", node.pop(name), ABSENT, why)
            self.send_json(body)

    # -- records

    @property
    def store(self) -> Store:
        """The records of the merchant, in the copy."""
        return self.copy.store_of(self.merchant_id)

    def newest(self, table: Table) -> list[Row]:
        """The newest records of a table, at most fifty."""
        found, _ = at_once(select(table, Query(limit=_LOOKED_AT)))
        return list(map(table.parse, found))

    def table(self, parameter: str) -> Table | None:
        """The table of the records that a path's parameter names, if it names records."""
        return self.store.tables.get(TABLES.get(parameter, ""))

    @property
    def target(self) -> Row | None:
        """The record in the path."""
        for name, value in self.values.items():
            table = self.table(name)
            if table is not None:
                return table.open(value.lower())
        return None

    # -- calls that come first

    def call_first(self, why: str, operation: Operation, values: dict[str, str], body: Any) -> None:
        """Make a call before the request, with its credential."""
        headers = {"authorization": self.question.headers["authorization"]}
        raw = b""
        if body is not ABSENT:
            headers["content-type"] = JSON
            raw = orjson.dumps(body)
        call = Question(operation.method, operation.at_ids(values), "", headers, raw)
        self.before.append(call)
        text = f"{call.method} {call.path} {raw.decode()}".rstrip()
        self.changes[f"{BEFORE} {len(self.before)}"] = changed(BEFORE, None, text, why)


def changed(where: str, given: Any, made: Any, why: str) -> Body:
    """A change as it is shown; `where` is the place in the request, or `before` for a call that is
    made first.
    """
    return {"where": where, "from": _shown(given), "to": _shown(made), "why": why}


def _shown(value: Any) -> Any:
    return None if value is ABSENT else brief(value)
