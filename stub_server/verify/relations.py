"""Journeys that only read: what must hold between answers of the target itself, whatever records it has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from ..contract.document import Operation
from .building import Builder, encoded
from .journeys.refusing import refuses
from .places import pointer_of
from .probe import Flaw, Probe, Seen
from .resources import Resource, at

Reads = Generator["Probe | Flaw", Seen, None]
_SHOWN = 100  # entries of a list that are looked at
_EACH = 2  # records that are read by their ids


def lists(builder: Builder, resource: Resource | None, operation: Operation) -> Reads:
    """A list: its filters, its orders and its pages, and each entry beside the record itself."""
    steps = builder.catalogue.entries_at(operation)
    if steps is None or "{" in operation.path:
        return
    where, names = pointer_of(operation), [p.name for p in operation.parameters]

    def asked(learns: str, pointer: str = where, suspect: str = "", **query: str) -> Probe:
        return _alone(operation, operation.path, learns, pointer, suspect, limit=str(_SHOWN), **query)

    def entries(seen: Seen) -> list[Any]:
        found = at(seen.body, steps)
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    whole = yield asked("all of them")
    known = entries(whole)
    is_whole = len(known) < _SHOWN
    for number, parameter in enumerate(operation.parameters):
        name, pointer = parameter.name, pointer_of(operation, "parameters", number)
        for value, holds in _filters(builder, name, parameter.schema, known):
            seen = yield asked(f"{name}={value}", pointer, **{name: value})
            found = entries(seen)
            if any(not holds(entry) for entry in found):
                yield Flaw("filter", f"a value of {name} lists an entry that does not match", "entries that match")
            elif is_whole and [e for e in known if e.get("id") is not None and holds(e)] and not found:
                yield Flaw("filter", f"a value of {name} lists nothing, though an entry matches", "entries that match")
        if name == "sort":
            for option in parameter.schema.get("enum", ()):
                seen = yield asked(f"sort={option}", pointer, "sort", sort=option)
                if is_whole and {e.get("id") for e in entries(seen)} != {e.get("id") for e in known}:
                    yield Flaw("sort", f"sort={option} lists other entries", "the same entries")
    if {"page", "limit"} <= set(names) and len(known) > 1:
        ids: list[Any] = []
        for page in range(1, 4):
            seen = yield _alone(operation, operation.path, f"page {page} of two", where, page=str(page), limit="2")
            ids += [entry.get("id") for entry in entries(seen)]
        again = entries((yield asked("all of them again")))
        if [e.get("id") for e in again] == [e.get("id") for e in known] and ids != [e.get("id") for e in known][:6]:
            yield Flaw("paging", "pages put together are not the list", "the entries of the list, in its order")
    if resource is not None and resource.read is not None:
        yield from _records(builder, resource, known)


def _records(builder: Builder, resource: Resource, known: list[Any]) -> Reads:
    read = resource.read
    assert read is not None
    place = builder.catalogue.record_at(read)
    for entry in known[:_EACH]:
        ident = entry.get("id")
        if not isinstance(ident, str) or place is None:
            continue
        path = read.path.replace(f"{{{resource.key}}}", encoded(ident))
        seen = yield _alone(read, path, "a record of the list", pointer_of(read))
        record = at(seen.body, place[0])
        if not isinstance(record, dict):
            continue
        for member in sorted(entry.keys() & record.keys()):
            if entry[member] != record[member]:
                yield Flaw("value", f"{member} differs between the list and the record", "the same value")
        for other in builder.catalogue.document.operations.values():
            inside = f"{{{resource.key}}}"
            if other.method == "GET" and inside in other.path and other != read and other.path.count("{") == 1:
                yield _alone(other, other.path.replace(inside, encoded(ident)), "of a record", pointer_of(other))


def others(builder: Builder, operation: Operation) -> Reads:
    """What needs no record: the answer, the parameters, and who may not ask."""
    path, where = operation.path, pointer_of(operation)
    if "{" not in path:
        yield _alone(operation, path, "ask", where)
        for number, parameter in enumerate(operation.parameters):
            if parameter.place != "query":
                continue
            pointer = pointer_of(operation, "parameters", number, "schema")
            for variant in builder.variants.of_parameter(parameter.schema, pointer, parameter.name, builder.fresh):
                value = str(variant.value).lower() if isinstance(variant.value, bool) else str(variant.value)
                group, query = ("says_yes" if variant.is_accepted else "says_no"), {parameter.name: value}
                yield Probe(operation, "GET", path, group, variant.tries, variant.pointer, query=query, keeps=False)
    yield from refuses(builder, operation, {})


def _alone(operation: Operation, path: str, learns: str, pointer: str, suspect: str = "", **query: str) -> Probe:
    return Probe(
        operation, "GET", path, "finds" if query else "says_yes", learns, pointer, query=query, suspect=suspect,
        is_alone=True, keeps=False,
    )  # fmt: skip


def _filters(builder: Builder, name: str, schema: Any, known: list[Any]) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Values of a filter, and whether an entry matches each."""
    schema = builder.catalogue.document.resolve(schema)
    if name in ("page", "limit", "sort", "search"):
        return
    if schema.get("format") == "date-time" and name.startswith("created_"):
        member = next((m for m in ("createdAt", "created_at") if known and m in known[0]), None)
        if member is not None:
            middle = str(known[len(known) // 2][member])
            since = name.endswith("since")
            yield middle, lambda entry: str(entry[member]) >= middle if since else str(entry[member]) <= middle
        return
    values = [entry[name] for entry in known if isinstance(entry.get(name), (str, bool))]
    for value in [*dict.fromkeys(values)][:3]:
        text = str(value).lower() if isinstance(value, bool) else value
        yield text, lambda entry, value=value: _folded(entry.get(name)) == _folded(value)  # type: ignore[misc]


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
