"""JSON pointers into the contract, and the schemas that apply to a value, member by member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..contract.document import Document, Operation
from ..contract.source import Json, escaped, unescaped

_DEEPEST = 64  # levels: a schema may refer to itself


class Place(NamedTuple):
    """A schema that applies to a value. `pointer` leads to its mention, `inner` to what a `$ref` there refers to."""

    pointer: str
    inner: str
    schema: Json


class Unnamed(NamedTuple):
    """A member that no schema of its place names, in an object that allows no others."""

    pointer: str
    path: str
    value: Any


def below(pointer: str, *steps: str | int) -> str:
    """The pointer to what is below another one."""
    return "/".join((pointer, *map(escaped, steps)))


def pointer_of(operation: Operation, *steps: str | int) -> str:
    """The pointer to an operation of the contract, or to something in it."""
    return below("#", *operation.at, *steps)


def body_of(operation: Operation) -> str:
    """The pointer to the schema of an operation's body."""
    return below("#", *operation.body_at)


def located(document: Document, pointer: str) -> tuple[list[str | int], Any]:
    """The place of what a pointer leads to, with references on the way followed, and what is there, or None."""
    at: list[str | int] = []
    node: Any = document.raw
    for step in unescaped(pointer):
        if isinstance(node, dict) and "$ref" in node:
            at, node = [*unescaped(node["$ref"])], document.resolve(node)
        key = int(step) if isinstance(node, list) and step.isdecimal() else step
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            node = None
        at.append(key)
    return at, node


class Places:
    """The schemas of one contract. Several may apply to a value: alternatives, or the parts of `allOf`."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def of(self, pointer: str, node: Json, levels: int = _DEEPEST) -> list[Place]:
        """The schemas of the node at a pointer."""
        inner, schema = self.followed(pointer, node)
        found = [Place(pointer, inner, schema)]
        for key in ("allOf", "oneOf", "anyOf"):
            for number, part in enumerate(schema.get(key, ()) if levels else ()):
                found += self.of(below(inner, key, number), part, levels - 1)
        return found

    def followed(self, pointer: str, node: Json) -> tuple[str, Json]:
        """The pointer and the node, with references followed."""
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            pointer, node = node["$ref"], self._document.resolve({"$ref": node["$ref"]})
        return pointer, node

    def step(self, places: Sequence[Place], key: str | int) -> list[Place]:
        """The schemas of a member or an entry; empty if there are none."""
        found: list[Place] = []
        for _, inner, schema in places:
            if isinstance(key, int):
                steps: tuple[str, ...] = ("items",)
            else:
                steps = ("properties", key) if key in schema.get("properties", ()) else ("additionalProperties",)
            node: Any = schema
            for each in steps:
                node = node.get(each) if isinstance(node, dict) else None
            if isinstance(node, dict):
                found += self.of(below(inner, *steps), node)
        return found

    def at(self, places: Sequence[Place], path: Sequence[str | int]) -> tuple[list[Place], str]:
        """The schemas of the value at a path, and the path as text: `customers[].metadata.*`.

        If the contract has no schema for the whole path, the last ones on the way.
        """
        text = ""
        for key in path:
            inner = self.step(places, key)
            text = _joined(text, key, places)
            if not inner:
                break
            places = inner
        return list(places), text

    def named_only(self, value: Any, places: Sequence[Place], unnamed: list[Unnamed], path: str = "") -> Any:
        """The value without the members that its schemas do not allow. Each of these is added to `unnamed`."""
        if isinstance(value, list):
            inner = self.step(places, 0)
            return [self.named_only(item, inner, unnamed, f"{path}[]") for item in value] if inner else value
        if not isinstance(value, dict) or not places:
            return value
        objects = [place for place in places if place.schema.get("type") == "object" or "properties" in place.schema]
        is_closed = bool(objects) and all(place.schema.get("additionalProperties") is False for place in objects)
        kept = {}
        for name, member in value.items():
            inner = self.step(places, name)
            where = _joined(path, name, places)
            if inner or not is_closed:
                kept[name] = self.named_only(member, inner, unnamed, where)
            else:
                unnamed.append(Unnamed(below(objects[0].inner, "properties", name), where, member))
        return kept


def _joined(path: str, key: str | int, places: Sequence[Place]) -> str:
    """The path to a member. A free key is written `*`, since it differs from record to record."""
    if isinstance(key, int):
        return f"{path}[]"
    is_free = any(isinstance(place.schema.get("additionalProperties"), dict) for place in places)
    name = "*" if is_free and not any(key in place.schema.get("properties", ()) for place in places) else key
    return f"{path}.{name}" if path else name


def distinct(unnamed: Sequence[Unnamed]) -> Iterator[Unnamed]:
    """The first member at each place of the contract."""
    seen: set[str] = set()
    for each in unnamed:
        if each.pointer not in seen:
            seen.add(each.pointer)
            yield each
