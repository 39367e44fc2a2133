"""The steps of worlds in SQLite: a table for each world, by number, so that a new step goes to its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

Line: TypeAlias = tuple[int, int, bytes]
"""The number of a world, that of a step, and the step as a line."""
_PREFIX = "steps_"


@lru_cache(maxsize=1024)
def _of(world: int, statement: str) -> str:
    """A statement about the table of a world, which stands in it as `$steps`."""
    return statement.replace("$steps", f"{_PREFIX}{world}")


class StepTables:
    """The tables of one database. Whoever writes opens the transaction, where there is more than one statement."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def upgrade(self) -> None:
        """Take over the one table that all worlds had in version 1."""
        found = "select count(*) from sqlite_master where type = 'table' and name = 'steps'"
        if not self._database.execute(found).fetchone()[0]:
            return
        for (world,) in self._database.execute("select id from worlds").fetchall():
            self.create(world)
            taken = _of(world, "insert into $steps select number, line from steps where world = ? order by number")
            self._database.execute(taken, (world,))
        self._database.execute("drop table steps")

    def worlds(self) -> list[int]:
        """The numbers of the worlds that have a table."""
        named = "select name from sqlite_master where type = 'table' and name glob ?"
        return [int(name[len(_PREFIX) :]) for (name,) in self._database.execute(named, (_PREFIX + "[0-9]*",))]

    def create(self, world: int) -> None:
        """Have an empty table for a new world."""
        self._database.execute(_of(world, "create table $steps (number integer primary key, line blob not null)"))

    def drop(self, world: int) -> None:
        """Have none of a world. What is still in it should be little."""
        self._database.execute(_of(world, "drop table if exists $steps"))

    def write(self, lines: Sequence[Line]) -> None:
        """Add steps."""
        for world, number, line in lines:
            self._database.execute(_of(world, "insert into $steps values (?, ?)"), (number, line))

    def count(self, world: int) -> int:
        """How many steps a world has."""
        (count,) = self._database.execute(_of(world, "select count(*) from $steps")).fetchone()
        return int(count)

    def lines(self, world: int) -> Iterator[bytes]:
        """The steps of a world in their order."""
        for (line,) in self._database.execute(_of(world, "select line from $steps order by number")):
            yield line

    def first(self, world: int) -> int | None:
        """The number of the oldest step of a world."""
        number: int | None = self._database.execute(_of(world, "select min(number) from $steps")).fetchone()[0]
        return number

    def forget(self, world: int, last: int) -> None:
        """Delete the steps up to a number."""
        self._database.execute(_of(world, "delete from $steps where number <= ?"), (last,))
