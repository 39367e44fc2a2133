"""One table in memory: the records of one kind by id, with their unique keys, and in bulk mode while a past is made."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, TypeAlias, cast

import orjson

from ..kernel.clock import parse_iso
from ..kernel.record import Body, Record, Row
from .indexes import Indexes, Keys, Weight
from .tables import SHARED, Check, TableSpec, UniqueViolation

PEEKED = 256  # so many records of a table stay parsed
MORE_AT_ONCE = 200  # records that a ring drops beyond the number of new ones: a step must not take long


def encoded(value: Any) -> bytes:
    """JSON without spare memory: orjson returns its whole working buffer, kilobytes for a small record."""
    return b"%b" % orjson.dumps(value)  # the fastest way to copy


def place(created: int, ident: str) -> int:
    """The sort key of a record: creation in ms, then id."""
    return created << 128 | int(ident.replace("-", ""), 16)


def written(hidden: Body, member: str | None) -> tuple[bytes, bytes]:
    """A hidden part as it is stored: its JSON, and the bytes of the shared member, which the JSON leaves out."""
    shared = b""
    if member is not None and member in hidden:
        shared = hidden[member]
        hidden = {name: value for name, value in hidden.items() if name != member}
    return encoded(hidden) if hidden else b"{}", shared


def whole(table: str, record: Record) -> bytes:
    """The hidden part of a record as one JSON."""
    if table not in SHARED:
        return record.hidden
    others = record.hidden[1:-1]
    text = orjson.dumps({SHARED[table]: record.shared.decode()})
    return b"{%b,%b" % (others, text[1:]) if others else text


def parted(table: str, hidden: bytes, known: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """The reverse of `whole`. `known` are the shared members read so far: equal ones become the same object.

    Raises KeyError and AttributeError where the member is no text.
    """
    if table not in SHARED:
        return hidden, b""
    member, parsed = SHARED[table], orjson.loads(hidden)
    shared = parsed[member].encode()
    return written(parsed | {member: known.setdefault(shared, shared)}, member)


_Unwritten: TypeAlias = "tuple[str, int, int, Body, Body, Table]"


class UnwrittenRecord(Record):
    """A version in bulk mode. It has its parsed parts and its table in place of bytes, which are written when read."""

    @property
    def public(self) -> bytes:
        """The bytes of the public part."""
        return self.written().public

    @property
    def hidden(self) -> bytes:
        """The bytes of the hidden part."""
        return self.written().hidden

    @property
    def shared(self) -> bytes:
        """The bytes that it shares with other records."""
        return self.written().shared

    def row(self) -> Row:
        """Its parts, which must not be changed."""
        _, _, _, public, hidden, table = cast("_Unwritten", self)
        return Row(self, public, table.completed(hidden))

    def written(self) -> Record:
        """The version as it is stored, the same object each time."""
        made: Record | None = self.__dict__.get("_made")
        if made is None:
            ident, key, version, public, hidden, table = cast("_Unwritten", self)
            made = self.__dict__["_made"] = table.write(ident, key, version, public, hidden)
        return made


class Table:
    """All records of one kind of one merchant.

    `indexes` are built from the records when they are first read, and updated from then on. In bulk mode versions are
    checked against the contract as they are at the end, the newest ones stay parsed until then, and only the index that
    rules ask for is kept.
    """

    def __init__(self, name: str, spec: TableSpec, check: Check, rows: Mapping[int, Record] | None = None) -> None:
        """`check` validates the public part of every new version against the contract; `rows` are its first records."""
        self.name, self.spec, self.check = name, spec, check
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.unique: dict[str, dict[Hashable, str]] = {key: {} for key in spec.unique}
        self.is_ring = spec.ring is not None
        self._indexes: Indexes | None = None
        self._recent: OrderedDict[int, None] | None = None  # in bulk mode, the keys of the records that stay parsed
        self._peeked: dict[str, tuple[Record, Body]] = {}
        self._defaults, self._shared_member = dict(spec.defaults), SHARED.get(name)
        self._uniques = [(self.unique[key], extract) for key, extract in spec.unique.items()]
        for _, record in sorted((rows or {}).items()):
            self.enter(*self.parse(record))

    @property
    def indexes(self) -> Indexes:
        """What is derived from the records."""
        if self._indexes is None or self._indexes.spec is not self.spec:
            self._indexes = self._indexed(self.spec)
        return self._indexes

    def _indexed(self, spec: TableSpec) -> Indexes:
        made = Indexes(spec)
        for record in self.rows.values():
            made.enter(*self.parse(record))
        return made

    # -- reading

    @property
    def order(self) -> Keys:
        """The keys of all records, oldest first; not to be changed."""
        return self.indexes.order

    def find(self, ident: str) -> Record | None:
        """The present version of a record, or None."""
        key = self.keys.get(ident)
        return None if key is None else self.rows[key]

    def open(self, ident: str) -> Row | None:
        """A record parsed for a rule, or None. Its dicts are the caller's own, but in bulk mode."""
        key = self.keys.get(ident)
        return None if key is None else self.parse(self.rows[key])

    def peek(self, ident: str) -> Body | None:
        """A record's public part for reading alone: parsed once for each version, never to be changed."""
        key = self.keys.get(ident)
        if key is None:
            return None
        record, known = self.rows[key], self._peeked.get(ident)
        if known is None or known[0] is not record:
            if self._recent is not None:
                return self.parse(record).public
            if len(self._peeked) >= PEEKED:
                self._peeked.clear()
            known = self._peeked[ident] = record, orjson.loads(record.public)
        return known[1]

    def parse(self, record: Record) -> Row:
        """A record's two parts."""
        if type(record) is UnwrittenRecord:
            return record.row()
        hidden = orjson.loads(record.hidden)
        if self._shared_member is not None:
            hidden[self._shared_member] = record.shared
        return Row(record, orjson.loads(record.public), self._defaults | hidden if self._defaults else hidden)

    def completed(self, hidden: Body) -> Body:
        """A hidden part with the defaults of the members that it does not name."""
        return self._defaults | hidden if self._defaults else hidden

    def holder(self, name: str, value: Hashable) -> str | None:
        """The id of the record that has a unique value."""
        return self.unique[name].get(value)

    def is_free(self, name: str, public: Body) -> bool:
        """Whether no record has this one's value of a unique key; an overlay may have removed the key."""
        extract = self.spec.unique.get(name)
        return extract is None or extract(public, {}) not in self.unique[name]

    def check_both(self, public: Body, hidden: Body, other: Row) -> None:
        """Check that two records have no unique value in common. Raises UniqueViolation."""
        for name, extract in self.spec.unique.items():
            value = extract(public, hidden)
            if value is not None and value == extract(other.public, other.hidden):
                raise UniqueViolation(self.spec, name, value, other.id)

    def same_keys(self, before: Row, public: Body, hidden: Body) -> bool:
        """Whether a version has the unique values of the one before."""
        return all(extract(public, hidden) == extract(before.public, before.hidden) for _, extract in self._uniques)

    def bucket(self, index: str, value: Hashable) -> Keys:
        """The keys of the records with this value in an index, oldest first; not to be changed."""
        if self._recent is None:
            return self.indexes.buckets[index].get(value) or []
        if self._indexes is None:
            self._indexes = self._indexed(self.spec.only(index))
        indexes = self._indexes if index in self._indexes.buckets else self.indexes
        return indexes.buckets[index].get(value) or []

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
        return self.indexes.counters.sums[name].get(group, 0)

    def members(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """The different members of a group, with the number of records of each; not to be changed."""
        return self.indexes.counters.distinct[name].get(group, {})

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then enter, put or drop (never do)

    def prepare(self, ident: str, public: Body, hidden: Body, before: Row | None) -> Record:
        """Check a new version against the contract and the unique keys, and write its bytes."""
        if self._recent is None:
            self.check(public)
        for owners, extract in self._uniques:
            value = extract(public, hidden)
            if value is not None and owners.get(value, ident) != ident:
                name = next(name for name, values in self.unique.items() if values is owners)
                raise UniqueViolation(self.spec, name, value, owners[value])
        if before is None:
            key, version = place(parse_iso(public[self.spec.created]), ident), 1
        else:
            key, version = before.record.key, before.record.version + 1
        if self._recent is not None:
            return UnwrittenRecord._make((ident, key, version, public, hidden, self))
        return self.write(ident, key, version, public, hidden)

    def write(self, ident: str, key: int, version: int, public: Body, hidden: Body) -> Record:
        """The bytes of a version, without members of the hidden part that have their default."""
        defaults = self._defaults
        if defaults and version > 1:  # an opened record has them all, a new one need not name them
            hidden = {name: value for name, value in hidden.items() if name not in defaults or value != defaults[name]}
        return Record(ident, key, version, encoded(public), *written(hidden, self._shared_member))

    def enter(self, record: Record, public: Body, hidden: Body) -> None:
        """Store a prepared new record."""
        ident = record.id
        self.rows[record.key] = record
        self.keys[ident] = record.key
        for owners, extract in self._uniques:
            value = extract(public, hidden)
            if value is not None:
                owners[value] = ident
        if self._indexes is not None:
            self._indexes.enter(record, public, hidden)
        if self._recent is not None:
            self._keep_parsed(record.key)

    def put(self, record: Record, public: Body, hidden: Body, before: Row) -> None:
        """Store a prepared version in place of the one before."""
        replaced, self.rows[record.key] = self.rows[record.key], record
        self._claim(record.id, before, (public, hidden))
        if self._indexes is not None:
            self._indexes.put(record, replaced, (before.public, before.hidden), (public, hidden))
        if self._recent is not None:
            self._keep_parsed(record.key)

    def drop(self, row: Row) -> None:
        """Remove a record."""
        key = row.record.key
        replaced = self.rows.pop(key)
        del self.keys[row.id]
        self._claim(row.id, row, None)
        if self._indexes is not None:
            self._indexes.drop(replaced, (row.public, row.hidden))
        if self._recent is not None:
            self._recent.pop(key, None)

    def _claim(self, ident: str, before: Row, new: tuple[Body, Body] | None) -> None:
        """Give up the unique values of a version for those of the next one."""
        for owners, extract in self._uniques:
            value, claimed = extract(before.public, before.hidden), None if new is None else extract(*new)
            if value != claimed:
                owners.pop(value, None)
                if claimed is not None:
                    owners[claimed] = ident

    def copy(self) -> Table:
        """An independent copy. Records are shared, as they never change."""
        twin = Table(self.name, self.spec, self.check)
        twin.rows, twin.keys, twin._indexes = self.rows.copy(), self.keys.copy(), self.indexes.copy()
        for name, owners in self.unique.items():
            twin.unique[name].update(owners)
        return twin

    # -- bulk mode

    def begin_bulk(self) -> None:
        """Begin to store versions without bytes and checks."""
        self._recent, self._indexes = OrderedDict(), None

    def end_bulk(self) -> None:
        """Write and check the versions that records have now, and build the indexes anew."""
        made = Indexes(self.spec)
        for key, record in list(self.rows.items()):
            _, public, hidden = self.parse(record)
            self.check(public)
            self.rows[key] = stored = record.written() if type(record) is UnwrittenRecord else record
            made.enter(stored, public, hidden)
        for order in made.sorts.values():
            order.read()  # sorts it once for all copies
        self._indexes, self._recent = made, None

    def _keep_parsed(self, key: int) -> None:
        """Have a record be the newest of those that stay parsed, and write the oldest."""
        recent = cast("OrderedDict[int, None]", self._recent)
        recent[key] = None
        recent.move_to_end(key)
        if len(recent) > self.spec.parsed:
            oldest, _ = recent.popitem(last=False)
            record = self.rows[oldest]
            self.rows[oldest] = record.written() if type(record) is UnwrittenRecord else record

    # -- a ring, which drops its oldest records for new ones

    def outgoing(self, coming: Sequence[Record]) -> list[Record]:
        """The records of a ring that are dropped when new ones come: the oldest, first of those that need not stay.

        Where many can go at once, as when tens of thousands of deliveries are over, the rest goes with the next ones.
        """
        ring, buckets = self.spec.ring, self.indexes.buckets
        assert ring is not None
        count, weight, going = len(self.rows) + len(coming), Weight(self.indexes.weight), list[Record]()
        for record in coming:
            weight.add(record)
        if count <= ring.rows and weight.size <= ring.size:
            return going
        for stay, most, size in ((False, ring.rows, ring.size), (True, ring.most, ring.most_size)):
            for key in merge(*(keys for value, keys in buckets[ring.by].items() if (value in ring.kept) == stay)):
                if len(going) >= len(coming) + MORE_AT_ONCE or (count <= most and weight.size <= size):
                    break
                going.append(self.rows[key])
                weight.add(self.rows[key], -1)
                count -= 1
        return going

    def may_have_dropped(self) -> bool:
        """Whether records of a ring may have been dropped for others."""
        ring = self.spec.ring
        return ring is not None and (len(self) >= ring.rows or self.indexes.weight.size >= ring.size // 2)
