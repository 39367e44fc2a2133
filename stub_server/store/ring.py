"""Tables that keep so many records of so many bytes: which ones make room for others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import merge
from typing import Any

from ..kernel.record import Record
from .apart import Weight
from .table import Table

MORE_AT_ONCE = 200  # than come: a step takes no longer than others can wait


def outgoing(table: Table, coming: Sequence[Record]) -> list[Record]:
    """The oldest records of a ring, which go when new ones come: first those whose state lets them.

    Where many may go at once, as when tens of thousands of deliveries are over, the rest goes with the next ones.
    """
    ring, rows = table.spec.ring, table.rows
    assert ring is not None
    count, weight = len(rows) + len(coming), Weight(table.weight)
    for new in coming:
        weight.add(new)
    going: list[Record] = []
    at_once = len(coming) + MORE_AT_ONCE

    def let_go(keys: Iterable[Any], most: int, bytes_: int) -> None:
        nonlocal count
        for key in keys:
            if len(going) >= at_once or (count <= most and weight.size <= bytes_):
                return
            going.append(rows[key])
            weight.remove(rows[key])
            count -= 1

    if count > ring.rows or weight.size > ring.size:
        buckets = table.indexes[ring.by].items()
        let_go(merge(*(bucket for value, bucket in buckets if value not in ring.kept)), ring.rows, ring.size)
        let_go(merge(*(bucket for value, bucket in buckets if value in ring.kept)), ring.most, ring.most_size)
    return going


def may_have_dropped(table: Table) -> bool:
    """Whether records of a ring may have made room for others."""
    ring = table.spec.ring
    return ring is not None and (len(table) >= ring.rows or table.weight.size >= ring.size // 2)
