"""Checks the shape of the contract's extensions (`x-lifecycle`, `x-events`, `x-unique`, `x-webhooks` …)."""

import re
from collections.abc import Iterator

from .bundle import METHODS
from .document import JSON
from .source import ContractError, Json, json_path

# A webhook subscribes to `resource.*`, and payloads contain the name without escaping.
_EVENT_NAME = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+").fullmatch
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT, "uniqueItems": True}
_MOVE = {
    "type": "object",
    "required": ["from", "to"],
    "properties": {
        "from": _TEXT,
        "to": _TEXT,
        "name": _TEXT,
        "control": _TEXT,
        "event": _TEXT,
        "also": _TEXTS,
        "by": _TEXTS,
    },
    "additionalProperties": False,
}
_LIFECYCLE = {
    "type": "object",
    "required": ["field", "states", "moves"],
    "properties": {
        "field": _TEXT,
        "states": {**_TEXTS, "minItems": 1},
        "sets": {"type": "object", "additionalProperties": _TEXTS},
        "moves": {"type": "array", "items": _MOVE},
    },
    "additionalProperties": False,
}
_EVENTS = {
    "type": "object",
    "additionalProperties": {"type": ["string", "array"], "items": _TEXT, "uniqueItems": True},
}
_UNIQUE = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["members", "scope"],
        "properties": {
            "members": {**_TEXTS, "minItems": 1},
            "scope": _TEXT,
            "ignores": {"type": "array", "items": {"enum": ["case", "punctuation"]}, "uniqueItems": True},
            "code": _TEXT,
        },
        "additionalProperties": False,
    },
}
_BODY = {
    "type": "object",
    "required": ["schema", "example"],
    "properties": {
        "schema": {"type": "object"},
        "example": {"type": "object", "required": ["data"], "properties": {"data": {"type": "object"}}},
    },
}
_REQUEST_BODY = {
    "type": "object",
    "required": ["content"],
    "properties": {"content": {"type": "object", "required": [JSON], "properties": {JSON: _BODY}}},
}
_POST = {
    "type": "object",
    "required": ["summary", "description", "x-payload-key", "x-emitted-by", "requestBody"],
    "properties": {
        "summary": _TEXT,
        "description": _TEXT,
        # Payloads contain it without escaping.
        "x-payload-key": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "x-emitted-by": _TEXTS,
        "requestBody": _REQUEST_BODY,
    },
}
_WEBHOOKS = {
    "type": "object",
    "additionalProperties": {"type": "object", "required": ["post"], "properties": {"post": _POST}},
}
_SCOPES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "resource", "access", "description", "assignable"],
        "properties": {"name": _TEXT, "resource": _TEXT, "assignable": {"type": "boolean"}},
    },
}


def check_shapes(raw: Json) -> None:
    """Check the shape of every extension. Raises ContractError with the JSONPath of a fault."""
    from jsonschema import Draft4Validator  # slow to import, and only needed with overlays
    from jsonschema.exceptions import best_match
    from openapi_spec_validator.schemas import schema_v30

    for name in raw.get("x-webhooks", {}):
        if _EVENT_NAME(name) is None:
            raise ContractError(f"{json_path(['x-webhooks', name])}: call an event resource.past_tense")
    for place, value, shape in _members(raw):
        error = best_match(Draft4Validator(shape).iter_errors(value))
        if error is not None:
            raise ContractError(f"{json_path([*place, *error.absolute_path])}: {error.message[:400]}")
    # OpenAPI 3.0 has no webhooks, so its validator does not check payload schemas that are written in place.
    payload = Draft4Validator({"$ref": "#/definitions/Schema", "definitions": schema_v30["definitions"]})
    for name, item in raw.get("x-webhooks", {}).items():
        content: Json = item["post"]["requestBody"]["content"][JSON]
        error = None if "$ref" in content["schema"] else best_match(payload.iter_errors(content["schema"]))
        if error is not None:
            place = ["x-webhooks", name, "post", "requestBody", "content", JSON, "schema", *error.absolute_path]
            raise ContractError(f"{json_path(place)}: {error.message[:400]}")


def _members(raw: Json) -> Iterator[tuple[list[str | int], Json, Json]]:
    yield ["x-webhooks"], raw.get("x-webhooks", {}), _WEBHOOKS
    yield ["x-scopes"], raw.get("x-scopes", []), _SCOPES
    for name, schema in raw["components"]["schemas"].items():
        for member, shape in (("x-lifecycle", _LIFECYCLE), ("x-events", _EVENTS), ("x-unique", _UNIQUE)):
            if member in schema:
                yield ["components", "schemas", name, member], schema[member], shape
    for path, item in raw["paths"].items():
        for method in METHODS:
            for member in ("x-scopes", "x-emits"):
                if member in item.get(method, {}):
                    yield ["paths", path, method, member], item[method][member], _TEXTS
