"""What a table derives from its records and updates with every write: indexes, sort orders, texts
and totals.

Keys stay sorted in plain lists. So a page costs the same at any depth and size, and a write to a
list of 100,000 keys moves less than a megabyte: some microseconds.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Self

from ...core.record import Body, Row

Keys = list[Any]
Names = tuple[str, ...]
"""Names of members of a record, or of what is derived from one."""
Derive = Callable[[Row], Body]
"""What is derived from a record besides its members, by name."""


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
    """Pairs of a value and a key, sorted."""

    data: Keys

    def __init__(self) -> None:
        self.data = []

    def add(self, key: int, value: Any) -> None:
        """Add a key at the place of its value."""
        insert(self.data, (value, key))

    def remove(self, key: int, value: Any) -> None:
        """Remove a key from the place of its value."""
        remove(self.data, (value, key))


class Totals(Groups):
    """Numbers by group and member; values are all three.

    So it counts the records of each member, or adds up a whole number by group.
    """

    data: dict[Hashable, dict[Hashable, int]]
    empty = dict

    def add(self, key: int, value: Any) -> None:
        """Add the number to that of the member."""
        group, member, number = value
        members = self.group(group)
        total = members.get(member, 0) + number
        if total:
            members[member] = total
        else:
            members.pop(member, None)

    def remove(self, key: int, value: Any) -> None:
        """Subtract the number from that of the member."""
        group, member, number = value
        self.add(key, (group, member, -number))


def nothing(row: Row) -> Body:
    """Derive nothing: all that is kept are members of the record."""
    return {}


class Views:
    """All that a table derives from its records besides their unique keys, for lists and figures.

    A record that has None at a name has no part in it. An `Index` answers equality in the cost of
    the page alone, one named `a+b` that of two members at once (`pairs` has the names of both), and
    `Tags` that of members with several values; `Texts` are folded ones that `contains` looks in.
    """

    def __init__(self, derived: Derive, kinds: Mapping[type[Derived], Names], sorts: Names) -> None:
        """`kinds` has the names of the parts of each kind; `sorts` are further orders besides the
        time of creation.
        """
        self._derived = derived
        self.parts: dict[str, Any] = {}
        for kind, names in kinds.items():
            for name in names:
                self.parts[name] = kind()
        self.sorts = {name: SortOrder() for name in sorts}
        self.pairs = [(name, *name.split("+")) for name in self.parts if "+" in name]
        self.all: list[tuple[str, Derived]] = [*self.parts.items(), *self.sorts.items()]

    def replace(self, key: int, before: Row | None, after: Row | None) -> None:
        """Derive from the next version of a record in place of the one before; None where
        there is none.
        """
        new = self.derive(after)
        if before is None:  # most often: a record is created
            for name, part in self.all:
                value = new.get(name)
                if value is not None:
                    part.add(key, value)
            return
        old = self.derive(before)
        for name, part in self.all:
            was = old.get(name)
            now = new.get(name)
            if was == now:
                continue
            if was is not None:
                part.remove(key, was)
            if now is not None:
                part.add(key, now)

    def derive(self, row: Row | None) -> Body:
        """The members of a record and what is derived of it, by name; none
        without a record.
        """
        if row is None:
            return {}
        members = {**row.public, **row.hidden}
        for pair, first, second in self.pairs:
            members[pair] = members.get(first), members.get(second)
        return members | self._derived(row)

    def take(self, other: Self) -> None:
        """Have a copy of what another one has."""
        for (_, own), (_, part) in zip(self.all, other.all, strict=True):
            own.take(part)
