"""Lists: what filters find, in which order and in which pages; of records of the journey, or of
whatever there is.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from ....contract.document import Operation
from ....contract.source import Json
from ..catalogue import Resource, at, path_names, queried, role_of
from ..probes import (
    SETUP,
    UNKNOWN_ID,
    Builder,
    Flaw,
    Journey,
    Probe,
    Seen,
    encoded,
    placeholder,
    query_text,
)
from .accepting import parameters
from .refusing import refuses

_PAGES_DIFFER = "the pages together are not the list"
_PAGES = (1, 2, 3)
_TESTS = ("webhook.test", "order.paid")
"""Events of test deliveries, in whose log filters and orders are tried."""
_SHOWN = 100  # entries of a list that are looked at
_EACH = 2  # records that are read by their ids


# -- with records of the journey


def narrowing(builder: Builder, resource: Resource, operation: Operation) -> dict[str, str]:
    """A query that only the journeys' own records match; empty if there is none."""
    names = queried(operation)
    if "projectId" in names and any(
        "projectId" in builder.properties(create) for create in resource.creates
    ):
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.fresh.tag, "limit": "100"}
    return {}


def finds(builder: Builder, resource: Resource) -> Journey:
    """List records by every filter, in every order, and in pages.

    Those that can be deleted are made for it.
    """
    listing, create = resource.list, resource.creates[0]
    narrowed = {} if listing is None else narrowing(builder, resource, listing)
    if listing is None or not narrowed or not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    if resource.role not in builder.present:
        yield from builder.make(resource)
    if resource.delete is not None or f"{resource.role} more" not in builder.present:
        for body in (builder.body(create), builder.plain(create)):
            makes = f"{resource.role} more"
            yield builder.probe(
                create, SETUP, f"make {resource.role}", body=body, makes=makes, keeps=True
            )
    yield from _lists(builder, listing, narrowed, builder.present[resource.role])


def finds_logs(builder: Builder, operation: Operation) -> Journey:
    """List deliveries of tests by every filter, in every order, and in pages."""
    test = builder.document.operations.get("sendTestWebhook")
    if test is None or not builder.may_prepare(test):
        return
    yield from builder.prepare(test)
    for event in _TESTS:
        yield builder.probe(
            test, SETUP, "send a test", body={"event_type": event}, makes="the log", keeps=True
        )
    narrowed = (
        {"limit": "100"}
        if "{" in operation.path
        else {"webhookId": "{the webhook}", "limit": "100"}
    )
    yield from _lists(
        builder, operation, narrowed, {"event_type": _TESTS[0], "event_id": "{the log event}"}
    )


def _lists(builder: Builder, listing: Operation, narrowed: dict[str, str], shown: Any) -> Journey:
    def asked(learns: str, suspect: str, pointer: str = "", **query: str) -> Probe:
        query = {**narrowed, **query}
        return builder.probe(
            listing,
            "filters",
            learns,
            pointer,
            query=query,
            suspect=suspect,
            narrowed=True,
            keeps=True,
        )

    seen = yield asked("the whole list", "filter")
    pages: list[Any] = []
    for number in _PAGES:
        page = yield asked(f"page {number} with limit 1", "paging", page=str(number), limit="1")
        pages += _ids(_entries(builder, listing, page))
    if pages != _ids(_entries(builder, listing, seen))[: len(pages)]:
        yield Flaw("paging", _PAGES_DIFFER, "the entries of the list, in its order")
    yield asked("a page past the end", "paging", page="1000")
    if seen.has_departed:
        return
    values: list[tuple[str, str]] = []
    for name, (pointer, schema) in queried(listing).items():
        if name == "sort":
            for option in schema.get("enum", ()):
                yield asked(f"sort={option}", "sort", pointer, sort=option)
        if name in ("page", "limit", "sort", "webhookId", *narrowed):
            continue
        for value in _matching(builder, name, schema, shown):
            found = yield asked(f"{name}={value[:60]}", "filter", pointer, **{name: value})
            if not found.has_departed:  # else its pairs would depart for the same cause
                values.append((name, value))
    for (first, value), (second, other) in pairwise(values):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})


def _entries(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The entries of a list."""
    entries = at(seen.target.json(), builder.catalogue.entries_at(listing) or ())
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


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
            value = builder.fresh.tag
        if isinstance(value, str):
            yield value
            if not value.startswith("{"):
                yield value.upper()
        yield "verify-nothing"


def _found(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return None
    return (
        value[name]
        if name in value
        else next(filter(None, (_found(v, name) for v in value.values())), None)
    )


# -- with whatever records there are: relations between answers must hold


def reads(builder: Builder, resource: Resource | None, operation: Operation) -> Journey:
    """What needs no record and what is refused; then a list, and some records compared with their
    entries in it.
    """
    if "{" not in operation.path:
        yield _alone(builder, operation, "a plain request")
        yield from parameters(builder, operation)
    yield from refuses(builder, operation, {})
    if builder.catalogue.entries_at(operation) is None or "{" in operation.path:
        return

    def asked(learns: str, pointer: str = "", suspect: str = "", **query: str) -> Probe:
        return _alone(
            builder, operation, learns, pointer, suspect, **{"limit": str(_SHOWN), **query}
        )

    known = _entries(builder, operation, (yield asked("the whole list")))
    is_whole = len(known) < _SHOWN
    for name, (pointer, schema) in queried(operation).items():
        for value, holds in _holding(builder, name, schema, known):
            found = _entries(
                builder, operation, (yield asked(f"{name}={value}", pointer, **{name: value}))
            )
            if not all(map(holds, found)):
                yield Flaw(
                    "filter",
                    f"a value of {name} lists an entry that does not match",
                    "entries that match",
                )
            elif is_whole and not found and any(map(holds, known)):
                yield Flaw(
                    "filter",
                    f"a value of {name} lists nothing, though an entry matches",
                    "entries that match",
                )
        for option in schema.get("enum", ()) if name == "sort" else ():
            found = _entries(
                builder, operation, (yield asked(f"sort={option}", pointer, "sort", sort=option))
            )
            if is_whole and {*_ids(found)} != {*_ids(known)}:
                yield Flaw("sort", f"sort={option} lists other entries", "the same entries")
    if {"page", "limit"} <= queried(operation).keys() and len(known) > 1:
        ids: list[Any] = []
        for page in _PAGES:
            seen = yield asked(f"page {page} with limit 2", page=str(page), limit="2")
            ids += _ids(_entries(builder, operation, seen))
        again = _entries(builder, operation, (yield asked("all of them again")))
        if _ids(again) == _ids(known) and ids != _ids(known)[: 2 * len(_PAGES)]:
            yield Flaw("paging", _PAGES_DIFFER, "the entries of the list, in its order")
    if resource is not None and resource.read is not None:
        yield from _records(builder, resource, resource.read, known)


def _records(builder: Builder, resource: Resource, read: Operation, known: list[Any]) -> Journey:
    """The record of an entry is as the entry, and what is read below it is there."""
    place = builder.catalogue.record_at(read)
    for entry in known[:_EACH]:
        key = {resource.key: encoded(str(entry.get("id")))}
        seen = yield _alone(builder, read, "a record of the list", path=builder.path(read, **key))
        record = at(seen.target.json(), place[0]) if place is not None else None
        if not isinstance(record, dict):
            continue
        for member in sorted(entry.keys() & record.keys()):
            if entry[member] != record[member]:
                yield Flaw(
                    "value", f"{member} differs between the list and the record", "the same value"
                )
        for other in builder.document.operations.values():
            if other.method == "GET" and path_names(other) == [resource.key] and other != read:
                yield _alone(
                    builder, other, "about a record of the list", path=builder.path(other, **key)
                )


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
        operation,
        "filters" if query else "accepts",
        learns,
        pointer,
        path=path or operation.path,
        query=query,
        suspect=suspect,
        is_alone=True,
    )


def _holding(
    builder: Builder, name: str, schema: Any, known: list[Any]
) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Values of a filter, and whether an entry matches each."""
    schema = builder.document.resolve(schema)
    if schema.get("format") == "date-time" and name.startswith("created_"):
        member = next((m for m in ("createdAt", "created_at") if known and m in known[0]), None)
        if member is not None:
            middle, is_since = str(known[len(known) // 2][member]), name.endswith("since")
            yield (
                middle,
                lambda entry: (
                    str(entry[member]) >= middle if is_since else str(entry[member]) <= middle
                ),
            )
        return
    values = [entry[name] for entry in known if isinstance(entry.get(name), (str, bool))]
    for value in [*dict.fromkeys(values)][:3]:
        yield query_text(value), partial(_has, name, query_text(value).casefold())


def _has(name: str, text: str, entry: Any) -> bool:
    return query_text(entry.get(name)).casefold() == text
