"""What the contract says of values, a row for each: type, limits in words, allowed values, and the
fields inside.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from ..contract.assumptions import bounds
from ..contract.document import Document
from ..contract.formats import STRICT
from ..contract.schema import LONGEST_KEY
from ..contract.source import Json
from .filters import in_one_line

_DEEPEST = 8
MOST = 400  # rows of a table: schemas of an overlay may branch without end
_PATTERNS = {
    r"^[^\u0000]*$": "without the character NUL",
    "^[A-Z]{2}$": "two capital letters",
    r"^https?://[^\s\u0000]+$": "begins with http:// or https://, without spaces",
    r"^[\x21-\x7e]{1,255}$": "printable ASCII without spaces",
}
_NULL: Json = [None]
_COUNTED = (
    ("Length", "character", "characters"),
    ("Items", "entry", "entries"),
    ("Properties", "field", "fields"),
)
_CHOICES = ("oneOf", "anyOf", "allOf")


class Row(NamedTuple):
    """One value. `above` is what comes before its name: `customer.` of `customer.email`.

    `pattern` is None where `limits` say it in words; `basis` is empty for what is no field of a
    body.
    """

    name: str
    required: bool
    type: str
    limits: tuple[str, ...]
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
    parts, inner = [schema, *_choices(document, schema)], _inner(document, schema)
    entries = [] if inner is None else [inner, *_choices(document, inner)]
    notes = [note for part in parts for note in _limits(part)]
    notes += [f"each {note}" for part in entries for note in _limits(part)]
    allowed = [
        value for part in (*parts, *entries) for value in part.get("enum", ()) if value is not None
    ]
    patterns = [part["pattern"] for part in (*parts, *entries) if _shows_pattern(part)]
    example = texts.get("example", schema.get("example"))
    return Row(
        name=name,
        required=required,
        type=_type(document, schema),
        limits=tuple(dict.fromkeys(notes)),
        pattern=patterns[0] if patterns else None,
        allowed=tuple(dict.fromkeys(map(in_one_line, allowed))),
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
    met: set[str] = set()
    parts = _choices(document, schema)
    chosen = (_below(document, part, above, opened) for part in parts)
    for each in chain(_members(document, schema, above, opened), *chosen):
        if each.above + each.name not in met:  # alternatives may have fields of the same name
            met.add(each.above + each.name)
            yield each._replace(required=False) if _is_of_some(each, above, schema, parts) else each


def _is_of_some(each: Row, above: str, schema: Json, parts: list[Json]) -> bool:
    """Whether a field is required in some of the objects that a value may be, but not in
    all of them.
    """
    if each.above != above or "allOf" in schema or each.name in schema.get("required", ()):
        return False
    return any("properties" in part and each.name not in part.get("required", ()) for part in parts)


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


def _choices(document: Document, schema: Json) -> list[Json]:
    """The schemas that a value may or must have beside its own."""
    return [document.resolve(part) for key in _CHOICES for part in schema.get(key, ())]


def _inner(document: Document, schema: Json) -> Json | None:
    """The schema of the entries of a list or a map, if these have no fields of their own."""
    rest = schema.get("additionalProperties")
    inner = schema.get("items", rest if isinstance(rest, dict) else None)
    found = None if inner is None else document.resolve(inner)
    return None if found is None or "properties" in found or "items" in found else found


def _type(document: Document, node: Json, depth: int = 0) -> str:
    if depth == _DEEPEST:
        return "any"
    schema = document.resolve(node)
    parts = _choices(document, schema)
    others = [part for part in parts if part.get("enum") != _NULL]
    is_nullable = schema.get("nullable") or len(others) < len(parts)
    null = " or null" if is_nullable else ""
    names = dict.fromkeys(_type(document, part, depth + 1) for part in others)
    if "type" not in schema and names:
        return " or ".join(names) + null
    kind = schema.get("type", "object" if "properties" in schema else "any")
    if kind == "array":
        return f"array of {_type(document, schema.get('items', {}), depth + 1)}{null}"
    rest = schema.get("additionalProperties")
    if kind == "object" and isinstance(rest, dict) and "properties" not in schema:
        return f"map of {_type(document, rest, depth + 1)}{null}"
    form = f" ({schema['format']})" if "format" in schema else ""
    return f"{kind}{form}{null}"


def _limits(schema: Json) -> Iterator[str]:
    """The bounds of one value in words."""
    for kind, one, more in _COUNTED:
        if limits := bounds(schema, kind, f" {more}").removeprefix(" of "):
            yield limits.replace(f"t 1 {more}", f"t 1 {one}")  # at least, at most
    yield from _range(schema)
    if "multipleOf" in schema:
        yield f"in steps of {in_one_line(schema['multipleOf'])}"
    if schema.get("uniqueItems"):
        yield "all different"
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict) and rest.get("type") == "string":
        yield f"keys of 1 to {LONGEST_KEY} characters"
    if schema.get("pattern") in _PATTERNS:
        yield _PATTERNS[schema["pattern"]]


def _range(schema: Json) -> Iterator[str]:
    """The bounds of a number in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above = "more than" if schema.get("exclusiveMinimum") is True else "at least"
    below = "less than" if schema.get("exclusiveMaximum") is True else "at most"
    if low is not None and high is not None and (above, below) == ("at least", "at most"):
        yield f"{in_one_line(low)} to {in_one_line(high)}"
        return
    if low is not None:
        yield f"{above} {in_one_line(low)}"
    if high is not None:
        yield f"{below} {in_one_line(high)}"


def _shows_pattern(schema: Json) -> bool:
    return (
        "pattern" in schema
        and schema["pattern"] not in _PATTERNS
        and schema.get("format") not in STRICT
    )
