"""Every filter, every order, and pages that together are the whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...contract.document import Operation
from ..building import Builder
from ..places import pointer_of
from ..probe import Flaw, Probe, Seen, Steps
from ..resources import Resource, at, role_of
from ..roles import placeholder
from .parts import NOWHERE_ID, keys_of


def narrowing(builder: Builder, resource: Resource, operation: Operation) -> dict[str, str]:
    """A query that leaves the journey's own records alone, or nothing."""
    names = [p.name for p in operation.parameters if p.place == "query"]
    if "projectId" in names and any("projectId" in keys_of(builder.body(create)) for create in resource.creates):
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.fresh.tag, "limit": "100"}
    return {}


def finds(builder: Builder, resource: Resource) -> Steps:
    """Every filter, every order, and pages that together are the whole."""
    listing, create = resource.list, resource.creates[0]
    if listing is None or not builder.may_make(create):
        return
    narrowed = narrowing(builder, resource, listing)
    if not narrowed:
        return
    yield from builder.setup(builder.needs(create, builder.body(create)))
    bodies = [builder.plain(create), builder.body(create), builder.plain(create)]
    for number, body in enumerate(bodies, 1):
        made = Probe(
            create, create.method, builder.path(create), "setup", f"make {resource.role}", pointer_of(create),
            body=body, makes=f"{resource.role} {number}" if number > 1 else resource.role,
        )  # fmt: skip
        yield made
    path, where = builder.path(listing), pointer_of(listing)

    def asked(learns: str, suspect: str, pointer: str = where, **query: str) -> Probe:
        return Probe(
            listing, listing.method, path, "finds", learns, pointer, query={**narrowed, **query}, suspect=suspect,
            narrowed=True,
        )  # fmt: skip

    seen = yield asked("all of them", "filter")
    if seen.has_departed:
        return
    values: list[tuple[str, str]] = []
    for number, parameter in enumerate(listing.parameters):
        name = parameter.name
        if parameter.place != "query" or name in ("page", "limit", "sort", *narrowed):
            continue
        pointer = pointer_of(listing, "parameters", number)
        for value in _filters(builder, name, parameter.schema, seen, bodies[1], resource):
            values.append((name, value))
            yield asked(f"{name}={value[:60]}", "filter", pointer, **{name: value})
    for (first, value), (second, other) in pairwise(values):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})
    for number, parameter in enumerate(listing.parameters):
        if parameter.name == "sort":
            for option in parameter.schema.get("enum", ()):
                yield asked(f"sort={option}", "sort", pointer_of(listing, "parameters", number), sort=option)
    whole, pages = _ids(builder, listing, seen), list[Any]()
    for number in range(1, len(bodies) + 2):
        page = yield asked(f"page {number} of one", "paging", page=str(number), limit="1")
        pages += _ids(builder, listing, page)
    if pages != whole[: len(pages)] and not seen.has_departed:
        yield Flaw("paging", "pages put together are not the list", "the entries of the list, in its order")
    yield asked("a page past the end", "paging", page="1000")


def _ids(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The ids of the entries of a list, in its order."""
    entries = at(seen.body, builder.catalogue.entries_at(listing) or ())
    return [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _filters(builder: Builder, name: str, schema: Any, seen: Seen, body: Any, resource: Resource) -> Iterator[str]:
    """Values of a filter: those that match and one that does not, as far as the schema tells."""
    schema = builder.catalogue.document.resolve(schema)
    if "enum" in schema:
        yield from (str(option) for option in schema["enum"][:6])
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    elif schema.get("format") == "uuid":
        yield (
            placeholder(role_of(name))
            if name in builder.catalogue.resources and name != "subscriptionId"
            else NOWHERE_ID
        )
        yield NOWHERE_ID
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
