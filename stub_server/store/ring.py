"""Tables that keep so many records of so many bytes: which ones make room for others."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernel.record import Record
from . import ordered
from .spec import size_of
from .table import Table


def outgoing(table: Table, coming: Sequence[Record]) -> list[Record]:
    """The oldest records of a ring, which go when new ones come."""
    ring, going = table.spec.ring, []
    assert ring is not None
    rows, size = len(table) + len(coming) - ring.rows, table.size + sum([size_of(new) for new in coming]) - ring.size
    if rows <= 0 >= size:
        return []
    for key in ordered.walk(table.order, newest_first=False):
        if rows <= 0 >= size:
            break
        record = table.rows[key]
        going.append(record)
        rows -= 1
        size -= size_of(record)
    return going


def may_have_dropped(table: Table) -> bool:
    """Whether records of a ring may have made room for others."""
    ring = table.spec.ring
    return ring is not None and (len(table) >= ring.rows or table.size >= ring.size // 2)
