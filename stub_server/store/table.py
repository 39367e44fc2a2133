"""One table in memory: the records of one kind by id, with their unique keys and indexes."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

import orjson

from ..kernel.record import Body, Record, Row
from .indexes import Derived, Index, Keys, Members, SortOrder, Sum, Texts, remove
from .tables import Check, TableSpec, UniqueViolation, both

PEEKED = 256  # so many records of a table stay parsed
REMEMBERED = 16  # lists of a table between two writes to it
_KINDS = ("indexes", "sorts", "texts", "sums", "distinct")  # of what is derived from records
MORE_AT_ONCE = 200  # records that a ring drops beyond the number of new ones: a step must not take long


def encoded(value: Any) -> bytes:
    """JSON without spare memory: orjson returns its whole working buffer, kilobytes for a small record."""
    return b"%b" % orjson.dumps(value)  # the fastest way to copy


def place(created: int, ident: str) -> int:
    """The sort key of a record: creation in ms, then id."""
    return created << 128 | int(ident.replace("-", ""), 16)


class Table:
    """All records of one kind of one merchant.

    `order` has the keys of all records, oldest first. `indexes`, `sorts`, `texts`, `sums` and `distinct` are what the
    spec asks for, by name. `lists` are the keys that queries found; the next write drops them. `size` is how many bytes
    the records of a ring have.
    """

    def __init__(self, name: str, spec: TableSpec, check: Check, rows: Mapping[int, Record] | None = None) -> None:
        """`check` validates the public part of every new version against the contract; `rows` are its first records."""
        self.name, self.spec, self.check = name, spec, check
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.order: Keys = []
        self.unique: dict[str, dict[Hashable, str]] = {key: {} for key in spec.unique}
        extracts = spec.indexes
        pairs = {pair: both(*[extracts[each] for each in pair.split("+")]) for pair in spec.pairs}
        self.indexes = {index: Index(extract) for index, extract in {**extracts, **pairs}.items()}
        self.sorts = {sort: SortOrder(extract) for sort, extract in spec.sorts.items()}
        self.texts = {search: Texts(extract) for search, extract in spec.search.items()}
        self.sums = {each: Sum(both(extracts[rule.group], rule.member)) for each, rule in spec.sums.items()}
        self.distinct = {each: Members(both(extracts[rule.group], rule.member)) for each, rule in spec.distinct.items()}
        self.lists: dict[Hashable, Any] = {}
        self.size = 0
        self._peeked: dict[str, tuple[Record, Body]] = {}
        self._defaults = dict(spec.defaults)
        self._collect()
        for _, record in sorted((rows or {}).items()):
            self.replace(None, self.parse(record))

    def _collect(self) -> None:
        self._derived: list[Derived] = []
        for kind in _KINDS:
            self._derived += getattr(self, kind).values()

    # -- reading

    def find(self, ident: str) -> Record | None:
        """The present version of a record, or None."""
        key = self.keys.get(ident)
        return None if key is None else self.rows[key]

    def open(self, ident: str) -> Row | None:
        """A record parsed for a rule, or None. Its dicts are the caller's own."""
        key = self.keys.get(ident)
        return None if key is None else self.parse(self.rows[key])

    def peek(self, ident: str) -> Body | None:
        """A record's public part for reading alone: parsed once for each version, never to be changed."""
        record = self.find(ident)
        if record is None:
            return None
        known = self._peeked.get(ident)
        if known is None or known[0] is not record:
            if len(self._peeked) >= PEEKED:
                self._peeked.clear()
            known = self._peeked[ident] = record, orjson.loads(record.public)
        return known[1]

    def parse(self, record: Record) -> Row:
        """A record's two parts."""
        return Row(record, orjson.loads(record.public), self.completed(orjson.loads(record.hidden)))

    def completed(self, hidden: Body) -> Body:
        """A hidden part with the defaults of the members that it does not name."""
        return self._defaults | hidden

    def holder(self, name: str, value: Hashable) -> str | None:
        """The id of the record that has a unique value."""
        return self.unique[name].get(value)

    def is_free(self, name: str, public: Body) -> bool:
        """Whether no record has this one's value of a unique key; an overlay may have removed the key."""
        extract = self.spec.unique.get(name)
        return extract is None or extract(public, {}) not in self.unique[name]

    def bucket(self, index: str, value: Hashable) -> Keys:
        """The keys of the records with this value in an index, oldest first; not to be changed."""
        return self.indexes[index].data.get(value) or []

    def count(self, index: str, value: Hashable) -> int:
        """How many records have this value in an index."""
        return len(self.bucket(index, value))

    def rows_of(self, index: str, value: Hashable) -> Iterator[Row]:
        """The records with this value in an index, parsed, oldest first; safe against writes meanwhile."""
        for key in list(self.bucket(index, value)):
            yield self.parse(self.rows[key])

    def all_rows(self) -> Iterator[Row]:
        """Every record, parsed, oldest first; safe against writes meanwhile."""
        for key in list(self.order):
            yield self.parse(self.rows[key])

    def total(self, name: str, group: Hashable) -> int:
        """A running sum."""
        return self.sums[name].data.get(group, 0)

    def members(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """The different members of a group, with the number of records of each; not to be changed."""
        return self.distinct[name].data.get(group, {})

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then replace (never does)

    def prepare(self, ident: str, public: Body, hidden: Body, before: Row | None, now: int) -> Record:
        """Check a new version against the contract and the unique keys, and write its bytes.

        `now` is when a record without a version before is created, in ms, as its public part says. Members of the
        hidden part that have their default are left out.
        """
        self.check(public)
        for name, extract in self.spec.unique.items():
            value = extract(public, hidden)
            holder = None if value is None else self.unique[name].get(value)
            if holder is not None and holder != ident:
                raise UniqueViolation(self.spec, name, value, holder)
        key, version = (place(now, ident), 1) if before is None else (before.record.key, before.record.version + 1)
        usual = self._defaults
        if usual:
            hidden = {name: value for name, value in hidden.items() if name not in usual or value != usual[name]}
        return Record(ident, key, version, encoded(public), encoded(hidden))

    def replace(self, before: Row | None, after: Row | None) -> None:
        """Replace a version by the next one: a record without one before is new, one without one after is deleted."""
        row = after or before
        assert row is not None
        ident, key = row.record.id, row.record.key
        self.lists.clear()
        if self.spec.ring is not None:
            self.size += (0 if after is None else after.record.size) - (0 if before is None else before.record.size)
        if after is None:
            del self.rows[key], self.keys[ident]
            remove(self.order, key)
        else:
            if key not in self.rows:
                insort(self.order, key)
            self.rows[key], self.keys[ident] = after.record, key
        for name, extract in self.spec.unique.items():
            owners = self.unique[name]
            if before is not None:
                owners.pop(extract(before.public, before.hidden), None)
            value = None if after is None else extract(after.public, after.hidden)
            if value is not None:
                owners[value] = ident
        if before is None:
            self._derive(key, row)
            return
        for part in self._derived:
            part.replace(key, before, after)

    def _derive(self, key: int, row: Row) -> None:
        """Add a new record to what is derived from the table."""
        for part in self._derived:
            value = part.extract(row.public, row.hidden)
            if value is not None:
                part.add(key, value)

    def copy(self) -> Table:
        """An independent copy. Records are shared, as they never change."""
        twin = Table(self.name, self.spec, self.check)
        twin.rows, twin.keys, twin.order = self.rows.copy(), self.keys.copy(), self.order.copy()
        twin.unique = {name: owners.copy() for name, owners in self.unique.items()}
        for kind in _KINDS:
            setattr(twin, kind, {name: each.copy() for name, each in getattr(self, kind).items()})
        twin.size = self.size
        twin._collect()
        return twin

    # -- a ring, which drops its oldest records for new ones

    def outgoing(self, coming: Sequence[Record]) -> list[Record]:
        """The records of a ring that are dropped when new ones come: the oldest, first of those that need not stay.

        Where many can go at once, as when tens of thousands of deliveries are over, the rest goes with the next ones.
        """
        ring, going = self.spec.ring, list[Record]()
        assert ring is not None
        count, size = len(self.rows) + len(coming), self.size + sum([record.size for record in coming])
        if count <= ring.rows and size <= ring.size:
            return going
        buckets = self.indexes[ring.by].data
        for stay, most, most_size in ((False, ring.rows, ring.size), (True, ring.most, ring.most_size)):
            for key in merge(*(keys for value, keys in buckets.items() if (value in ring.kept) == stay)):
                if len(going) >= len(coming) + MORE_AT_ONCE or (count <= most and size <= most_size):
                    break
                going.append(self.rows[key])
                size -= self.rows[key].size
                count -= 1
        return going

    def may_have_dropped(self) -> bool:
        """Whether records of a ring may have been dropped for others."""
        ring = self.spec.ring
        return ring is not None and (len(self) >= ring.rows or self.size >= ring.size // 2)
