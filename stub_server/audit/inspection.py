"""What a law is given to check, and what a law is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..engine.sandbox import Sandbox
from ..kernel.record import Row
from ..store.memory import Store
from ..store.table import Table


class Inspected(NamedTuple):
    """The world to check. `budget` limits how many records of a table a costly law parses."""

    sandbox: Sandbox
    store: Store
    budget: int

    def rows(self, table: Table) -> Iterator[Row]:
        """The parsed records of a table: all, or every n-th so that `budget` is kept."""
        step = max(1, -(-len(table) // self.budget))
        keys = list(table.order)
        for key in keys[::step]:
            yield table.parse(table.rows[key])


class Law(NamedTuple):
    """`look` yields one text per record checked: the violation, or an empty text.

    A law with `seeds_only` is about the realism of seeded data; changes through the API may break it.
    """

    name: str
    look: Callable[[Inspected], Iterator[str]]
    seeds_only: bool = False
