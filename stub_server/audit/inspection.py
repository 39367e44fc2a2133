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


PAUSE = None
"""What a law yields where it has looked at something and judges nothing yet: others may be served."""


class Law(NamedTuple):
    """`look` yields one text per record looked at, empty when it keeps the law, and PAUSE in between.

    `of_files`: a world that breaks it cannot come from a file. Others users may break, by what they write or by flags.
    """

    name: str
    look: Callable[[Inspected], Iterator[str | None]]
    seeds_only: bool = False
    of_files: bool = True
