"""One table in memory: the records of one kind by id, with their unique keys and indexes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from ...contract.schema import ContractViolation, Validator
from ...core.record import Body, Record, Row, UniqueKey
from .indexes import Keys, Views, contains, insert, remove
from .specs import Extract, TableSpec, UniqueViolation, without_punctuation

_COMPOSED = 256  # characters of a text that are composed
_REMEMBERED_SIZE = 16_384  # bytes of a parsed record; one of a file may have a million
REMEMBERED = 16  # lists of a table between two writes to it


def encoded(value: Any) -> bytes:
    """JSON without spare memory: orjson returns its whole working buffer, kilobytes for a
    small record.
    """
    return b"%b" % orjson.dumps(value)  # the fastest way to copy


_short_parsed = lru_cache(maxsize=256)(orjson.loads)


def _parsed(public: bytes) -> Any:
    """JSON for reading alone: rules look at the same projects, plans and webhooks all the time."""
    return orjson.loads(public) if len(public) > _REMEMBERED_SIZE else _short_parsed(public)


def _without_blanks(text: str) -> str:
    """Text in its composed form, with one blank between words and none around them.

    Composing may take the square of the length, and only a file has names as long as that.
    """
    composed = unicodedata.normalize("NFC", text[:_COMPOSED]) + text[_COMPOSED:]
    return " ".join(composed.split())


_IGNORING: Mapping[str, Callable[[str], str]] = {
    "blanks": _without_blanks,
    "case": str.casefold,
    "punctuation": without_punctuation,
}


def extract_of(key: UniqueKey) -> Extract:
    """What a record has of a unique key; None where it has null."""
    members = key.members
    scope = key.scope
    folds = [_IGNORING[difference] for difference in key.ignores]

    def extract(row: Row) -> Any:
        values = []
        for member in members:
            value = row.public.get(member)
            if value is None:
                return None
            for fold in folds:
                value = fold(value)
            values.append(value)
        if scope is not None:
            values.append(row.public.get(scope))
        return values[0] if len(values) == 1 else tuple(values)

    return extract


class Table:
    """All records of one kind of one merchant.

    `order` has the keys of all records, oldest first; `views` is what the spec asks for besides.
    Callers see the records of one that `is_plain` as they are stored. `lists` are the keys that
    queries found; the next write drops them. `size` is how many bytes the records have. `readers`
    is how many others have it, be it a search that has paused or another store: who writes then
    leaves it to them and goes on with a copy.
    """

    def __init__(self, name: str, spec: TableSpec, check: Validator) -> None:
        """`check` validates the public part of every new version against the contract."""
        self.name = name
        self.spec = spec
        self.check = check
        self.is_plain = not (spec.live or spec.mirrors)
        self.rows: dict[int, Record] = {}
        self.keys: dict[str, int] = {}
        self.order: Keys = []
        self.extracts: Mapping[str, Extract] = {
            **{name: extract_of(key) for name, key in spec.keys.items()},
            **spec.unique,
        }
        self.unique: dict[str, dict[Hashable, str]] = {name: {} for name in self.extracts}
        self.views = Views(spec.derived, spec.kinds, spec.sorts)
        self.lists: dict[Hashable, Any] = {}
        self.size = self.readers = 0

    # -- reading

    def find(self, ident: str | None) -> Record | None:
        """The present version of a record, or None."""
        key = self.keys.get(ident or "")
        if key is None:
            return None
        return self.rows[key]

    def open(self, ident: str | None) -> Row | None:
        """A record parsed, or None."""
        record = self.find(ident)
        if record is None:
            return None
        return self.parse(record)

    def get(self, ident: str) -> Row:
        """A record that is there, parsed. Raises KeyError."""
        return self.parse(self.rows[self.keys[ident]])

    def peek(self, ident: str) -> Body | None:
        """A record's public part for reading alone, or None: others get the same one."""
        key = self.keys.get(ident)
        return None if key is None else _parsed(self.rows[key].public)

    def peek_active(self) -> list[Body]:
        """The public parts of the records that are active, oldest first, for reading alone."""
        return [_parsed(self.rows[key].public) for key in self.bucket("is_active", True)]

    def parse(self, record: Record) -> Row:
        """A record's two parts."""
        return Row(self.name, record, orjson.loads(record.public), orjson.loads(record.hidden))

    def holder(self, name: str, value: Hashable) -> str | None:
        """The id of the record that has a unique value."""
        return self.unique[name].get(value)

    def bucket(self, index: str, value: Hashable) -> Keys:
        """The keys of the records with this value in an index, oldest first; not to be changed."""
        found: Keys = self.views.parts[index].data.get(value) or []
        return found

    def keys_with(self, name: str, value: Hashable) -> Keys:
        """The keys of the records with a value of an index, of a tag or of a unique key."""
        if name in self.views.parts:
            return self.bucket(name, value)
        ident = self.holder(name, value)
        return [] if ident is None else [self.keys[ident]]

    def count(self, index: str, value: Hashable) -> int:
        """How many records have this value in an index."""
        return len(self.bucket(index, value))

    def is_in(self, ident: str, index: str, values: Collection[Hashable]) -> bool:
        """Whether a record has one of these values in an index."""
        key = self.keys.get(ident)
        return key is not None and any(contains(self.bucket(index, value), key) for value in values)

    def rows_of(self, index: str, value: Hashable) -> Iterator[Row]:
        """The records with this value in an index, parsed, oldest first; safe against
        writes meanwhile.
        """
        for key in list(self.bucket(index, value)):
            yield self.parse(self.rows[key])

    def all_rows(self) -> Iterator[Row]:
        """Every record, parsed, oldest first; safe against writes meanwhile."""
        for key in list(self.order):
            yield self.parse(self.rows[key])

    def total(self, name: str, group: Hashable) -> int:
        """A running sum."""
        return sum(self.members(name, group).values())

    def members(self, name: str, group: Hashable) -> Mapping[Any, int]:
        """The different members of a group, with the number of records of each; not
        to be changed.
        """
        found: Mapping[Any, int] = self.views.parts[name].data.get(group, {})
        return found

    def __len__(self) -> int:
        return len(self.rows)

    # -- writing: first prepare (may refuse), then replace (never does)

    def validate(self, public: Body) -> None:
        """Raises what is wrong with a public part that does not keep the contract."""
        if not self.check.is_valid(public):
            name = self.spec.schema
            reason = self.check.reason(public)
            raise ContractViolation(
                f"a stored {name} does not match ({name}{reason}) #/components/schemas/{name}"
            )

    def prepare(self, row: Row) -> Row:
        """Check a new or changed record against the contract and the unique keys, and write its
        bytes: the next version.
        """
        self.validate(row.public)
        for name, extract in self.extracts.items():
            value = extract(row)
            holder = None if value is None else self.unique[name].get(value)
            if holder is not None and holder != row.id:
                raise UniqueViolation(self.spec, name, value, holder)
        ident, key, version, _, _ = row.record
        return Row(
            self.name,
            Record(ident, key, version + 1, encoded(row.public), encoded(row.hidden)),
            row.public,
            row.hidden,
        )

    def replace(self, before: Row | None, after: Row | None) -> None:
        """Replace a version by the next one: a record without one before is new, one without one
        after is deleted.
        """
        row = after or before
        assert row is not None
        ident = row.record.id
        key = row.record.key
        self.lists.clear()
        self.size += size_of(after and after.record) - size_of(before and before.record)
        self._claim(ident, before, after)
        if after is None:
            del self.rows[key], self.keys[ident]
            remove(self.order, key)
        else:
            if key not in self.rows:
                insert(self.order, key)
            self.rows[key] = after.record
            self.keys[ident] = key
        self.views.replace(key, before, after)

    def _claim(self, ident: str, before: Row | None, after: Row | None) -> None:
        """Give a record the unique values that it has now."""
        for name, extract in self.extracts.items():
            owners = self.unique[name]
            old = before and extract(before)
            value = after and extract(after)
            # else another record has taken it in the same step
            if old != value and owners.get(old) == ident:
                del owners[old]
            if value is not None:
                owners[value] = ident

    def copy(self) -> Table:
        """A copy, to write to instead of this one. Records are shared, as they never change."""
        twin = Table(self.name, self.spec, self.check)
        twin.rows = self.rows.copy()
        twin.keys = self.keys.copy()
        twin.order = self.order.copy()
        twin.unique = {name: owners.copy() for name, owners in self.unique.items()}
        twin.views.take(self.views)
        twin.size = self.size
        return twin


def size_of(record: Record | None) -> int:
    """How many bytes a record has, if there is one."""
    return 0 if record is None else len(record.public) + len(record.hidden)
