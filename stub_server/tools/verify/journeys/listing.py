"""Lists: what filters find, in which order and in which pages; of records of the journey, or of
whatever there is.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from ....contract.document import Operation
from ....contract.source import Json
from ..catalogue import Resource, path_names, queried, records_at, role_of
from ..probes import (
    SETUP,
    UNKNOWN_ID,
    Builder,
    Flaw,
    Journey,
    Probe,
    Seen,
    placeholder,
    query_text,
)
from .accepting import parameters
from .refusing import refuses

_PAGES = (1, 2, 3)
_TESTS = ("webhook.test", "order.paid")
"""Events of test deliveries, in whose log filters and orders are tried."""
_SHOWN = 100  # entries of a list that are looked at
_EACH = 2  # records that are read by their ids


# -- with records of the journey


def narrowing(builder: Builder, resource: Resource) -> dict[str, str]:
    """A query of the list that only the journeys' own records match; empty if there is none."""
    names = {} if resource.list is None else queried(resource.list)
    made = [name for create in resource.creates for name in builder.properties(create)]
    if "projectId" in names and "projectId" in made:
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.variants.tag, "limit": "100"}
    return {}


def finds(builder: Builder, resource: Resource) -> Journey:
    """List records by every filter, in every order, and in pages.

    Those that can be deleted are made for it.
    """
    listing, create, narrowed = resource.list, resource.create, narrowing(builder, resource)
    if listing is None or not narrowed:
        return
    more = f"{resource.role} more" in builder.present
    yield from builder.ready(resource)
    others = {"more": builder.body(create), "third": builder.plain(create)}
    for name, body in others.items() if resource.delete or not more else ():
        makes = f"{resource.role} {name}"
        yield builder.probe(create, SETUP, f"make {makes}", body=body, makes=makes, keeps=True)
    yield from _lists(builder, listing, narrowed, builder.present[resource.role])


def finds_logs(builder: Builder, operation: Operation, test: Operation) -> Journey:
    """List deliveries of tests by every filter, in every order, and in pages."""
    for event in _TESTS:
        yield builder.probe(
            test, SETUP, "send a test", body={"event_type": event}, makes="the log", keeps=True
        )
    narrowed = {"limit": "100"}
    if "{" not in operation.path:
        narrowed = {"webhookId": "{the webhook}"} | narrowed
    shown = {"event_type": _TESTS[0], "event_id": "{the log event}"}
    yield from _lists(builder, operation, narrowed, shown)


def _lists(
    builder: Builder,
    listing: Operation,
    narrowed: dict[str, str],
    shown: Any,
    *,
    is_alone: bool = False,
) -> Journey:
    """List records by every filter, in every order, and in pages: the answers must go together.

    A query with `narrowed` has only the journey's own records, which twins have too. Alone, there
    are any records, and `shown` is one of them.
    """

    def asked(learns: str, suspect: str, pointer: str = "", **query: str) -> Probe:
        return builder.probe(
            listing,
            "filters",
            learns,
            pointer,
            query={**narrowed, **query},
            suspect=suspect,
            narrowed=not is_alone,
            keeps=not is_alone,
            is_alone=is_alone,
        )

    def entries(seen: Seen) -> list[Any]:
        return _entries(builder, listing, seen)

    seen = yield asked("the whole list", "filter")
    known = _ids(entries(seen))
    pages: list[Any] = []
    for number in _PAGES:
        page = yield asked(f"page {number} with limit 1", "paging", page=str(number), limit="1")
        pages += _ids(entries(page))
    if pages != known[: len(_PAGES)]:
        again = yield asked("the whole list again", "filter")
        if _ids(entries(again)) == known:
            expected = "the entries of the list, in its order"
            yield Flaw("paging", "the pages together are not the list", expected)
    yield asked("a page past the end", "paging", page="1000")
    if seen.has_departed:
        return
    is_whole = len(known) < _SHOWN
    values: list[tuple[str, str]] = []
    for name, (pointer, schema) in queried(listing).items():
        for option in schema.get("enum", ()) if name == "sort" else ():
            found = yield asked(f"sort={option}", "sort", pointer, sort=option)
            if is_whole and {*_ids(entries(found))} != {*known}:
                yield Flaw("sort", f"sort={option} lists other entries", "the same entries")
        if name in ("page", "sort", *narrowed):
            continue
        for value in _matching(builder, name, schema, shown):
            if not is_alone:
                found = yield asked(f"{name}={value[:60]}", "filter", pointer, **{name: value})
                if not found.has_departed:  # else its pairs would depart for the same cause
                    values.append((name, value))
            elif builder.variants.accepts(schema, value):  # no twin says how it is refused
                found = yield asked(f"a value of {name}", "filter", pointer, **{name: value})
                fits = [_matches(entry, name, value) for entry in entries(found)]
                wrong = "an entry that does not match" if False in fits else ""
                if is_whole and not fits and any(_matches(e, name, value) for e in entries(seen)):
                    wrong = "nothing, though an entry matches"
                if wrong:
                    yield Flaw("filter", f"a value of {name} lists {wrong}", "entries that match")
    for (first, value), (second, other) in pairwise(values):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})


def _matches(entry: Any, name: str, value: str) -> bool | None:
    """Whether an entry is what a filter asks for; None where it does not show that."""
    if name.startswith("created_"):
        made = entry.get("createdAt", entry.get("created_at"))
        if not isinstance(made, str):
            return None
        return made >= value if name.endswith("since") else made <= value
    own = entry.get(name)
    if not isinstance(own, (str, bool)) or value.startswith("{"):
        return None
    return query_text(own).casefold() == value.casefold()


def _entries(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The entries of a list."""
    return records_at(seen.target.json(), builder.catalogue.entries_at(listing))


def _ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") for entry in entries]


def _matching(builder: Builder, name: str, schema: Json, shown: Any) -> Iterator[str]:
    """Values of a filter: those that match and one that does not, as far as the schema shows."""
    schema = builder.document.resolve(schema)
    value = _found(shown, name)
    if "enum" in schema:
        options = [value, *schema["enum"]] if value in schema["enum"] else schema["enum"]
        yield from dict.fromkeys(options[:6])
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    elif schema.get("format") == "uuid":
        if role_of(name) in builder.present:
            yield placeholder(role_of(name))
        yield UNKNOWN_ID
    elif schema.get("format") == "date-time":
        yield from ("2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z")
    elif isinstance(value, dict):
        yield from (f"{key}:{inner}" for key, inner in list(value.items())[:1])
        yield "verify:nothing"
    else:
        if name == "search":
            value = builder.variants.tag
        if isinstance(value, str):
            yield value
            if not value.startswith("{"):
                yield value.upper()
        yield "verify-nothing"


def _found(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next(filter(None, (_found(inner, name) for inner in value.values())), None)


# -- with whatever records there are: relations between answers must hold


def reads(builder: Builder, operation: Operation) -> Journey:
    """What needs no record and what is refused; then a list, and some records compared with their
    entries in it.
    """
    yield from refuses(builder, operation, {})
    if not builder.may(operation):
        return
    if "{" not in operation.path:
        yield _alone(builder, operation, "a plain request", operation.path)
        yield from parameters(builder, operation)
    if builder.catalogue.entries_at(operation) is None or "{" in operation.path:
        return
    seen = yield _alone(builder, operation, "a list", operation.path, limit=str(_SHOWN))
    known = _entries(builder, operation, seen)
    shown = known[len(known) // 2] if known else {}
    yield from _lists(builder, operation, {"limit": str(_SHOWN)}, shown, is_alone=True)
    for resource in builder.catalogue.resources.values():
        read = resource.read
        if operation == resource.list and read is not None and builder.may(read):
            yield from _records(builder, resource, read, known)


def _records(builder: Builder, resource: Resource, read: Operation, known: list[Any]) -> Journey:
    """The record of an entry is as the entry, and what is read below it is there."""
    for entry in known[:_EACH]:
        key = {resource.key: quote(str(entry.get("id")), safe="")}
        seen = yield _alone(builder, read, "a record of the list", builder.path(read, **key))
        record = builder.catalogue.record(read, seen.target.json())
        for member in sorted(entry.keys() & record.keys()):
            if entry[member] != record[member]:
                yield Flaw(
                    "value", f"{member} differs between the list and the record", "the same value"
                )
        for other in builder.document.operations.values():
            is_below = other.method == "GET" and path_names(other) == [resource.key]
            if is_below and other != read and builder.may(other):
                yield _alone(
                    builder, other, "about a record of the list", builder.path(other, **key)
                )


def _alone(builder: Builder, operation: Operation, learns: str, path: str, **query: str) -> Probe:
    """A request that no twin gets: it has none of the target's records."""
    return builder.probe(operation, "accepts", learns, path=path, query=query, is_alone=True)
