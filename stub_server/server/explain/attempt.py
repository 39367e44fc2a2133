"""A refused request on its way to one that succeeds: as repairs have made it so far, and what they
may look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from ...contract.document import JSON, Operation
from ...contract.source import Json
from ...core.clock import DAY, iso
from ...core.problem import Refusal
from ...core.record import Body, Difference, Row, differences
from ...engine.sandbox import Sandbox
from ...engine.tables.store import Store
from ..layers.inside import Question
from .mending import Mender
from .rehearsal import Rehearsal

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
class Attempt:
    """One request and its refusal. `copy` is a copy of the sandbox after the calls that come
    `before`, each with why it is made.

    `request` has `method`, `path`, `query`, `header` and `body`, JSON or the bytes that are none.
    `reasons` say why a place such as `body.customer.name` was changed. `rules` are the contract's
    by error code.
    """

    mender: Mender
    rehearsal: Rehearsal
    copy: Sandbox
    merchant_id: str
    token: str
    request: Body
    refusal: Refusal
    rules: Json
    reasons: dict[str, str]
    before: list[tuple[Question, str]] = field(default_factory=list)

    @property
    def operations(self) -> dict[str, Operation]:
        """The operations of the path by method; of an unknown path none."""
        return self.mender.document.routed(self.request["path"])[0]

    @property
    def called_method(self) -> str:
        """The method of the operation that is called; HEAD calls that of GET."""
        method: str = self.request["method"]
        return "GET" if method == "HEAD" else method

    @property
    def operation(self) -> Operation:
        """The operation that is called."""
        return self.operations[self.called_method]

    @property
    def values(self) -> dict[str, str]:
        """The values of the path's parameters."""
        return self.mender.document.routed(self.request["path"])[1]

    @property
    def later(self) -> str:
        """A date-time that ends nothing."""
        return iso(self.copy.clock.now + 365 * DAY)

    @property
    def members(self) -> Body:
        """The members of the body; none of a body that is no object."""
        body = self.request.get("body")
        return body if isinstance(body, dict) else {}

    def question(self, request: Body) -> Question:
        """A request as it is sent, with the token."""
        query = {}
        for name, value in request["query"].items():
            is_text = isinstance(value, str | list)
            query[name] = value if is_text else orjson.dumps(value).decode()
        text = urlencode(query, doseq=True, safe=":,", quote_via=quote)
        headers = {name.lower(): value for name, value in request["header"].items()}
        headers["authorization"] = f"Bearer {self.token}"
        body = request.get("body", b"")
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return Question(request["method"], request["path"], text, headers, raw)

    def call_first(self, name: str, ident: str, **body: Any) -> None:
        """Make a call about one record before the request, because of what refuses it."""
        operation = self.mender.document.operations[name]
        call: Body = {"method": operation.method, "query": {}, "header": {}}
        call["path"] = operation.at_ids(dict.fromkeys(TABLES, ident))
        if body:
            call |= {"header": {"Content-Type": JSON}, "body": body}
        self.before.append((self.question(call), self.refusal.message))

    # -- records

    @property
    def store(self) -> Store:
        """The records of the merchant, in the copy."""
        return self.copy.store_of(self.merchant_id)

    def newest(self, name: str) -> list[Row]:
        """The newest records of a table, at most fifty."""
        table = self.store.tables[name]
        return [table.parse(table.rows[key]) for key in reversed(table.order[-_LOOKED_AT:])]

    @property
    def table(self) -> str | None:
        """The table of the record in the path."""
        return next((TABLES[name] for name in self.values if name in TABLES), None)

    @property
    def resource(self) -> str | None:
        """The schema of the record in the path."""
        return None if self.table is None else self.store.tables[self.table].spec.schema

    @property
    def target(self) -> Row | None:
        """The record in the path."""
        if self.table is None:
            return None
        return self.store.tables[self.table].open(next(iter(self.values.values())).lower())


def changes(given: Any, made: Any) -> Iterator[Difference]:
    """The places at which a request has been changed."""
    return differences(given, made, "", _is_same, in_full=True)


def _is_same(given: Any, made: Any) -> bool:
    return type(given) is type(made) and bool(given == made)
