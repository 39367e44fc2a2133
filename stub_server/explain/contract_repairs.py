"""Repairs of requests that the contract does not accept: route, method, media type, JSON, parameters and body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from ..contract.document import Operation
from .attempt import NOTHING, Attempt, Change
from .mending import ABSENT, Mending, Unmendable
from .reading import guessed
from .routes import alike
from .situation import Situation

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_PARAMETER = "The contract does not accept the value."


def another_route(s: Situation) -> Iterator[Attempt]:
    """404: the path of which the one that was sent is most likely a slip.

    No other is tried: after "active" for "activate" would come "archive".
    """
    asked = s.attempt.question
    for _, path in alike(s.document, asked.method, asked.path)[:1]:
        yield s.attempt.asking(Change("path", asked.path, path, "The API has no such path."), path=path)


def as_json(s: Situation) -> Iterator[Attempt]:
    """400 and 415: the body as what it was probably meant to be, declared as JSON."""
    asked = s.attempt.question
    if not asked.body:  # a media type of no body
        headers = {name: value for name, value in asked.headers.items() if name != "content-type"}
        change = Change("header.Content-Type", asked.headers.get("content-type"), None, "There is no body.")
        yield s.attempt.asking(change, headers=headers)
    changes = []
    media = asked.headers.get("content-type")
    if s.answer.status == 415:
        changes.append(Change("header.Content-Type", media, "application/json", "Bodies are JSON, in UTF-8."))
    body = s.attempt.body
    if body is NOTHING:
        body = guessed(asked.body)
        text = asked.body.decode("utf-8", "replace")
        if isinstance(body, (dict, list)):
            yield s.attempt.with_body(
                body, *changes, Change("body", text, body, "It is no JSON; this is what it says.")
            )
        made = example_of(s.operation, s.mender.resolve)
        if made is not ABSENT:
            yield s.attempt.with_body(
                made, *changes, Change("body", text, made, "It is no JSON; the contract's example.")
            )
        return
    if s.answer.status == 400:  # nested too deep
        made = example_of(s.operation, s.mender.resolve)
        if made is not ABSENT:
            yield s.attempt.with_body(made, Change("body", body, made, "Too deep; the contract's example."))
        return
    yield s.attempt.with_body(body, *changes)


def without_impossible_wishes(s: Situation) -> Iterator[Attempt]:
    """400 of a header or query that cannot be read: nothing that is kept of the request can cause it."""
    yield s.attempt


def mended(s: Situation) -> Iterator[Attempt]:
    """422: query, headers and body as the contract has them, all violations at once."""
    raw = s.attempt.question.body
    if len(raw) > LARGEST or raw.count(b",") > WIDEST:
        return
    reasons = {f"{d['in']}.{d['field']}" if d["field"] != "body" else "body": d["message"] for d in s.answer.details}
    mending = Mending(s.mender, s.now, reasons)
    attempt = _with_parameters(s, mending)
    if s.operation.body is not None and (raw or s.operation.body_required):
        body = attempt.body
        try:
            made = mending.mend(
                s.operation.body, ABSENT if body is NOTHING else body, "body", example_of(s.operation, s.mender.resolve)
            )
        except Unmendable:
            return
        attempt = attempt.with_body(made)
    yield attempt.told(mending.changes)


def renamed_keys(s: Situation) -> Iterator[Attempt]:
    """409: maps whose keys OpenAPI 3.0 cannot forbid."""
    body = orjson.loads(s.attempt.question.body)
    changes = []
    for entry in s.answer.details:
        *way, last = entry["field"].split(".")
        node = body
        for step in way:
            node = node[step]
        old, node[last] = node[last], _keys_that_fit(node[last])
        changes.append(Change(f"body.{entry['field']}", old, node[last], entry["message"]))
    yield s.attempt.with_body(body, *changes)


def example_of(operation: Operation, resolve: Callable[[Any], Any]) -> Any:
    """The body of the contract's first example of a request; ABSENT where it has none."""
    content = (resolve(operation.raw.get("requestBody")) or {}).get("content", {}).get("application/json", {})
    for shown in (content.get("examples") or {}).values():
        shown = resolve(shown)
        if "value" in shown:
            return shown["value"]
    return content.get("example", ABSENT)


def _keys_that_fit(node: dict[str, Any]) -> dict[str, Any]:
    fitting: dict[str, Any] = {}
    for key, value in node.items():
        key = key.replace("\0", "")[:64] or "key"
        number = 1
        while key in fitting:
            number += 1
            key = f"{key[:60]}-{number}"
        fitting[key] = value
    return fitting


def _with_parameters(s: Situation, mending: Mending) -> Attempt:
    """The attempt with parameters that the contract accepts. One that cannot be mended is left out."""
    asked = s.attempt.question
    known = {p.name: p for p in s.operation.parameters if p.place == "query"}
    refused = {d["field"] for d in s.answer.details if d["in"] == "query" and d["code"] == "unknown_parameter"}
    sent: dict[str, str] = {}
    for name, text in parse_qsl(asked.query, keep_blank_values=True, errors="replace"):
        if name[:200] in refused:
            mending.changes.append(Change(f"query.{name}", text, None, "There is no such parameter."))
        elif name in sent and name in known:
            mending.changes.append(Change(f"query.{name}", [sent[name], text], text, "It is sent once."))
            sent[name] = text
        else:
            sent[name] = text
    for name, parameter in known.items():
        if name in sent or parameter.required:
            kept = _parameter(mending, s, parameter.schema, sent.get(name, ABSENT), f"query.{name}", parameter.required)
            sent.pop(name, None)
            if kept is not None:
                sent[name] = kept
    query = "&".join(f"{quote(name, safe='')}={quote(text, safe=':,')}" for name, text in sent.items())
    headers = dict(asked.headers)
    for parameter in s.operation.parameters:
        key = parameter.name.lower()
        if parameter.place == "header" and key in headers:
            kept = _parameter(mending, s, parameter.schema, headers.pop(key), f"header.{parameter.name}", False)
            if kept is not None:
                headers[key] = kept
    return s.attempt.asking(query=query if query or not asked.query else "", headers=headers)


def _parameter(mending: Mending, s: Situation, schema: Any, text: Any, place: str, required: bool) -> str | None:
    """A parameter's text as the contract has it."""
    resolved = s.mender.resolve(schema)
    value = _read(resolved, text) if isinstance(text, str) else text
    before = len(mending.changes)
    try:
        made = mending.mend(schema, value, place)
    except Unmendable:
        if required:
            return None
        mending.changes.append(Change(place, text, None, _PARAMETER))
        return None
    for number, change in enumerate(mending.changes[before:], before):  # as text, which it was
        mending.changes[number] = change._replace(from_=None if text is ABSENT else text)
    return {True: "true", False: "false"}[made] if isinstance(made, bool) else str(made)


def _read(schema: Any, text: str) -> Any:
    kind = schema.get("type")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind in ("integer", "number") and len(text) <= 40:
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
    return text
