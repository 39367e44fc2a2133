"""The report of assumptions: behaviour that the source document does not state, with
schemas in words.
"""

from collections.abc import Iterator
from typing import Any

from ..core.record import Body
from .document import Document
from .schema import needed
from .source import Json

LIMITATIONS = (
    (
        "one-server",
        "A sandbox lives in the memory of one server; it outlives that server only with --store.",
    ),
    (
        "no-cards",
        (
            "Card data is never accepted: an order by card is paid at once without it, unless a"
            " magic word, a behaviour or a header decides otherwise."
        ),
    ),
    (
        "no-production-oracle",
        (
            "No public client of the real service was found: fidelity to the contract is tested, "
            "fidelity to production cannot be."
        ),
    ),
)
_FORMATS = {
    "uuid": "UUID",
    "date-time": "date-time",
    "uri": "web address",
    "email": "e-mail address",
    "document": "CPF, CNPJ or passport number",
    "ip-network": "IP address or network",
}
_KINDS = {"string": "text", "integer": "whole number", "boolean": "true or false"}
_MOST_SHOWN = 12


def assumptions_of(document: Document) -> Body:
    """The report of `/_sandbox/assumptions`."""
    using: dict[str, list[str]] = {}
    components = document.raw["components"]
    for operation in document.operations.values():
        for name in needed(operation.schemas, components).get("schemas", ()):
            using.setdefault(name, []).append(operation.id)
    found = list(_operations(document))
    for name, schema in components["schemas"].items():
        for entry in _schema(name, schema, document):
            found.append(entry | {"operations": using.get(name, [])})
    found += _contradictions(document)
    for ident, text in LIMITATIONS:
        found.append(_entry("limitation", ident, "server", "assumed", text))
    return {
        "total": len(found),
        "documented_operations": sum(o.is_documented for o in document.operations.values()),
        "assumptions": found,
    }


def _operations(document: Document) -> Iterator[Body]:
    for op in document.operations.values():
        assumed = [part for part, basis in op.basis.items() if basis == "assumed"]
        if assumed:
            yield _entry(
                "operation",
                op.id,
                op.id,
                "assumed",
                f"The source document does not show of {op.method} {op.path}:"
                f" {', '.join(assumed)}.",
                op.id,
            )


def _schema(name: str, schema: Body, document: Document) -> Iterator[Body]:
    bases, notes = schema.get("x-basis", {}), schema.get("x-basis-notes", {})
    properties = schema.get("properties", {})
    for member, inner in properties.items():
        basis = bases.get(member, "assumed")
        if basis == "assumed" or member in notes:
            decided = _decided(inner, member in schema.get("required", ()), document)
            yield _entry(
                "property",
                f"{name}.{member}",
                name,
                basis,
                f"{decided} {notes.get(member, '')}".rstrip(),
            )
    for member, inner in properties.items():
        for part in (inner, inner.get("items", {})):
            yield from _schema(f"{name}.{member}", part, document)


def _contradictions(document: Document) -> Iterator[Body]:
    for entry in document.raw.get("x-contradictions", ()):
        text = f"{entry['contradiction']} {entry['reading']}"
        bites = [name for name in entry["bites"] if name in document.operations]
        yield _entry(
            "contradiction", entry["id"], ", ".join(entry["bites"]), "documented", text, *bites
        )


def _entry(kind: str, ident: str, subject: str, basis: str, text: str, *operations: str) -> Body:
    return {
        "kind": kind,
        "id": ident,
        "subject": subject,
        "operations": list(operations),
        "basis": basis,
        "text": text,
    }


# -- schemas in words


def shape(node: Json, document: Document) -> str:
    """What a value may be: `text of 1 to 100 characters or null; month when left out`."""
    text = _plain(node, document)
    schema = document.resolve(node)
    if schema.get("nullable"):
        text += " or null"
    if "default" in schema:
        text += f"; {_value(schema['default'])} when left out"
    return text


def _bounds(node: Json, kind: str, unit: str) -> str:
    """The limits of a length or number, such as ` of 1 to 100 characters`; empty where
    there are none.
    """
    low, high = node.get(f"min{kind}"), node.get(f"max{kind}")
    if node.get("exclusiveMinimum"):
        most = "" if high is None else f", at most {high}"
        return f" above {low}{most}"
    if low is not None and high is not None:
        return f" of {low} to {high}{unit}" if unit else f" from {low} to {high}"
    if high is not None:
        return f" of at most {high}{unit}"
    return f" of at least {low}{unit}" if low else ""


def _decided(node: Json, required: bool, document: Document) -> str:
    """What a field is, as a sentence, and its description."""
    named = document.resolve(node)
    if "default" in named:  # a component of its own, see `bundle`
        node = named
    text = shape(node, document)
    if not required and "default" not in named:
        text += "; optional"
    description = " ".join(str(node.get("description", "")).split())
    return f"{text[0].upper()}{text[1:]}. {description}".rstrip()


def _plain(node: Json, document: Document) -> str:
    if "$ref" in node:
        name: str = node["$ref"].rpartition("/")[2]
        inner = document.resolve(node)
        if inner.get("type") == "object" or "oneOf" in inner:
            return name
        return _plain(inner, document)
    choices = node.get("oneOf") or node.get("anyOf")
    if choices and "type" not in node:
        return " or ".join(_plain(part, document) for part in choices)
    if "enum" in node:
        return _options([value for value in node["enum"] if value is not None])
    kind = node.get("type")
    if kind == "array":
        inner = _plain(node.get("items", {}), document)
        different = ", all different" if node.get("uniqueItems") else ""
        return f"list of {inner}{_bounds(node, 'Items', ' entries')}{different}"
    if kind == "object" or kind is None:
        return f"object{_bounds(node, 'Properties', ' fields')}"
    name = _FORMATS.get(node.get("format", ""), _KINDS.get(kind, kind))
    if kind == "string":
        return f"{name}{_bounds(node, 'Length', ' characters')}"
    steps = f", in steps of {node['multipleOf']}" if "multipleOf" in node else ""
    return f"{name}{_bounds(node, 'imum', '')}{steps}"


def _options(values: list[Any]) -> str:
    if not values:
        return "null"
    if len(values) == 1:
        return f"always {_value(values[0])}"
    text = f"one of {', '.join(map(_value, values[:_MOST_SHOWN]))}"
    if len(values) > _MOST_SHOWN:
        text += f" and {len(values) - _MOST_SHOWN} more"
    return text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return "null" if value is None else str(value)
