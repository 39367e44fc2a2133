"""Has stores go back: by one step, or to another state by what separates the two record by record."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from ..kernel.record import Record
from ..store.memory import Store
from ..store.tables import Layout
from .step import Part, Step

SLICE = 16  # records between two pauses


def change_records(
    stores: dict[str, Store], parts: Sequence[Part], merchants: Sequence[str], layout: Layout
) -> Generator[None, None, None]:
    """Change the records of all merchants, with pauses; nothing in between is a state of the world.

    `merchants` are the ids of those whom it knows afterwards, in order.
    """
    for store in stores.values():
        store.forget_unrecorded()
    for part in parts:
        if part.opens:
            stores[part.merchant.id] = Store(part.merchant, layout)
        yield from _change(stores[part.merchant.id], part)
        if part.closes:
            del stores[part.merchant.id]
    ordered = {ident: stores[ident] for ident in merchants}
    stores.clear()
    stores.update(ordered)


def _change(store: Store, part: Part) -> Generator[None, None, None]:
    """Change one store: what goes first, so that whoever comes finds its unique values free."""
    coming: list[tuple[str, Record]] = []
    for number, drop in enumerate(part.drops):
        table = store.tables[drop.table]
        store.drop(table, table.parse(drop.record))
        if number % SLICE == 0:
            yield
    for number, (name, record, before) in enumerate(part.puts):
        table = store.tables[name]
        if before is None:
            coming.append((name, record))
            continue
        row, old = table.parse(record), table.parse(before)
        if table.same_keys(old, row.public, row.hidden):
            store.put(table, record, row.public, row.hidden, old)
        else:
            store.drop(table, old)
            coming.append((name, record))
        if number % SLICE == 0:
            yield
    for number, (name, record) in enumerate(coming):
        table = store.tables[name]
        row = table.parse(record)
        store.put(table, record, row.public, row.hidden, None)
        if number % SLICE == 0:
            yield
    for key_id, usage, _ in part.used:
        store.set_usage(key_id, usage)


def undo_records(store: Store, step: Step) -> None:
    """Have the records and the usage that a step replaced."""
    tables = store.tables
    for name, record in reversed(step.drops):
        row = tables[name].parse(record)
        store.put(tables[name], record, row.public, row.hidden, None)
    for name, record, before in reversed(step.puts):
        row = tables[name].parse(record)
        if before is None:
            store.drop(tables[name], row)
        else:
            old = tables[name].parse(before)
            store.put(tables[name], before, old.public, old.hidden, row)
    for key_id, _, usage in step.used:
        store.set_usage(key_id, usage)


def rebuild(store: Store, step: Step) -> None:
    """Have the records that a step says, and what follows from them, after folding it has failed half way."""
    rows = {name: dict(table.rows) for name, table in store.tables.items()}  # a fork may share the tables
    for name, record, _ in step.puts:
        rows[name][record.key] = record
    for name, record in step.drops:
        rows[name].pop(record.key, None)
    store.rebuild(rows)
