"""Everything that is derived from the records of a table, made from all of them at once."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ..kernel.record import Record, Row
from . import ordered
from .spec import plain
from .table import Table

AT_ONCE = 64  # so many rows are looked through index by index, which is cheaper than row by row


def rebuilt(table: Table, rows: Mapping[int, Record] | None = None) -> Table:
    """A table of the same records, or of others, whose indexes, sums and views are made anew."""
    twin = table.blank()
    rows = table.rows if rows is None else rows
    twin.rows = {key: rows[key] for key in sorted(rows)}
    twin.keys = {record.id: key for key, record in twin.rows.items()}
    derive(twin, map(twin.parse, twin.rows.values()))
    return twin


def derive(table: Table, rows: Iterable[Row]) -> None:
    """Make what is derived from the records of a table; `rows` are all of them in order of creation."""
    spec, rows = table.spec, iter(rows)
    table.order = sorted(table.rows)
    members = [(member.side, member.name) for member in spec.indexes.values()]
    positions = {name: number for number, name in enumerate(table.indexes)}
    pairs = [[positions[name] for name in pair.split("+")] for pair in spec.pairs]
    uniques = [(table.unique[name], plain(extract)) for name, extract in spec.unique.items()]
    while some := list(islice(rows, AT_ONCE)):
        keys, parts = [row.record.key for row in some], [(row.public, row.hidden) for row in some]
        columns: list[list[Any]] = [[part[side].get(name) for part in parts] for side, name in members]
        for first, second in pairs:
            both = zip(columns[first], columns[second], strict=True)
            columns.append([None if a is None or b is None else (a, b) for a, b in both])
        for index, column in zip(table.indexes.values(), columns, strict=True):
            ordered.fill(index, column, keys)
        table.sorts.fill(keys, parts)
        table.tallies.fill(columns, parts)
        for held, extract in uniques:
            for row in some:
                value = extract(row.public, row.hidden)
                if value is not None:
                    held[value] = row.record.id
        for name, extract in spec.search.items():
            table.texts[name].update(zip(keys, [extract(*part) for part in parts], strict=True))
    table.sorts.settle()
