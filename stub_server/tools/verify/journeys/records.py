"""Unique values are unique, what is deleted is gone, and moves are as allowed."""

from collections.abc import Iterator
from typing import Any

from ....contract.document import Operation
from ....contract.lifecycles import Lifecycle
from ..catalogue import Resource, below, body_of, path_names, pointer_of
from ..probes import Builder, Journey, Probe, placeholder
from .listing import narrowing

_Way = tuple[Operation, Any]
"""A request by which a record may move: the operation and its body."""


def unique(builder: Builder, resource: Resource) -> Journey:
    """A value that must be unique, for a second record and for a change, also in
    another spelling.
    """
    create, update = resource.create, resource.update
    if resource.delete is None:
        yield from builder.ready(resource)
    else:
        yield builder.make(resource, **builder.body(create))
    for operation in (create, update):
        if operation is None or not builder.may(operation):
            continue
        for member, again in _duplicates(builder, resource):
            second = placeholder(f"{resource.role} more")
            yield builder.probe(
                operation,
                "persists",
                f"{member} that another record has, in {operation.id}",
                below(body_of(operation), "properties", member),
                path=builder.path(operation, **{resource.key: second}),
                body={**(builder.body(create) if operation == create else {}), member: again},
            )


def _duplicates(builder: Builder, resource: Resource) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in spellings that count as equal."""
    for key in builder.document.unique.get(resource.schema, ()):
        member = key.members[0]
        value = builder.present[resource.role].get(member)
        if key.code is None or len(key.members) > 1 or not isinstance(value, str):
            continue
        spellings = {
            "punctuation": f"{value[:3]}.{value[3:6]}.{value[6:9]}-{value[9:]}",
            "blanks": f" {value.replace(' ', '  ')} ",
            "case": value.upper(),
        }
        yield member, value
        yield from ((member, spellings[name]) for name in spellings if name in key.ignores)


def remembers(builder: Builder, resource: Resource) -> Journey:
    """What the parents of a record count, what the list has of it, and what is left of it when it
    was deleted.
    """
    create, delete = resource.create, resource.delete
    if delete is not None or resource.role not in builder.present:
        yield builder.make(resource)
    query = narrowing(builder, resource)

    def probe(asked: Operation, learns: str, suspect: str, **more: Any) -> Probe:
        return builder.probe(asked, "persists", learns, suspect=suspect, keeps=True, **more)

    def seen_by(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        more = {"pointer": pointer_of(about), "about": about}
        if resource.list is not None and query:
            where = f"{learns}, in the list"
            yield probe(resource.list, where, suspect, query=query, narrowed=True, **more)
        if resource.read is not None:
            yield probe(resource.read, learns, suspect, **more)

    yield from seen_by("the created record", "not-persisted", create)
    for parent in builder.needs(create):
        # What is read below a record, such as its statistics, counts it too.
        for each in builder.document.operations.values():
            is_below = each.method == "GET" and path_names(each) == [parent.key]
            if is_below and builder.may(each):
                yield probe(each, f"{parent.role} after the create", "figures")
    if delete is not None and builder.may(delete):
        yield probe(delete, "delete", "lifecycle")
        yield from seen_by("the deleted record", "not-deleted", delete)
        yield probe(delete, "delete again", "not-deleted")
        builder.present.pop(resource.role)


# -- moves


def depends(builder: Builder, resource: Resource, child: Resource) -> Journey:
    """What is allowed to a record that another belongs to, and to that other one in each
    of the states that an update reaches.
    """
    update, others = resource.update, (*child.creates, child.update, child.delete)

    def begin() -> Journey:
        """All that requests about the other one name: later it may be refused."""
        for kind in builder.needs(child.create):
            yield from builder.ready(kind)
        yield builder.make(child)

    yield from begin()
    for verb, operation in (("change", update), ("delete", resource.delete)):
        if operation is not None:
            yield _move(builder, operation, f"{verb} {resource.role} that has {child.role}")
    field = "status" if resource.lifecycle is None else resource.lifecycle.field
    builder.present.clear()
    if update is None:
        return
    for option in _options(builder, update, field):
        yield from begin()
        seen = yield _to(builder, update, field, option)
        for operation in filter(None, others if seen.twin.is_success else ()):
            yield _move(builder, operation, f"{operation.id} while {resource.role} is {option}")
        builder.present.clear()


def moves(builder: Builder, resource: Resource) -> Iterator[Journey]:
    """From every state in which a record can be made, or to which an update moves it, every move
    that operations could make: a journey each, since one that departs tells nothing of others.
    """
    create, update, lifecycle = resource.create, resource.update, resource.lifecycle
    if lifecycle is None or update is None:
        return
    field, ways = lifecycle.field, [*_ways(builder, resource, lifecycle)]

    def move(state: Any, operation: Operation, body: Any) -> Journey:
        begins = state in _options(builder, create, field)
        yield builder.make(resource, **({field: state} if begins else {}))
        if not begins:
            yield _to(builder, update, field, state)
        learns = f"{operation.id}{' ' + str(body) if body else ''} from {state}"
        yield _move(builder, operation, learns, body, keeps=True)

    for state in _options(builder, update, field):
        for way in ways:
            yield move(state, *way)
    builder.present.pop(resource.role, None)


def _to(builder: Builder, update: Operation, field: str, state: Any) -> Probe:
    return _move(builder, update, f"to {state}", {field: state}, keeps=True)


def _move(
    builder: Builder, operation: Operation, learns: str, body: Any = None, **more: Any
) -> Probe:
    sent = builder.body(operation) if body is None else body
    return builder.probe(operation, "transitions", learns, body=sent, suspect="lifecycle", **more)


def _ways(builder: Builder, resource: Resource, lifecycle: Lifecycle) -> Iterator[_Way]:
    """The requests by which a record may move."""
    by = {name for move in lifecycle.moves for name in move.by}
    for operation in builder.document.operations.values():
        is_of_record = operation.id in by and f"{{{resource.key}}}" in operation.path
        if not is_of_record or not builder.may(operation):
            continue
        if lifecycle.field not in (builder.body(operation) or ()):
            yield operation, None  # also a change of other members: a state may allow none
        for option in _options(builder, operation, lifecycle.field):
            yield operation, {lifecycle.field: option}


def _options(builder: Builder, operation: Operation, member: str) -> list[Any]:
    """The values that a member of a body may have."""
    node = builder.document.resolve(builder.properties(operation).get(member, {}))
    return [True, False] if node.get("type") == "boolean" else builder.variants.options(node)
