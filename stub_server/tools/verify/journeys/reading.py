"""Journeys that only read: what must hold between the answers of the target, whatever records it has."""

from collections.abc import Callable, Iterator
from typing import Any

from ....contract.document import Operation
from ..catalogue import Resource, at, pointer_of
from ..probes import Builder, Flaw, Journey, Probe, Seen, encoded, query_text
from .accepting import parameters, refuses
from .records import PAGES_DIFFER

_SHOWN = 100  # entries of a list that are looked at
_EACH = 2  # records that are read by their ids


def lists(builder: Builder, resource: Resource | None, operation: Operation) -> Journey:
    """A list: its filters, its orders and its pages; and some records, compared with their entries in it."""
    steps = builder.catalogue.entries_at(operation)
    if steps is None or "{" in operation.path:
        return

    def asked(learns: str, pointer: str = "", suspect: str = "", **query: str) -> Probe:
        return _alone(builder, operation, learns, pointer, suspect, **{"limit": str(_SHOWN), **query})

    def entries(seen: Seen) -> list[Any]:
        found = at(seen.target.json(), steps)
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    whole = yield asked("the whole list")
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
    if {"page", "limit"} <= {parameter.name for parameter in operation.parameters} and len(known) > 1:
        ids: list[Any] = []
        for page in range(1, 4):
            seen = yield asked(f"page {page} with limit 2", page=str(page), limit="2")
            ids += [entry.get("id") for entry in entries(seen)]
        again = entries((yield asked("all of them again")))
        if [e.get("id") for e in again] == [e.get("id") for e in known] and ids != [e.get("id") for e in known][:6]:
            yield Flaw("paging", PAGES_DIFFER, "the entries of the list, in its order")
    if resource is not None and resource.read is not None:
        yield from _records(builder, resource, known)


def _records(builder: Builder, resource: Resource, known: list[Any]) -> Journey:
    read = resource.read
    assert read is not None
    place = builder.catalogue.record_at(read)
    for entry in known[:_EACH]:
        ident = entry.get("id")
        if not isinstance(ident, str) or place is None:
            continue
        key = {resource.key: encoded(ident)}
        seen = yield _alone(builder, read, "a record of the list", path=builder.path(read, **key))
        record = at(seen.target.json(), place[0])
        if not isinstance(record, dict):
            continue
        for member in sorted(entry.keys() & record.keys()):
            if entry[member] != record[member]:
                yield Flaw("value", f"{member} differs between the list and the record", "the same value")
        for other in builder.catalogue.document.operations.values():
            names = [parameter.name for parameter in other.parameters if parameter.place == "path"]
            if other.method == "GET" and names == [resource.key] and other != read:
                yield _alone(builder, other, "about a record of the list", path=builder.path(other, **key))


def others(builder: Builder, operation: Operation) -> Journey:
    """What needs no record: a plain request, values of its parameters, and what it refuses."""
    if "{" not in operation.path:
        yield _alone(builder, operation, "a plain request")
        yield from parameters(builder, operation)
    yield from refuses(builder, operation, {})


def _alone(
    builder: Builder,
    operation: Operation,
    learns: str,
    pointer: str = "",
    suspect: str = "",
    path: str = "",
    **query: str,
) -> Probe:
    """A request that no twin gets: it has none of the target's records."""
    return builder.probe(
        operation, "filters" if query else "accepts", learns, pointer, path=path or operation.path, query=query,
        suspect=suspect, is_alone=True, keeps=False,
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
        yield query_text(value), lambda entry, value=value: _folded(entry.get(name)) == _folded(value)  # type: ignore[misc]


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
