"""A page of a table: filters, time range, search and sort order, at the cost of the page wherever an index answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from ..kernel.record import Record, Row
from . import indexes
from .indexes import Conditions, Keys
from .table import Table

SMALL = 512  # up to here the keys of a list are looked up in the others one by one; past it a view is kept
FEW = 64  # the same for a further sort order, which takes opening every record
SORTED_OUTRIGHT = 4096  # up to here what no list holds in order is sorted; past it the sort order is walked


@dataclass(slots=True)
class Query:
    """What a list was asked for. `since` and `until` are ms, from inclusive to exclusive.

    `within` restricts to records whose index value is one of several; `where` tests a parsed record, for tables that
    stay small; `contains` maps a search text to what it must satisfy; `ids` restricts to named records; `between` takes
    the values of a further sort order from inclusive to exclusive (None is open).
    """

    equal: dict[str, Hashable] = field(default_factory=dict)
    within: tuple[str, Iterable[Hashable]] | None = None
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
    ranked = None if query.sort is None else _ranked(table, query, query.sort)
    keys, start, stop = _candidates(table, query) if ranked is None else (ranked, 0, len(ranked))
    total = stop - start
    first = (query.page - 1) * query.limit
    if first >= total:
        return [], total
    count = min(query.limit, total - first)
    if query.sort is not None and ranked is None:
        part = cut(keys, start, stop, newest_first=False)
        chosen: list[Any] = _sorted_page(table, query, query.sort, part, first, count)
    elif query.newest_first:
        chosen = cut(keys, stop - first - count, stop - first, newest_first=True)
    else:
        chosen = cut(keys, start + first, start + first + count, newest_first=False)
    keys_of = chosen if ranked is None else map(itemgetter(1), chosen)
    return list(map(table.rows.__getitem__, keys_of)), total


def cut(keys: Keys, start: int, stop: int, *, newest_first: bool) -> list[Any]:
    """The keys at positions start (inclusive) to stop (exclusive), read upwards or downwards."""
    if type(keys) is list:
        part = keys[start:stop]
        if newest_first:
            part.reverse()
        return part
    return list(keys.islice(start, stop, reverse=newest_first))  # type: ignore[union-attr]


def _candidates(table: Table, query: Query) -> tuple[Keys, int, int]:
    """The keys that match, in order of creation, and the positions between which they stand."""
    keys = _matching(table, query)
    start = 0 if query.since is None else indexes.position(keys, max(query.since, 0) << 128)
    stop = len(keys) if query.until is None else indexes.position(keys, max(query.until, 0) << 128)
    stop = max(start, stop)
    if query.contains or query.where is not None:
        found = [key for key in cut(keys, start, stop, newest_first=False) if _fits(table, query, key)]
        return found, 0, len(found)
    return keys, start, stop


def _matching(table: Table, query: Query) -> Keys:
    """The keys that satisfy what indexes know."""
    conditions, named = _conditions(table, query), _named(table, query)
    if not named:
        if not conditions:
            return table.order
        if len(conditions) == 1 and len(conditions[0][1]) == 1:
            name, values = conditions[0]
            return table.bucket(name, next(iter(values)))
        if all(_size(table, condition) > SMALL for condition in conditions):
            return _view(table, frozenset(conditions), None)
    # The shortest decides: what it holds is looked up in the others.
    conditions.sort(key=lambda condition: _size(table, condition))
    if not named:
        name, values = conditions.pop(0)
        named.append(sorted(_found(table, name, values)))
    kept = named[0] if len(named) == 1 else sorted(set(named[0]).intersection(*named[1:]))
    for name, values in conditions:
        buckets = [table.bucket(name, value) for value in values]
        kept = [key for key in kept if any(indexes.holds(bucket, key) for bucket in buckets)]
    return kept


def _ranked(table: Table, query: Query, sort: str) -> Keys | None:
    """The matching (value, key) in the asked sort order, where a list of them is kept or is worth keeping."""
    shortened = query.contains or query.where is not None or query.since is not None or query.until is not None
    if shortened or _named(table, query):
        return None
    conditions = _conditions(table, query)
    if not conditions:
        return table.sorts.read(sort)
    if any(_size(table, condition) <= FEW for condition in conditions):
        return None
    return _view(table, frozenset(conditions), sort)


def _view(table: Table, conditions: Conditions, sort: str | None) -> Keys:
    kept = table.views.find(conditions, sort)
    if kept is not None:
        return kept
    first, *others = sorted(conditions, key=lambda condition: _size(table, condition))
    found = _found(table, *first)
    for name, values in others:
        found &= _found(table, name, values)
    if sort is None:
        return table.views.keep(conditions, None, sorted(found))
    return table.views.keep(conditions, sort, [pair for pair in table.sorts.read(sort) if pair[1] in found])


def _found(table: Table, name: str, values: Iterable[Hashable]) -> set[int]:
    """The keys with one of these values in an index."""
    none: set[int] = set()
    return none.union(*(table.bucket(name, value) for value in values))


def _size(table: Table, condition: tuple[str, frozenset[Hashable]]) -> int:
    return sum(table.count(condition[0], value) for value in condition[1])


def _conditions(table: Table, query: Query) -> list[tuple[str, frozenset[Hashable]]]:
    """Names of indexes with the values that each allows; two filters become one where a pair is indexed."""
    if not query.equal and query.within is None:
        return []
    equal = {name: value for name, value in query.equal.items() if name in table.indexes}
    if query.within is not None:
        name, several = query.within
        allowed = frozenset(several)
        if name in equal:
            allowed &= {equal.pop(name)}
        if len(allowed) != 1:
            return [(name, allowed), *((other, frozenset((value,))) for other, value in equal.items())]
        (equal[name],) = allowed
    found = []
    for pair in table.spec.pairs:
        first, _, second = pair.partition("+")
        if first in equal and second in equal:
            found.append((pair, frozenset(((equal.pop(first), equal.pop(second)),))))
    return [*found, *((name, frozenset((value,))) for name, value in equal.items())]


def _named(table: Table, query: Query) -> list[list[int]]:
    """The keys that were asked for one by one, or by a stretch of a sort order."""
    sets: list[list[int]] = []
    for name, value in query.equal.items():
        if name not in table.indexes:
            holder = table.holder(name, value)
            sets.append([] if holder is None else [table.keys[holder]])
    if query.ids is not None:
        sets.append(sorted(table.keys[ident] for ident in query.ids if ident in table.keys))
    for name, (low, high) in query.between.items():
        order = table.sorts.read(name)
        start = 0 if low is None else indexes.position(order, (low,))
        stop = len(order) if high is None else indexes.position(order, (high,))
        sets.append(sorted(key for _, key in cut(order, start, max(start, stop), newest_first=False)))
    return sets


def _fits(table: Table, query: Query, key: int) -> bool:
    for name, finds in query.contains.items():
        if not finds(table.texts[name].get(key, "")):
            return False
    return query.where is None or query.where(table.parse(table.rows[key]))


def _sorted_page(table: Table, query: Query, name: str, part: list[int], first: int, count: int) -> list[int]:
    """A page of keys that no list holds in this order."""
    if len(part) <= SORTED_OUTRIGHT:
        part = [key for _, key in sorted((_value_of(table, name, key), key) for key in part)]
        if query.newest_first:
            part.reverse()
        return part[first : first + count]
    wanted, page, skipped = set(part), [], 0
    order = table.sorts.read(name)
    for _, key in reversed(order) if query.newest_first else order:
        if key in wanted:
            if skipped < first:
                skipped += 1
                continue
            page.append(key)
            if len(page) == count:
                break
    return page


def _value_of(table: Table, name: str, key: int) -> Any:
    """A record's value in a further sort order."""
    row = table.parse(table.rows[key])
    return table.spec.sorts[name](row.public, row.hidden)
