"""What a table keeps beside its records, updated with every write: indexes, sort orders, counters, search texts.

Keys stay sorted in plain lists. So a page costs the same at any depth and size, and a write to a list of 100,000 keys
moves less than a megabyte: some microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from ..kernel.record import Body, Row
from .tables import Member, TableSpec

MOST_VIEWS = 16  # of a table, between two writes to it
Keys: TypeAlias = list[Any]
Values: TypeAlias = Sequence[Any]
"""What a record has for the parts of `Indexes`, each at its place."""
Conditions: TypeAlias = frozenset[tuple[str, frozenset[Hashable]]]
"""Names of indexes and, for each, the values of which a record has one."""


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

    A record is read into a list of values, those of pairs last: each part below knows the places of those it needs.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.order: Keys = []
        self.buckets: dict[str, defaultdict[Hashable, Keys]] = {
            name: defaultdict(list) for name in (*spec.indexes, *spec.pairs)
        }
        self.sorts: dict[str, Keys] = {name: [] for name in spec.sorts}
        self.texts: dict[str, dict[int, str]] = {name: {} for name in spec.search}
        self.sums: dict[str, dict[Hashable, int]] = {name: {} for name in spec.sums}
        self.distinct: dict[str, defaultdict[Hashable, dict[Hashable, int]]] = {
            name: defaultdict(dict) for name in spec.distinct
        }
        self.views: dict[Hashable, list[Any]] = {}
        counted = [rule.member for rule in (*spec.sums.values(), *spec.distinct.values())]
        extracts = dict.fromkeys((*spec.indexes.values(), *counted, *spec.sorts.values()))
        plain = sorted(extract for extract in extracts if isinstance(extract, Member))
        self._public = [member.name for member in plain if not member.is_hidden]
        self._hidden = [member.name for member in plain if member.is_hidden]
        self._others = [extract for extract in extracts if not isinstance(extract, Member)]
        places = {extract: place for place, extract in enumerate((*plain, *self._others))}
        at = {name: places[extract] for name, extract in spec.indexes.items()}
        self._pairs = [[at[name] for name in pair.split("+")] for pair in spec.pairs]
        at |= {pair: place for place, pair in enumerate(spec.pairs, len(places))}
        self._buckets = [(index, at[name]) for name, index in self.buckets.items()]
        self._sorts = [(self.sorts[name], places[extract]) for name, extract in spec.sorts.items()]
        self._texts = [(self.texts[name], extract) for name, extract in spec.search.items()]
        self._sums = [(self.sums[name], at[rule.group], places[rule.member]) for name, rule in spec.sums.items()]
        self._distinct = [
            (self.distinct[name], at[rule.group], places[rule.member]) for name, rule in spec.distinct.items()
        ]
        self._nothing: Values = [None] * (len(places) + len(spec.pairs))

    def fill(self, rows: Iterable[Row]) -> None:
        """Index the first records, in any order: faster than one by one, as all is sorted and counted at the end."""
        values = []
        for row in rows:
            self.order.append(row.record.key)
            values.append(self._values(row.public, row.hidden))
            for texts, extract in self._texts:
                texts[row.record.key] = extract(row.public, row.hidden)
        columns = list(zip(*values, strict=True)) or [()] * len(self._nothing)
        for index, place in self._buckets:
            for key, value in zip(self.order, columns[place], strict=True):
                if value is not None:
                    index[value].append(key)
        for pairs, place in self._sorts:
            pairs.extend(zip(columns[place], self.order, strict=True))
        for sums, group, member in self._sums:
            for value, amount in zip(columns[group], columns[member], strict=True):
                if value is not None and amount:
                    _add(sums, value, amount)
        for groups, group, member in self._distinct:
            for (value, one), number in Counter(zip(columns[group], columns[member], strict=True)).items():
                if value is not None and one is not None:
                    groups[value][one] = number
        for each in ([self.order], self.sorts.values(), *(index.values() for index in self.buckets.values())):
            for keys in each:
                keys.sort()

    def replace(self, key: int, old: Row | None, new: Row | None) -> None:
        """Replace a record's version by the next one; None where there is none."""
        self.views.clear()
        was = self._nothing if old is None else self._values(old.public, old.hidden)
        now = self._nothing if new is None else self._values(new.public, new.hidden)
        is_last = old is None and (not self.order or key > self.order[-1])
        if is_last:  # as most new records are: last in every bucket too
            self.order.append(key)
            for index, place in self._buckets:
                if now[place] is not None:
                    index[now[place]].append(key)
        elif old is None:
            insort(self.order, key)
        elif new is None:
            remove(self.order, key)
        if was != now and not is_last:
            for index, place in self._buckets:
                before, after = was[place], now[place]
                if before != after:
                    if before is not None:
                        remove(index[before], key)
                        if not index[before]:
                            del index[before]
                    if after is not None:
                        insort(index[after], key)
        if was != now:
            for pairs, place in self._sorts:
                before, after = was[place], now[place]
                if before != after:
                    if before is not None:
                        remove(pairs, (before, key))
                    if after is not None:
                        insort(pairs, (after, key))
            if new is not None:
                self._count(now, 1)
            if old is not None:
                self._count(was, -1)
        for texts, extract in self._texts:
            if new is None:
                del texts[key]
            else:
                texts[key] = extract(new.public, new.hidden)

    def _values(self, public: Body, hidden: Body) -> Values:
        values: list[Any] = [*map(public.get, self._public), *map(hidden.get, self._hidden)]
        for extract in self._others:
            values.append(extract(public, hidden))
        for first, second in self._pairs:
            a, b = values[first], values[second]
            values.append(None if a is None or b is None else (a, b))
        return values

    def _count(self, values: Values, sign: int) -> None:
        """Add a record's values to what is counted, or take them away."""
        for sums, group, member in self._sums:
            if values[member] and values[group] is not None:
                _add(sums, values[group], sign * values[member])
        for groups, group, member in self._distinct:
            value, one = values[group], values[member]
            if value is not None and one is not None:
                _add(groups[value], one, sign)

    def keep(self, asked: Hashable, found: list[Any]) -> list[Any]:
        """Keep a view until the next write."""
        if len(self.views) == MOST_VIEWS:
            self.views.clear()
        self.views[asked] = found
        return found

    def copy(self) -> Indexes:
        """An independent copy, without views."""
        twin = Indexes(self.spec)
        twin.order += self.order
        for name, index in self.buckets.items():
            twin.buckets[name].update((value, keys.copy()) for value, keys in index.items())
        for name, pairs in self.sorts.items():
            twin.sorts[name] += pairs
        for name, texts in self.texts.items():
            twin.texts[name].update(texts)
        for name, sums in self.sums.items():
            twin.sums[name].update(sums)
        for name, groups in self.distinct.items():
            twin.distinct[name].update((group, members.copy()) for group, members in groups.items())
        return twin


def _add(totals: dict[Hashable, int], name: Hashable, amount: int) -> None:
    """Add to a total; one that is zero is not stored."""
    total = totals.get(name, 0) + amount
    if total:
        totals[name] = total
    else:
        del totals[name]
