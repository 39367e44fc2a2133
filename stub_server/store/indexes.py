"""What a table keeps beside its records, brought up to date with every write: sorted keys, views, counters.

Keys are sorted in a plain list while it is short or changed at its end alone, else in a SortedList. So a page costs the
same at any depth and size, and so does a change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sortedcontainers import SortedList

from ..kernel.record import Body
from .tables import Member, Parts, TableSpec, plain

LONG = 32_768  # a change so far from the end moves a quarter of a megabyte: some microseconds, and no more
_FEW = 16  # so many keys at the end are looked through first
_MERGED = 100  # to merge goes through all keys, as many of them as it takes to find a hundredth of their places
MOST = 24  # views of a table
MOST_NOTED = 2_000  # changes; a view that nobody has read for so long is forgotten
# `type(...) is list` is the fastest test of which it is; mypy does not narrow the other half of the union by it, and
# wherever that half is used it has to be told so.
_GET: Callable[[dict[Hashable, Any], Hashable], Any] = dict.get
Keys: TypeAlias = "list[Any] | SortedList[Any]"
Conditions: TypeAlias = frozenset[tuple[str, frozenset[Hashable]]]
"""Names of indexes and, for each, the values of which a record has one."""


# -- sorted keys


def add(keys: Keys, key: Any) -> Keys:
    """Put a key in its place; answers the container to keep, which changes once when a long list needs a better one."""
    if type(keys) is list:
        if not keys or key > keys[-1]:
            keys.append(key)
            return keys
        size = len(keys)
        if size <= LONG or key > keys[-LONG]:
            insort(keys, key)
            return keys
        keys = SortedList(keys)
    keys.add(key)  # type: ignore[union-attr]
    return keys


def remove(keys: Keys, key: Any) -> Keys:
    """Take a key out; it must be there. Answers the container to keep."""
    if type(keys) is list:
        at = bisect_left(keys, key)
        if at == len(keys) or keys[at] != key:
            raise KeyError(key)
        if len(keys) - at <= LONG:
            del keys[at]
            return keys
        keys = SortedList(keys)
    keys.remove(key)
    return keys


def position(keys: Keys, key: Any) -> int:
    """How many keys are smaller."""
    return bisect_left(keys, key) if type(keys) is list else keys.bisect_left(key)  # type: ignore[union-attr]


def holds(keys: Keys, key: Any) -> bool:
    """Whether the key is there."""
    if type(keys) is list:
        at = bisect_left(keys, key)
        return at < len(keys) and keys[at] == key
    return key in keys


def enter(order: Keys, indexes: Sequence[dict[Hashable, Keys]], values: Sequence[Hashable], key: Any) -> Keys:
    """Put a new record's key in its place: in the order of creation, and in the bucket of its value in each index.

    Answers the container to keep for the order. Few keys are larger: of records that came within a millisecond.
    """
    later = 0  # so many keys are larger, and of each bucket no more
    if type(order) is not list:
        later = len(order) - position(order, key)
        order.add(key)  # type: ignore[union-attr]
    elif not order or key > order[-1]:
        order.append(key)
    else:
        size = len(order)
        at = bisect_left(order, key, size - _FEW if size > _FEW and key > order[-_FEW] else 0)
        later = size - at
        if later > LONG:
            order = add(order, key)
        else:
            order.insert(at, key)
    if later > LONG:
        for index, value in zip(indexes, values, strict=True):
            if value is not None:
                index[value] = add(index.get(value) or [], key)
        return order
    missing = 0
    for bucket in map(_GET, indexes, values):  # called for every new record: a loop without more than it needs
        if bucket is None:
            missing += 1
        elif type(bucket) is not list:
            bucket.add(key)
        elif later:
            size = len(bucket)
            insort(bucket, key, size - later if size > later else 0)
        else:
            bucket.append(key)
    if missing > values.count(None):
        for index, value in zip(indexes, values, strict=True):
            if value is not None and value not in index:
                index[value] = [key]
    return order


def joined(keys: Keys, pairs: list[tuple[Any, int]]) -> Keys:
    """The sorted pairs and others, which come in any order and are the container's own from now on."""
    if len(pairs) <= _FEW or len(pairs) * _MERGED < len(keys):
        for pair in pairs:
            keys = add(keys, pair)
        return keys
    pairs.sort()
    if not keys:
        return pairs
    if type(keys) is list:
        keys.extend(pairs)
        keys.sort()  # of two runs: it only merges them
    else:
        keys.update(pairs)  # type: ignore[union-attr]
    return keys


# -- further sort orders


class Sorts:
    """Pairs of value and key, by the value, for each of `sorts` of a table's spec.

    A new record is noted at the end of a list and goes to its place with the first reading after. So nobody who only
    writes pays for an order, and somebody who reads pays for what has come since.
    """

    __slots__ = ("_extracts", "_kept", "_new")

    def __init__(self, spec: TableSpec) -> None:
        self._extracts = {name: plain(extract) for name, extract in spec.sorts.items()}
        self._kept: dict[str, Keys] = {name: [] for name in spec.sorts}
        self._new: dict[str, list[Any]] = {name: [] for name in spec.sorts}

    def values(self, public: Body, hidden: Body) -> dict[str, Any]:
        """A record's value in each order."""
        return {name: extract(public, hidden) for name, extract in self._extracts.items()}

    def enter(self, key: int, public: Body, hidden: Body) -> None:
        """A record has come."""
        for name, extract in self._extracts.items():
            self._new[name].append((extract(public, hidden), key))

    def move(self, key: int, before: tuple[Body, Body], after: tuple[Body, Body] | None) -> None:
        """A record has another version now; without any, it has gone."""
        for name, extract in self._extracts.items():
            value = extract(*before)
            changed = None if after is None else extract(*after)
            if changed != value:
                self._kept[name] = remove(self.read(name), (value, key))
                if changed is not None:
                    self._kept[name] = add(self._kept[name], (changed, key))

    def read(self, name: str) -> Keys:
        """All pairs in order; not to be changed."""
        new = self._new[name]
        if new:
            self._kept[name] = joined(self._kept[name], new)
            self._new[name] = []
        return self._kept[name]

    def copy(self) -> Sorts:
        """An independent copy."""
        twin = Sorts.__new__(Sorts)
        twin._extracts = self._extracts
        twin._kept = {name: keys.copy() for name, keys in self._kept.items()}
        twin._new = {name: pairs.copy() for name, pairs in self._new.items()}
        return twin


# -- views


class Noted(NamedTuple):
    """A change of one record: its values in the indexes before and after, None where there is no such version.

    `ranks` are its values in the further sort orders, before and after.
    """

    key: int
    before: Sequence[Hashable] | None
    after: Sequence[Hashable] | None
    ranks: tuple[Mapping[str, Any], Mapping[str, Any]]


class View:
    """The records that keep some conditions, by creation or, with `sort`, by its value.

    `conditions` name the positions of index values. `seen` is how many of the noted changes the view has taken over.
    """

    __slots__ = ("conditions", "keys", "seen", "sort")

    def __init__(self, conditions: list[tuple[int, frozenset[Hashable]]], sort: str | None, keys: Keys) -> None:
        self.conditions, self.sort, self.keys, self.seen = conditions, sort, keys, 0

    def catch_up(self, noted: Sequence[Noted]) -> None:
        """Take over what has changed since the view was last read."""
        for key, before, after, (rank, next_rank) in noted[self.seen :]:
            was = self._place(key, before, rank)
            now = self._place(key, after, next_rank)
            if was != now:
                if was is not None:
                    self.keys = remove(self.keys, was)
                if now is not None:
                    self.keys = add(self.keys, now)
        self.seen = len(noted)

    def _place(self, key: int, values: Sequence[Hashable] | None, ranks: Mapping[str, Any]) -> Any:
        """Where a record of these values stands; None when it does not belong here."""
        if values is None:
            return None
        for position, wanted in self.conditions:
            if values[position] not in wanted:
                return None
        return key if self.sort is None else (ranks[self.sort], key)


class Views:
    """The views of one table, `held` by what was asked."""

    __slots__ = ("_noted", "_positions", "held")

    def __init__(self, positions: Mapping[str, int]) -> None:
        """`positions` says where each index's value stands among a record's values."""
        self._positions = positions
        self.held: dict[tuple[Conditions, str | None], View] = {}
        self._noted: list[Noted] = []

    def note(self, change: Noted) -> None:
        """Remember a change for the views that are read later."""
        self._noted.append(change)
        if len(self._noted) >= MOST_NOTED:
            self.held = {asked: view for asked, view in self.held.items() if view.seen}
            self._rebase()

    def find(self, conditions: Conditions, sort: str | None) -> Keys | None:
        """The keys of a view that is kept, up to date."""
        view = self.held.pop((conditions, sort), None)
        if view is None:
            return None
        view.catch_up(self._noted)
        self.held[conditions, sort] = view  # the one last asked for goes last
        self._rebase()
        return view.keys

    def keep(self, conditions: Conditions, sort: str | None, keys: list[Any]) -> Keys:
        """Keep a view from now on; `keys` are in order."""
        named = [(self._positions[name], wanted) for name, wanted in conditions]
        view = self.held[conditions, sort] = View(named, sort, keys)
        view.seen = len(self._noted)
        if len(self.held) > MOST:
            del self.held[next(iter(self.held))]
        self._rebase()
        return view.keys

    def _rebase(self) -> None:
        """Forget the changes that every view has taken over."""
        common = min((view.seen for view in self.held.values()), default=len(self._noted))
        del self._noted[:common]
        for view in self.held.values():
            view.seen -= common


# -- counters


class Counters:
    """What `sums` and `distinct` of a table's spec ask for, by name and group."""

    __slots__ = ("_distinct", "_sums", "distinct", "sums")

    def __init__(self, spec: TableSpec, positions: Mapping[str, int]) -> None:
        """`positions` says where each index's value stands among a record's values."""
        self.sums: dict[str, dict[Hashable, int]] = {name: {} for name in spec.sums}
        self.distinct: dict[str, dict[Hashable, dict[Hashable, int]]] = {name: {} for name in spec.distinct}
        added: dict[Member, list[tuple[dict[Hashable, int], int]]] = {}
        for name, rule in spec.sums.items():
            added.setdefault(rule.member, []).append((self.sums[name], positions[rule.group]))
        self._sums = [(member.side, member.name, targets) for member, targets in added.items()]
        self._distinct = [
            (self.distinct[name], positions[rule.group], plain(rule.member)) for name, rule in spec.distinct.items()
        ]

    def enter(self, values: Sequence[Any], public: Body, hidden: Body) -> None:
        """A record has come; `values` are its values in the indexes."""
        for side, name, targets in self._sums:
            value = (hidden if side else public).get(name)
            if value:
                for sums, position in targets:
                    _add(sums, values[position], value)
        for groups, position, member_of in self._distinct:
            member, group = member_of(public, hidden), values[position]
            if member is not None and group is not None:
                members = groups.get(group)
                if members is None:
                    groups[group] = {member: 1}
                else:
                    members[member] = members.get(member, 0) + 1

    def move(self, was: Sequence[Any], old: Parts, now: Sequence[Any], new: Parts | None) -> None:
        """A record has another version now; without any, it has gone. What counts the same in both is left alone."""
        public, hidden = old
        after, hidden_after = new or ({}, {})
        for side, name, targets in self._sums:
            before = (hidden if side else public).get(name) or 0
            value = (hidden_after if side else after).get(name) or 0
            if before or value:
                for sums, position in targets:
                    group, group_now = was[position], now[position]
                    if group == group_now:
                        if before != value:
                            _add(sums, group, value - before)
                    else:
                        _add(sums, group, -before)
                        _add(sums, group_now, value)
        for groups, position, member_of in self._distinct:
            member, member_now = member_of(public, hidden), None if new is None else member_of(after, hidden_after)
            group, group_now = was[position], now[position]
            if member != member_now or group != group_now:
                _count(groups, group, member, -1)
                _count(groups, group_now, member_now, +1)

    def copy_to(self, twin: Counters) -> None:
        """Give another one, of the same spec and empty, the same figures."""
        for name, sums in self.sums.items():
            twin.sums[name].update(sums)
        for name, groups in self.distinct.items():
            twin.distinct[name].update((group, members.copy()) for group, members in groups.items())


def _add(sums: dict[Hashable, int], group: Hashable, amount: int) -> None:
    """A group whose sum is nothing takes no room."""
    if group is not None and amount:
        total = sums.get(group, 0) + amount
        if total:
            sums[group] = total
        else:
            del sums[group]


def _count(groups: dict[Hashable, dict[Hashable, int]], group: Hashable, member: Hashable, sign: int) -> None:
    if member is None or group is None:
        return
    members = groups.get(group)
    if members is None:
        members = groups[group] = {}
    left = members.get(member, 0) + sign
    if left:
        members[member] = left
    else:
        del members[member]
