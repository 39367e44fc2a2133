"""What the contract says of records: their kinds with the operations on them, their schemas, and
pointers to both; and where answers have them.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...contract.document import JSON, Document, Operation
from ...contract.lifecycles import Lifecycle, Move
from ...contract.pointers import below
from ...contract.source import Json
from ...core.record import Body

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
    def is_lasting(self) -> bool:
        """Whether its records can be changed, and not deleted: a run makes few of them."""
        return self.delete is None and self.update is not None

    @property
    def create(self) -> Operation:
        """The first of its creations."""
        return self.creates[0]

    def at(self, ident: str) -> str:
        """The path of one record."""
        return self.path.replace(f"{{{self.key}}}", ident)

    @property
    def field(self) -> str:
        """The member with its state."""
        return self.lifecycle.field if self.lifecycle else "status"

    def moves_by(self, operation: Operation) -> Sequence[Move]:
        """The moves that an operation on it makes."""
        if self.lifecycle is None or f"{{{self.key}}}" not in operation.path:
            return []
        return [move for move in self.lifecycle.moves if operation.id in move.by]

    @property
    def role(self) -> str:
        """What requests call the record: `the project`."""
        return role_of(self.key)


_PUBLIC_KEY = {"publicKey": "apiKeyPublic"}
"""The parameter that names a record by another member than its id."""


def role_of(parameter: str) -> str:
    """`projectId` -> `the project`, `apiKeyId` -> `the api key`."""
    parameter = _PUBLIC_KEY.get(parameter, parameter)
    words = re.sub("([A-Z])", r" \1", parameter.removesuffix("Id"))
    return f"the {words.lower()}"


class Catalogue:
    """The kinds of records of a contract."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def listed_by(self, operation: Operation) -> Resource | None:
        """The kind of record of which an operation lists all, or those of another record."""
        shown = self._shown_by(operation) if is_list(operation) else ""
        for resource in self.resources.values():
            if resource.list is not None and self._shown_by(resource.list) == shown:
                return resource
        return None

    def _shown_by(self, operation: Operation) -> str:
        """The name of the first schema with an id in a success; empty where there is none."""
        pending = [operation.responses[it].media.get(JSON, {}) for it in operation.successes[:1]]
        for node in pending:  # which grows meanwhile
            schema = self.document.resolve(node)
            inside = schema.get("properties", {})
            if "id" in inside:
                return str(node.get("$ref", "")).rpartition("/")[2]
            pending += [*inside.values(), schema.get("items", {})]
        return ""

    @cached_property
    def resources(self) -> Mapping[str, Resource]:
        """The resources that an operation creates, by the path parameter with their ids."""
        operations = self.document.operations.values()
        found: dict[str, Resource] = {}
        for item in operations:
            folder, _, last = item.path.rpartition("/")
            key = last.strip("{}")
            if key == last or key in found:
                continue
            here = self.document.routed(item.path)[0]
            above = self.document.routed(folder)[0]
            shown = next(filter(None, map(self._shown_by, here.values())), "")
            made = self._shown_by(above["POST"]) if "POST" in above else shown
            creates = []
            for each in operations:
                is_create = each.method == "POST" and last not in each.path
                if made and is_create and self._shown_by(each) == made:
                    creates.append(each)
            if creates:
                found[key] = Resource(
                    shown or made,
                    key,
                    item.path,
                    (*creates,),
                    here.get("GET"),
                    above.get("GET"),
                    here.get("PUT") or here.get("PATCH"),
                    here.get("DELETE"),
                    self.document.lifecycles.get(shown or made),
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


def is_list(operation: Operation) -> bool:
    """Whether an operation answers pages of records."""
    return "page" in queried(operation)


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


def record_of(body: Any) -> Body:
    """The record in an answer, its first object with an id; an empty one where there is none."""
    return next((part for _, part in _parts(body) if is_record(part)), {})


def part_about(body: Any, ident: Any) -> Body:
    """The first object in an answer that names a record; the record in it where none does."""
    for _, part in _parts(body):
        if isinstance(part, dict) and ident in part.values():
            return part
    return record_of(body)


def entries_of(body: Any) -> list[Any]:
    """The records of a list, the first in an answer that has any."""
    for _, part in _parts(body):
        records = [*filter(is_record, part)] if isinstance(part, list) else []
        if records:
            return records
    return []


def aligned(body: Any, like: Any) -> Any:
    """An answer with its record, or its list of records, where another answer has it: what is
    around them is no matter of values.
    """
    for steps, part in _parts(like):
        own: Any = record_of(body)
        if isinstance(part, list) and any(map(is_record, part)):
            own = entries_of(body)
        elif not is_record(part):
            continue
        if not own or own is body or (steps and at(body, steps) is not None):
            return body
        for step in reversed(steps):
            own = {step: own}
        return body | own
    return body


def leave_out(body: Any, idents: Container[str]) -> None:
    """Take some records out of the lists in an answer."""
    for _, part in _parts(body):
        if isinstance(part, list):
            part[:] = [each for each in part if record_of(each).get("id") not in idents]


def is_record(part: Any) -> bool:
    """Whether a value is an object with an id."""
    return isinstance(part, dict) and "id" in part


def _parts(body: Any) -> Iterator[tuple[Steps, Any]]:
    """A body and the values in its objects with their places, the outer ones first."""
    pending = [(Steps(), body)]
    for steps, part in pending:  # which grows meanwhile
        yield steps, part
        for name, inner in part.items() if isinstance(part, dict) else ():
            pending.append(((*steps, name), inner))


def leaves(value: Any) -> list[Any]:
    """The texts, numbers and other plain values in a JSON value."""
    found: list[Any] = []
    with_leaves(value, found.append)
    return found


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value in which each plain value is what `change` makes of it."""
    if isinstance(value, Mapping):
        return {name: with_leaves(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_leaves(inner, change) for inner in value]
    return change(value)


def pointer_of(operation: Operation, *steps: str | int) -> str:
    """The pointer to an operation of the contract, or to something in it."""
    return below("#", *operation.at, *steps)


def body_of(operation: Operation) -> str:
    """The pointer to the schema of an operation's body."""
    return below("#", *operation.body_at)


def member_of(operation: Operation, *names: str) -> str:
    """The pointer to a member of an operation's body."""
    return below(body_of(operation), "properties", *names)
