"""Fills the examples of the contract with a sandbox's own records: each answer is the one to the request of its name.

Requests are sent to a copy of the sandbox. One that it would refuse, or answer otherwise than the contract shows, is
repaired or aimed at another record. Where none is found, request and answer stay those of the contract.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import orjson

from ..calls.call import CONTROL, Call
from ..contract.document import JSON, Document, Operation
from ..contract.source import Json, nodes
from ..engine.sandbox import Sandbox
from ..http.inside import Question
from ..store.memory import Store
from .attempt import TABLES, Attempt
from .mending import ABSENT, Mender
from .rehearsal import Rehearsal
from .search import Search

_NEWEST = 16  # records that a request is aimed at
_OF_A_STATE = 4  # the same, of each state of a lifecycle
_SHARED = re.compile(r'"#/components/examples/([^"]+)"')
_VARIANTS = {"ApiKeyWithSecret": "ApiKey", "WebhookWithKey": "Webhook", "WebhookLog": "WebhookLogEntry"}
"""Schemas of records that show more than the one of their table."""
_ABOUT = {"orderId", "subscriptionId", "customerId"}
"""The parameters of controls that concern a record: the others change sandboxes, or reach out."""


async def fill(call: Call, raw: Json, *, mender: Mender, rehearsal: Rehearsal, is_control: bool) -> None:
    """Fill a contract whose examples name ids of the sandbox. `mender` is that of the API."""
    copy = rehearsal.copy_of(call.sandbox)
    headers = {"authorization": f"Bearer {call.server.ready_token(call.sandbox)}", "content-type": JSON}
    filling = _Filling(mender, rehearsal, copy, Document(raw), headers, call.prefix, is_control)
    for operation in filling.document.operations.values():
        exchanges = filling.exchanges(operation)
        had = [name for name, exchange in exchanges.items() if await filling.has(operation, exchange)]
        for name in exchanges.keys() - had if had else ():  # the others say what the sandbox has not
            filling.leave_out(operation, name)
    for name, item in raw.get("x-webhooks", {}).items():
        media = item["post"]["requestBody"]["content"][JSON]
        if "example" in media:
            media["example"] = filling.filled(media["schema"], media["example"], name.rpartition(".")[2])
    shown = raw["components"].get("examples", {})
    used = set(_SHARED.findall(orjson.dumps([raw["paths"], raw["components"].get("responses")]).decode()))
    for name in shown.keys() - used:  # each operation has its own by now
        del shown[name]


@dataclass(frozen=True)
class _Exchange:
    """A request of the contract and the answer of the same name: their examples, which are changed in place."""

    answer: Json
    schema: Json
    ids: dict[str, Json] = field(default_factory=dict)
    query: dict[str, Json] = field(default_factory=dict)
    body: Json | None = None

    @property
    def values(self) -> dict[str, str]:
        return {name: str(example["value"]) for name, example in self.ids.items()}

    @property
    def sent(self) -> Any:
        return ABSENT if self.body is None else self.body["value"]

    def become(self, values: dict[str, str], sent: Any, answer: Any) -> None:
        """Show another request and its answer."""
        self.answer["value"] = answer
        for name, value in values.items():
            self.ids[name]["value"] = value
        if self.body is not None:
            self.body["value"] = sent


@dataclass
class _Filling:
    """One contract on its way."""

    mender: Mender
    rehearsal: Rehearsal
    copy: Sandbox
    document: Document
    headers: dict[str, str]
    prefix: str
    is_control: bool

    @property
    def store(self) -> Store:
        return self.copy.store

    # -- what the contract shows

    def exchanges(self, operation: Operation) -> dict[str, _Exchange]:
        """The exchanges to have with the sandbox by name, with examples that are shared with no other operation."""
        raw = operation.raw
        parameters = [self.document.resolve(parameter) for parameter in raw.get("parameters", ())]
        ids = {each["name"]: self._examples(each) for each in parameters if each["in"] == "path"}
        query = {each["name"]: self._examples(each) for each in parameters if each["in"] == "query"}
        bodies = self._examples(self._json(raw.get("requestBody")))
        answers = {name: pair for status in operation.successes for name, pair in self._answers(raw, status)}
        if self.is_control and not _ABOUT & ids.keys():
            return {}
        return {
            name: _Exchange(answer, schema, _of(name, ids), _of(name, query), bodies.get(name))
            for name, (answer, schema) in answers.items()
            if not bodies or name in bodies
        }

    def leave_out(self, operation: Operation, name: str) -> None:
        """Show no example of this name for an operation."""
        raw = operation.raw
        shown = [self.document.resolve(parameter) for parameter in raw.get("parameters", ())]
        shown += [self._json(raw.get("requestBody"))]
        shown += [self._json(raw["responses"][str(status)]) for status in operation.successes]
        for node in shown:
            node.get("examples", {}).pop(name, None)

    def _answers(self, raw: Json, status: int) -> Iterator[tuple[str, tuple[Json, Json]]]:
        content = self._json(raw["responses"][str(status)])
        for name, example in self._examples(content).items():
            yield name, (example, content.get("schema", {}))

    def _json(self, message: Json) -> Json:
        return (self.document.resolve(message) or {}).get("content", {}).get(JSON, {})

    def _examples(self, node: Json) -> dict[str, Json]:
        """The examples of a parameter or a body by name, from here on its own and shared with no other."""
        shown = node.get("examples", {})
        for name, example in shown.items():
            shown[name] = dict(self.document.resolve(example))
        return {name: example for name, example in shown.items() if "value" in example}

    # -- what the sandbox answers

    async def has(self, operation: Operation, exchange: _Exchange) -> bool:
        """Have an exchange be one with the sandbox. False if that has none that shows what the contract shows."""
        for values in self._aims(operation, exchange):
            if await self._become(operation, exchange, values, exchange.sent):
                return True
            if operation.method != "GET" and not self.is_control and values == exchange.values:
                body = await self._mended(operation, values, exchange.sent)
                if body is not None and await self._become(operation, exchange, values, body):
                    return True
        return False

    async def _become(self, operation: Operation, exchange: _Exchange, values: dict[str, str], body: Any) -> bool:
        question = self._question(operation, values, body, {key: of["value"] for key, of in exchange.query.items()})
        copy = self.copy if operation.method == "GET" else self.rehearsal.copy_of(self.copy)
        found = await self.rehearsal.ask(copy, question, self.prefix)
        if not isinstance(found, bytes) or not found:
            return False
        shown, answer = exchange.answer["value"], orjson.loads(found)
        if not isinstance(shown, dict) or not isinstance(answer, dict):  # an overlay may describe other answers
            return False
        if answer.get("message") != shown.get("message") or (_rows(shown) and not _rows(answer)):
            return False
        if not self._is_alike(exchange.schema, shown, answer):
            return False
        exchange.become(values, body, self._without_secrets(exchange.schema, shown, answer))
        return True

    def _question(self, operation: Operation, values: dict[str, str], body: Any, query: Json) -> Question:
        path = (CONTROL if self.is_control else "") + operation.at_ids(values)
        sent = b"" if body is ABSENT else orjson.dumps(body)
        return Question(operation.method, path, urlencode(query), self.headers, sent)

    async def _mended(self, operation: Operation, values: dict[str, str], body: Any) -> Any:
        """A body with which the request succeeds alone; None where none was found."""
        attempt = Attempt(self._question(operation, values, body, {}))
        search = Search(self.mender, self.rehearsal, self.store.merchant.id, attempt)
        found = await search.nearest(attempt, self.rehearsal.copy_of(self.copy))
        if found is None or found.before or found.question.path != attempt.question.path:
            return None
        return found.body

    # -- what is alike

    def _is_alike(self, schema: Json, shown: Any, made: Any) -> bool:
        """Whether an answer has records in the states that the contract shows."""
        if isinstance(shown, list) and isinstance(made, list):
            items = self.document.resolve(schema).get("items", {})
            states = {self._state(items, each) for each in shown}
            return len(states) != 1 or states >= {self._state(items, each) for each in made}
        if not isinstance(shown, dict) or not isinstance(made, dict):
            return True
        if self._state(schema, shown) != self._state(schema, made):
            return False
        members = self.document.resolve(schema).get("properties", {})
        both = shown.keys() & made.keys() & members.keys()
        return all(self._is_alike(members[name], shown[name], made[name]) for name in both)

    def _state(self, schema: Json, value: Any) -> Any:
        """The state of a record in an answer; None for what is no record with a lifecycle."""
        lifecycle = self.document.lifecycles.get(self._record(schema))
        return None if lifecycle is None or not isinstance(value, dict) else value.get(lifecycle.field)

    def _record(self, schema: Json) -> str:
        """The schema of records that a reference names."""
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return _VARIANTS.get(name, name)

    def _without_secrets(self, schema: Json, shown: Any, made: Any) -> Any:
        """An answer with the secrets that the contract shows in place of its own, and without any other."""
        if isinstance(made, list):
            items = self.document.resolve(schema).get("items", {})
            first = shown[0] if isinstance(shown, list) and shown else None
            return [self._without_secrets(items, first, each) for each in made]
        if not isinstance(made, dict):
            return made
        members = self.document.resolve(schema).get("properties", {})
        written = shown if isinstance(shown, dict) else {}
        kept = {}
        for name, value in made.items():
            below = members.get(name, {})
            if value is None or self.document.resolve(below).get("x-secret") is not True:
                kept[name] = self._without_secrets(below, written.get(name), value)
            elif name in written:
                kept[name] = written[name]
        return kept

    # -- records

    def _aims(self, operation: Operation, exchange: _Exchange) -> list[dict[str, str]]:
        """Ids for the path, the best first: what is read should be like what the contract shows.

        What changes a record begins elsewhere than where the contract shows it to end, so those of the contract go
        first. They name records that were chosen for it.
        """
        values = exchange.values
        found = [values]
        for parameter in values.keys() & TABLES.keys():
            table, fixed = TABLES[parameter], self._fixed(exchange, parameter)
            alike = self._alike(table, fixed, values[parameter])
            found = [values | {parameter: ident} for ident in alike if ident not in self._ended]
        if operation.method == "GET":
            return found
        return [values, *(each for each in found if each != values)]

    @cached_property
    def _ended(self) -> set[str]:
        """Records that an example deletes: sent one after the other, none would find another one's record gone."""
        return {
            example["value"]
            for operation in self.document.operations.values()
            if operation.method == "DELETE"
            for parameter in map(self.document.resolve, operation.raw.get("parameters", ()))
            if parameter["in"] == "path"
            for example in self._examples(parameter).values()
        }

    def _fixed(self, exchange: _Exchange, parameter: str) -> Json:
        """The record of a parameter that the contract shows in the answer; an empty one if it shows none."""
        ident = exchange.ids[parameter]["value"]
        inside = (node for _, node in nodes([exchange.answer["value"]]) if isinstance(node, dict))
        return next((node for node in inside if node.get("id") == ident), {})

    def _alike(self, table: str, fixed: Json, first: str) -> list[str]:
        """Records of a table: those most like a fixed one in what a schema lists, of those `first`, then the newest."""
        rows = self.store.tables[table]
        keys = list(reversed(rows.order[-_NEWEST:]))
        lifecycle = self.document.lifecycles.get(rows.spec.schema)
        if lifecycle is not None and lifecycle.field in rows.spec.indexes:
            for state in lifecycle.states:
                keys += reversed(list(rows.bucket(lifecycle.field, state))[-_OF_A_STATE:])
        idents = dict.fromkeys([first, *(rows.rows[key].id for key in keys)])
        names = [name for name, member in self._members(rows.spec.schema).items() if "enum" in member]

        def likeness(ident: str) -> int:
            record = rows.peek(ident) or {}
            return sum(record.get(name) == fixed.get(name) for name in names)

        return sorted(idents, key=likeness, reverse=True)

    def _members(self, schema: str) -> dict[str, Json]:
        properties = self.document.raw["components"]["schemas"].get(schema, {}).get("properties", {})
        return {name: self.document.resolve(member) for name, member in properties.items()}

    # -- payloads of events

    def filled(self, schema: Json, value: Any, what: str) -> Any:
        """A payload with a record of the sandbox in the place of its own; `what` happened to it."""
        if not isinstance(value, dict):
            return value
        members = self.document.resolve(schema).get("properties", {})
        name = self._record(schema)
        table = self._tables.get(name)
        if table is None:
            return {key: self.filled(members.get(key, {}), item, what) for key, item in value.items()}
        rows = self.store.tables[table]
        idents = self._alike(table, value, str(value.get("id")))
        found = [record for ident in idents if (record := rows.find(ident)) is not None]
        same = [record for record in found if rows.parse(record).public.get("status") == value.get("status")]
        lifecycle = self.document.lifecycles.get(name)
        if lifecycle is None or what not in lifecycle.states:  # else it is named for the state
            same += found
        return orjson.loads(self.store.shown(rows, same[0])) if same else value

    @cached_property
    def _tables(self) -> dict[str, str]:
        return {spec.schema: table for table, spec in self.copy.rules.layout.tables.items()}


def _of(name: str, examples: dict[str, dict[str, Json]]) -> dict[str, Json]:
    """By parameter, the example of this name."""
    return {parameter: named[name] for parameter, named in examples.items() if name in named}


def _rows(answer: Json) -> list[Json]:
    """The records of a page; none of what is no page."""
    body = answer.get("data", answer)
    if not isinstance(body, dict) or "pagination" not in body:
        return []
    return next((item for item in body.values() if isinstance(item, list)), [])
