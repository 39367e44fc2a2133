"""Lists: what filters find, in which order and in which pages; of records of the journey, or of
whatever there is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from ....contract.document import Operation
from ....contract.pointers import below
from ....contract.source import Json
from ..catalogue import Resource, entries_of, is_list, part_about, queried, role_of, with_leaves
from ..comparing import folded, is_number
from ..findings import LISTED
from ..probes import (
    FOREIGN,
    QUIET,
    SETUP,
    Builder,
    Departed,
    Flaw,
    Journey,
    Probe,
    placeholder,
    query_text,
    roles_in,
)
from ..variants import UNKNOWN_ID, Variant, uneven

_PAGES = (1, 2)
_TIMES = 4
_SHOWN = 50  # entries of a list that are looked at: fewer than the most of a page
_EACH = 2  # records that are read by their ids
_ALL = {"limit": str(_SHOWN)}


def narrowing(builder: Builder, listing: Operation, resource: Resource) -> dict[str, str]:
    """A query of a list that only the journeys' own records match; empty if there is none."""
    if "{" in listing.path:
        return _ALL
    create, names = resource.create, queried(listing)
    named = {*roles_in([builder.path(create), builder.body(create)])}
    for name in names:
        if role_of(name) in named:
            return {name: placeholder(role_of(name)), **_ALL}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.variants.tag, **_ALL}
    return {}


def listed(builder: Builder, operation: Operation) -> Journey:
    """The parameters of a query. Those of a list narrow it to some records, which are made; else
    whatever there is is listed.
    """
    if not is_list(operation):
        yield from _parameters(builder, operation)
        return
    resource = builder.catalogue.listed_by(operation)
    seen = yield builder.probe(operation, "accepts", "a list", query=_ALL, expects=200)
    known = entries_of(seen.target.json())
    if resource is not None:
        yield from _usual_pages(builder, operation)
        yield from _records(builder, operation, resource, known)
        narrowed = narrowing(builder, operation, resource)
        try:
            yield from _make(builder, resource) if narrowed else ()
        except (KeyError, Departed):  # a record cannot be made
            narrowed = {}
        if narrowed:
            yield from _lists(builder, operation, narrowed, builder.present[resource.role])
            return
    shown = known[len(known) // 2] if known else {}
    yield from _lists(builder, operation, _ALL, shown, is_alone=True)


def _usual_pages(builder: Builder, listing: Operation) -> Journey:
    """Pages of the size that the backend chooses do not overlap."""
    for _ in range(_TIMES):  # others may change the list meanwhile
        found: list[str] = []
        for number in (1, 2):
            query = {"page": str(number)}
            page = yield builder.probe(
                listing, "filters", "a page without limit", query=query, expects=200
            )
            found += _ids(entries_of(page.target.json()))
        if len({*found}) == len(found):
            return
    yield Flaw("paging", "pages without a limit have entries twice", "each entry once")


def _make(builder: Builder, resource: Resource) -> Journey:
    """Two records that differ, also in their amounts."""
    create, makes = resource.create, f"{resource.role} more"
    yield from builder.ready(resource, **(builder.body(create) if resource.is_lasting else {}))
    body = builder.body(create)
    body = with_leaves(body, lambda value: uneven(value + 1) if type(value) is float else value)
    if resource.delete is not None or makes not in builder.present:
        yield builder.probe(create, SETUP, f"make {makes}", body=body, makes=makes)


def _parameters(builder: Builder, operation: Operation) -> Journey:
    """The parameters of what is no list."""
    for name, (pointer, schema) in queried(operation).items():
        for each in _values(builder, name, schema, pointer, {}):
            if each.value != UNKNOWN_ID:  # whether it may be named depends on the credential
                yield _value(builder, operation, name, each)


def _value(builder: Builder, operation: Operation, name: str, each: Variant) -> Probe:
    group = "accepts" if each.is_accepted else "rejects"
    query = {name: query_text(each.value)}
    return builder.probe(operation, group, each.tries, each.pointer, query=query)


def _lists(
    builder: Builder,
    listing: Operation,
    narrowed: Mapping[str, str],
    shown: Any,
    *,
    is_alone: bool = False,
) -> Journey:
    """List records by every filter, in every order, and in pages: the answers must go together.

    A query with `narrowed` has only the journey's own records, which the twin has too. Alone, there
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
            expects=200 * is_alone,
        )

    seen = yield asked("the whole list", "filter")
    every = entries_of(seen.target.json())
    for _ in range(_TIMES):  # others may change the list meanwhile
        pages: list[Any] = []
        for number in _PAGES:
            page = yield asked(f"page {number} with limit 1", "paging", page=str(number), limit="1")
            pages += entries_of(page.target.json())
        if _ids(pages) == _ids(every)[: len(_PAGES)]:
            break
        seen = yield asked("the whole list again", "filter")
        every = entries_of(seen.target.json())
    else:
        expected = "the entries of the list, in its order"
        yield Flaw("paging", "the pages together are not the list", expected)
    past = yield asked("a page past the end", "paging", page="1000")
    if len(every) < _SHOWN and entries_of(past.target.json()):
        yield Flaw("paging", "a page past the end has entries", "no entries")
    if seen.has_departed:  # it cannot be narrowed
        yield from _lists(builder, listing, _ALL, shown, is_alone=True)
        return
    values: list[tuple[str, str]] = []
    for name, (pointer, schema) in queried(listing).items():
        suspect = "sort" if name == "sort" else "filter"
        for each in _values(builder, name, schema, pointer, shown):
            if not each.is_accepted or name in ("page", *narrowed):
                yield _value(builder, listing, name, each)
                continue
            value = query_text(each.value)
            shows = not any(_matches(entry, name, value) is None for entry in every)
            probe = asked(each.tries, suspect, each.pointer, **{name: value})
            found = yield replace(probe, narrowed=not (shows or is_alone))
            if not found.target.is_success:
                continue  # its status says what is wrong
            entries = entries_of(found.target.json())
            if name == "sort":
                yield from _missorted(value, every, entries, is_alone)
                continue
            flaw = _misfiltered(name, value, every, entries, is_alone) if shows else None
            if flaw is not None:
                yield flaw
            elif not found.has_departed:
                values.append((name, value))  # else its pairs would depart for the same cause
    for (first, value), (second, other) in pairwise(values if not is_alone else ()):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})


def _missorted(option: str, every: list[Any], found: list[Any], is_alone: bool) -> Iterator[Flaw]:
    """What is wrong with the order of entries, or with which they are."""
    if not is_alone and {*_ids(found)} != {*_ids(every)}:
        yield Flaw("sort", f"sort={option} lists other entries", "the same entries")
    values = [folded(entry.get(option.removeprefix("-"))) for entry in found]
    is_text = all(isinstance(value, str) for value in values)
    # how a target orders letters and accents of others' records is not in the contract
    is_open = is_text and is_alone
    if is_open or not (is_text or all(map(is_number, values))):
        return
    if values != sorted(values, reverse=option.startswith("-")):
        title = f"the entries are not in the order of {option}"
        yield Flaw("sort", title, f"entries by {option}")


def _misfiltered(
    name: str, value: str, every: list[Any], found: list[Any], is_alone: bool
) -> Flaw | None:
    """What is wrong with the entries that are found by a value, by those of the whole list."""
    matching = _ids([entry for entry in every if _matches(entry, name, value)])
    lacking = {*matching} - {*_ids(found)} if len(every) < _SHOWN else ()
    if any(_matches(entry, name, value) is False for entry in found):
        wrong = "an entry that does not match"
    elif lacking and not (is_alone and found):  # others may delete one
        wrong = "fewer entries than match"
    else:
        return None
    return Flaw("filter", f"a value of {name} lists {wrong}", "entries that match")


def _matches(entry: Any, name: str, value: str) -> bool | None:
    """Whether an entry is what a filter asks for; None where it does not show that, or
    differs in case alone.
    """
    if name.startswith("created_"):
        made = entry.get("createdAt", entry.get("created_at"))
        if not isinstance(made, str):
            return None
        return made >= value if name.endswith("since") else made <= value
    own = entry.get(name)
    if not isinstance(own, (str, bool)) or value.startswith("{"):
        return None
    shown = query_text(own)
    if shown.casefold() != value.casefold():
        return False
    return True if shown == value else None


def _ids(entries: list[Any]) -> list[str]:
    return [str(entry.get("id")) for entry in entries]


def _values(
    builder: Builder, name: str, schema: Json, pointer: str, shown: Any
) -> Iterator[Variant]:
    """Values of a parameter: at its limits, and as a record has it."""
    node, value = builder.document.resolve(schema), _found(shown, name)
    more: list[Any] = []
    if node.get("format") == "uuid":
        more += [placeholder(role_of(name))] if role_of(name) in builder.present else []
    elif node.get("format") == "date-time":
        more += ["2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]
    elif isinstance(value, dict):
        more += [f"{key}:{inner}" for key, inner in [*value.items()][:1]] + ["verify:nothing"]
    elif node.get("type") == "string" and "enum" not in node:
        value = builder.variants.tag if name == "search" else value
        more += [value, value.upper()] if isinstance(value, str) else []
        more.append("verify-nothing")
    yield from builder.variants.of_parameter(name, schema, below(pointer, "schema"), more)


def _found(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next(filter(None, (_found(inner, name) for inner in value.values())), None)


def _records(builder: Builder, listing: Operation, resource: Resource, known: list[Any]) -> Journey:
    """What is read of a record, and below it, is as its entry in the list. Those with the largest
    figures are read.
    """
    known = [each for each in known if not builder.variants.is_own(each)]
    for found in sorted(known, key=_figures, reverse=True)[:_EACH]:
        ident = str(found["id"])
        for about in builder.reads_about(resource):
            path = builder.path(about, **{resource.key: quote(ident, safe="")})
            for _ in range(_TIMES):  # others may change it meanwhile
                seen = yield builder.probe(listing, QUIET, "a list", query=_ALL, expects=200)
                entries = {str(each["id"]): each for each in entries_of(seen.target.json())}
                seen = yield builder.probe(about, "accepts", LISTED, path=path, expects=200)
                flaws = [*_differing(entries.get(ident, {}), seen.target.json(), about)]
                flaws += _foreign(entries_of(seen.target.json()), resource, ident)
                if not flaws:
                    break
            yield from flaws
            if builder.other:
                yield builder.probe(
                    about,
                    "rejects",
                    FOREIGN,
                    path=path,
                    credential=builder.other,
                    suspect="auth",
                    expects=404,
                )


def _differing(entry: Mapping[str, Any], body: Any, about: Operation) -> Iterator[Flaw]:
    """In what an answer about a record is not as its entry in the list."""
    record = part_about(body, entry.get("id"))
    for name in sorted(entry.keys() & record.keys()):
        if entry[name] != record[name]:
            title = f"{name} differs between the list and {about.id}"
            yield Flaw("contradiction", title, "the same value")


def _foreign(entries: list[Any], resource: Resource, ident: str) -> Iterator[Flaw]:
    """Whether the list below a record has entries of another one."""
    if any(entry.get(resource.key, ident) != ident for entry in entries):
        title = f"the list below {resource.role} has entries of another one"
        yield Flaw("contradiction", title, f"entries of {resource.role}")


def _figures(entry: Mapping[str, Any]) -> float:
    return float(sum(filter(is_number, entry.values())))
