"""What a table keeps beside its records, updated with every write: indexes, sort orders, counters, search texts.

Keys stay sorted in plain lists. So a page costs the same at any depth and size, and a write to a list of 100,000 keys
moves less than a megabyte: some microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from ..kernel.record import Body, Row
from .tables import TableSpec

MOST_VIEWS = 16  # of a table, between two writes to it
Keys: TypeAlias = list[Any]
Values: TypeAlias = Sequence[Any]
"""The members of a record that are counted, and its value in each index and pair."""
Conditions: TypeAlias = frozenset[tuple[str, frozenset[Hashable]]]
"""Names of indexes and, for each, the values of which a record has one."""


def add(keys: Keys, key: Any) -> None:
    """Put a key in its place."""
    if not keys or key > keys[-1]:
        keys.append(key)
    else:
        insort(keys, key)


def remove(keys: Keys, key: Any) -> None:
    """Take a key out. Raises KeyError if it is not there."""
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        raise KeyError(key)
    del keys[at]


def contains(keys: Keys, key: Any) -> bool:
    """Whether the key is there."""
    at = bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


class Indexes:
    """Everything that is derived from a table's records.

    `order` has all keys by creation, `buckets` the keys by index and value, `sorts` pairs of a value and a key by sort
    order, `texts` what is searched by search and key. `sums` and `distinct` are what the table's spec asks for, by name
    and group. `views` are the results of queries that took long; the next write drops them.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.order: Keys = []
        self.buckets: dict[str, dict[Hashable, Keys]] = {name: {} for name in (*spec.indexes, *spec.pairs)}
        self.sorts: dict[str, Keys] = {name: [] for name in spec.sorts}
        self.texts: dict[str, dict[int, str]] = {name: {} for name in spec.search}
        self.sums: dict[str, dict[Hashable, int]] = {name: {} for name in spec.sums}
        self.distinct: dict[str, dict[Hashable, dict[Hashable, int]]] = {name: {} for name in spec.distinct}
        self.views: dict[tuple[Conditions, str | None], Keys] = {}
        rules = [*spec.sums.items(), *spec.distinct.items()]
        positions = {name: number for number, name in enumerate(self.buckets, len(rules))}
        counted = [(name, positions[rule.group], number) for number, (name, rule) in enumerate(rules)]
        self._sums, self._distinct = counted[: len(spec.sums)], counted[len(spec.sums) :]
        self._extracts = [*(rule.member for _, rule in rules), *spec.indexes.values()]
        self._pairs = [[positions[name] for name in pair.split("+")] for pair in spec.pairs]
        self._nothing: Values = [None] * (len(rules) + len(positions))

    def fill(self, rows: Iterable[Row]) -> None:
        """Index the first records, in any order: faster than one by one, as all is sorted and counted at the end."""
        sorts = [(self.sorts[name], extract) for name, extract in self.spec.sorts.items()]
        texts = [(self.texts[name], extract) for name, extract in self.spec.search.items()]
        values = []
        for record, public, hidden in rows:
            self.order.append(record.key)
            values.append(self._values(public, hidden))
            for pairs, extract in sorts:
                pairs.append((extract(public, hidden), record.key))
            for found, extract in texts:
                found[record.key] = extract(public, hidden)
        columns = list(zip(*values, strict=True)) or [()] * len(self._nothing)
        for index, column in zip(self.buckets.values(), columns[-len(self.buckets) :], strict=False):
            for key, value in zip(self.order, column, strict=True):
                if value is not None:
                    index.setdefault(value, []).append(key)
        for name, group, member in self._sums:
            for value, amount in zip(columns[group], columns[member], strict=True):
                if value is not None and amount:
                    _add(self.sums[name], value, amount)
        for name, group, member in self._distinct:
            for (value, one), number in Counter(zip(columns[group], columns[member], strict=True)).items():
                if value is not None and one is not None:
                    self.distinct[name].setdefault(value, {})[one] = number
        for each in ([self.order], self.sorts.values(), *(index.values() for index in self.buckets.values())):
            for keys in each:
                keys.sort()

    def replace(self, key: int, old: Row | None, new: Row | None) -> None:
        """Replace a record's version by the next one; None where there is none."""
        self.views.clear()
        was = self._nothing if old is None else self._values(old.public, old.hidden)
        now = self._nothing if new is None else self._values(new.public, new.hidden)
        if old is None:
            add(self.order, key)
        elif new is None:
            remove(self.order, key)
        if was != now:
            start = len(was) - len(self.buckets)
            for index, before, after in zip(self.buckets.values(), was[start:], now[start:], strict=True):
                if before != after:
                    if before is not None:
                        remove(index[before], key)
                        if not index[before]:
                            del index[before]
                    if after is not None:
                        add(index.setdefault(after, []), key)
            if new is not None:
                self._count(now, 1)
            if old is not None:
                self._count(was, -1)
        for name, extract in self.spec.sorts.items():
            first = None if old is None else extract(old.public, old.hidden)
            last = None if new is None else extract(new.public, new.hidden)
            if first != last:
                if old is not None:
                    remove(self.sorts[name], (first, key))
                if new is not None:
                    add(self.sorts[name], (last, key))
        for name, extract in self.spec.search.items():
            if new is None:
                del self.texts[name][key]
            else:
                self.texts[name][key] = extract(new.public, new.hidden)

    def _values(self, public: Body, hidden: Body) -> Values:
        values: list[Any] = [extract(public, hidden) for extract in self._extracts]
        for first, second in self._pairs:
            a, b = values[first], values[second]
            values.append(None if a is None or b is None else (a, b))
        return values

    def _count(self, values: Values, sign: int) -> None:
        """Add a record's values to what is counted, or take them away."""
        for name, group, member in self._sums:
            value, amount = values[group], values[member]
            if value is not None and amount:
                _add(self.sums[name], value, sign * amount)
        for name, group, member in self._distinct:
            value, one = values[group], values[member]
            if value is not None and one is not None:
                _add(self.distinct[name].setdefault(value, {}), one, sign)

    def keep(self, conditions: Conditions, sort: str | None, keys: Keys) -> Keys:
        """Keep a view until the next write; `keys` are in order."""
        if len(self.views) == MOST_VIEWS:
            self.views.clear()
        self.views[conditions, sort] = keys
        return keys

    def copy(self) -> Indexes:
        """An independent copy, without views."""
        twin = Indexes(self.spec)
        twin.order = self.order.copy()
        for name, index in self.buckets.items():
            twin.buckets[name] = {value: keys.copy() for value, keys in index.items()}
        twin.sorts = {name: pairs.copy() for name, pairs in self.sorts.items()}
        twin.texts = {name: texts.copy() for name, texts in self.texts.items()}
        twin.sums = {name: sums.copy() for name, sums in self.sums.items()}
        for name, groups in self.distinct.items():
            twin.distinct[name] = {group: members.copy() for group, members in groups.items()}
        return twin


def _add(totals: dict[Hashable, int], name: Hashable, amount: int) -> None:
    """Add to a total; one that is zero is not stored."""
    total = totals.get(name, 0) + amount
    if total:
        totals[name] = total
    else:
        del totals[name]
