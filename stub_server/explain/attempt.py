"""A request that may succeed, how it differs from what was sent, and what a repair is given to change it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson

from ..contract.document import JSON, Operation
from ..engine.sandbox import Sandbox
from ..http.inside import Question
from ..kernel.clock import iso
from ..kernel.problem import Refusal
from ..kernel.record import Body, Row
from ..store.memory import Store
from ..store.query import Query, select
from ..store.table import Table
from .mending import ABSENT, Mender
from .rehearsal import Rehearsal

BEFORE = "before"
_MOST = 200  # changes that are listed
_SHOWN = 400  # characters of a value that is shown in a change
_STEP = re.compile(r"(?:\.[^.]*|\[\d+\])$")


class Attempt(NamedTuple):
    """A request on its way to one that succeeds, after the calls `before`. It never changes: repairs make new ones.

    `why` has the reason of a change by its place: `path`, or `body.customer.name`.
    """

    question: Question
    before: tuple[tuple[Question, str], ...] = ()
    why: Mapping[str, str] = {}

    @property
    def body(self) -> Any:
        """The body as JSON; `ABSENT` where there is none, or none that can be read."""
        try:
            return orjson.loads(self.question.body)
        except ValueError:
            return ABSENT

    def member(self, *path: str) -> Any:
        """A member of the body; None where it has none."""
        node = self.body
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        return None if node is ABSENT else node

    def asking(self, why: Mapping[str, str], **parts: Any) -> Attempt:
        """With other parts of the request: `path`, `query`, `headers` or `body` (bytes). An earlier reason remains."""
        return self._replace(question=self.question._replace(**parts), why={**why, **self.why})

    def with_header(self, name: str, value: str, why: str) -> Attempt:
        """With another value of a header; its name is in lower case."""
        return self.asking({f"header.{name.title()}": why}, headers={**self.question.headers, name: value})

    def without_header(self, name: str, why: str) -> Attempt:
        """Without a header; its name is in lower case."""
        headers = {each: value for each, value in self.question.headers.items() if each != name}
        return self.asking({f"header.{name.title()}": why}, headers=headers)

    def with_body(self, body: Any, why: Mapping[str, str]) -> Attempt:
        headers = {"content-type": JSON, **self.question.headers}
        why = {"header.Content-Type": "Bodies are JSON, in UTF-8.", **why}
        return self.asking(why, body=orjson.dumps(body), headers=headers)

    def with_member(self, path: Sequence[str], value: Any, why: str) -> Attempt:
        body = self.body if isinstance(self.body, dict) else {}
        node = body
        for step in path[:-1]:
            node = node.setdefault(step, {})
        node[path[-1]] = value
        return self.with_body(body, {f"body.{'.'.join(path)}": why})

    def without_member(self, path: Sequence[str], why: str) -> Attempt:
        """Without a member of the body; the same where it has none."""
        body = node = self.body
        for step in path[:-1]:
            node = node.get(step) if isinstance(node, dict) else None
        if not isinstance(node, dict) or path[-1] not in node:
            return self
        del node[path[-1]]
        return self.with_body(body, {f"body.{'.'.join(path)}": why})

    def changes_from(self, sent: Attempt) -> list[Body]:
        """How the request differs from the one that was sent; the calls that are made first come first."""
        shown = [f"{call.method} {call.path}{' ' + call.body.decode() if call.body else ''}" for call, _ in self.before]
        calls = [changed(BEFORE, None, text, why) for text, (_, why) in zip(shown, self.before, strict=True)]
        given = sent.parts()
        found = ((name, given[name], part) for name, part in self.parts().items())
        differences = (each for name, *pair in found for each in _differences(name, *pair))
        return calls + [changed(*each, self._reason(each[0], each[1])) for each in islice(differences, _MOST)]

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

    @property
    def store(self) -> Store:
        return self.copy.store_of(self.merchant_id)

    @property
    def now(self) -> str:
        return iso(self.copy.clock.now)

    def __post_init__(self) -> None:
        self.document = self.mender.document
        self.operations, self.values = self.document.routed(self.attempt.question.path)
        """The operations of the path by method, and the values of its parameters; of an unknown path none."""

    @property
    def operation(self) -> Operation:
        method = self.attempt.question.method
        return self.operations["GET" if method == "HEAD" else method]

    @property
    def field(self) -> str:
        """The field that the refusal names first; empty where it names none."""
        return self.refusal.details[0]["field"] if self.refusal.details else ""

    # -- records

    def newest(self, table: Table, **equal: Any) -> list[Row]:
        found, _ = select(table, Query(equal=equal, limit=_LOOKED_AT))
        return [table.parse(record) for record in found]

    def table(self, parameter: str) -> Table | None:
        name = TABLES.get(parameter)
        return None if name is None else self.store.tables[name]

    @property
    def target(self) -> Row | None:
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
            headers["content-type"] = JSON
        raw = b"" if body is None else orjson.dumps(body)
        return Question(operation.method, operation.at_ids(values), "", headers, raw)

    def after(self, why: str, *calls: Question | None) -> Iterator[Attempt]:
        """The attempt with calls before it, where the contract has them all."""
        if None not in calls:
            made = tuple((call, why) for call in calls if call is not None)
            yield self.attempt._replace(before=(*self.attempt.before, *made))
