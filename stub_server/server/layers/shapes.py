"""The schema of an operation's requests, and what its handler relies on in them: overlays may
allow more than a handler, written for the shipped contract, can process.
"""

from functools import partial
from math import inf

from ...contract.document import Document, Operation, Parameter
from ...contract.formats import READ
from ...contract.generated import SOURCE
from ...contract.schema import Validator, translate
from ...contract.source import Json, JsonObject
from .endpoint import Endpoint

# Headers that earlier layers read.
_READ_BEFORE = frozenset((("header", "authorization"), ("header", "x-sandbox-admin-key")))
# the keywords that handlers need, beside formats
_RELIED_ON = ("type", "nullable", "required", "enum")
_DEEPEST_SCHEMA = 12  # levels: a schema may refer to itself


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


def validator_of_handler(endpoint: Endpoint, shape: Json) -> Validator | None:
    """Rejects what overlays allow but the handler, written for the shipped contract,
    cannot process.
    """
    shipped, made_for = endpoint.shipped, endpoint.made_for
    if shipped is None or made_for is None:
        return None
    schema = _relied_on(shape_of(made_for), shipped)
    if schema == _relied_on(shape, endpoint.document):
        return None
    return Validator(translate(schema, {}), READ)


def _relied_on(node: Json, document: Document, depth: int = 0) -> Json:
    """The schema of what a handler relies on in a request: required members, types, and values that
    rules read.
    """
    node = document.resolve(node)
    if not isinstance(node, dict) or depth > _DEEPEST_SCHEMA:
        return {}
    below = partial(_relied_on, document=document, depth=depth + 1)
    kept = _relied_on_itself(node)
    if isinstance(node.get("properties"), dict):
        kept["properties"] = {name: below(member) for name, member in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            kept[name] = below(node[name])
    for name in ("allOf", "anyOf", "oneOf"):
        if name in node:
            kept[name] = [below(member) for member in node[name]]
    return kept


def _relied_on_itself(node: Json) -> JsonObject:
    """What a handler relies on in a value, without its members."""
    kept: JsonObject = {name: node[name] for name in _RELIED_ON if name in node}
    if node.get("format") in READ:
        kept["format"] = node["format"]
    # Names of events and scopes are stored as sent too; event types and states are looked up, and
    # must exist.
    source = str(node.get(SOURCE, "event_types"))
    if node.get("x-stored") or (source != "event_types" and ":" not in source):
        kept.pop("enum", None)
    # Overlays may widen a number that rules compute with so far, and never downwards.
    if "x-largest" in node:
        kept["minimum"] = node.get("minimum")
        kept["maximum"] = max(node["x-largest"], node.get("maximum", inf))
    return kept
