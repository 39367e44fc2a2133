"""The schema of an operation's requests, and what its handler relies on in them: overlays may
allow more than a handler, written for the shipped contract, can process.
"""

from math import inf
from typing import Any

from ...contract.document import Operation, Parameter
from ...contract.formats import READ
from ...contract.generated import SOURCE
from ...contract.source import Json, JsonObject
from .violations import SchemaAt

# Headers that earlier layers read.
_READ_BEFORE = frozenset((("header", "authorization"), ("header", "x-sandbox-admin-key")))


def validated_parameters(operation: Operation, place: str) -> list[Parameter]:
    """The parameters that are validated at a place of a request: `query` or `header`."""
    return [
        parameter
        for parameter in operation.parameters
        if parameter.place == place and (place, parameter.name.lower()) not in _READ_BEFORE
    ]


def shape_of(operation: Operation) -> JsonObject:
    """Parameters and body of an operation as one schema."""
    members: JsonObject = {}
    needed = []
    for place in ("query", "header"):
        parameters = validated_parameters(operation, place)
        if not parameters:
            continue
        schemas = {parameter.name: parameter.schema for parameter in parameters}
        required = [parameter.name for parameter in parameters if parameter.required]
        members[place] = _object_of(schemas, required)
        if required:
            needed.append(place)
    if operation.body is not None:
        members["body"] = operation.body
    if operation.body_required:
        needed.append("body")
    return _object_of(members, needed)


def _object_of(members: JsonObject, required: list[str]) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": members}
    if required:
        schema["required"] = required
    return schema


def is_relied_on(error: Any, schema_at: SchemaAt) -> bool:
    """Whether a handler relies on what an error of the shipped contract is about: required members,
    types, formats that rules read, and values that are looked up.
    """
    branches = getattr(error.kind, "context", ())
    if branches:
        return all(any(is_relied_on(each, schema_at) for each in errors) for errors in branches)
    kind, schema = error.kind.name, schema_at(list(error.instance_path))
    match kind:
        case "format":
            return error.kind.format in READ
        case "enum":
            return _is_looked_up(schema)
        case "minimum":
            return "x-largest" in schema
        case "maximum":
            # Overlays may widen a number that rules compute with so far, and never downwards.
            return bool(error.instance > max(schema.get("x-largest", inf), error.kind.limit))
    return kind in ("type", "required")


def _is_looked_up(schema: Json) -> bool:
    """Names of events and scopes are stored as sent too; event types and states are looked up, and
    must exist.
    """
    source = str(schema.get(SOURCE, "event_types"))
    return "x-stored" not in schema and (source == "event_types" or ":" in source)
