"""Every filter and every order of a list, and pages that together are the whole list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...contract.document import Operation
from ..building import SETUP, UNKNOWN_ID, Builder
from ..places import pointer_of
from ..probe import Flaw, Journey, Probe, Seen, placeholder
from ..resources import Resource, at, role_of

PAGES_DIFFER = "the pages together are not the list"


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
    entries = at(seen.body, builder.catalogue.entries_at(listing) or ())
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
