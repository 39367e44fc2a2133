"""One table in memory: records by id, in order of creation, with their indexes, sums and live members."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from ..kernel.clock import parse_iso
from ..kernel.record import Body, Record, Row
from . import indexes
from .indexes import Counters, Keys, Noted, Sorts, Views
from .ring import Weight
from .tables import APART, Check, Parts, TableSpec, UniqueViolation, plain

PEEKED = 256  # so many records of a table stay parsed
COPIED = 2_000  # so many records' lists of indexes are copied at once: to look who owns them costs every write


@lru_cache(maxsize=64)
def _marks(states: tuple[str, ...]) -> tuple[bytes, ...]:
    """How a record in one of these states shows it."""
    return tuple(b'"status":"%b"' % state.encode() for state in states)


def encoded(value: Any) -> bytes:
    """JSON without spare memory: orjson returns its whole working buffer, kilobytes for a small record."""
    return b"%b" % orjson.dumps(value)  # the fastest way to copy


def place(created: int, ident: str) -> int:
    """The sort key of a record: creation in ms, then id."""
    return created << 128 | int(ident.replace("-", ""), 16)


def written(hidden: Body, member: str | None) -> tuple[bytes, bytes]:
    """A hidden part as it is stored: the JSON, and the member that is kept apart from it, the very bytes given."""
    apart = b""
    if member is not None and member in hidden:
        apart = hidden[member]
        hidden = {name: value for name, value in hidden.items() if name != member}
    return encoded(hidden) if hidden else b"{}", apart


def whole(table: str, record: Record) -> bytes:
    """The hidden part of a record as one JSON."""
    if table not in APART:
        return record.hidden
    others = record.hidden[1:-1]
    text = orjson.dumps({APART[table]: record.apart.decode()})
    return b"{%b,%b" % (others, text[1:]) if others else text


def parted(table: str, hidden: bytes, known: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """A hidden part that is one JSON as it is stored. `known` are the members read so far: equal ones are shared.

    Raises KeyError and AttributeError where the member is no text.
    """
    if table not in APART:
        return hidden, b""
    member, parsed = APART[table], orjson.loads(hidden)
    apart = parsed[member].encode()
    return written(parsed | {member: known.setdefault(apart, apart)}, member)


class Table:
    """All records of one kind of one merchant."""

    def __init__(self, name: str, spec: TableSpec, check: Check) -> None:
        """`check` holds the public part of every new version against the contract."""
        self.name, self.spec, self.check = name, spec, check
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.order: Keys = []
        self.unique: dict[str, dict[Hashable, str]] = {key: {} for key in spec.unique}
        self.indexes: dict[str, dict[Hashable, Keys]] = {key: {} for key in (*spec.indexes, *spec.pairs)}
        self.sorts = Sorts(spec)
        self.texts: dict[str, dict[int, str]] = {key: {} for key in spec.search}
        positions = {name: number for number, name in enumerate(self.indexes)}
        self.counters = Counters(spec, positions)
        self.is_ring, self._counts = spec.ring is not None, bool(spec.sums or spec.distinct)
        self.weight = Weight()  # of the records of a ring; of other tables nobody asks
        self.views = Views(positions)
        self._peeked: dict[str, tuple[Record, Body]] = {}
        # Of a table that was copied: the values whose lists are its own by now, by index. The others are shared.
        self._own: list[set[Hashable]] | None = None
        self._defaults, self.apart = dict(spec.defaults), APART.get(name)
        # What every write walks through, side by side with the containers that it fills.
        self._buckets = list(self.indexes.values())
        self._uniques = [(self.unique[name], plain(extract)) for name, extract in spec.unique.items()]
        self._searches = [(self.texts[name], extract) for name, extract in spec.search.items()]
        self._members = [member.name for member in spec.indexes.values() if not member.side]
        self._hidden_members = [member.name for member in spec.indexes.values() if member.side]
        self.invalidates = [(name, plain(extract)) for name, extract in spec.invalidates.items()]
        self._pairs = [tuple(positions[name] for name in pair.split("+")) for pair in spec.pairs]

    # -- reading

    def find(self, ident: str) -> Record | None:
        """The present version of a record, or None."""
        key = self.keys.get(ident)
        return None if key is None else self.rows[key]

    def open(self, ident: str) -> Row | None:
        """A record parsed for a rule, or None. Its dicts are the caller's own."""
        record = self.find(ident)
        return None if record is None else self.parse(record)

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

    def may_be(self, ident: str, states: tuple[str, ...]) -> bool:
        """Whether a record may have one of these states; its bytes tell that none of them stands anywhere in it."""
        record = self.find(ident)
        return record is not None and any(mark in record.public for mark in _marks(states))

    def parse(self, record: Record) -> Row:
        """A record's two parts as fresh dicts."""
        hidden = orjson.loads(record.hidden)
        if self.apart is not None:
            hidden[self.apart] = record.apart
        return Row(record, orjson.loads(record.public), self._defaults | hidden if self._defaults else hidden)

    def completed(self, hidden: Body) -> Body:
        """A hidden part with the defaults of the members that it does not name."""
        return self._defaults | hidden if self._defaults else hidden

    def holder(self, name: str, value: Hashable) -> str | None:
        """The id of the record that holds a unique value."""
        return self.unique[name].get(value)

    def is_free(self, name: str, public: Body) -> bool:
        """Whether a record may be stored as far as this unique key goes, which an overlay may have taken away."""
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
        """The places of the records with this value in an index, oldest first; not to be changed."""
        return self.indexes[index].get(value) or []

    def count(self, index: str, value: Hashable) -> int:
        """How many records have this value in an index."""
        return len(self.indexes[index].get(value) or ())

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
        return self.counters.sums[name].get(group, 0)

    def members(self, name: str, group: Hashable) -> int:
        """How many different members a group has."""
        return len(self.counters.distinct[name].get(group, ()))

    def tally(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """How many records each member of a group has; not to be changed."""
        return self.counters.distinct[name].get(group, {})

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then put (never does)

    def prepare(self, ident: str, public: Body, hidden: Body, before: Row | None) -> Record:
        """Check a new version against the contract and the unique keys, and write its bytes."""
        self.check(public)
        self._claim(ident, public, hidden)
        if before is None:
            key, version = place(parse_iso(public[self.spec.created]), ident), 1
        else:
            key, version = before.record.key, before.record.version + 1
            hidden = self._shortened(hidden)
        return Record(ident, key, version, encoded(public), *written(hidden, self.apart))

    def _claim(self, ident: str, public: Body, hidden: Body) -> None:
        """Whether the unique values of a version are nobody else's. Raises UniqueViolation."""
        for held, extract in self._uniques:
            value = extract(public, hidden)
            if value is not None and held.get(value, ident) != ident:
                name = next(name for name, values in self.unique.items() if values is held)
                raise UniqueViolation(self.spec, name, value, held[value])

    def _shortened(self, hidden: Body) -> Body:
        """A hidden part without what has its default: an opened record has them all, a new one need not name them."""
        defaults = self._defaults
        if not defaults:
            return hidden
        return {name: value for name, value in hidden.items() if name not in defaults or value != defaults[name]}

    def put(self, record: Record, public: Body, hidden: Body, before: Row) -> None:
        """Store a prepared version in place of the one before."""
        key = record.key
        if self.is_ring:
            self.weight.remove(self.rows[key])
            self.weight.add(record)
        self.rows[key] = record
        self._move(key, record.id, (before.public, before.hidden), (public, hidden))

    def drop(self, row: Row) -> None:
        """Take a record out."""
        key = row.record.key
        if self.is_ring:
            self.weight.remove(self.rows[key])
        del self.rows[key], self.keys[row.id]
        self.order = indexes.remove(self.order, key)
        self._move(key, row.id, (row.public, row.hidden), None)

    def _values(self, public: Body, hidden: Body) -> list[Any]:
        """A record's value in each index."""
        values: list[Any] = [*map(public.get, self._members), *map(hidden.get, self._hidden_members)]
        for first, second in self._pairs:
            a, b = values[first], values[second]
            values.append(None if a is None or b is None else (a, b))
        return values

    def enter(self, record: Record, public: Body, hidden: Body) -> None:
        """Store a prepared new record."""
        ident, key = record.id, record.key
        self.rows[key] = record
        self.keys[ident] = key
        if self.is_ring:
            self.weight.add(record)
        values = self._values(public, hidden)
        if self._own is not None:
            self._take_over(values)
        if self.views.held:
            self.views.note(Noted(key, None, values, ({}, self._ranks((public, hidden)))))
        self.order = indexes.enter(self.order, self._buckets, values, key)
        self.sorts.enter(key, public, hidden)
        for held, extract in self._uniques:
            value = extract(public, hidden)
            if value is not None:
                held[value] = ident
        for texts, extract in self._searches:
            texts[key] = extract(public, hidden)
        if self._counts:
            self.counters.enter(values, public, hidden)

    def _move(self, key: int, ident: str, old: Parts, new: Parts | None) -> None:
        """The indexes of a record that changes or, without a new version, goes."""
        was = self._values(*old)
        now = [None] * len(was) if new is None else self._values(*new)
        if self.views.held:
            after = None if new is None else now
            self.views.note(Noted(key, was, after, (self._ranks(old), self._ranks(new))))
        if was != now:
            self._reindex(key, was, now)
        self.sorts.move(key, old, new)
        for held, extract in self._uniques:
            value, claimed = extract(*old), None if new is None else extract(*new)
            if value != claimed:
                if value is not None:
                    held.pop(value, None)
                if claimed is not None:
                    held[claimed] = ident
        for texts, extract in self._searches:
            if new is None:
                texts.pop(key, None)
            else:
                texts[key] = extract(*new)
        if self._counts:
            self.counters.move(was, old, now, new)

    def _take_over(self, values: Sequence[Any]) -> None:
        """Have lists of one's own for these values, before one of them is changed."""
        for index, value, own in zip(self._buckets, values, self._own or (), strict=True):
            if value is not None and value not in own:
                own.add(value)
                bucket = index.get(value)
                if bucket is not None:
                    index[value] = bucket.copy()

    def _reindex(self, key: int, was: list[Any], now: list[Any]) -> None:
        if self._own is not None:
            self._take_over(was)
            self._take_over(now)
        for index, before, after in zip(self._buckets, was, now, strict=True):
            if before == after:
                continue
            if before is not None:
                bucket = indexes.remove(index[before], key)
                if bucket:
                    index[before] = bucket
                else:
                    del index[before]
            if after is not None:
                index[after] = indexes.add(index.get(after) or [], key)

    def _ranks(self, parts: Parts | None) -> dict[str, Any]:
        """A record's values in the further sort orders."""
        return {} if parts is None else self.sorts.values(*parts)

    def blank(self) -> "Table":
        """An empty table of the same kind."""
        return Table(self.name, self.spec, self.check)

    def copy(self) -> "Table":
        """An independent copy. Records are shared, for they never change, and a large table's lists until one does."""
        twin, is_large = self.blank(), len(self.rows) > COPIED
        if is_large:
            self._own, twin._own = [set() for _ in self._buckets], [set() for _ in self._buckets]
        for name, index in self.indexes.items():
            twin.indexes[name].update(index if is_large else {value: bucket.copy() for value, bucket in index.items()})
        twin.rows, twin.keys, twin.order = self.rows.copy(), self.keys.copy(), self.order.copy()
        twin.sorts, twin.weight = self.sorts.copy(), self.weight.copy()
        for name, held in self.unique.items():
            twin.unique[name].update(held)
        for name, texts in self.texts.items():
            twin.texts[name].update(texts)
        self.counters.copy_to(twin.counters)
        return twin
