"""What a table derives from its records and updates with every write: indexes, sort orders, texts,
sums and members.

Keys stay sorted in plain lists. So a page costs the same at any depth and size, and a write to a
list of 100,000 keys moves less than a megabyte: some microseconds.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from itertools import chain
from typing import Any, Self, TypeVar

from ...core.record import Row
from .specs import NONE, ViewSpec

Keys = list[Any]


def insert(keys: Keys, key: Any) -> None:
    """Put a key in its place, mostly one of the last: new records are newer than all others."""
    if not keys or keys[-1] < key:
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


class Derived:
    """Something that follows from the records of a table."""

    data: Any

    def __init__(self) -> None:
        self.data = {}

    def add(self, key: int, value: Any) -> None:
        """Add a record that has this value."""
        self.data[key] = value

    def remove(self, key: int, value: Any) -> None:
        """Remove a record that had this value."""
        del self.data[key]

    def take(self, other: Self) -> None:
        """Have a copy of what another one has."""
        self.data = other.data.copy()


class Texts(Derived):
    """The texts that are searched, by key."""

    data: dict[int, str]


class Groups(Derived):
    """What has a list or a dict of its own for each value, its group.

    `shared` are the groups of the one that it is a copy of: a group that is still one of them is
    copied before it is written to.
    """

    empty: Callable[[], Any]

    def __init__(self) -> None:
        super().__init__()
        self.shared: Any = {}

    def take(self, other: Self) -> None:
        """Have what another one has, to which nobody writes any more. Each group is copied with
        the first write to it: to copy tens of thousands at once would take long.
        """
        super().take(other)
        self.shared = other.data

    def group(self, value: Hashable) -> Any:
        """The group of a value, to write to it; a new one where there is none."""
        found = self.data.get(value)
        if found is None:
            found = self.data[value] = self.empty()
        elif self.shared and found is self.shared.get(value):
            found = self.data[value] = found.copy()
        return found


class Index(Groups):
    """The keys of the records by value, oldest first."""

    data: dict[Hashable, Keys]
    empty = list

    def add(self, key: int, value: Any) -> None:
        """Add a key to those of a value."""
        insert(self.group(value), key)

    def remove(self, key: int, value: Any) -> None:
        """Remove a key from those of a value."""
        keys = self.group(value)
        remove(keys, key)
        if not keys:
            del self.data[value]


class Tags(Index):
    """The keys by value of records that have several values, of which one has none twice."""

    def add(self, key: int, value: Any) -> None:
        """Add a key to those of each value."""
        for each in value:
            super().add(key, each)

    def remove(self, key: int, value: Any) -> None:
        """Remove a key from those of each value."""
        for each in value:
            super().remove(key, each)


class SortOrder(Derived):
    """Pairs of a value and a key, sorted; while a table `is_filling`, in any order."""

    data: Keys
    is_filling = False

    def __init__(self) -> None:
        self.data = []

    def add(self, key: int, value: Any) -> None:
        """Add a key at the place of its value."""
        if self.is_filling:
            self.data.append((value, key))
        else:
            insert(self.data, (value, key))

    def remove(self, key: int, value: Any) -> None:
        """Remove a key from the place of its value."""
        remove(self.data, (value, key))


class Sum(Derived):
    """The sum of a whole number by group; values are pairs of both.

    A sum that is zero is not stored.
    """

    data: dict[Hashable, int]

    def add(self, key: int, value: Any) -> None:
        """Add a number to the sum of its group."""
        group, amount = value
        total = self.data.get(group, 0) + amount
        if total:
            self.data[group] = total
        else:
            self.data.pop(group, None)

    def remove(self, key: int, value: Any) -> None:
        """Subtract a number from the sum of its group."""
        group, amount = value
        self.add(key, (group, -amount))


class Members(Groups):
    """The different members of each group, with the number of records of each; values are
    pairs of both.
    """

    data: dict[Hashable, dict[Hashable, int]]
    empty = dict

    def add(self, key: int, value: Any) -> None:
        """Count a record of a member."""
        group, member = value
        members = self.group(group)
        members[member] = members.get(member, 0) + 1

    def remove(self, key: int, value: Any) -> None:
        """Count one record of a member less."""
        group, member = value
        members = self.group(group)
        members[member] -= 1
        if not members[member]:
            del members[member]


class Views:
    """All that a table derives from its records besides their unique keys, by name: what its spec
    asks for.
    """

    def __init__(self, spec: ViewSpec) -> None:
        self.spec, self._pairs = spec, [(pair, *pair.split("+")) for pair in spec.pairs]
        self.indexes = _made(Index, *spec.indexes, *spec.pairs) | _made(Tags, *spec.tags)
        self.sorts = _made(SortOrder, *spec.sorts)
        self.texts = _made(Texts, *spec.search)
        self.sums = _made(Sum, *spec.sums)
        self.distinct = _made(Members, *spec.distinct)
        kinds: tuple[Mapping[str, Derived], ...] = (
            self.indexes,
            self.sorts,
            self.texts,
            self.sums,
            self.distinct,
        )
        self._parts = list(chain.from_iterable(kind.items() for kind in kinds))
        self.names = {name for name, _ in self._parts}

    def replace(self, key: int, before: Row | None, after: Row | None) -> None:
        """Derive from the next version of a record in place of the one before; None where
        there is none.
        """
        old, new = self.derive(before), self.derive(after)
        for name, part in self._parts:
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            if was is not None:
                part.remove(key, was)
            if now is not None:
                part.add(key, now)

    def derive(self, row: Row | None) -> Mapping[str, Any]:
        """The members of a record and what the spec derives of it, by name; none
        without a record.
        """
        if row is None:
            return NONE
        members = {**row.hidden, **row.public}
        for pair, first, second in self._pairs:
            members[pair] = members.get(first), members.get(second)
        members |= self.spec.derived(row.public, row.hidden)
        return members

    def data(self) -> list[Any]:
        """The dicts and lists of all parts."""
        return [part.data for _, part in self._parts]

    def take(self, other: Self) -> None:
        """Have a copy of what another one has."""
        for (_, own), (_, part) in zip(self._parts, other._parts, strict=True):
            own.take(part)


D = TypeVar("D", bound=Derived)


def _made(kind: Callable[[], D], *names: str) -> dict[str, D]:
    return {name: kind() for name in names}
