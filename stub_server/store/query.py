"""A page of a table: filters, time range, search and sort order, at the cost of the page wherever an index answers."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..kernel.record import Record, Row
from . import ordered
from .table import Table

SMALL = 4096  # up to here a found set is sorted outright; past it the sort order is walked


@dataclass(slots=True)
class Query:
    """What a list was asked for. `since` and `until` are ms, from inclusive to exclusive.

    `within` restricts to records whose index value is one of several; `where` tests a parsed record, for tables that
    stay small; `contains` maps a search text to the folded needle; `ids` restricts to named records; `between` takes
    the values of a further sort order from inclusive to exclusive (None is open).
    """

    equal: dict[str, Hashable] = field(default_factory=dict)
    within: tuple[str, Iterable[Hashable]] | None = None
    contains: dict[str, str] = field(default_factory=dict)
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
    keys, start, stop = _candidates(table, query)
    total = stop - start
    first = (query.page - 1) * query.limit
    if first >= total:
        return [], total
    count = min(query.limit, total - first)
    if query.sort is not None:
        chosen = _sorted_page(table, query, keys, start, stop, first, count)
    elif query.newest_first:
        chosen = ordered.cut(keys, stop - first - count, stop - first, newest_first=True)
    else:
        chosen = ordered.cut(keys, start + first, start + first + count, newest_first=False)
    rows = table.rows
    return [rows[key] for key in chosen], total


def _candidates(table: Table, query: Query) -> tuple[ordered.Keys, int, int]:
    """The keys that match, in order of creation, and the positions between which they stand."""
    sets = _index_sets(table, query)
    if not sets:
        keys: ordered.Keys = table.order
    elif len(sets) == 1:
        keys = sets[0]
    else:
        sets.sort(key=len)
        keys = ordered.intersection(sets[0], sets[1:])
    start = 0 if query.since is None else ordered.position(keys, max(query.since, 0) << 128)
    stop = len(keys) if query.until is None else ordered.position(keys, max(query.until, 0) << 128)
    stop = max(start, stop)
    if query.contains or query.where is not None:
        found = [key for key in ordered.cut(keys, start, stop, newest_first=False) if _matches(table, query, key)]
        return found, 0, len(found)
    return keys, start, stop


def _index_sets(table: Table, query: Query) -> list[ordered.Keys]:
    equal = dict(query.equal)
    sets: list[ordered.Keys] = []
    for name in table.indexes:
        first, plus, second = name.partition("+")
        if plus and first in equal and second in equal:
            sets.append(table.bucket(name, (equal.pop(first), equal.pop(second))))
    for name, value in equal.items():
        if name in table.indexes:
            sets.append(table.bucket(name, value))
        else:
            holder = table.holder(name, value)
            sets.append([] if holder is None else [table.keys[holder]])
    if query.within is not None:
        name, values = query.within
        sets.append(ordered.union(table.bucket(name, value) for value in values))
    if query.ids is not None:
        sets.append(sorted(table.keys[ident] for ident in query.ids if ident in table.keys))
    for name, (low, high) in query.between.items():
        order = table.sorts[name]
        start = 0 if low is None else ordered.position(order, (low,))
        stop = len(order) if high is None else ordered.position(order, (high,))
        sets.append(sorted(key for _, key in ordered.cut(order, start, max(start, stop), newest_first=False)))
    return sets


def _matches(table: Table, query: Query, key: int) -> bool:
    for name, needle in query.contains.items():
        if needle not in table.text_of(name, key):
            return False
    return query.where is None or query.where(table.parse(table.rows[key]))


def _sorted_page(
    table: Table, query: Query, keys: ordered.Keys, start: int, stop: int, first: int, count: int
) -> list[Any]:
    name = query.sort
    assert name is not None
    order = table.sorts[name]
    if stop - start == len(order):  # nothing filtered: the order itself is the answer
        if query.newest_first:
            top = len(order) - first
            return [key for _, key in ordered.cut(order, top - count, top, newest_first=True)]
        return [key for _, key in ordered.cut(order, first, first + count, newest_first=False)]
    part = ordered.cut(keys, start, stop, newest_first=False)
    if len(part) <= SMALL:
        part = [key for _, key in sorted((table.value_of(name, key), key) for key in part)]
        if query.newest_first:
            part.reverse()
        return part[first : first + count]
    wanted, page, skipped = set(part), [], 0
    for _, key in ordered.walk(order, newest_first=query.newest_first):
        if key in wanted:
            if skipped < first:
                skipped += 1
                continue
            page.append(key)
            if len(page) == count:
                break
    return page
