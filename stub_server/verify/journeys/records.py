"""Lists find records, reads show what was changed, repeated requests have one effect, and moves are as allowed."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from ...contract.document import Operation
from ...kernel.record import UniqueKey
from ..catalogue import Resource, at, below, body_of, pointer_of, role_of
from ..probes import SETUP, UNKNOWN_ID, Builder, Flaw, Journey, Probe, Seen, placeholder

PAGES_DIFFER = "the pages together are not the list"
_SAME_BODY = "the same request with the same Idempotency-Key"
_OTHER_BODY = "another body with the same Idempotency-Key"


# -- lists


def narrowing(builder: Builder, resource: Resource, operation: Operation) -> dict[str, str]:
    """A query that only the journey's own records match; empty if there is none."""
    names = [p.name for p in operation.parameters if p.place == "query"]
    if "projectId" in names and any("projectId" in (builder.body(create) or {}) for create in resource.creates):
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.fresh.tag, "limit": "100"}
    return {}


def finds(builder: Builder, resource: Resource) -> Journey:
    """Create three records, and list them by every filter, in every order, and in pages."""
    listing, create = resource.list, resource.creates[0]
    if listing is None or not builder.may_prepare(create):
        return
    narrowed = narrowing(builder, resource, listing)
    if not narrowed:
        return
    yield from builder.prepare(create)
    bodies = [builder.plain(create), builder.body(create), builder.plain(create)]
    for number, body in enumerate(bodies, 1):
        makes = f"{resource.role} {number}" if number > 1 else resource.role
        yield builder.probe(create, SETUP, f"make {resource.role}", body=body, makes=makes)

    def asked(learns: str, suspect: str, pointer: str = "", **query: str) -> Probe:
        query = {**narrowed, **query}
        return builder.probe(listing, "finds", learns, pointer, query=query, suspect=suspect, narrowed=True)

    seen = yield asked("the whole list", "filter")
    if seen.has_departed:
        return
    values: list[tuple[str, str]] = []
    for number, parameter in enumerate(listing.parameters):
        name = parameter.name
        if parameter.place != "query" or name in ("page", "limit", "sort", *narrowed):
            continue
        pointer = pointer_of(listing, "parameters", number)
        for value in _filters(builder, name, parameter.schema, bodies[1]):
            found = yield asked(f"{name}={value[:60]}", "filter", pointer, **{name: value})
            if not found.has_departed:  # else its pairs would depart for the same cause
                values.append((name, value))
    for (first, value), (second, other) in pairwise(values):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})
    for number, parameter in enumerate(listing.parameters):
        if parameter.name == "sort":
            for option in parameter.schema.get("enum", ()):
                yield asked(f"sort={option}", "sort", pointer_of(listing, "parameters", number), sort=option)
    whole, pages = _ids(builder, listing, seen), list[Any]()
    for number in range(1, len(bodies) + 2):
        page = yield asked(f"page {number} with limit 1", "paging", page=str(number), limit="1")
        pages += _ids(builder, listing, page)
    if pages != whole[: len(pages)]:
        yield Flaw("paging", PAGES_DIFFER, "the entries of the list, in its order")
    yield asked("a page past the end", "paging", page="1000")


def _ids(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The ids of the entries of a list, in its order."""
    entries = at(seen.target.json(), builder.catalogue.entries_at(listing) or ())
    return [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _filters(builder: Builder, name: str, schema: Any, body: Any) -> Iterator[str]:
    """Values of a filter: those that match and one that does not, as far as the schema shows."""
    schema = builder.catalogue.document.resolve(schema)
    if "enum" in schema:
        yield from (str(option) for option in schema["enum"][:6])
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    elif schema.get("format") == "uuid":
        if name in builder.catalogue.resources and name != "subscriptionId":
            yield placeholder(role_of(name))
        yield UNKNOWN_ID
    elif schema.get("format") == "date-time":
        yield "2000-01-01T00:00:00Z"
        yield "2999-01-01T00:00:00Z"
    elif name == "search":
        yield builder.fresh.tag
        yield "verify-nothing"
    else:
        value = _found(body, name)
        if isinstance(value, str):
            yield value
            yield value.upper()
        yield "verify-nothing"


def _found(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value[name] if name in value else next(filter(None, (_found(v, name) for v in value.values())), None)
    return None


# -- memory


def repeats(builder: Builder, operation: Operation) -> Journey:
    """An operation with an Idempotency-Key, then the same request again, and another body with the same key."""
    if not operation.takes_key or not builder.may_prepare(operation):
        return
    yield from builder.prepare(operation)
    body, key = builder.body(operation), {"Idempotency-Key": builder.fresh.tag}
    pointer = _key_at(operation)
    other = builder.fresh.renewed({**(body or {}), **_another(builder, operation)})
    for learns, sent, suspect in (
        ("with an Idempotency-Key", body, ""),
        (_SAME_BODY, body, "idempotency"),
        (_OTHER_BODY, other, "idempotency"),
    ):
        yield builder.probe(
            operation, "remembers", learns, pointer, body=sent, headers=key, suspect=suspect, keeps=False
        )


def _another(builder: Builder, operation: Operation) -> dict[str, Any]:
    """A member with another value; in a body without text, all members."""
    properties = (builder.catalogue.body(operation) or {}).get("properties", {})
    for name, node in properties.items():
        schema = builder.catalogue.document.resolve(node)
        if schema.get("type") == "string" and "enum" not in schema and "format" not in schema:
            return {name: "verify otherwise"}
    return {name: builder.variants.sample(builder.catalogue.document.resolve(n)) for name, n in properties.items()}


def remembers(builder: Builder, resource: Resource) -> Journey:
    """Create a record, change it and delete it, and read it after each."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    body = builder.body(create)
    key = {"Idempotency-Key": builder.fresh.tag} if create.takes_key else {}

    def probe(operation: Operation, learns: str, suspect: str, pointer: str = "", **more: Any) -> Probe:
        return builder.probe(operation, "remembers", learns, pointer, suspect=suspect, **more)

    def read(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.read is not None:
            yield probe(resource.read, learns, suspect, pointer_of(about), about=about)

    def listed(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.list is not None and (query := narrowing(builder, resource, resource.list)):
            yield probe(resource.list, learns, suspect, pointer_of(about), query=query, narrowed=True, about=about)

    yield probe(create, "create", "", body=body, makes=resource.role, headers=key)
    yield from read("the created record", "not-persisted", create)
    yield from listed("the created record, in the list", "not-persisted", create)
    if key:
        for learns, sent in ((_SAME_BODY, body), (_OTHER_BODY, builder.body(create))):
            yield probe(create, learns, "idempotency", _key_at(create), body=sent, headers=key)
    for parent in builder.needs(create):
        if parent.read is not None:
            yield probe(parent.read, f"{parent.role} after the create", "figures")
            stats = builder.catalogue.document.operations.get("getProjectStats")
            if parent.key == "projectId" and stats is not None:
                yield probe(stats, "the statistics after the create", "figures")
    if (update := resource.update) is not None:
        for member, value in list(builder.body(update).items())[:4]:
            if resource.lifecycle is None or member != resource.lifecycle.field:
                yield probe(update, f"change {member} alone", "not-persisted", body={member: value})
                yield from read("the changed record", "not-persisted", update)
                yield from listed("the changed record, in the list", "not-persisted", update)
    if (delete := resource.delete) is not None:
        yield probe(delete, "delete", "not-deleted")
        yield from read("the deleted record", "not-deleted", delete)
        yield probe(delete, "delete again", "not-deleted")
        yield from listed("the list after the delete", "not-deleted", delete)


def unique(builder: Builder, resource: Resource) -> Journey:
    """A second record with a value that must be unique, also in another spelling."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    body = builder.body(create)
    yield builder.probe(create, SETUP, "create", body=body, makes=resource.role)
    for member, again in _duplicates(builder.catalogue.document.unique.get(resource.schema, ()), body):
        pointer = below(body_of(create), "properties", member)
        copied = {**builder.body(create), member: again}
        learns = f"{member} that another record has"
        yield builder.probe(create, "remembers", learns, pointer, body=copied, keeps=False, is_checked=False)


def _duplicates(keys: Iterable[UniqueKey], body: Any) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in spellings that count as equal."""
    for key in keys:
        member = key.members[0]
        value = body.get(member)
        if key.code is None or len(key.members) > 1 or not isinstance(value, str):
            continue
        yield member, value
        if "punctuation" in key.ignores:
            yield member, f"{value[:3]}.{value[3:6]}.{value[6:9]}-{value[9:]}"
        if "blanks" in key.ignores:
            yield member, f" {value.replace(' ', '  ')} "
        if "case" in key.ignores and value.upper() != value:
            yield member, value.upper()


def _key_at(operation: Operation) -> str:
    """The pointer to the parameter Idempotency-Key, else to the operation."""
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == "idempotency-key":
            return pointer_of(operation, "parameters", number)
    return pointer_of(operation)


# -- moves


def depends(builder: Builder, resource: Resource) -> Journey:
    """What is allowed to a record that others belong to, and to those others in each of its states."""
    children = [
        child
        for child in builder.catalogue.resources.values()
        if child is not resource and resource in builder.needs(child.creates[0])
    ]
    for child in children:
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
        for child in children:
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
