"""Fills the examples of the contract with a sandbox's own records, and has each example of a request succeed there.

An answer that reads is the sandbox's own; in every other answer, and in the payloads of webhooks, the records are those
of the sandbox, whole. A request that the sandbox would refuse is repaired, or aimed at another record.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import orjson

from ..calls.call import Call
from ..contract.document import JSON, Document, Operation
from ..contract.source import Json, nodes
from ..engine.sandbox import Sandbox
from ..http.inside import Question
from ..store.memory import Store
from .attempt import TABLES, Attempt
from .mending import ABSENT, Mender
from .rehearsal import Rehearsal
from .search import Search

_MOST_TRIED = 32  # other records that a request is aimed at
_SHARED = re.compile(r'"#/components/examples/([^"]+)"')
_VARIANTS = {"ApiKeyWithSecret": "ApiKey", "WebhookWithKey": "Webhook", "WebhookLog": "WebhookLogEntry"}
"""Schemas of records that show more than the one of their table."""


async def fill(call: Call, raw: Json, *, mender: Mender, rehearsal: Rehearsal, is_control: bool) -> None:
    """Fill a contract whose examples name ids of the sandbox. The control contract's requests are not rehearsed.

    `mender` is that of the API.
    """
    copy = rehearsal.copy_of(call.sandbox)
    headers = {"authorization": f"Bearer {call.server.ready_token(call.sandbox)}", "content-type": JSON}
    filling = _Filling(mender, rehearsal, copy, Document(raw), headers, call.prefix)
    for operation in filling.document.operations.values():
        await filling.operation(operation, is_control=is_control)
    for item in raw.get("x-webhooks", {}).values():
        media = item["post"]["requestBody"]["content"][JSON]
        if "example" in media:
            media["example"] = filling.filled(media["schema"], media["example"], {})
    shown = raw["components"].get("examples", {})
    used = set(_SHARED.findall(orjson.dumps([raw["paths"], raw["components"].get("responses")]).decode()))
    for name in shown.keys() - used:  # each operation has its own by now
        del shown[name]


@dataclass
class _Filling:
    """One contract on its way."""

    mender: Mender
    rehearsal: Rehearsal
    copy: Sandbox
    document: Document
    headers: dict[str, str]
    prefix: str

    @property
    def store(self) -> Store:
        return self.copy.store

    # -- one operation

    async def operation(self, operation: Operation, *, is_control: bool) -> None:
        """Fill the examples of an operation: of its request first, as they say which records the answers are about."""
        raw = operation.raw
        parameters = [self.document.resolve(parameter) for parameter in raw.get("parameters", ())]
        in_path = [found for found in parameters if found["in"] == "path"]
        ids = {found["name"]: self._valued(found) for found in in_path}
        answers = list(self._answers(raw))
        if operation.method == "GET" and not is_control:
            for name, example, _ in answers:
                await self._read(operation, {key: of[name] for key, of in ids.items() if name in of}, example)
            return
        bodies = self._valued((self.document.resolve(raw.get("requestBody")) or {}).get("content", {}).get(JSON, {}))
        about: dict[str, dict[str, str]] = {}
        for name in bodies or next(iter(ids.values()), {}) or {"": {}}:
            values = {key: of[name]["value"] for key, of in ids.items() if name in of}
            body = bodies[name]["value"] if name in bodies else ABSENT
            found = None if is_control else await self._succeeding(operation, values, body)
            if found is not None:
                values, body = found
                for key, value in values.items():
                    ids[key][name]["value"] = value
                if name in bodies:
                    bodies[name]["value"] = body
            about[name] = {TABLES[key]: value for key, value in values.items() if key in TABLES}
        for name, example, schema in answers:
            example["value"] = self.filled(schema, example["value"], about.get(name, {}))

    def _answers(self, raw: Json) -> Iterator[tuple[str, Json, Json]]:
        for status, response in raw["responses"].items():
            content = self.document.resolve(response).get("content", {}).get(JSON, {})
            if str(status).startswith("2"):
                for name, example in self._valued(content).items():
                    yield name, example, content.get("schema", {})

    def _valued(self, node: Json) -> dict[str, Json]:
        """The examples of a parameter or a body by name, from here on its own and shared with no other."""
        shown = node.get("examples", {})
        for name, example in shown.items():
            shown[name] = dict(self.document.resolve(example))
        return {name: example for name, example in shown.items() if "value" in example}

    # -- what reads

    async def _read(self, operation: Operation, ids: dict[str, Json], example: Json) -> None:
        for parameter, of in ids.items():
            inside = (node for _, node in nodes([example["value"]]) if isinstance(node, dict))
            fixed = next((node for node in inside if node.get("id") == of["value"]), None)
            if fixed is not None and parameter in TABLES:
                of["value"] = self._chosen(TABLES[parameter], fixed) or of["value"]
        path = operation.at_ids({parameter: of["value"] for parameter, of in ids.items()})
        for query in self._queries(operation, example["value"]):
            question = Question("GET", path, query, self.headers)
            answer = await self.rehearsal.ask(self.copy, question, self.prefix)
            if isinstance(answer, bytes):
                example["value"] = orjson.loads(answer)
                if _rows(example["value"]):
                    return

    def _queries(self, operation: Operation, value: Json) -> Iterator[str]:
        """Queries for as many records as the example shows: first for records in their state, if they share one."""
        named = {parameter.name for parameter in operation.parameters}
        rows = _rows(value)
        limit = {"limit": len(rows)} if rows and "limit" in named else {}
        states = {row.get("status") for row in rows if isinstance(row, dict)}
        states -= {None} if "status" in named else states
        if len(states) == 1:
            yield urlencode(limit | {"status": states.pop()})
        yield urlencode(limit)

    # -- what changes something

    async def _succeeding(
        self, operation: Operation, values: dict[str, str], body: Any
    ) -> tuple[dict[str, str], Any] | None:
        """Ids in the path and a body with which a request succeeds alone; None where none were found."""
        attempt = self._attempt(operation, values, body)
        search = Search(self.mender, self.rehearsal, self.store.merchant.id, attempt)
        found = await search.nearest(attempt, self.rehearsal.copy_of(self.copy))
        if found is not None and not found.before and found.question.path == attempt.question.path:
            return values, found.body
        known = (parameter for parameter in values if parameter in TABLES)
        others = (values | {parameter: ident} for parameter in known for ident in self._newest(TABLES[parameter]))
        for other in islice(others, _MOST_TRIED):  # the same request about other records, the newest first
            question = self._attempt(operation, other, body).question
            if isinstance(await self.rehearsal.ask(self.rehearsal.copy_of(self.copy), question), bytes):
                return other, body
        return None

    def _attempt(self, operation: Operation, values: dict[str, str], body: Any) -> Attempt:
        sent = b"" if body is ABSENT else orjson.dumps(body)
        return Attempt(Question(operation.method, operation.at_ids(values), "", self.headers, sent))

    # -- records

    def filled(self, schema: Json, value: Any, about: Mapping[str, str]) -> Any:
        """A value with whole records of the sandbox in the places of its own; `about` are ids by table."""
        if isinstance(value, list):
            items = self.document.resolve(schema).get("items", {})
            return [self.filled(items, item, about) for item in value]
        if not isinstance(value, dict):
            return value
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        members = self.document.resolve(schema).get("properties", {})
        table = self._tables.get(_VARIANTS.get(name, name))
        if table is None:
            return {key: self.filled(members.get(key, {}), item, about) for key, item in value.items()}
        record = self.store.tables[table].find(about.get(table) or self._chosen(table, value) or "")
        if record is None:
            return value
        secrets = {key for key in members if self.document.resolve(members[key]).get("x-secret") is True}
        shown: Json = orjson.loads(self.store.shown(self.store.tables[table], record))
        return {key: value[key] for key in secrets & value.keys()} | shown

    @cached_property
    def _tables(self) -> dict[str, str]:
        return {spec.schema: table for table, spec in self.copy.rules.layout.tables.items()}

    def _chosen(self, table: str, fixed: Json) -> str | None:
        """The record for a place: the one that is named there, else a newer one, in the state that is shown there."""
        rows, named, state = self.store.tables[table], fixed.get("id"), fixed.get("status")
        public = rows.peek(named) if isinstance(named, str) else None
        if public is None or public.get("status") != state:
            alike = rows.bucket("status", state) if state is not None and "status" in rows.spec.indexes else ()
            if alike:
                return rows.rows[alike[-1]].id
        return next(self._newest(table), None) if public is None else named

    def _newest(self, table: str) -> Iterator[str]:
        rows = self.store.tables[table]
        return (rows.rows[key].id for key in reversed(rows.order))


def _rows(value: Any) -> list[Any]:
    """The records of a list; none of what is no list."""
    body = value.get("data", value) if isinstance(value, dict) else {}
    rows = next((item for item in body.values() if isinstance(item, list)), []) if "pagination" in body else []
    return list(rows)
