"""Lists find records, unique values are unique, what is deleted is gone, and moves are as allowed."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ....contract.document import Operation
from ....contract.source import Json
from ..catalogue import Resource, at, below, body_of, pointer_of, role_of
from ..probes import SETUP, UNKNOWN_ID, Builder, Flaw, Journey, Probe, Seen, placeholder

PAGES_DIFFER = "the pages together are not the list"
_PAGED = 3  # pages of one entry that are read
_TESTS = ("webhook.test", "order.paid")
"""Events of test deliveries, in whose log filters and orders are tried."""


# -- lists


def narrowing(builder: Builder, resource: Resource, operation: Operation) -> dict[str, str]:
    """A query that only the journeys' own records match; empty if there is none."""
    names = [p.name for p in operation.parameters if p.place == "query"]
    if "projectId" in names and any("projectId" in (builder.body(create) or {}) for create in resource.creates):
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.fresh.tag, "limit": "100"}
    return {}


def finds(builder: Builder, resource: Resource) -> Journey:
    """List records by every filter, in every order, and in pages. Those that can be deleted are made for it."""
    listing, create = resource.list, resource.creates[0]
    if listing is None or not builder.may_prepare(create):
        return
    narrowed = narrowing(builder, resource, listing)
    if not narrowed:
        return
    yield from builder.prepare(create)
    if resource.role not in builder.present:
        yield from builder.make(resource)
    if resource.delete is not None or f"{resource.role} more" not in builder.present:
        for body in (builder.body(create), builder.plain(create)):
            yield builder.probe(create, SETUP, f"make {resource.role}", body=body, makes=f"{resource.role} more")
    yield from _lists(builder, listing, narrowed, builder.present[resource.role])


def finds_logs(builder: Builder, operation: Operation) -> Journey:
    """List deliveries of tests by every filter, in every order, and in pages."""
    test = builder.document.operations.get("sendTestWebhook")
    if test is None or not builder.may_prepare(test):
        return
    yield from builder.prepare(test)
    for event in _TESTS:
        yield builder.probe(test, SETUP, "send a test", body={"event_type": event}, makes="the log")
    narrowed = {"limit": "100"} if "{" in operation.path else {"webhookId": "{the webhook}", "limit": "100"}
    yield from _lists(builder, operation, narrowed, {"event_type": _TESTS[0], "event_id": "{the log event}"})


def _lists(builder: Builder, listing: Operation, narrowed: dict[str, str], shown: Any) -> Journey:
    def asked(learns: str, suspect: str, pointer: str = "", **query: str) -> Probe:
        query = {**narrowed, **query}
        return builder.probe(listing, "filters", learns, pointer, query=query, suspect=suspect, narrowed=True)

    seen = yield asked("the whole list", "filter")
    if seen.has_departed:
        return
    values: list[tuple[str, str]] = []
    for number, parameter in enumerate(listing.parameters):
        name = parameter.name
        if parameter.place != "query" or name in ("page", "limit", "sort", "webhookId", *narrowed):
            continue
        pointer = pointer_of(listing, "parameters", number)
        for value in _filters(builder, name, parameter.schema, shown):
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
    for number in range(1, _PAGED + 1):
        page = yield asked(f"page {number} with limit 1", "paging", page=str(number), limit="1")
        pages += _ids(builder, listing, page)
    if pages != whole[: len(pages)]:
        yield Flaw("paging", PAGES_DIFFER, "the entries of the list, in its order")
    yield asked("a page past the end", "paging", page="1000")


def _ids(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The ids of the entries of a list, in its order."""
    entries = at(seen.target.json(), builder.catalogue.entries_at(listing) or ())
    return [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _filters(builder: Builder, name: str, schema: Json, shown: Any) -> Iterator[str]:
    """Values of a filter: those that match and one that does not, as far as the schema shows."""
    schema = builder.document.resolve(schema)
    value = _found(shown, name)
    if "enum" in schema:
        options = [value, *schema["enum"]] if value in schema["enum"] else schema["enum"]
        yield from dict.fromkeys(str(option) for option in options[:6])
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    elif schema.get("format") == "uuid":
        if role_of(name) in builder.present:
            yield placeholder(role_of(name))
        yield UNKNOWN_ID
    elif schema.get("format") == "date-time":
        yield "2000-01-01T00:00:00Z"
        yield "2999-01-01T00:00:00Z"
    elif isinstance(value, dict):
        yield from (f"{key}:{inner}" for key, inner in list(value.items())[:1])
        yield "verify:nothing"
    elif name == "search":
        yield builder.fresh.tag
        yield "verify-nothing"
    else:
        if isinstance(value, str):
            yield value
            if not value.startswith("{"):
                yield value.upper()
        yield "verify-nothing"


def _found(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value[name] if name in value else next(filter(None, (_found(v, name) for v in value.values())), None)
    return None


# -- unique values, and what a delete leaves


def unique(builder: Builder, resource: Resource) -> Journey:
    """A value that must be unique, for a second record and for a change, also in another spelling."""
    create, update = resource.creates[0], resource.update
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    first = {**builder.body(create)}
    if resource.delete is None and resource.role in builder.present:
        first = builder.present[resource.role]
    else:
        yield builder.probe(create, SETUP, "create", body=first, makes=f"{resource.role} first")
    for member, again in _duplicates(builder, resource, first):
        pointer = below(body_of(create), "properties", member)
        learns = f"{member} that another record has"
        body = {**builder.body(create), member: again}
        yield builder.probe(create, "persists", learns, pointer, body=body, keeps=False, is_checked=False)
    if update is None or not builder.may(update):
        return
    second = f"{resource.role} more"
    if second not in builder.present:
        yield builder.probe(create, SETUP, "create another", body=builder.body(create), makes=second)
    path = builder.path(update, **{resource.key: placeholder(second)})
    for member, again in _duplicates(builder, resource, first):
        pointer = below(body_of(update), "properties", member)
        learns = f"change to a {member} that another record has"
        sent = builder.harmless(update, {member: again})
        yield builder.probe(update, "persists", learns, pointer, path=path, body=sent, keeps=False, is_checked=False)


def _duplicates(builder: Builder, resource: Resource, body: Any) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in spellings that count as equal."""
    for key in builder.document.unique.get(resource.schema, ()):
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


def remembers(builder: Builder, resource: Resource) -> Journey:
    """What the parents of a record count, what the list has of it, and what is left of it when it was deleted."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    if resource.delete is not None or resource.role not in builder.present:
        yield from builder.make(resource)

    def probe(operation: Operation, learns: str, suspect: str, pointer: str = "", **more: Any) -> Probe:
        return builder.probe(operation, "persists", learns, pointer, suspect=suspect, **more)

    def seen_by(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.list is not None and (query := narrowing(builder, resource, resource.list)):
            where = f"{learns}, in the list"
            yield probe(resource.list, where, suspect, pointer_of(about), query=query, narrowed=True, about=about)
        if resource.read is not None:
            yield probe(resource.read, learns, suspect, pointer_of(about), about=about)

    yield from seen_by("the created record", "not-persisted", create)
    for parent in builder.needs(create):
        if parent.read is not None:
            yield probe(parent.read, f"{parent.role} after the create", "figures")
            stats = builder.document.operations.get("getProjectStats")
            if parent.key == "projectId" and stats is not None:
                yield probe(stats, "the statistics after the create", "figures")
    if (delete := resource.delete) is not None and builder.may(delete):
        builder.present.pop(resource.role)
        yield probe(delete, "delete", "not-deleted")
        yield from seen_by("the deleted record", "not-deleted", delete)
        yield probe(delete, "delete again", "not-deleted")


# -- moves


def depends(builder: Builder, resource: Resource, child: Resource) -> Journey:
    """What is allowed to a record that another belongs to, and to that other one in each of its states."""
    create = child.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    yield from builder.make(child)
    for verb, operation in (("change", resource.update), ("delete", resource.delete)):
        if operation is not None:
            learns = f"{verb} {resource.role} that has {child.role}"
            yield _move(builder, operation, builder.body(operation), learns, keeps=False)
    builder.present.clear()
    if resource.lifecycle is None:
        return
    for state, (_, steps) in _routes(builder, resource, list(_ways(builder, resource))).items():
        if not steps:
            continue
        yield from builder.prepare(create)
        yield from builder.make(child)
        for by, sent in steps:
            yield _move(builder, by, sent, f"to {state}")
        for operation in (create, child.update, child.delete):
            if operation is not None:
                learns = f"{operation.id} while {resource.role} is {state}"
                yield _move(builder, operation, builder.body(operation), learns, keeps=False)
        builder.present.clear()


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
            yield from builder.make(resource, **begin)
            for by, sent in steps:
                yield _move(builder, by, sent, f"to {state}")
            learns = f"{operation.id}{' ' + str(body) if body else ''} from {state}"
            yield _move(builder, operation, body, learns)
            if resource.read is not None and operation != resource.delete:
                where = below("#/components/schemas", resource.schema, "x-lifecycle")
                yield builder.probe(
                    resource.read, "transitions", f"after {learns}", where, suspect="lifecycle", about=operation
                )
            if operation != resource.delete:
                yield from builder.delete(resource, resource.role)
    builder.present.pop(resource.role, None)


def _move(builder: Builder, operation: Operation, body: Any, learns: str, *, keeps: bool = True) -> Probe:
    return builder.probe(operation, "transitions", learns, body=body, suspect="lifecycle", keeps=keeps)


def _ways(builder: Builder, resource: Resource) -> Iterator[tuple[Operation, Any]]:
    """The requests by which a record may move."""
    lifecycle = resource.lifecycle
    assert lifecycle is not None
    by = {name for move in lifecycle.moves for name in move.by}
    for operation in builder.document.operations.values():
        if operation.id not in by or f"{{{resource.key}}}" not in operation.path or not builder.may(operation):
            continue
        schema = builder.catalogue.body(operation)
        field = (schema or {}).get("properties", {}).get(lifecycle.field)
        if field is None:
            yield operation, None if schema is None else {}
            continue
        node = builder.document.resolve(field)
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
