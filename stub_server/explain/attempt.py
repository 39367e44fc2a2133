"""A request on its way to one that succeeds, how it differs from what was sent, and what a repair may look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ..contract.document import JSON, Operation
from ..contract.source import Json
from ..engine.sandbox import Sandbox
from ..http.inside import Question
from ..kernel.clock import DAY, iso
from ..kernel.problem import Refusal
from ..kernel.record import Body, Row
from ..store.memory import Store
from ..store.query import Query, select
from ..store.table import Table
from .mending import ABSENT, Mender
from .rehearsal import Rehearsal

BEFORE = "before"
_SHOWN = 400  # characters of a value that is shown in a change
_STEP = re.compile(r"(?:\.[^.]*|\[\d+\])$")


@dataclass
class Attempt:
    """The request as repairs have made it so far, and the calls that come before it, each with its reason.

    `why` has the reason of a change by its place: `path`, or `body.customer.name`.
    """

    question: Question
    before: list[tuple[Question, str]] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)

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
        return body.get(name) if isinstance(body, dict) else None

    def change(self, place: str, why: str, **parts: Any) -> None:
        """Replace parts of the request: `path`, `query`, `headers` or `body` (bytes). An earlier reason remains."""
        self.question = self.question._replace(**parts)
        self.why.setdefault(place, why)

    def set_header(self, name: str, value: str, why: str) -> None:
        """Replace a header; its name is in lower case."""
        self.change(f"header.{name.title()}", why, headers={**self.question.headers, name: value})

    def drop_header(self, name: str, why: str) -> None:
        headers = {each: value for each, value in self.question.headers.items() if each != name}
        self.change(f"header.{name.title()}", why, headers=headers)

    def set_body(self, body: Any, place: str, why: str) -> None:
        """Replace the body because of what is at a place."""
        self.change(place, why, body=orjson.dumps(body))
        if "content-type" not in self.question.headers:
            self.set_header("content-type", JSON, "Bodies are JSON, in UTF-8.")

    def set_member(self, name: str, value: Any, why: str) -> None:
        body = self.body if isinstance(self.body, dict) else {}
        self.set_body(body | {name: value}, f"body.{name}", why)

    def drop_member(self, path: str, why: str) -> None:
        """Leave out a member such as `customer.type`, if the body has it."""
        body = node = self.body
        *above, name = path.split(".")
        for step in above:
            node = node.get(step) if isinstance(node, dict) else None
        if isinstance(node, dict) and name in node:
            del node[name]
            self.set_body(body, f"body.{path}", why)

    def changes_from(self, sent: Attempt) -> list[Body]:
        """How the request differs from the one that was sent; the calls that are made first come first."""
        changes = []
        for call, why in self.before:
            body = f" {call.body.decode()}" if call.body else ""
            changes.append(changed(BEFORE, None, f"{call.method} {call.path}{body}", why))
        given = sent.parts()
        for name, part in self.parts().items():
            for place, old, new in _differences(name, given[name], part):
                changes.append(changed(place, old, new, self._reason(place, old)))
        return changes

    def parts(self) -> dict[str, Any]:
        """What of a request may be repaired. A parameter that is repeated has all its values."""
        asked, query = self.question, dict[str, Any]()
        for name, text in parse_qsl(asked.query, keep_blank_values=True, errors="replace"):
            query[name] = [query[name], text] if name in query else text
        headers = {name.title(): value for name, value in asked.headers.items() if name != "authorization"}
        body = self.body if self.body is not ABSENT else asked.body.decode("utf-8", "replace") or ABSENT
        return {"path": asked.path, "query": query, "body": body, "header": headers}

    def _reason(self, place: str, given: Any) -> str:
        default = "This is required." if given is ABSENT else "The contract does not accept the value."
        while place not in self.why and (shorter := _STEP.sub("", place)) != place:
            place = shorter
        return self.why.get(place, default)


def _differences(place: str, given: Any, made: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(given, dict) and isinstance(made, dict):
        for name in dict.fromkeys((*given, *made)):
            yield from _differences(f"{place}.{name}", given.get(name, ABSENT), made.get(name, ABSENT))
    elif isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        for number, pair in enumerate(zip(given, made, strict=True)):
            yield from _differences(f"{place}[{number}]", *pair)
    elif given != made or isinstance(given, bool) != isinstance(made, bool):
        yield place, given, made


def changed(where: str, given: Any, made: Any, why: str) -> Body:
    """A change as it is shown; `where` is the place in the request, or `before` for a call that is made first."""
    return {"where": where, "from": _short(given), "to": _short(made), "why": why}


def _short(value: Any) -> Any:
    """A value; a long one as the beginning of its text."""
    if value is ABSENT:
        return None
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # nested too deep to be written
        return "…"
    return value if len(text) <= _SHOWN else text[:_SHOWN] + "…"


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
    """One refusal on the way. `copy` is a copy of the sandbox after the calls before."""

    mender: Mender
    rehearsal: Rehearsal
    copy: Sandbox
    merchant_id: str
    attempt: Attempt
    refusal: Refusal
    rules: Json
    """By error code, as the contract has them."""

    @property
    def store(self) -> Store:
        return self.copy.store_of(self.merchant_id)

    @property
    def later(self) -> str:
        """A date-time that ends nothing."""
        return iso(self.copy.clock.now + 365 * DAY)

    def __post_init__(self) -> None:
        self.document = self.mender.document
        self.operations, self.values = self.document.routed(self.attempt.question.path)
        """The operations of the path by method, and the values of its parameters; of an unknown path none."""

    @property
    def operation(self) -> Operation:
        method = self.attempt.question.method
        return self.operations["GET" if method == "HEAD" else method]

    # -- records

    def newest(self, table: Table, **equal: Any) -> list[Row]:
        found, _ = select(table, Query(equal=equal, limit=_LOOKED_AT))
        return [table.parse(record) for record in found]

    def table(self, parameter: str) -> Table | None:
        name = TABLES.get(parameter)
        return None if name is None else self.store.tables[name]

    @property
    def target(self) -> Row | None:
        """The record in the path."""
        for name, value in self.values.items():
            table = self.table(name)
            if table is not None:
                return table.open(value.lower())
        return None

    # -- calls that come first

    def call_first(self, why: str, operation: Operation, values: dict[str, str], body: Any = ABSENT) -> None:
        """Make a call before the attempt, with its credential."""
        headers = {"authorization": self.attempt.question.headers["authorization"]}
        raw = b""
        if body is not ABSENT:
            headers["content-type"] = JSON
            raw = orjson.dumps(body)
        self.attempt.before.append((Question(operation.method, operation.at_ids(values), "", headers, raw), why))
