"""What the contract says of records: their kinds with the operations on them, their schemas, and
pointers to both.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...contract.document import JSON, Document, Operation
from ...contract.lifecycles import Lifecycle
from ...contract.source import Json, escaped, unescaped
from ...core.record import Body

_LAST = re.compile(r"\{([A-Za-z_]+)\}$")
_DEEPEST = 3  # levels of an answer in which records are looked for
Steps = tuple[str, ...]
"""Names of members that lead to a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind of record. `key` is the path parameter with its id, such as `projectId`, and `path`
    is that of one record.

    `creates` may be several operations; the others are None where the contract has none.
    """

    schema: str
    key: str
    path: str
    creates: tuple[Operation, ...]
    read: Operation | None
    list: Operation | None
    update: Operation | None
    delete: Operation | None
    lifecycle: Lifecycle | None

    @property
    def create(self) -> Operation:
        """The first of its creations."""
        return self.creates[0]

    def at(self, ident: str) -> str:
        """The path of one record."""
        return self.path.replace(f"{{{self.key}}}", ident)

    @property
    def role(self) -> str:
        """What requests call the record: `the project`."""
        return role_of(self.key)


def role_of(parameter: str) -> str:
    """`projectId` -> `the project`, `apiKeyId` -> `the api key`."""
    stem = parameter.removesuffix("Id")
    return "the " + "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in stem)


class Catalogue:
    """The resources of a contract, and the places of records in its answers."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def record_at(self, operation: Operation) -> tuple[Steps, str] | None:
        """Where the answer of a success has one record with an id, and the name of its schema."""
        for place, name, schema in self._parts(operation):
            if name and "id" in schema.get("properties", ()):
                return place, name
        return None

    def record(self, operation: Operation, body: Any) -> Body:
        """The record in the body of an answer; an empty one where there is none."""
        place = self.record_at(operation)
        record = None if place is None else at(body, place[0])
        return record if isinstance(record, dict) else {}

    def entries_at(self, operation: Operation) -> Steps | None:
        """Where the answer of a success has a list of records with ids."""
        found = self._list(operation)
        return None if found is None else found[0]

    def listed_by(self, operation: Operation) -> Resource | None:
        """The kind of record of which an operation lists all, or those of another record."""
        for resource in self.resources.values():
            if resource.list is not None and self._list(resource.list) == self._list(operation):
                return resource
        return None

    def _list(self, operation: Operation) -> tuple[Steps, Json] | None:
        """The place of a list of records, and how the contract refers to their schema."""
        for place, _, schema in self._parts(operation):
            items = schema.get("items", {})
            if "id" in self.document.resolve(items).get("properties", ()):
                return place, items
        return None

    def _parts(self, operation: Operation) -> Iterator[tuple[Steps, str, Json]]:
        """The objects and lists of a success that are in no record: place, name of the
        schema, and schema.
        """
        pending: list[tuple[Steps, Json]] = []
        for status in operation.successes[:1]:
            pending.append(((), operation.responses[status].media.get(JSON, {})))
        while pending:
            place, node = pending.pop(0)
            schema = self.document.resolve(node)
            yield place, str(node.get("$ref", "")).rpartition("/")[2], schema
            inside = schema.get("properties", {})
            if "id" in inside or len(place) == _DEEPEST:
                continue
            for member in reversed(inside):
                if self.document.resolve(inside[member]).get("type") in ("object", "array"):
                    pending.insert(0, ((*place, member), inside[member]))

    @cached_property
    def resources(self) -> Mapping[str, Resource]:
        """The resources that an operation creates, by the path parameter with their ids."""
        operations = self.document.operations.values()
        found: dict[str, Resource] = {}
        for item in operations:
            last = _LAST.search(item.path)
            if last is None or last[1] in found:
                continue
            here = {o.method: o for o in operations if o.path == item.path}
            above = {o.method: o for o in operations if o.path == item.path[: last.start() - 1]}
            shown = next(filter(None, map(self.record_at, here.values())), None)
            made = self.record_at(above["POST"]) if "POST" in above else shown
            creates = []
            for each in operations:
                if each.method == "POST" and last[0] not in each.path:
                    creates += [each] if self.record_at(each) == made else []
            if made is None or not creates:
                continue
            found[last[1]] = Resource(
                (shown or made)[1],
                last[1],
                item.path,
                (*creates,),
                here.get("GET"),
                above.get("GET"),
                here.get("PUT") or here.get("PATCH"),
                here.get("DELETE"),
                self.document.lifecycles.get((shown or made)[1]),
            )
        return found

    def made_by(self, operation: Operation) -> Resource | None:
        """The kind of record that an operation makes."""
        for resource in self.resources.values():
            if operation in resource.creates:
                return resource
        return None


def path_names(operation: Operation) -> list[str]:
    """The names of the parameters in the path of an operation."""
    return [parameter.name for parameter in operation.parameters if parameter.place == "path"]


def queried(operation: Operation) -> dict[str, tuple[str, Json]]:
    """By the name of a parameter of the query: the pointer to it, and its schema."""
    return {
        parameter.name: (pointer_of(operation, "parameters", number), parameter.schema)
        for number, parameter in enumerate(operation.parameters)
        if parameter.place == "query"
    }


def at(value: Any, steps: Steps) -> Any:
    """The value below some members of a JSON value, or None."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def records_at(value: Any, steps: Steps | None) -> list[Any]:
    """The objects in a list below some members of a JSON value."""
    entries = at(value, steps or ())
    return [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []


def leaves(value: Any) -> Iterator[Any]:
    """The texts, numbers and other plain values in a JSON value."""
    if isinstance(value, (Mapping, list)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from leaves(inner)
    else:
        yield value


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value in which each plain value is what `change` makes of it."""
    if isinstance(value, Mapping):
        return {name: with_leaves(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_leaves(inner, change) for inner in value]
    return change(value)


# -- pointers and schemas


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
    """The place of what a pointer leads to, with references on the way followed, and what is there,
    or None.
    """
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


def canonical(document: Document, pointer: str) -> str:
    """The pointer with references on its way replaced, so that each place has exactly one."""
    return below("#", *located(document, pointer)[0]) if pointer else ""


def within(document: Document, pointer: str, path: Sequence[str | int]) -> tuple[str, Json, str]:
    """Pointer and schema of a part of a value whose schema is at a pointer, and its path:
    `customers[].metadata.*`. The path may be without positions in lists.

    If the contract has no schema for the whole path, these are the last ones on the way.
    """
    schema, text = document.resolve(located(document, pointer)[1]), ""
    for key in path:
        if isinstance(key, str) and schema.get("type") == "array":
            pointer, schema, _ = within(document, pointer, [0])
        name, steps = key, ["items"]
        if key in schema.get("properties", ()):
            steps = ["properties", str(key)]
        elif isinstance(key, str):
            name, steps = "*", ["additionalProperties"]  # a free key differs from record to record
        inner = schema
        for step in steps:
            inner = inner.get(step)
        if not isinstance(inner, dict):
            return pointer, schema, _joined(text, key)
        text = _joined(text, name)
        pointer, schema = canonical(document, below(pointer, *steps)), document.resolve(inner)
    return pointer, schema, text


def _joined(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[]"
    return f"{path}.{key}" if path else key
