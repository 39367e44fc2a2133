"""One table in memory: records by id, in order of creation, with their indexes, sums and live members."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import orjson

from ..kernel.clock import parse_iso
from ..kernel.record import Body, Record, Row
from . import ordered
from .spec import TableSpec

Check = Callable[[Body], None]
"""Raises when the public part does not keep the contract."""


class Taken(Exception):
    """A unique key already has a holder: the rules let something through, or an id clashed."""


def exact(data: bytes) -> bytes:
    """A copy of exactly its length: orjson hands out its whole working buffer, kilobytes for a small record."""
    return bytes(memoryview(data))


def place(created: int, ident: str) -> int:
    """Where a record stands in time: creation in ms, ties by id."""
    return created << 128 | int(ident.replace("-", ""), 16)


class Table:
    """All records of one kind of one merchant."""

    def __init__(self, name: str, spec: TableSpec, check: Check) -> None:
        """`check` holds the public part of every new version against the contract."""
        self.name, self.spec, self._check = name, spec, check
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.order: ordered.Keys = []
        self.unique: dict[str, dict[Hashable, str]] = {key: {} for key in spec.unique}
        self.indexes: dict[str, dict[Hashable, ordered.Keys]] = {key: {} for key in spec.indexes}
        self.sorts: dict[str, ordered.Keys] = {key: [] for key in spec.sorts}
        self.texts: dict[str, dict[int, str]] = {key: {} for key in spec.search}
        self.sums: dict[str, dict[Hashable, int]] = {key: {} for key in spec.sums}
        self.distinct: dict[str, dict[Hashable, dict[Hashable, int]]] = {key: {} for key in spec.distinct}
        self.shown: dict[str, bytes] = {}

    # -- reading

    def find(self, ident: str) -> Record | None:
        """The present version of a record, or None."""
        key = self.keys.get(ident)
        return None if key is None else self.rows[key]

    def open(self, ident: str) -> Row | None:
        """A record parsed for a rule, or None. Its dicts are the caller's own."""
        record = self.find(ident)
        return None if record is None else self.parse(record)

    @staticmethod
    def parse(record: Record) -> Row:
        """A record's two parts as fresh dicts."""
        return Row(record, orjson.loads(record.json), orjson.loads(record.hidden))

    def holder(self, name: str, value: Hashable) -> str | None:
        """The id of the record that holds a unique value."""
        return self.unique[name].get(value)

    def bucket(self, index: str, value: Hashable) -> ordered.Keys:
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
        return self.sums[name].get(group, 0)

    def members(self, name: str, group: Hashable) -> int:
        """How many different members a group has."""
        return len(self.distinct[name].get(group, ()))

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then put (never does)

    def prepare(self, ident: str, shown: Body, kept: Body, before: Row | None) -> Record:
        """Check a new version against the contract and the unique keys, and write its bytes."""
        self._check(shown)
        for name, extract in self.spec.unique.items():
            value = extract(shown, kept)
            if value is not None and self.unique[name].get(value, ident) != ident:
                raise Taken(f"{self.name}.{name}: {value!r}")
        key = place(parse_iso(shown[self.spec.created]), ident) if before is None else before.record.key
        version = 1 if before is None else before.record.version + 1
        return Record(ident, key, version, exact(orjson.dumps(shown)), exact(orjson.dumps(kept)))

    def put(self, record: Record, shown: Body, kept: Body, before: Row | None) -> None:
        """Store a prepared version in place of the one before."""
        key = record.key
        self.rows[key] = record
        if before is None:
            self.keys[record.id] = key
            self.order = ordered.add(self.order, key)
            self._enter(key, record.id, shown, kept)
            return
        if self.shown:
            self.shown.pop(record.id, None)
        self._index(key, record.id, (before.public, before.hidden), (shown, kept))

    def drop(self, row: Row) -> None:
        """Take a record out."""
        key = row.record.key
        del self.rows[key], self.keys[row.id]
        ordered.remove(self.order, key)
        self.shown.pop(row.id, None)
        self._index(key, row.id, (row.public, row.hidden), None)

    def _enter(self, key: int, ident: str, shown: Body, kept: Body) -> None:
        """The indexes of a new record: most writes are these, so nothing is asked about a version before."""
        spec = self.spec
        for name, extract in spec.indexes.items():
            value = extract(shown, kept)
            if value is not None:
                index = self.indexes[name]
                bucket = index.get(value)
                index[value] = [key] if bucket is None else ordered.add(bucket, key)
        for name, extract in spec.unique.items():
            value = extract(shown, kept)
            if value is not None:
                self.unique[name][value] = ident
        for name, extract in spec.sorts.items():
            self.sorts[name] = ordered.add(self.sorts[name], (extract(shown, kept), key))
        for name, extract in spec.search.items():
            self.texts[name][key] = extract(shown, kept)
        if spec.sums or spec.distinct:
            self._fold((shown, kept), +1)

    def _index(self, key: int, ident: str, old: tuple[Body, Body], new: tuple[Body, Body] | None) -> None:
        """The indexes of a record that changes or, without a new version, goes."""
        spec = self.spec
        for name, extract in spec.indexes.items():
            was, now = extract(*old), new and extract(*new)
            if was == now:
                continue
            index = self.indexes[name]
            if was is not None:
                bucket = index[was]
                ordered.remove(bucket, key)
                if not bucket:
                    del index[was]
            if now is not None:
                index[now] = ordered.add(index.get(now) or [], key)
        for name, extract in spec.unique.items():
            was, now = extract(*old), new and extract(*new)
            if was != now:
                if was is not None:
                    self.unique[name].pop(was, None)
                if now is not None:
                    self.unique[name][now] = ident
        for name, extract in spec.sorts.items():
            was, now = extract(*old), new and extract(*new)
            if was != now:
                ordered.remove(self.sorts[name], (was, key))
                if now is not None:
                    self.sorts[name] = ordered.add(self.sorts[name], (now, key))
        for name, extract in spec.search.items():
            if new is None:
                self.texts[name].pop(key, None)
            else:
                self.texts[name][key] = extract(*new)
        if spec.sums or spec.distinct:
            self._fold(old, -1)
            if new is not None:
                self._fold(new, +1)

    def _fold(self, parts: tuple[Body, Body], sign: int) -> None:
        for name, fold in self.spec.sums.items():
            group, value = fold.group(*parts), fold.value(*parts)
            if group is not None and value:
                sums = self.sums[name]
                sums[group] = sums.get(group, 0) + sign * value
        for name, rule in self.spec.distinct.items():
            group, member = rule.group(*parts), rule.member(*parts)
            if group is None or member is None:
                continue
            members = self.distinct[name].setdefault(group, {})
            left = members.get(member, 0) + sign
            if left:
                members[member] = left
            else:
                del members[member]

    def copy(self) -> "Table":
        """The same records, going their own way; records themselves are shared, for they never change."""
        twin = Table(self.name, self.spec, self._check)
        twin.rows, twin.keys, twin.order = self.rows.copy(), self.keys.copy(), ordered.duplicate(self.order)
        twin.unique = {name: held.copy() for name, held in self.unique.items()}
        twin.indexes = {n: {v: ordered.duplicate(b) for v, b in index.items()} for n, index in self.indexes.items()}
        twin.sorts = {name: ordered.duplicate(keys) for name, keys in self.sorts.items()}
        twin.texts = {name: texts.copy() for name, texts in self.texts.items()}
        twin.sums = {name: sums.copy() for name, sums in self.sums.items()}
        twin.distinct = {n: {g: m.copy() for g, m in groups.items()} for n, groups in self.distinct.items()}
        twin.shown = self.shown.copy()
        return twin

    def text_of(self, name: str, key: int) -> str:
        """The folded text of a record that `contains` looks in."""
        return self.texts[name].get(key, "")

    def value_of(self, name: str, key: int) -> Any:
        """A record's value in a further sort order."""
        row = self.parse(self.rows[key])
        return self.spec.sorts[name](row.public, row.hidden)
