"""One table in memory: the records of one kind by id, with their unique keys and indexes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

import orjson

from ..kernel.record import Body, Record, Row
from .indexes import Indexes, Keys
from .tables import SHARED, Check, TableSpec, UniqueViolation

RECENT = 16_384  # versions of a table that stay parsed in bulk mode
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


def without(hidden: Body, defaults: Body) -> Body:
    """A hidden part without the members that have their default."""
    return {name: value for name, value in hidden.items() if name not in defaults or value != defaults[name]}


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


class Unwritten(Record):
    """A version in bulk mode: its parts, which are written when somebody asks for their bytes.

    Mostly nobody does before the next version comes.
    """

    __slots__ = ("_parts", "_written")

    def __init__(self, ident: str, key: int, version: int, *parts: Body) -> None:
        """`parts` are the public and the hidden one, and the defaults of the hidden one that are left out."""
        self.id, self.key, self.version = ident, key, version  # type: ignore[misc]
        self._parts = parts
        self._written: Record | None = None

    @property
    def public(self) -> bytes:
        """The bytes of the public part."""
        return self.written.public

    @property
    def hidden(self) -> bytes:
        """The bytes of the hidden part."""
        return self.written.hidden

    @property
    def shared(self) -> bytes:
        """Only records of a ring share a member, and those are written at once."""
        return b""

    @property
    def written(self) -> Record:
        """The version as it is stored in the end."""
        if self._written is None:
            public, hidden, defaults = self._parts
            hidden = without(hidden, defaults) if defaults else hidden
            self._written = Record(self.id, self.key, self.version, encoded(public), encoded(hidden))
        return self._written


class Table:
    """All records of one kind of one merchant. `size` is how many bytes the records of a ring have.

    In bulk mode, while a past is made, versions are checked against the contract at the end alone, as most are soon
    replaced; the newest stay parsed, and nobody changes them in place; only the index that rules ask for is kept.
    """

    def __init__(self, name: str, spec: TableSpec, check: Check, rows: Mapping[int, Record] | None = None) -> None:
        """`check` validates the public part of every new version against the contract; `rows` are its first records."""
        self.name, self.spec, self.check = name, spec, check
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.unique: dict[str, dict[Hashable, str]] = {key: {} for key in spec.unique}
        self._owners = [(name, extract, self.unique[name]) for name, extract in spec.unique.items()]
        self._indexes: Indexes | None = Indexes(spec)
        self.size = 0
        self._recent: dict[int, Row] | None = None
        self._peeked: dict[str, tuple[Record, Body]] = {}
        self._defaults, self._shared_member = dict(spec.defaults), SHARED.get(name)
        for _, record in sorted((rows or {}).items()):
            self.replace(None, self.parse(record))

    @property
    def indexes(self) -> Indexes:
        """What is derived from the records."""
        if self._indexes is None or self._indexes.spec is not self.spec:
            self._indexes = self._indexed(self.spec)
        return self._indexes

    def _indexed(self, spec: TableSpec) -> Indexes:
        made = Indexes(spec)
        made.fill(map(self.parse, self.rows.values()))
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
        """A record parsed for a rule, or None. Its dicts are the caller's own."""
        key = self.keys.get(ident)
        return None if key is None else self.parse(self.rows[key])

    def peek(self, ident: str) -> Body | None:
        """A record's public part for reading alone: parsed once for each version, never to be changed."""
        key = self.keys.get(ident)
        if key is None:
            return None
        record, known = self.rows[key], self._peeked.get(ident)
        if known is None or known[0] is not record:
            if len(self._peeked) >= PEEKED:
                self._peeked.clear()
            known = self._peeked[ident] = record, orjson.loads(record.public)
        return known[1]

    def parse(self, record: Record) -> Row:
        """A record's two parts."""
        if self._recent is not None:
            row = self._recent.get(record.key)
            if row is not None and row.record is record:
                return row
        hidden = orjson.loads(record.hidden)
        if self._shared_member is not None:
            hidden[self._shared_member] = record.shared
        return Row(record, orjson.loads(record.public), self.completed(hidden))

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
        extracts = self.spec.unique.values()
        return all(extract(public, hidden) == extract(before.public, before.hidden) for extract in extracts)

    def bucket(self, index: str, value: Hashable) -> Keys:
        """The keys of the records with this value in an index, oldest first; not to be changed."""
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
        return self.indexes.sums[name].get(group, 0)

    def members(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """The different members of a group, with the number of records of each; not to be changed."""
        return self.indexes.distinct[name].get(group, {})

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then replace (never does)

    def prepare(self, ident: str, public: Body, hidden: Body, before: Row | None, now: int) -> Record:
        """Check a new version against the contract and the unique keys, and write its bytes.

        `now` is when a record without a version before is created, in ms, as its public part says. Members of the
        hidden part that have their default are left out.
        """
        if self._recent is None:
            self.check(public)
        for name, extract, owners in self._owners:
            value = extract(public, hidden)
            if value is not None and owners.get(value, ident) != ident:
                raise UniqueViolation(self.spec, name, value, owners[value])
        if before is None:
            key, version = place(now, ident), 1
        else:
            key, version = before.record.key, before.record.version + 1
        defaults = {} if before is None else self._defaults  # an opened record has them all, a new one need not
        if self._recent is not None and self.spec.ring is None:
            return Unwritten(ident, key, version, public, hidden, defaults)
        if defaults:
            hidden = without(hidden, defaults)
        return Record(ident, key, version, encoded(public), *written(hidden, self._shared_member))

    def replace(self, before: Row | None, after: Row | None) -> None:
        """Replace a version by the next one: a record without one before is new, one without one after is deleted."""
        row = after or before
        assert row is not None
        ident, key = row.record.id, row.record.key
        if self.spec.ring is not None:
            self.size += (0 if after is None else after.record.size) - (0 if before is None else before.record.size)
        if after is None:
            del self.rows[key], self.keys[ident]
        else:
            self.rows[key], self.keys[ident] = after.record, key
            if self._recent is not None:
                if len(self._recent) == RECENT:
                    self._write()
                self._recent[key] = after
        for _, extract, owners in self._owners:
            old = None if before is None else extract(before.public, before.hidden)
            new = None if after is None else extract(after.public, after.hidden)
            if old != new:
                owners.pop(old, None)
                if new is not None:
                    owners[new] = ident
        if self._indexes is not None:
            self._indexes.replace(key, before, after)

    def copy(self) -> Table:
        """An independent copy. Records are shared, as they never change."""
        twin = Table(self.name, self.spec, self.check)
        twin.rows, twin.keys, twin._indexes = self.rows.copy(), self.keys.copy(), self.indexes.copy()
        twin.size = self.size
        for name, owners in self.unique.items():
            twin.unique[name].update(owners)
        return twin

    # -- while a past is made

    def begin_bulk(self) -> None:
        """Keep the newest versions parsed; do not check them, and keep only the index that rules ask for."""
        self._recent, self._indexes = {}, None

    def end_bulk(self) -> None:
        """Write the records, check them against the contract, and index them."""
        self._indexes = Indexes(self.spec)
        self._indexes.fill(self._checked())
        self._write()
        self._recent = None

    def _checked(self) -> Iterator[Row]:
        for record in self.rows.values():
            row = self.parse(record)
            self.check(row.public)
            yield row

    def _write(self) -> None:
        """Write the newest versions, which are not parsed any more."""
        for key in self._recent or ():
            record = self.rows.get(key)
            if isinstance(record, Unwritten):
                self.rows[key] = record.written
        self._recent = {}

    # -- a ring, which drops its oldest records for new ones

    def outgoing(self, coming: Sequence[Record]) -> list[Record]:
        """The records of a ring that are dropped when new ones come: the oldest, first of those that need not stay.

        Where many can go at once, as when tens of thousands of deliveries are over, the rest goes with the next ones.
        """
        ring, buckets = self.spec.ring, self.indexes.buckets
        assert ring is not None
        count, size, going = len(self.rows) + len(coming), self.size, list[Record]()
        size += sum([record.size for record in coming])
        if count <= ring.rows and size <= ring.size:
            return going
        for stay, most, most_size in ((False, ring.rows, ring.size), (True, ring.most, ring.most_size)):
            for key in merge(*(keys for value, keys in buckets[ring.by].items() if (value in ring.kept) == stay)):
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
