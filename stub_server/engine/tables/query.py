"""A page of a table: filters, time range, search and sort order, at the cost of the page wherever an index answers."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from ...core.record import Record, Row
from .indexes import Keys, contains
from .table import REMEMBERED, Table

SORTED_OUTRIGHT = 256  # up to here records, each up to 30 kB, are opened and sorted; past it their keys are picked
Found: TypeAlias = tuple[Keys, int, int]
"""Keys in the order of a list, and the positions between which the matching ones stand."""


@dataclass(slots=True)
class Query:
    """What a list was asked for. `since` and `until` are ms, from inclusive to exclusive.

    `tagged` are names of tags with values that a record has all. `within` restricts to records whose index value is one
    of several; `where` tests a parsed record, for tables that stay small; `contains` maps a search text to what it must
    satisfy; `ids` restricts to named records; `between` takes the values of a further sort order from inclusive to
    exclusive (None is open).
    """

    equal: dict[str, Hashable] = field(default_factory=dict)
    within: tuple[str, Iterable[Hashable]] | None = None
    tagged: frozenset[tuple[str, Hashable]] = frozenset()
    contains: dict[str, Callable[[str], bool]] = field(default_factory=dict)
    where: Callable[[Row], bool] | None = None
    ids: Iterable[str] | None = None
    between: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    since: int | None = None
    until: int | None = None
    sort: str | None = None
    newest_first: bool = True
    page: int = 1
    limit: int = 20


def select(table: Table, query: Query) -> tuple[list[Record], int]:
    """The records of the page, in order, and how many there are in all."""
    keys, start, stop = _found(table, query)
    total = stop - start
    first = (query.page - 1) * query.limit
    if first >= total:
        return [], total
    count = min(query.limit, total - first)
    low = stop - first - count if query.newest_first else start + first
    chosen = keys[low : low + count]
    if query.newest_first:
        chosen.reverse()
    return [table.rows[key] for key in chosen], total


def _found(table: Table, query: Query) -> Found:
    """What matches, which is remembered until the next write: somebody who turns pages asks the same again."""
    if query.contains or query.where is not None or query.ids is not None:
        return _find(table, query)
    equal, between = frozenset(query.equal.items()), frozenset(query.between.items())
    within = None if query.within is None else (query.within[0], frozenset(query.within[1]))
    asked = equal, query.tagged, within, between, query.since, query.until, query.sort
    found: Found | None = table.lists.get(asked)
    if found is None:
        if len(table.lists) == REMEMBERED:
            table.lists.clear()
        found = table.lists[asked] = _find(table, query)
    return found


def _find(table: Table, query: Query) -> Found:
    keys = _matching(table, query)
    start = 0 if query.since is None else bisect_left(keys, max(query.since, 0) << 128)
    stop = len(keys) if query.until is None else bisect_left(keys, max(query.until, 0) << 128)
    stop = max(start, stop)
    if query.contains or query.where is not None:
        keys = [key for key in keys[start:stop] if _fits(table, query, key)]
        start, stop = 0, len(keys)
    if query.sort is not None:
        keys = _sorted(table, query.sort, keys[start:stop])
        start, stop = 0, len(keys)
    return keys, start, stop


def _matching(table: Table, query: Query) -> Keys:
    """The keys that satisfy what indexes know: the shortest condition decides, its keys are looked up in the others."""
    tagged = [[table.tags[name].data.get(value, [])] for name, value in query.tagged]
    conditions = [*_equal(table, query), *tagged, *_named(table, query)]
    if not conditions:
        return table.order
    conditions.sort(key=lambda lists: sum(map(len, lists)))
    first, *others = conditions
    keys = first[0] if len(first) == 1 else sorted(chain.from_iterable(first))  # merges what is sorted already
    for lists in others:
        keys = [key for key in keys if any(contains(each, key) for each in lists)]
    return keys


def _equal(table: Table, query: Query) -> Iterable[list[Keys]]:
    """For each filter by an index the lists of keys in one of which a record is; an indexed pair is one filter."""
    equal = {name: value for name, value in query.equal.items() if name in table.spec.indexes}
    if query.within is not None:
        name, values = query.within
        allowed = set(values)
        if name in equal:
            allowed &= {equal.pop(name)}
        if len(allowed) == 1:
            (equal[name],) = allowed
        else:
            yield [table.bucket(name, value) for value in allowed]
    for pair in table.spec.pairs:
        first, _, second = pair.partition("+")
        if first in equal and second in equal:
            yield [table.bucket(pair, (equal.pop(first), equal.pop(second)))]
    for name, value in equal.items():
        yield [table.bucket(name, value)]


def _named(table: Table, query: Query) -> Iterable[list[Keys]]:
    """The same for the keys that were asked for one by one, or by a stretch of a sort order."""
    for name, value in query.equal.items():
        if name not in table.spec.indexes:
            holder = table.holder(name, value)
            yield [[] if holder is None else [table.keys[holder]]]
    if query.ids is not None:
        yield [sorted({table.keys[ident] for ident in query.ids if ident in table.keys})]
    for name, (low, high) in query.between.items():
        order = table.sorts[name].data
        start = 0 if low is None else bisect_left(order, (low,))
        stop = len(order) if high is None else bisect_left(order, (high,))
        yield [sorted([key for _, key in order[start:stop]])]


def _fits(table: Table, query: Query, key: int) -> bool:
    for name, finds in query.contains.items():
        if not finds(table.texts[name].data.get(key, "")):
            return False
    return query.where is None or query.where(table.parse(table.rows[key]))


def _sorted(table: Table, sort: str, keys: Keys) -> Keys:
    """Keys in a further sort order."""
    if len(keys) == len(table):
        return table.sorts[sort].keys
    if len(keys) > SORTED_OUTRIGHT:
        wanted = set(keys)
        return [key for key in table.sorts[sort].keys if key in wanted]
    values = [table.derive(table.parse(table.rows[key]))[sort] for key in keys]
    return [key for _, key in sorted(zip(values, keys, strict=True))]
