"""Schemas in words, for the report of assumptions."""

from collections.abc import Iterator
from typing import Any

from .document import JSON, Document, Operation
from .source import Json

_FORMATS = {
    "uuid": "UUID",
    "date-time": "date-time",
    "uri": "web address",
    "email": "e-mail address",
    "document": "CPF, CNPJ or passport number",
    "ip-network": "IP address or network",
}
_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_MOST_SHOWN = 12


def shape(node: Json, document: Document) -> str:
    """What a value may be: `text of 1 to 100 characters, or null; by default month`."""
    text = _plain(node, document)
    schema = document.resolve(node)
    if schema.get("nullable"):
        text += " or null"
    if "default" in schema:
        text += f"; {_value(schema['default'])} when left out"
    return text


def decided(node: Json, required: bool, document: Document) -> str:
    """What a field is, as a sentence, and what its description says of it."""
    optional = not required and "default" not in document.resolve(node)
    text = f"{shape(node, document)}{'; optional' if optional else ''}."
    told = " ".join(str(node.get("description", "")).split())
    return f"{text[0].upper()}{text[1:]} {told}".rstrip()


def request(operation: Operation, document: Document) -> str:
    """What an operation takes besides its path."""
    parts = []
    if operation.body is not None:
        parts.append(f"{_plain(operation.body, document)}{'' if operation.body_required else ', or no body'}")
    for place in ("query", "header"):
        names = [parameter.name for parameter in operation.parameters if parameter.place == place]
        if names:
            parts.append(f"in the {place} {', '.join(names)}")
    return " and ".join(parts) or "nothing beside its path"


def response(operation: Operation, document: Document) -> str:
    """The responses of an operation: its success by schema, its refusals by status."""
    refused = [str(status) for status in operation.responses if status >= 400]
    answers = [
        f"{status} {_plain(told.media[JSON], document)}" if JSON in told.media else str(status)
        for status, told in operation.responses.items()
        if status < 400
    ]
    return ", ".join(answers) + (f"; refusals are {', '.join(refused)}" if refused else "")


def _plain(node: Json, document: Document) -> str:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        inner = document.resolve(node)
        return name if inner.get("type") == "object" or "oneOf" in inner else _plain(inner, document)
    for key in ("oneOf", "anyOf"):
        if key in node:
            return " or ".join("null" if part.get("enum") == [None] else _plain(part, document) for part in node[key])
    if "enum" in node:
        return _options([value for value in node["enum"] if value is not None])
    kind = node.get("type")
    if kind == "array":
        return f"list of {_plain(node.get('items', {}), document)}{bounds(node, 'Items', ' entries')}"
    if kind == "object" or kind is None:
        return "object"
    if node.get("format") in _FORMATS:
        return _FORMATS[node["format"]]
    if kind == "string":
        return f"text{bounds(node, 'Length', ' characters')}"
    return f"{_KINDS.get(kind, kind)}{bounds(node, 'imum', '')}"


def _options(values: list[Any]) -> str:
    shown = [_value(value) for value in values[:_MOST_SHOWN]]
    more = f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else ""
    return f"always {shown[0]}" if len(values) == 1 else f"one of {', '.join(shown)}{more}"


def bounds(node: Json, kind: str, unit: str) -> str:
    """The limits of a length or number, such as ` of 1 to 100 characters`; empty where there are none."""
    low, high = node.get(f"min{kind}"), node.get(f"max{kind}")
    if low is not None and high is not None:
        return f" of {low} to {high}{unit}" if unit else f" from {low} to {high}"
    if high is not None:
        return f" of at most {high}{unit}"
    return f" of at least {low}{unit}" if low else ""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return "null" if value is None else str(value)


def schemas_of(operation: Operation, document: Document) -> list[str]:
    """The named schemas of an operation's request and successful responses, with those inside them."""
    found: list[str] = []
    pending: list[Json] = [parameter.schema for parameter in operation.parameters]
    pending.append(operation.body)
    pending += [
        schema for status, told in operation.responses.items() if status < 400 for schema in told.media.values()
    ]
    while pending:
        for name in _references(pending.pop(0)):
            if name not in found:
                found.append(name)
                pending.append(document.raw["components"]["schemas"][name])
    return found


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for key, value in node.items():
            if not key.startswith("x-") and key != "example":
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
