"""Repairs of requests that the contract rejects: route, media type, JSON, parameters and body."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson
import yaml

from ..calls.call import CONTROL
from ..contract.document import Operation, Parameter
from ..http.validation import cast_of
from .attempt import NOTHING, Attempt, Situation
from .mending import ABSENT, Change, Mending, Unmendable

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_LONGEST = 4_096  # bytes that are guessed at: reading them another way is slow
_MEMBERS = 200


def another_route(s: Situation) -> Iterator[Attempt]:
    """404: the most similar path. No other is tried: after "active" for "activate" would come "archive"."""
    asked = s.attempt.question
    method, path = s.rehearsal.routing().nearest(asked.method, asked.path) or ("", "")
    if method == asked.method and "{" not in path and not path.startswith(CONTROL):
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
    query: dict[str, str] = {}
    for name, text in parse_qsl(asked.query, keep_blank_values=True, errors="replace"):
        if name in query:
            mending.changes.append(Change(f"query.{name}", [query[name], text], text, "It is sent once."))
        query[name] = text
    is_closed = any(d["in"] == "query" and d["code"] == "unknown_parameter" for d in s.answer.details)
    known = [p for p in s.operation.parameters if p.place == "query"]
    made = _mended_texts(s, mending, "query", known, query, is_closed=is_closed)
    sent = "&".join(f"{quote(name, safe='')}={quote(text, safe=':,')}" for name, text in made.items())
    by_key = {p.name.lower(): p for p in s.operation.parameters if p.place == "header"}
    given = {by_key[key].name: text for key, text in asked.headers.items() if key in by_key}
    headers = {key: text for key, text in asked.headers.items() if key not in by_key}
    fitting = _mended_texts(s, mending, "header", list(by_key.values()), given, is_closed=False)
    return s.attempt.asking(query=sent, headers=headers | {name.lower(): text for name, text in fitting.items()})


def _mended_texts(
    s: Situation, mending: Mending, place: str, known: list[Parameter], texts: dict[str, str], *, is_closed: bool
) -> dict[str, str]:
    """The parameters of one place as the contract has them; unknown ones are left out where it `is_closed`."""
    schemas = {p.name: s.mender.resolve(p.schema) for p in known}
    required = [p.name for p in known if p.required and place == "query"]
    whole = {"type": "object", "properties": schemas, "required": required, "additionalProperties": not is_closed}
    values = {name: _read(schemas.get(name, {}), text) for name, text in texts.items()}
    made = mending.mend(whole, values, place)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in made.items()}


def _read(schema: Any, text: str) -> Any:
    cast = cast_of(schema)
    return text if cast is None else cast(text)


def guessed(raw: bytes) -> Any | None:
    """A body read as Python prints it, as a form, or as YAML; None where nothing is like it."""
    text = raw.decode("utf-8-sig", "replace").replace("\0", "").strip()
    if len(raw) > _LONGEST or text.count("[") + text.count("{") > _MEMBERS:
        return None
    try:
        if text[:1] not in ("{", "["):
            return dict(parse_qsl(text, max_num_fields=_MEMBERS)) or None
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return orjson.loads(orjson.dumps(literal_eval(text)))
        if "&" not in text and "*" not in text:  # anchors and aliases
            return orjson.loads(orjson.dumps(yaml.load(text, Loader=_LOADER)))  # noqa: S506 (it makes texts alone)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        pass
    return None


_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
