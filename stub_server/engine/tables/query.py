"""A page of a table: filters, time range, search and sort order, at the cost of the page wherever
an index answers.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ...core.record import BELOW_INSTANT, Record
from ...core.slices import collected, filtered
from .indexes import Keys, contains
from .specs import LAST, searched
from .table import REMEMBERED, Table

# up to here records, each up to 30 kB, are opened and sorted; past it their keys are picked
SORTED_OUTRIGHT = 256
SORTED_BY_KEY = 4_000  # keys: up to here they are sorted, past it picked from all


@dataclass(slots=True)
class Query:
    """What a list was asked for. `since` and `until` are ms, from inclusive to exclusive.

    A record meets all `conditions`: each is the name of an index, a tag, a unique key or `id`, and
    the values of which a record has one. `where` tests a record as it is stored, where no index
    knows; `contains` maps a search text to what it must contain; `between` takes the values of a
    further sort order from inclusive to exclusive (None is open).
    """

    conditions: list[tuple[str, frozenset[Hashable]]] = field(default_factory=list)
    contains: dict[str, str] = field(default_factory=dict)
    where: Callable[[Record], bool] | None = None
    between: tuple[str, Any, Any] | None = None
    since: int | None = None
    until: int | None = None
    sort: str | None = None
    newest_first: bool = True
    page: int = 1
    limit: int = 20

    def only(self, name: str, *values: Hashable) -> None:
        """Restrict it to records that have one of these values."""
        self.conditions.append((name, frozenset(values)))


Search = Generator[None, None, Keys]
"""A search that pauses where it takes long. Nobody may write to the table meanwhile."""


def select(table: Table, query: Query) -> Generator[None, None, tuple[list[Record], int]]:
    """The records of the page, in order, and how many there are in all.

    It pauses where it takes long. Nobody may write to the table meanwhile.
    """
    keys = yield from _found(table, query)
    total = len(keys)
    first = (query.page - 1) * query.limit
    if first >= total:
        return [], total
    count = min(query.limit, total - first)
    low = total - first - count if query.newest_first else first
    chosen = keys[low : low + count]
    if query.sort is not None:
        chosen = [key for _, key in chosen]
    if query.newest_first:
        chosen.reverse()
    return [table.rows[key] for key in chosen], total


def _found(table: Table, query: Query) -> Search:
    """What matches, which is remembered until the next write: somebody who turns pages asks the
    same again.
    """
    if query.contains or query.where is not None:
        return (yield from _find(table, query))
    asked = (
        frozenset(query.conditions),
        query.between,
        query.since,
        query.until,
        query.sort,
        query.newest_first,
    )
    found: Keys | None = table.lists.get(asked)
    if found is None:
        found = yield from _find(table, query)
        if len(table.lists) == REMEMBERED:
            table.lists.clear()
        table.lists[asked] = found
    return found


def _find(table: Table, query: Query) -> Search:
    """The keys that match, in the order of the list."""
    keys = yield from _matching(table, query)
    if query.until is not None:
        keys = keys[: bisect_left(keys, max(query.until, 0) << BELOW_INSTANT)]
    if query.since is not None:
        keys = keys[bisect_left(keys, max(query.since, 0) << BELOW_INSTANT) :]
    for name, wanted in query.contains.items():
        keys = yield from searched(table.views.parts[name].data, keys, wanted)
    where = query.where
    if where is not None:
        keys = yield from filtered(keys, lambda key: where(table.rows[key]))
    if query.sort is None:
        return keys
    found = yield from _sorted(table, query.sort, keys)
    if query.newest_first and found and found[-1][0] == LAST:
        last = bisect_left(found, (LAST,))
        found = found[last:] + found[:last]
    return found


def _matching(table: Table, query: Query) -> Search:
    """The keys that satisfy what indexes know: the shortest condition decides, its keys are looked
    up in the others.
    """
    conditions = []
    for name, values in query.conditions:
        if name == "id":
            keys = [table.keys[each] for each in values if each in table.keys]
            conditions.append([(yield from _in_order(table, keys, len(keys)))])
        else:
            conditions.append([table.keys_with(name, value) for value in values])
    if query.between is not None:
        conditions.append([(yield from _between(table, *query.between))])
    if not conditions:
        return table.order
    conditions.sort(key=lambda lists: sum(map(len, lists)))
    first, *others = conditions
    if len(first) == 1:
        keys = first[0]
    else:
        yield
        keys = sorted(chain.from_iterable(first))  # it merges what is sorted already
    for lists in others:
        keys = yield from _also_in(lists, keys)
    return keys


def _also_in(lists: list[Keys], keys: Keys) -> Search:
    """The keys that are in one of several lists."""
    return (yield from filtered(keys, lambda key: any(contains(each, key) for each in lists)))


def _between(table: Table, name: str, low: Any, high: Any) -> Search:
    """The keys of a stretch of a sort order, oldest first."""
    order = table.views.sorts[name].data
    start = 0
    stop = len(order)
    if low is not None:
        start = bisect_left(order, (low,))
    if high is not None:
        stop = bisect_left(order, (high,))
    return (yield from _in_order(table, (key for _, key in order[start:stop]), stop - start))


def _in_order(table: Table, keys: Iterable[int], count: int) -> Search:
    """So many keys, in the order of their creation."""
    if count <= SORTED_BY_KEY:
        return sorted(keys)
    wanted = yield from collected(keys)
    return (yield from filtered(table.order, wanted.__contains__))


def _sorted(table: Table, sort: str, keys: Keys) -> Search:
    """Keys in a further sort order, each behind its value."""
    order = table.views.sorts[sort].data
    if len(keys) == len(table):
        return order
    if len(keys) > SORTED_OUTRIGHT:
        wanted = yield from collected(keys)
        return (yield from filtered(order, lambda pair: pair[1] in wanted))
    values = [table.views.derive(table.parse(table.rows[key]))[sort] for key in keys]
    return sorted(zip(values, keys, strict=True))
