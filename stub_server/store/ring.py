"""Tables that keep so many records of so many bytes: which ones make room for others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import merge
from typing import TYPE_CHECKING, Any

from ..kernel.record import Record

if TYPE_CHECKING:
    from .table import Table

MORE_AT_ONCE = 200  # than come: a step takes no longer than others can wait


class Weight:
    """How many bytes some records take together: what several of them share counts once."""

    __slots__ = ("_base", "_holders", "size")

    def __init__(self, base: Weight | None = None) -> None:
        """With `base` what would be, if records came to those of another one, which stays as it is, and others went."""
        self._base = base
        self.size: int = 0 if base is None else base.size
        self._holders: dict[int, int] = {}  # how many records hold what is kept apart, by its identity

    def add(self, record: Record) -> None:
        """Count a record."""
        self.size += len(record.public) + len(record.hidden)
        if record.apart and self._hold(record.apart, +1) == 1:
            self.size += len(record.apart)

    def remove(self, record: Record) -> None:
        """Count a record no longer. It is the very one that was counted."""
        self.size -= len(record.public) + len(record.hidden)
        if record.apart and not self._hold(record.apart, -1):
            self.size -= len(record.apart)

    def _hold(self, apart: bytes, change: int) -> int:
        """Have so many more hold it; answers how many do."""
        held = id(apart)
        count = self._holders.get(held)
        if count is None:
            count = 0 if self._base is None else self._base._holders.get(held, 0)
        count += change
        if count or self._base is not None:
            self._holders[held] = count
        else:
            del self._holders[held]
        return count

    def copy(self) -> Weight:
        """An independent one of the same records."""
        twin = Weight()
        twin.size, twin._holders = self.size, self._holders.copy()
        return twin


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
