"""A page of a table: filters, time range, search and sort order, at the cost of the page wherever an index answers."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..kernel.record import Record, Row
from .indexes import Conditions, Keys, contains
from .table import Table

SMALL = 512  # up to here the keys of a list are looked up in the others one by one; past it a view is kept
FEW = 64  # the same for a further sort order, which takes opening every record
SORTED_OUTRIGHT = 4096  # up to here records are opened and sorted; past it their keys are picked from the sort order


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
    pairs = None if query.sort is None else _kept_pairs(table, query, query.sort)
    if pairs is not None:
        keys, start, stop = pairs, 0, len(pairs)
    else:
        keys, start, stop = _candidates(table, query)
        if query.sort is not None:
            keys, start, stop = _sorted(table, query.sort, keys[start:stop]), 0, stop - start
    total = stop - start
    first = (query.page - 1) * query.limit
    if first >= total:
        return [], total
    count = min(query.limit, total - first)
    low = stop - first - count if query.newest_first else start + first
    chosen = keys[low : low + count]
    if query.newest_first:
        chosen.reverse()
    if pairs is not None:
        chosen = [key for _, key in chosen]
    return list(map(table.rows.__getitem__, chosen)), total


def _candidates(table: Table, query: Query) -> tuple[Keys, int, int]:
    """The keys that match, in order of creation, and the positions between which they stand."""
    keys = _matching(table, query)
    start = 0 if query.since is None else bisect_left(keys, max(query.since, 0) << 128)
    stop = len(keys) if query.until is None else bisect_left(keys, max(query.until, 0) << 128)
    stop = max(start, stop)
    if query.contains or query.where is not None:
        found = [key for key in keys[start:stop] if _fits(table, query, key)]
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
    # The shortest decides: its keys are looked up in the others.
    conditions.sort(key=lambda condition: _size(table, condition))
    if not named:
        named.append(_found(table, *conditions.pop(0)))
    kept = named[0] if len(named) == 1 else sorted(set(named[0]).intersection(*named[1:]))
    for name, values in conditions:
        buckets = [table.bucket(name, value) for value in values]
        kept = [key for key in kept if any(contains(bucket, key) for bucket in buckets)]
    return kept


def _kept_pairs(table: Table, query: Query, sort: str) -> Keys | None:
    """The matching (value, key) in the asked sort order, where a list of them is kept or is worth keeping."""
    shortened = query.contains or query.where is not None or query.since is not None or query.until is not None
    if shortened or _named(table, query):
        return None
    conditions = _conditions(table, query)
    if not conditions:
        return table.indexes.sorts[sort]
    if any(_size(table, condition) <= FEW for condition in conditions):
        return None
    return _view(table, frozenset(conditions), sort)


def _view(table: Table, conditions: Conditions, sort: str | None) -> Keys:
    kept = table.indexes.views.get((conditions, sort))
    if kept is not None:
        return kept
    order, *others = sorted((_found(table, *condition) for condition in conditions), key=len)
    for found in map(set, others):
        order = [key for key in order if key in found]
    if sort is not None:
        found = set(order)
        order = [pair for pair in table.indexes.sorts[sort] if pair[1] in found]
    return table.indexes.keep((conditions, sort), order)


def _found(table: Table, name: str, values: Iterable[Hashable]) -> Keys:
    """The keys with one of these values in an index, in order of creation."""
    return sorted(chain.from_iterable(table.bucket(name, value) for value in values))  # merges what is sorted already


def _size(table: Table, condition: tuple[str, frozenset[Hashable]]) -> int:
    return sum(table.count(condition[0], value) for value in condition[1])


def _conditions(table: Table, query: Query) -> list[tuple[str, frozenset[Hashable]]]:
    """Names of indexes with the values that each allows; two filters become one where a pair is indexed."""
    if not query.equal and query.within is None:
        return []
    equal = {name: value for name, value in query.equal.items() if name in table.spec.indexes}
    if query.within is not None:
        name, several = query.within
        allowed = frozenset(several)
        if name in equal:
            allowed &= {equal.pop(name)}
        if len(allowed) != 1:
            return [(name, allowed), *((other, frozenset((value,))) for other, value in equal.items())]
        (equal[name],) = allowed
    found = []
    for pair in table.spec.pairs if len(equal) > 1 else ():
        first, _, second = pair.partition("+")
        if first in equal and second in equal:
            found.append((pair, frozenset(((equal.pop(first), equal.pop(second)),))))
    return [*found, *((name, frozenset((value,))) for name, value in equal.items())]


def _named(table: Table, query: Query) -> list[list[int]]:
    """The keys that were asked for one by one, or by a stretch of a sort order."""
    sets: list[list[int]] = []
    for name, value in query.equal.items():
        if name not in table.spec.indexes:
            holder = table.holder(name, value)
            sets.append([] if holder is None else [table.keys[holder]])
    if query.ids is not None:
        sets.append(sorted(table.keys[ident] for ident in query.ids if ident in table.keys))
    for name, (low, high) in query.between.items():
        order = table.indexes.sorts[name]
        start = 0 if low is None else bisect_left(order, (low,))
        stop = len(order) if high is None else bisect_left(order, (high,))
        sets.append(sorted(key for _, key in order[start:stop]))
    return sets


def _fits(table: Table, query: Query, key: int) -> bool:
    for name, finds in query.contains.items():
        if not finds(table.indexes.texts[name].get(key, "")):
            return False
    return query.where is None or query.where(table.parse(table.rows[key]))


def _sorted(table: Table, sort: str, keys: Keys) -> Keys:
    """Keys in a further sort order that no list has them in."""
    if len(keys) > SORTED_OUTRIGHT:
        wanted = set(keys)
        return [key for _, key in table.indexes.sorts[sort] if key in wanted]
    extract, rows = table.spec.sorts[sort], (table.parse(table.rows[key]) for key in keys)
    return [key for _, key in sorted((extract(row.public, row.hidden), row.record.key) for row in rows)]
