"""Repairs of requests that the contract rejects: route, media type, JSON, parameters and body."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson
import yaml

from ..contract.document import Operation
from .attempt import NOTHING, Attempt, Situation
from .lookup import similar_paths
from .mending import ABSENT, WHY, Change, Mending, Unmendable

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_LONGEST = 4_096  # bytes that are guessed at: reading them another way is slow
_MEMBERS = 200
_TRAILING = re.compile(r",\s*([}\]])")
_BAD_NUMBERS = re.compile(r"\b(?:NaN|-?Infinity|undefined|None)\b")
_PYTHON = {"True": "true", "False": "false"}


def another_route(s: Situation) -> Iterator[Attempt]:
    """404: the most similar path. No other is tried: after "active" for "activate" would come "archive"."""
    asked = s.attempt.question
    for path in similar_paths(s.document, asked.method, asked.path)[:1]:
        yield s.attempt.asking(Change("path", asked.path, path, "The API has no such path."), path=path)


def as_json(s: Situation) -> Iterator[Attempt]:
    """400 and 415: the body as what it was probably intended to be, declared as JSON."""
    asked = s.attempt.question
    if not asked.body:  # a media type of no body
        headers = {name: value for name, value in asked.headers.items() if name != "content-type"}
        change = Change("header.Content-Type", asked.headers.get("content-type"), None, "There is no body.")
        yield s.attempt.asking(change, headers=headers)
    changes = []
    media = asked.headers.get("content-type")
    if s.answer.status == 415:
        changes.append(Change("header.Content-Type", media, "application/json", "Bodies are JSON, in UTF-8."))
    body, made = s.attempt.body, example_of(s.operation, s.mender.resolve)
    if body is NOTHING:
        body = guessed(asked.body)
        text = asked.body.decode("utf-8", "replace")
        if isinstance(body, (dict, list)):
            why = "The body is not JSON. This is the same content as JSON."
            yield s.attempt.with_body(body, *changes, Change("body", text, body, why))
        if made is not ABSENT:
            why = "The body is not JSON. This is the contract's example."
            yield s.attempt.with_body(made, *changes, Change("body", text, made, why))
        return
    if s.answer.status == 415:
        yield s.attempt.with_body(body, *changes)
    elif made is not ABSENT:
        yield s.attempt.with_body(
            made, Change("body", body, made, "It is nested too deep. This is the contract's example.")
        )


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
    yield attempt.with_changes(mending.changes)


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
        if not required:
            mending.changes.append(Change(place, text, None, WHY))
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


_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def guessed(raw: bytes) -> Any | None:
    """A body read as JSON with the usual mistakes, as a form, or as YAML; None where nothing is like it."""
    if len(raw) > _LONGEST:
        return None
    text = raw.decode("utf-8-sig", "replace").replace("\0", "").strip()
    for attempt in (text, _tidied(text), _closed(_tidied(text))):
        try:
            return orjson.loads(attempt)
        except ValueError:
            continue
    return _form(text) or _loose(text)


def _tidied(text: str) -> str:
    """Without commas before a bracket, and with JSON's own words."""
    text = _BAD_NUMBERS.sub("null", _TRAILING.sub(r"\1", text))
    for word, own in _PYTHON.items():
        text = re.sub(rf"\b{word}\b", own, text)
    return text


def _closed(text: str) -> str:
    """With the brackets and the quote that were left open."""
    open_, quoted, escaped = [], False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_.append("}" if character == "{" else "]")
        elif character in "}]" and open_:
            open_.pop()
    return text.rstrip().rstrip(",") + ('"' if quoted else "") + "".join(reversed(open_))


def _form(text: str) -> dict[str, str] | None:
    """What a form would have sent: `name=value&…`."""
    if "=" not in text or text[:1] in "{[":
        return None
    try:
        return dict(parse_qsl(text, max_num_fields=_MEMBERS)) or None
    except ValueError:
        return None


def _loose(text: str) -> Any | None:
    """Objects with names or texts in other quotes, or none."""
    if text[:1] not in ("{", "[") or "&" in text or "*" in text or text.count("[") + text.count("{") > _MEMBERS:
        return None
    try:
        return orjson.loads(orjson.dumps(yaml.load(text, Loader=_LOADER)))  # noqa: S506 (it makes texts alone)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
