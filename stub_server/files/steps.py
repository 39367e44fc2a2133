"""The steps of worlds in SQLite: a table for each world, by number, so that a new step goes to its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

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
        """Take over the one table that all worlds had in version 1, and give every step the sum it lacked before 4."""
        found = "select count(*) from sqlite_master where type = 'table' and name = 'steps'"
        if self._database.execute(found).fetchone()[0]:
            self._part()
        for world in self.worlds():
            if "seal" not in [row[1] for row in self._database.execute(_of(world, "pragma table_info($steps)"))]:
                self._database.execute(_of(world, "alter table $steps add column seal integer not null default 0"))
            for number, line, _ in self.sealed(world):
                self._database.execute(_of(world, "update $steps set seal = ? where number = ?"), (crc32(line), number))

    def _part(self) -> None:
        for (world,) in self._database.execute("select id from worlds").fetchall():
            self.create(world)
            taken = _of(world, "insert into $steps select number, line, 0 from steps where world = ? order by number")
            self._database.execute(taken, (world,))
        self._database.execute("drop table steps")

    def worlds(self) -> list[int]:
        """The numbers of the worlds that have a table."""
        named = "select name from sqlite_master where type = 'table' and name glob ?"
        return [int(name[len(_PREFIX) :]) for (name,) in self._database.execute(named, (_PREFIX + "[0-9]*",))]

    def create(self, world: int) -> None:
        """Have an empty table for a new world."""
        self._database.execute(
            _of(world, "create table $steps (number integer primary key, line blob not null, seal integer not null)")
        )

    def drop(self, world: int) -> None:
        """Have none of a world. What is still in it should be little."""
        self._database.execute(_of(world, "drop table if exists $steps"))

    def write(self, lines: Sequence[Line]) -> None:
        """Add steps."""
        for world, number, line in lines:
            values = number, line, crc32(line)
            self._database.execute(_of(world, "insert into $steps values (?, ?, ?)"), values)

    def count(self, world: int, after: int = 0) -> int:
        """How many steps a world has after one."""
        (count,) = self._database.execute(
            _of(world, "select count(*) from $steps where number > ?"), (after,)
        ).fetchone()
        return int(count)

    def lines(self, world: int, after: int = 0) -> Iterator[bytes]:
        """The steps of a world after one, in their order."""
        for _, line, _ in self.sealed(world, after):
            yield line

    def sealed(self, world: int, after: int = 0) -> Generator[tuple[int, bytes, int], None, None]:
        """The same, each with its number and its sum."""
        statement = _of(world, "select number, line, seal from $steps where number > ? order by number")
        yield from self._database.execute(statement, (after,))

    def first(self, world: int) -> int | None:
        """The number of the oldest step of a world."""
        number: int | None = self._database.execute(_of(world, "select min(number) from $steps")).fetchone()[0]
        return number

    def last(self, world: int) -> int | None:
        """The number of the newest step of a world."""
        number: int | None = self._database.execute(_of(world, "select max(number) from $steps")).fetchone()[0]
        return number

    def forget(self, world: int, last: int) -> None:
        """Delete the steps up to a number."""
        self._database.execute(_of(world, "delete from $steps where number <= ?"), (last,))
