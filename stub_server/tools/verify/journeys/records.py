"""Unique values are unique, what is deleted is gone, and moves are as allowed."""

from collections.abc import Iterator
from typing import Any

from ....contract.document import Operation
from ..catalogue import Resource, below, body_of, path_names, pointer_of
from ..probes import SETUP, Builder, Journey, Probe, placeholder
from .listing import narrowing

_Way = tuple[Operation, Any]
"""A request by which a record may move: the operation and its body."""


def unique(builder: Builder, resource: Resource) -> Journey:
    """A value that must be unique, for a second record and for a change, also in
    another spelling.
    """
    create, update = resource.creates[0], resource.update
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    first = builder.body(create)
    if resource.delete is None and resource.role in builder.present:
        first = builder.present[resource.role]
    else:
        yield builder.probe(
            create, SETUP, "create", body=first, makes=f"{resource.role} first", keeps=True
        )
    for member, again in _duplicates(builder, resource, first):
        body, pointer = (
            {**builder.body(create), member: again},
            below(body_of(create), "properties", member),
        )
        learns = f"{member} that another record has"
        yield builder.probe(create, "persists", learns, pointer, body=body, is_checked=False)
    if update is None or not builder.may(update):
        return
    second = f"{resource.role} more"
    if second not in builder.present:
        yield builder.probe(
            create, SETUP, "create another", body=builder.body(create), makes=second, keeps=True
        )
    path = builder.path(update, **{resource.key: placeholder(second)})
    for member, again in _duplicates(builder, resource, first):
        sent, pointer = (
            builder.harmless(update, {member: again}),
            below(body_of(update), "properties", member),
        )
        learns = f"change to a {member} that another record has"
        yield builder.probe(
            update, "persists", learns, pointer, path=path, body=sent, is_checked=False
        )


def _duplicates(builder: Builder, resource: Resource, body: Any) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in spellings that count as equal."""
    for key in builder.document.unique.get(resource.schema, ()):
        member = key.members[0]
        value = body.get(member)
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
    create, delete = resource.creates[0], resource.delete
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    if delete is not None or resource.role not in builder.present:
        yield from builder.make(resource)

    def probe(
        operation: Operation, learns: str, suspect: str, pointer: str = "", **more: Any
    ) -> Probe:
        return builder.probe(
            operation, "persists", learns, pointer, suspect=suspect, keeps=True, **more
        )

    def seen_by(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.list is not None and (query := narrowing(builder, resource, resource.list)):
            where = f"{learns}, in the list"
            yield probe(
                resource.list,
                where,
                suspect,
                pointer_of(about),
                query=query,
                narrowed=True,
                about=about,
            )
        if resource.read is not None:
            yield probe(resource.read, learns, suspect, pointer_of(about), about=about)

    yield from seen_by("the created record", "not-persisted", create)
    for parent in builder.needs(create):
        # What is read below a record, such as its statistics, counts it too.
        for operation in builder.document.operations.values():
            if (
                operation.method == "GET"
                and path_names(operation) == [parent.key]
                and builder.may(operation)
            ):
                yield probe(operation, f"{parent.role} after the create", "figures")
    if delete is not None and builder.may(delete):
        builder.present.pop(resource.role)
        yield probe(delete, "delete", "")
        yield from seen_by("the deleted record", "not-deleted", delete)
        yield probe(delete, "delete again", "not-deleted")


# -- moves


def depends(builder: Builder, resource: Resource, child: Resource) -> Journey:
    """What is allowed to a record that another belongs to, and to that other one in each
    of its states.
    """
    create = child.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    yield from builder.make(child)
    for verb, operation in (("change", resource.update), ("delete", resource.delete)):
        if operation is not None:
            yield _move(
                builder,
                (operation, builder.body(operation)),
                f"{verb} {resource.role} that has {child.role}",
            )
    builder.present.clear()
    routes = _routes(builder, resource, _ways(builder, resource))
    for state, (_, steps) in routes.items():
        if not steps:
            continue
        yield from builder.prepare(create)
        yield from builder.make(child)
        for step in steps:
            yield _move(builder, step, f"to {state}", keeps=True)
        for operation in (*child.creates, child.update, child.delete):
            if operation is not None:
                learns = f"{operation.id} while {resource.role} is {state}"
                yield _move(builder, (operation, builder.body(operation)), learns)
        builder.present.clear()


def moves(builder: Builder, resource: Resource) -> Journey:
    """From every state that operations reach, every move that they could make."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    ways = _ways(builder, resource)
    yield from builder.prepare(create)
    for state, (begin, steps) in _routes(builder, resource, ways).items():
        for operation, body in ways:
            yield from builder.make(resource, **begin)
            for step in steps:
                yield _move(builder, step, f"to {state}", keeps=True)
            learns = f"{operation.id}{' ' + str(body) if body else ''} from {state}"
            yield _move(builder, (operation, body), learns, keeps=True)
            if operation == resource.delete:
                continue
            yield from builder.delete(resource, resource.role)
    builder.present.pop(resource.role, None)


def _move(builder: Builder, way: _Way, learns: str, *, keeps: bool = False) -> Probe:
    return builder.probe(
        way[0], "transitions", learns, body=way[1], suspect="lifecycle", keeps=keeps
    )


def _ways(builder: Builder, resource: Resource) -> list[_Way]:
    """The requests by which a record may move."""
    lifecycle = resource.lifecycle
    by = {name for move in lifecycle.moves for name in move.by} if lifecycle else set[str]()
    ways: list[_Way] = []
    for operation in builder.document.operations.values():
        if (
            operation.id not in by
            or f"{{{resource.key}}}" not in operation.path
            or not builder.may(operation)
        ):
            continue
        assert lifecycle is not None
        field = builder.properties(operation).get(lifecycle.field)
        if field is None:
            ways.append((operation, None if operation.body is None else {}))
            continue
        node = builder.document.resolve(field)
        options = [True, False] if node.get("type") == "boolean" else node.get("enum", ())
        ways += [(operation, {lifecycle.field: option}) for option in options if option is not None]
    return ways


def _routes(
    builder: Builder, resource: Resource, ways: list[_Way]
) -> dict[str, tuple[dict[str, Any], list[_Way]]]:
    """How a record gets into each state: members of the body that makes it, and the
    requests after that.
    """
    lifecycle, update, routes = (
        resource.lifecycle,
        resource.update,
        dict[str, tuple[dict[str, Any], list[_Way]]](),
    )
    if lifecycle is None:  # a status that any update may set
        status = (
            {}
            if update is None
            else builder.document.resolve(builder.properties(update).get("status", {}))
        )
        return {
            option: ({}, [(update, {"status": option})])
            for option in status.get("enum", ())
            if update is not None
        }
    makers, known = (
        {operation.id for operation in resource.creates},
        builder.properties(resource.creates[0]),
    )
    for move in lifecycle.moves:
        if move.from_ == "new" and makers & set(move.by):
            chosen = (
                {lifecycle.field: _value(lifecycle.field, move.to)}
                if lifecycle.field in known
                else {}
            )
            routes[move.to] = (chosen, [])
    for _ in lifecycle.states:  # each round goes one move further
        for move in lifecycle.moves:
            if move.from_ not in routes or move.to in routes or move.to == "deleted":
                continue
            value = _value(lifecycle.field, move.to)
            way = next(
                (
                    w
                    for w in ways
                    if w[0].id in move.by and (w[1] or {}).get(lifecycle.field, value) == value
                ),
                None,
            )
            if way is not None:
                begin, steps = routes[move.from_]
                routes[move.to] = (begin, [*steps, way])
    return routes


def _value(field: str, state: str) -> Any:
    """The value of a member in a state: true or false if the states are `active` and
    its opposite.
    """
    return state == "active" if field.startswith("is_") else state
