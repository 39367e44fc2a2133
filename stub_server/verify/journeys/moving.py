"""Every move from every state that operations reach; and what is allowed to records that belong to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...contract.document import Operation
from ..building import Builder
from ..places import below
from ..probe import Journey, Probe
from ..resources import Resource


def depends(builder: Builder, resource: Resource) -> Journey:
    """What is allowed to a record that others belong to, and to those others in each of its states."""
    below = [
        child
        for child in builder.catalogue.resources.values()
        if child is not resource and resource in builder.needs(child.creates[0])
    ]
    for child in below:
        if not builder.may_prepare(child.creates[0]):
            continue
        yield from builder.prepare(child.creates[0])
        yield builder.make(child)
        for verb, operation in (("change", resource.update), ("delete", resource.delete)):
            if operation is not None:
                learns = f"{verb} {resource.role} that has {child.role}"
                yield _move(builder, operation, builder.body(operation), learns, keeps=False)
    if resource.lifecycle is None:
        return
    routes = _routes(builder, resource, list(_ways(builder, resource)))
    for state, (_, steps) in routes.items():
        for child in below:
            create = child.creates[0]
            if not builder.may_prepare(create) or not steps:
                continue
            yield from builder.prepare(create)
            yield builder.make(child)
            for by, sent in steps:
                yield _move(builder, by, sent, f"to {state}")
            for operation in (create, child.update, child.delete):
                if operation is not None:
                    learns = f"{operation.id} while {resource.role} is {state}"
                    yield _move(builder, operation, builder.body(operation), learns, keeps=False)


def moves(builder: Builder, resource: Resource) -> Journey:
    """From every state that operations reach, every move that they could make."""
    lifecycle, create = resource.lifecycle, resource.creates[0]
    if lifecycle is None or not builder.may_prepare(create):
        return
    ways = list(_ways(builder, resource))
    routes = _routes(builder, resource, ways)
    yield from builder.prepare(create)
    for state, (begin, steps) in routes.items():
        for operation, body in ways:
            yield builder.make(resource, **begin)
            for by, sent in steps:
                yield _move(builder, by, sent, f"to {state}")
            learns = f"{operation.id}{' ' + str(body) if body else ''} from {state}"
            yield _move(builder, operation, body, learns)
            if resource.read is not None and operation != resource.delete:
                where = below("#/components/schemas", resource.schema, "x-lifecycle")
                yield builder.probe(resource.read, "moves", f"after {learns}", where, suspect="lifecycle")
            if operation != resource.delete:
                yield from builder.delete(resource, resource.role)


def _move(builder: Builder, operation: Operation, body: Any, learns: str, *, keeps: bool = True) -> Probe:
    return builder.probe(operation, "moves", learns, body=body, suspect="lifecycle", keeps=keeps)


def _ways(builder: Builder, resource: Resource) -> Iterator[tuple[Operation, Any]]:
    """The requests by which a record may move."""
    lifecycle = resource.lifecycle
    assert lifecycle is not None
    by = {name for move in lifecycle.moves for name in move.by}
    for operation in builder.catalogue.document.operations.values():
        if operation.id not in by or f"{{{resource.key}}}" not in operation.path or not builder.may(operation):
            continue
        schema = builder.catalogue.body(operation)
        field = (schema or {}).get("properties", {}).get(lifecycle.field)
        if field is None:
            yield operation, None if schema is None else {}
            continue
        node = builder.catalogue.document.resolve(field)
        options = [True, False] if node.get("type") == "boolean" else node.get("enum", ())
        yield from ((operation, {lifecycle.field: option}) for option in options if option is not None)


def _routes(
    builder: Builder, resource: Resource, ways: list[tuple[Operation, Any]]
) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """How a record gets into each state: members of the body that makes it, and the requests after that."""
    lifecycle = resource.lifecycle
    assert lifecycle is not None
    makers = {operation.id for operation in resource.creates}
    known = (builder.catalogue.body(resource.creates[0]) or {}).get("properties", {})
    routes: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for move in lifecycle.moves:
        if move.from_ == "new" and makers & set(move.by):
            chosen = {lifecycle.field: _state(lifecycle.field, move.to)}
            routes[move.to] = (chosen if lifecycle.field in known else {}, [])
    while True:
        for move in lifecycle.moves:
            if move.from_ in routes and move.to not in routes and move.to != "deleted":
                way = next((w for w in ways if w[0].id in move.by and _leads(w, lifecycle.field, move.to)), None)
                if way is not None:
                    begin, steps = routes[move.from_]
                    routes[move.to] = (begin, [*steps, way])
                    break
        else:
            return routes


def _leads(way: tuple[Operation, Any], field: str, state: str) -> bool:
    body = way[1]
    return not body or body.get(field) == _state(field, state)


def _state(field: str, state: str) -> Any:
    """The value of a member in a state: true or false if the states are `active` and its opposite."""
    return state == "active" if field.startswith("is_") else state
