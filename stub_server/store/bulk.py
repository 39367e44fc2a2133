"""A table while a past is lived: what nobody reads meanwhile is made at the end, of the records as they are then."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias, cast

from ..kernel.clock import parse_iso
from ..kernel.record import Body, Record, Row
from . import indexes
from .indexes import Keys
from .table import Table, encoded, place, written
from .tables import Extract, plain

MOST = 4_096  # so many of a table's newest rows stay parsed, and as many again that were the newest before them,
TIMES = 4  # and so many times more of records that rules look up at every turn, for these change as long as they live
new = tuple.__new__  # makes a named tuple in half the time
#: What a Table derives from its records and a BulkTable does not have until somebody asks for any of it.
DERIVED = ("_buckets", "_searches", "counters", "indexes", "order", "sorts", "texts", "views")

_Unwritten: TypeAlias = tuple[str, int, int, Body, tuple[Body, Callable[[Body], Body] | None], str | None]


def rebuilt(table: Table, rows: Mapping[int, Record] | None = None) -> Table:
    """A table of the same records, or of others, with its indexes, sums and views built again."""
    twin = table.blank()
    rows = table.rows if rows is None else rows
    for key in sorted(rows):
        twin.enter(*table.parse(rows[key]))
    return twin


class Unwritten(Record):
    """A version that holds, in the places of its bytes, what they are to be written from.

    The next version comes soon, and mostly nobody needs the bytes of this one meanwhile.
    """

    @property
    def public(self) -> bytes:
        """The bytes of the public part."""
        return self.written().public

    @property
    def hidden(self) -> bytes:
        """The bytes of the hidden part."""
        return self.written().hidden

    @property
    def apart(self) -> bytes:
        """What is kept apart from it."""
        return self.written().apart

    def written(self) -> Record:
        """The version as it is stored for good: the same one whenever it is asked for."""
        made: Record | None = self.__dict__.get("_made")
        if made is None:
            ident, key, version, public, (hidden, shortened), member = cast("_Unwritten", tuple(self))
            if shortened is not None:
                hidden = shortened(hidden)
            made = Record(ident, key, version, encoded(public), *written(hidden, member))
            self.__dict__["_made"] = made
        return made


class BulkTable(Table):
    """Takes what a Table takes and answers what it answers, at a smaller cost where much is written and little read.

    Versions are held to the contract as they stand at the end. The newest rows stay parsed and are shared by all who
    open them: nothing may change them in place. What is derived from the records is made at the end, but for indexes
    that the spec calls `lived`. Whoever reads another one has all of them made, and kept up to date from then on.
    """

    def __init__(self, table: Table) -> None:
        """Goes on from a table, which is of no use any more."""
        super().__init__(table.name, table.spec, table.check)
        self.rows, self.keys = table.rows, table.keys
        for name, held in table.unique.items():
            self.unique[name].update(held)
        self._newest: dict[str, Row] = {}
        self._older: dict[str, Row] = {}
        self._most = MOST * TIMES if self.spec.lived else MOST
        self._is_behind = True
        self._lived = {name: (table.indexes[name], _pair(table, name)) for name in self.spec.lived}
        for name in DERIVED:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """What is derived from the records is missing until somebody asks for it."""
        if name not in DERIVED:
            raise AttributeError(name)
        made, self._is_behind = self.finished(), False
        self._lived.clear()
        for derived in DERIVED:
            setattr(self, derived, getattr(made, derived))
        self.weight = made.weight
        return getattr(self, name)

    def finished(self) -> Table:
        """The table that nobody can tell from one that was written to version by version."""
        rows, made = self.rows, self.blank()
        for key, record in list(rows.items()):
            _, public, hidden = self.parse(record)
            self.check(public)
            rows[key] = stored = _written(record)
            made.enter(stored, public, hidden)
        for name in self.spec.sorts:
            made.sorts.read(name)  # puts it in order, once for all copies
        return made

    def end(self) -> None:
        """Forget the newest rows, which know this table: nothing else frees the memory of the two at once."""
        self._newest.clear()
        self._older.clear()

    # -- reading

    def open(self, ident: str) -> Row | None:
        """A record parsed for a rule, or None. Its dicts are everybody's."""
        return self._newest.get(ident) or self._older.get(ident) or super().open(ident)

    def may_be(self, ident: str, states: tuple[str, ...]) -> bool:
        """Whether a record may have one of these states."""
        row = self._newest.get(ident) or self._older.get(ident)
        return super().may_be(ident, states) if row is None else row.public["status"] in states

    def peek(self, ident: str) -> Body | None:
        """A record's public part for reading alone."""
        row = self.open(ident)
        return None if row is None else row.public

    def parse(self, record: Record) -> Row:
        """A record's two parts."""
        row = self._newest.get(record.id) or self._older.get(record.id)
        return row if row is not None and row.record is record else super().parse(record)

    def bucket(self, index: str, value: Hashable) -> Keys:
        """The places of the records with this value in an index, oldest first; not to be changed."""
        lived = self._lived.get(index)
        return super().bucket(index, value) if lived is None else lived[0].get(value) or []

    def count(self, index: str, value: Hashable) -> int:
        """How many records have this value in an index."""
        return len(self.bucket(index, value))

    # -- writing

    def prepare(self, ident: str, public: Body, hidden: Body, before: Row | None) -> Record:
        """Check a new version against the unique keys alone."""
        self._claim(ident, public, hidden)
        if before is None:
            key = place(parse_iso(public[self.spec.created]), ident)
            return new(Unwritten, (ident, key, 1, public, (hidden, None), self.apart))
        _, key, version, _, _, _ = before[0]
        return new(Unwritten, (ident, key, version + 1, public, (hidden, self._shortened), self.apart))

    def enter(self, record: Record, public: Body, hidden: Body) -> None:
        """Store a prepared new record."""
        ident, key = record[:2]
        if self._is_behind:
            self.rows[key] = record
            self.keys[ident] = key
            for held, extract in self._uniques:
                value = extract(public, hidden)
                if value is not None:
                    held[value] = ident
            for index, extract in self._lived.values():
                _shift(index, None, extract(public, hidden), key)
        else:
            super().enter(record, public, hidden)
        self._keep(ident, new(Row, (record, public, self._defaults | hidden if self._defaults else hidden)))

    def put(self, record: Record, public: Body, hidden: Body, before: Row) -> None:
        """Store a prepared version in place of the one before."""
        ident, key = record[:2]
        if self._is_behind:
            _, old_public, old_hidden = before
            self.rows[key] = record
            for held, extract in self._uniques:
                value, claimed = extract(old_public, old_hidden), extract(public, hidden)
                if value != claimed:
                    held.pop(value, None)
                    if claimed is not None:
                        held[claimed] = ident
            for index, extract in self._lived.values():
                was, now = extract(old_public, old_hidden), extract(public, hidden)
                if was != now:
                    _shift(index, was, now, key)
        else:
            super().put(record, public, hidden, before)
        self._keep(ident, new(Row, (record, public, self._defaults | hidden if self._defaults else hidden)))

    def drop(self, row: Row) -> None:
        """Take a record out."""
        if self._is_behind:
            self.order  # noqa: B018  has all of it made
        self._newest.pop(row.id, None)
        self._older.pop(row.id, None)
        super().drop(row)

    def _keep(self, ident: str, row: Row) -> None:
        """Have a row at hand, as one of the newest."""
        newest = self._newest
        newest[ident] = row
        if len(newest) >= self._most:
            self._let_go()

    def _let_go(self) -> None:
        """Write the rows that nobody has touched for long."""
        newest = self._newest
        for ident, row in self._older.items():
            record = row.record
            if ident not in newest and self.rows[record.key] is record:
                self.rows[record.key] = _written(record)
        self._older, self._newest = newest, {}


def _written(record: Record) -> Record:
    """A version as it is stored for good."""
    return record.written() if type(record) is Unwritten else record


def _pair(table: Table, name: str) -> Extract:
    """What an index or a pair of them has of a record."""
    members = [plain(table.spec.indexes[member]) for member in name.split("+")]
    if len(members) == 1:
        return members[0]
    first, second = members

    def both(public: Body, hidden: Body) -> tuple[Any, Any] | None:
        a, b = first(public, hidden), second(public, hidden)
        return None if a is None or b is None else (a, b)

    return both


def _shift(index: dict[Hashable, Keys], was: Hashable, now: Hashable, key: int) -> None:
    """Move a key between two buckets of an index."""
    if was is not None:
        index[was] = indexes.remove(index[was], key)
    if now is not None:
        index[now] = indexes.add(index.get(now) or [], key)
