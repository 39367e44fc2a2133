"""Repairs of requests that the contract rejects: route, media type, JSON, parameters and body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson
import yaml

from ..calls.call import CONTROL
from ..contract.document import JSON, Operation
from ..http.validation import cast_of
from .attempt import Attempt, Situation
from .mending import ABSENT, Unmendable

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_LONGEST = 4_096  # bytes that are guessed at: reading them another way is slow
_MEMBERS = 200
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def another_route(s: Situation) -> Iterator[Attempt]:
    """404: the most similar path. No other is tried: after "active" for "activate" would come "archive"."""
    asked = s.attempt.question
    method, path = s.rehearsal.routing.nearest(asked.method, asked.path) or ("", "")
    if method == asked.method and "{" not in path and not path.startswith(CONTROL):
        yield s.attempt.asking({"path": "The API has no such path."}, path=path)


def as_json(s: Situation) -> Iterator[Attempt]:
    """400 and 415: the body as what it was probably intended to be, declared as JSON."""
    asked, example = s.attempt.question, example_of(s.operation, s.mender.resolve)
    if not asked.body:  # a media type of no body
        headers = {name: value for name, value in asked.headers.items() if name != "content-type"}
        yield s.attempt.asking({"header.Content-Type": "There is no body."}, headers=headers)
    declared = s.attempt.with_header("content-type", JSON, "Bodies are JSON, in UTF-8.")
    yield declared
    body = guessed(asked.body)
    if isinstance(body, dict | list):
        yield declared.with_body(body, {"body": "The body is not JSON. This is the same content as JSON."})
    if example is not ABSENT:
        yield declared.with_body(example, {"body": "The body cannot be read as JSON. This is the contract's example."})


def mended(s: Situation) -> Iterator[Attempt]:
    """422: query, headers and body as the contract has them, all violations at once."""
    raw, body = s.attempt.question.body, s.attempt.body
    if len(raw) > LARGEST or raw.count(b",") > WIDEST:
        return
    with suppress(Unmendable):
        attempt = _with_parameters(s)
        if s.operation.body is not None and (raw or s.operation.body_required):
            example = example_of(s.operation, s.mender.resolve)
            attempt = attempt.with_body(s.mender.mend(s.operation.body, body, s.now, example), {})
        details = s.answer.details
        reasons = {d["in"] if d["field"] == "body" else f"{d['in']}.{d['field']}": d["message"] for d in details}
        yield attempt._replace(why={**reasons, **attempt.why})


def keys_that_fit(s: Situation) -> Iterator[Attempt]:
    """409: maps without the keys that are refused, which OpenAPI 3.0 cannot forbid."""
    body, why = s.attempt.body, {}
    for entry in s.answer.details:
        *way, last = entry["field"].split(".")
        node = body
        for step in way:
            node = node[step]
        node[last] = {key: value for key, value in node[last].items() if 0 < len(key) <= 64 and "\0" not in key}
        why[f"body.{entry['field']}"] = entry["message"]
    yield s.attempt.with_body(body, why)


def example_of(operation: Operation, resolve: Callable[[Any], Any]) -> Any:
    """The body of the contract's first example of a request; ABSENT where it has none."""
    content = (resolve(operation.raw.get("requestBody")) or {}).get("content", {}).get(JSON, {})
    shown = [resolve(each) for each in (content.get("examples") or {}).values()]
    return next((each["value"] for each in shown if "value" in each), content.get("example", ABSENT))


def _with_parameters(s: Situation) -> Attempt:
    """The attempt with parameters that the contract accepts. One that cannot be mended is left out."""
    asked, details = s.attempt.question, s.answer.details
    known = [parameter for parameter in s.operation.parameters if parameter.place == "query"]
    schemas = {parameter.name: s.mender.resolve(parameter.schema) for parameter in known}
    is_closed = any(d["in"] == "query" and d["code"] == "unknown_parameter" for d in details)
    required = [parameter.name for parameter in known if parameter.required]
    whole = {"type": "object", "properties": schemas, "required": required, "additionalProperties": not is_closed}
    sent = parse_qsl(asked.query, keep_blank_values=True, errors="replace")
    made = s.mender.mend(whole, {name: _read(schemas.get(name, {}), text) for name, text in sent}, s.now)
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in made.items()}
    refused = {d["field"].lower() for d in details if d["in"] == "header"}
    headers = {name: value for name, value in asked.headers.items() if name not in refused}
    return s.attempt.asking({}, query=urlencode(texts, safe=":,", quote_via=quote), headers=headers)


def _read(schema: Mapping[str, Any], text: str) -> Any:
    cast = cast_of(schema)
    return text if cast is None else cast(text)


def guessed(raw: bytes) -> Any | None:
    """A body read as a form, or as YAML, which is like what Python prints; None where nothing is like it."""
    text = raw.decode("utf-8-sig", "replace").replace("\0", "").strip()
    if len(raw) > _LONGEST or text.count("[") + text.count("{") > _MEMBERS:
        return None
    with suppress(yaml.YAMLError, ValueError, TypeError, RecursionError):
        if text[:1] not in ("{", "["):
            return dict(parse_qsl(text, max_num_fields=_MEMBERS)) or None
        if "&" not in text and "*" not in text:  # anchors and aliases
            return orjson.loads(orjson.dumps(yaml.load(text, Loader=_LOADER)))  # noqa: S506 (it makes texts alone)
    return None
