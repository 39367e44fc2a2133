"""What a table keeps beside its records, updated with every write: indexes, sort orders, counters, views.

Keys stay sorted in plain lists. So a page costs the same at any depth and size, and a write to a list of 100,000 keys
moves less than a megabyte: some microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..kernel.record import Body, Record
from .tables import Extract, Parts, TableSpec

MOST_VIEWS = 16  # of a table; the one that was not read for longest is dropped
_FEW = 20  # one new pair in so many old ones is put in its place alone; more are merged
Keys: TypeAlias = list[Any]
Values: TypeAlias = Sequence[Hashable]
"""A record's value in each index."""
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


class SortOrder:
    """All records as sorted pairs of a value and the key.

    A new record's pair is put in its place by the next reading: writing alone costs nothing.
    """

    __slots__ = ("_extract", "_new", "_pairs")

    def __init__(self, extract: Extract) -> None:
        self._extract = extract
        self._pairs: Keys = []
        self._new: Keys = []

    def enter(self, key: int, parts: Parts) -> None:
        """Add a record."""
        self._new.append((self._extract(*parts), key))

    def move(self, key: int, old: Parts, new: Parts | None) -> None:
        """Replace a record's version; without a new one, remove the record."""
        value, changed = self._extract(*old), None if new is None else self._extract(*new)
        if changed != value:
            remove(self.read(), (value, key))
            if changed is not None:
                add(self._pairs, (changed, key))

    def read(self) -> Keys:
        """All pairs in order; not to be changed."""
        if self._new:
            if len(self._new) * _FEW < len(self._pairs):
                for pair in self._new:
                    add(self._pairs, pair)
            else:
                self._pairs += self._new
                self._pairs.sort()
            self._new = []
        return self._pairs

    def copy(self) -> SortOrder:
        """An independent copy."""
        twin = SortOrder(self._extract)
        twin._pairs, twin._new = self._pairs.copy(), self._new.copy()
        return twin


class Counters:
    """What `sums` and `distinct` of a table's spec ask for, by name and group."""

    __slots__ = ("_distinct", "_sums", "distinct", "sums")

    def __init__(self, spec: TableSpec, positions: Mapping[str, int]) -> None:
        """`positions` says where each index's value stands among a record's values."""
        self.sums: dict[str, dict[Hashable, int]] = {name: {} for name in spec.sums}
        self.distinct: dict[str, dict[Hashable, dict[Hashable, int]]] = {name: {} for name in spec.distinct}
        self._sums = [(self.sums[name], positions[rule.group], rule.member) for name, rule in spec.sums.items()]
        self._distinct = [
            (self.distinct[name], positions[rule.group], rule.member) for name, rule in spec.distinct.items()
        ]

    def change(self, was: Values, old: Parts | None, now: Values, new: Parts | None) -> None:
        """Count a record's new version in place of the old one; None where there is none."""
        for sums, position, member in self._sums:
            before, after = 0 if old is None else member(*old), 0 if new is None else member(*new)
            group, next_group = was[position], now[position]
            if before != after or group != next_group:
                _add(sums, group, -before)
                _add(sums, next_group, after)
        for groups, position, member in self._distinct:
            before, after = None if old is None else member(*old), None if new is None else member(*new)
            group, next_group = was[position], now[position]
            if before != after or group != next_group:
                if before is not None and group is not None:
                    _add(groups[group], before, -1)
                if after is not None and next_group is not None:
                    _add(groups.setdefault(next_group, {}), after, +1)

    def copy_to(self, twin: Counters) -> None:
        """Give an empty one of the same spec the same figures."""
        for name, sums in self.sums.items():
            twin.sums[name].update(sums)
        for name, groups in self.distinct.items():
            twin.distinct[name].update((group, members.copy()) for group, members in groups.items())


def _add(totals: dict[Hashable, int], name: Hashable, amount: int) -> None:
    """Add to a total; one that is zero is not stored."""
    if name is not None and amount:
        total = totals.get(name, 0) + amount
        if total:
            totals[name] = total
        else:
            del totals[name]


class Weight:
    """How many bytes some records take together. Bytes that several of them share count once."""

    __slots__ = ("_base", "_users", "size")

    def __init__(self, base: Weight | None = None) -> None:
        """With `base`: what its weight would be after changes; the base itself is not changed."""
        self._base = base
        self.size: int = 0 if base is None else base.size
        self._users: dict[int, int] = {}  # how many records share some bytes, by the identity of these

    def add(self, record: Record, sign: int = +1) -> None:
        """Count a record; with the sign -1 count the same record no longer."""
        self.size += sign * (len(record.public) + len(record.hidden))
        if record.shared:
            shared = id(record.shared)
            before = self._users.get(shared)
            if before is None:
                before = 0 if self._base is None else self._base._users.get(shared, 0)
            self._users[shared] = before + sign
            if before == 0 or before + sign == 0:
                self.size += sign * len(record.shared)
            if before + sign == 0 and self._base is None:
                del self._users[shared]

    def copy(self) -> Weight:
        """An independent one of the same records."""
        twin = Weight()
        twin.size, twin._users = self.size, self._users.copy()
        return twin


class View(NamedTuple):
    """The keys of the records that meet some conditions, or pairs with a value of a sort order.

    `conditions` are positions among a record's values, each with the values that are allowed there.
    """

    conditions: Sequence[tuple[int, frozenset[Hashable]]]
    extract: Extract | None
    keys: Keys

    def move(self, key: int, was: Values, old: Parts | None, now: Values, new: Parts | None) -> None:
        """Follow a write to a record."""
        before, after = self._place(key, was, old), self._place(key, now, new)
        if before != after:
            if before is not None:
                remove(self.keys, before)
            if after is not None:
                add(self.keys, after)

    def _place(self, key: int, values: Values, parts: Parts | None) -> Any:
        if parts is None:
            return None
        for position, allowed in self.conditions:
            if values[position] not in allowed:
                return None
        return key if self.extract is None else (self.extract(*parts), key)


class Indexes:
    """Everything that is derived from a table's records.

    `order` has all keys by creation, `buckets` by index and value, `texts` what is searched by search and key.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.order: Keys = []
        self.buckets: dict[str, dict[Hashable, Keys]] = {name: {} for name in (*spec.indexes, *spec.pairs)}
        self.sorts = {name: SortOrder(extract) for name, extract in spec.sorts.items()}
        self.texts: dict[str, dict[int, str]] = {name: {} for name in spec.search}
        self._lists = list(self.buckets.values())
        self._copied: list[set[Hashable]] | None = None  # the values whose buckets are not shared; None when none is
        self._positions = {name: number for number, name in enumerate(self.buckets)}
        self.counters = Counters(spec, self._positions)
        self.weight = Weight()  # of the records of a ring; of other tables nobody asks
        self.views: dict[tuple[Conditions, str | None], View] = {}
        self._extracts = list(spec.indexes.values())
        self._pairs = [[self._positions[name] for name in pair.split("+")] for pair in spec.pairs]
        self._nothing: Values = [None] * len(self.buckets)

    def enter(self, record: Record, public: Body, hidden: Body) -> None:
        """Add a new record."""
        key, parts, values = record.key, (public, hidden), self._values(public, hidden)
        add(self.order, key)
        if self.spec.ring:
            self.weight.add(record)
        for number, value in enumerate(values):
            if value is not None:
                add(self._own_bucket(number, value), key)
        for order in self.sorts.values():
            order.enter(key, parts)
        self._follow(key, self._nothing, None, values, parts)

    def put(self, record: Record, before: Record, old: Parts, new: Parts) -> None:
        """Replace a record's version."""
        if self.spec.ring:
            self.weight.add(before, -1)
            self.weight.add(record)
        self._move(record.key, old, new)

    def drop(self, record: Record, old: Parts) -> None:
        """Remove a record."""
        if self.spec.ring:
            self.weight.add(record, -1)
        remove(self.order, record.key)
        self._move(record.key, old, None)

    def view(self, conditions: Conditions, sort: str | None) -> Keys | None:
        """The keys of a view that is kept."""
        view = self.views.pop((conditions, sort), None)
        if view is None:
            return None
        self.views[conditions, sort] = view  # the last one read is the last one
        return view.keys

    def keep(self, conditions: Conditions, sort: str | None, keys: Keys) -> Keys:
        """Keep a view from now on; `keys` are in order."""
        named = [(self._positions[name], allowed) for name, allowed in conditions]
        self.views[conditions, sort] = View(named, None if sort is None else self.spec.sorts[sort], keys)
        if len(self.views) > MOST_VIEWS:
            del self.views[next(iter(self.views))]
        return keys

    def copy(self) -> Indexes:
        """An independent copy, without views. Both share each bucket until one of them changes it."""
        twin = Indexes(self.spec)
        twin.order, twin.weight = self.order.copy(), self.weight.copy()
        for index, copied in zip(self._lists, twin._lists, strict=True):
            copied.update(index)
        self._copied, twin._copied = [set() for _ in self._lists], [set() for _ in self._lists]
        twin.sorts = {name: order.copy() for name, order in self.sorts.items()}
        twin.texts = {name: texts.copy() for name, texts in self.texts.items()}
        self.counters.copy_to(twin.counters)
        return twin

    def _values(self, public: Body, hidden: Body) -> Values:
        """A record's value in each index, and both values in each pair."""
        values: list[Any] = [extract(public, hidden) for extract in self._extracts]
        for first, second in self._pairs:
            a, b = values[first], values[second]
            values.append(None if a is None or b is None else (a, b))
        return values

    def _own_bucket(self, number: int, value: Hashable) -> Keys:
        """The bucket of a value in an index, to be changed."""
        index = self._lists[number]
        keys = index.get(value)
        if keys is None:
            keys = index[value] = []
        elif self._copied is None or value in self._copied[number]:
            return keys
        else:
            keys = index[value] = keys.copy()
        if self._copied is not None:
            self._copied[number].add(value)
        return keys

    def _move(self, key: int, old: Parts, new: Parts | None) -> None:
        was, now = self._values(*old), self._nothing if new is None else self._values(*new)
        if was != now:
            for number, (before, after) in enumerate(zip(was, now, strict=True)):
                if before != after:
                    if before is not None:
                        keys = self._own_bucket(number, before)
                        remove(keys, key)
                        if not keys:
                            del self._lists[number][before]
                    if after is not None:
                        add(self._own_bucket(number, after), key)
        for order in self.sorts.values():
            order.move(key, old, new)
        self._follow(key, was, old, now, new)

    def _follow(self, key: int, was: Values, old: Parts | None, now: Values, new: Parts | None) -> None:
        """Change what new and replaced records have in common: search texts, counters and views."""
        for name, extract in self.spec.search.items():
            if new is None:
                del self.texts[name][key]
            else:
                self.texts[name][key] = extract(*new)
        self.counters.change(was, old, now, new)
        for view in self.views.values():
            view.move(key, was, old, now, new)
