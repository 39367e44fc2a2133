"""What the contract says of values, a row for each: what it may be in words, allowed values, and
the fields inside.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from ..contract.assumptions import shape
from ..contract.document import Document
from ..contract.source import Json
from .filters import in_one_line

_DEEPEST = 8
MOST = 400  # rows of a table: schemas of an overlay may branch without end
_CHOICES = ("allOf", "oneOf", "anyOf")
_NO_NUL = r"^[^\u0000]*$"  # says nothing to readers


class Row(NamedTuple):
    """One value. `above` is what comes before its name: `customer.` of `customer.email`.

    `pattern` is None where `type` says enough; `basis` is empty for what is no field of a body.
    """

    name: str
    required: bool
    type: str
    pattern: str | None
    allowed: tuple[str, ...]
    default: str | None
    example: str | None
    description: str
    above: str = ""
    basis: str = ""
    note: str = ""


def row(
    document: Document, name: str, node: Json, *, required: bool, texts: Json | None = None
) -> Row:
    """The row of one value; `texts` is what stands around its schema, such as a parameter."""
    schema, texts = document.resolve(node), texts or {}
    allowed = schema.get("enum") or document.resolve(schema.get("items", {})).get("enum", ())
    kind = {key: value for key, value in schema.items() if key != "enum"}
    if allowed and "items" in kind:
        kind["items"] = {"type": "string"}
    pattern = None if "format" in schema else schema.get("pattern")
    example = texts.get("example", schema.get("example"))
    return Row(
        name=name,
        required=required,
        type=shape(kind, document),
        pattern=None if pattern == _NO_NUL else pattern,
        allowed=tuple(in_one_line(value) for value in allowed if value is not None),
        default=in_one_line(schema["default"]) if "default" in schema else None,
        example=None if example is None else in_one_line(example),
        description=texts.get("description") or schema.get("description", ""),
    )


def rows(document: Document, node: Json) -> list[Row]:
    """The fields of a value and those inside them, in the contract's order.

    A schema inside itself is not opened.
    """
    return list(islice(_below(document, node, "", ()), MOST))


def _below(document: Document, node: Json, above: str, opened: tuple[int, ...]) -> Iterator[Row]:
    schema = document.resolve(node)
    if id(schema) in opened or len(opened) > _DEEPEST:
        return
    opened = (*opened, id(schema))
    items = schema.get("items")
    if items is not None:
        yield from _below(document, items, f"{above.removesuffix('.')}[].", opened)
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        yield from _below(document, rest, f"{above}*.", opened)
    parts = [document.resolve(part) for key in _CHOICES for part in schema.get(key, ())]
    # what one of several objects requires is not required
    are_several = "allOf" not in schema and sum("properties" in part for part in parts) > 1
    met: set[str] = set()
    chosen = (_below(document, part, above, opened) for part in parts)
    for each in chain(_members(document, schema, above, opened), *chosen):
        if each.above + each.name not in met:  # alternatives may have fields of the same name
            met.add(each.above + each.name)
            is_own = each.above == above and each.name not in schema.get("required", ())
            yield each._replace(required=False) if are_several and is_own else each


def _members(
    document: Document, schema: Json, above: str, opened: tuple[int, ...]
) -> Iterator[Row]:
    basis, notes = schema.get("x-basis", {}), schema.get("x-basis-notes", {})
    for name, node in schema.get("properties", {}).items():
        plain = row(document, name, node, required=name in schema.get("required", ()))
        yield plain._replace(
            above=above, basis=basis.get(name, "assumed"), note=notes.get(name, "")
        )
        yield from _below(document, node, f"{above}{name}.", opened)
