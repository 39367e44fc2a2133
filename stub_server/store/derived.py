"""Everything that is derived from the records of a table, made from many of them at once."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..kernel.record import Record, Row
from . import indexes
from .ring import Weight
from .table import Table
from .tables import Parts, plain

AT_ONCE = 64  # so many rows are looked through index by index, which is cheaper than row by row


def rebuilt(table: Table, rows: Mapping[int, Record] | None = None) -> Table:
    """A table of the same records, or of others, whose indexes, sums and views are made anew."""
    twin = table.blank()
    rows = table.rows if rows is None else rows
    twin.rows = {key: rows[key] for key in sorted(rows)}
    twin.keys = {record.id: key for key, record in twin.rows.items()}
    add(twin, _claiming(twin, map(twin.parse, twin.rows.values())))
    settle(twin)
    return twin


def _claiming(table: Table, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows, each of which gets its unique values on the way."""
    uniques = [(table.unique[name], plain(extract)) for name, extract in table.spec.unique.items()]
    for row in rows:
        for held, extract in uniques:
            value = extract(row.public, row.hidden)
            if value is not None:
                held[value] = row.id
        yield row


def add(table: Table, rows: Iterable[Row]) -> None:
    """Derive indexes, sums and texts of more records, in whatever order they come; to be settled before it is read."""
    rows = iter(rows)
    while some := list(islice(rows, AT_ONCE)):
        keys, parts = [row.record.key for row in some], [(row.public, row.hidden) for row in some]
        columns = _columns(table, parts)
        for index, column in zip(table.indexes.values(), columns, strict=True):
            indexes.fill(index, column, keys)
        table.sorts.fill(keys, parts)
        table.counters.fill(columns, parts)
        for name, extract in table.spec.search.items():
            table.texts[name].update(zip(keys, [extract(*part) for part in parts], strict=True))


def settle(table: Table) -> None:
    """Put everything in order, after all records were added."""
    table.order = sorted(table.rows)
    for index in table.indexes.values():
        for bucket in index.values():
            bucket.sort()
    table.sorts.settle()
    if table.spec.ring is not None:
        table.weight = Weight()
        for record in table.rows.values():
            table.weight.add(record)


def replace(table: Table, changes: Sequence[tuple[Row, Row]]) -> None:
    """Have what follows from other versions of records, (before, after); to be settled again before it is read.

    A bucket is gone through once for all of them: taking keys out of long lists one by one costs too much.
    """
    keys = [old.record.key for old, _ in changes]
    old_parts, new_parts = [old[1:] for old, _ in changes], [new[1:] for _, new in changes]
    was, now = _columns(table, old_parts), _columns(table, new_parts)
    for index, befores, afters in zip(table.indexes.values(), was, now, strict=True):
        gone: dict[Hashable, set[int]] = {}
        for key, before, after in zip(keys, befores, afters, strict=True):
            if before != after:
                if before is not None:
                    gone.setdefault(before, set()).add(key)
                indexes.fill(index, (after,), (key,))
        for value, some in gone.items():
            index[value] = [key for key in index[value] if key not in some]
            if not index[value]:
                del index[value]
    values = zip(zip(*was, strict=True), zip(*now, strict=True), strict=True) if was else (((), ()) for _ in keys)
    for key, old, new, (before_values, after_values) in zip(keys, old_parts, new_parts, values, strict=True):
        table.counters.move(before_values, old, after_values, new)
        table.sorts.move(key, old, new)
        for name, extract in table.spec.search.items():
            table.texts[name][key] = extract(*new)


def _columns(table: Table, parts: Sequence[Parts]) -> list[list[Any]]:
    """The values of records in each index."""
    sides = [public for public, _ in parts], [hidden for _, hidden in parts]
    columns: list[list[Any]] = [
        [side.get(name) for side in sides[member.side]]
        for name, member in ((member.name, member) for member in table.spec.indexes.values())
    ]
    positions = {name: number for number, name in enumerate(table.spec.indexes)}
    for pair in table.spec.pairs:
        first, second = (columns[positions[name]] for name in pair.split("+"))
        both = zip(first, second, strict=True)
        columns.append([None if a is None or b is None else (a, b) for a, b in both])
    return columns
