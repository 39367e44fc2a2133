"""Looks at a whole directory before anything of it is changed: what is whole, and what is damaged or missing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from zlib import crc32

from .states import States, is_of_the_disk, opening
from .steps import StepTables

DATABASE, NEWEST = "worlds", "newest"
VERSION = 4  # of the directory, and of the states in it; rows have sums since 4
WORLD = (
    "name, base, step, contract, parent, mentioned, created_at, last_used_at, expires_at, held, incarnation, "
    "origin_events, noted"
)
SNAPSHOT = "name, description, now, created_at, base, contract"


def seal_of(*values: object) -> int:
    """The sum of a row."""
    return crc32(repr(values).encode())


class Kept(NamedTuple):
    """What is kept of a world beside its state. `step` is its base's; `held` is None where nothing is delivered.

    `noted` is the newest step when this was written: what a later one says of deliveries held back stands above it.
    """

    name: str
    base: str
    step: int
    contract: str
    parent: str | None
    mentioned: bool
    created_at: int
    last_used_at: int
    expires_at: int | None
    held: int | None
    incarnation: str
    origin_events: int
    noted: int


class KeptSnapshot(NamedTuple):
    """What is kept of a snapshot beside its state, the base. Times are ms; `contract` checked it."""

    name: str
    description: str | None
    now: int
    created_at: int
    base: str
    contract: str


class Whole(NamedTuple):
    """What can be read of a sandbox: its number, itself, its snapshots and the number of its newest step."""

    number: int
    kept: Kept
    snapshots: tuple[KeptSnapshot, ...]
    last: int


class Survey(NamedTuple):
    """What there is. `damage` says what is not whole, a line each."""

    version: int
    sandboxes: list[Whole]
    secret: str | None
    damage: list[str]


def connected(path: Path) -> sqlite3.Connection:
    """The database of a directory, to be read alone: closing it leaves every file as it is."""
    return sqlite3.connect(f"file:{quote(str(path / DATABASE))}?mode=ro", uri=True, isolation_level=None)


class Newest:
    """A file that says what was committed last: SQLite takes a log that was cut or damaged for one that ends there."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / NEWEST, os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, changes: int, world: int, step: int) -> None:
        """Say how many changes there were, and which step was written last."""
        said = b"%016x %016x %016x" % (changes, world, step)
        os.pwrite(self._file, b"%b %08x\n" % (said, crc32(said)), 0)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def _newest(path: Path) -> tuple[int, int, int] | None:
    """What the file says; None where there is none, or it is damaged."""
    try:
        said, _, seal = (path / NEWEST).read_bytes().rpartition(b" ")
        if int(seal, 16) == crc32(said):
            changes, world, step = (int(part, 16) for part in said.split(b" "))
            return changes, world, step
    except (OSError, ValueError):
        pass
    return None


def survey(path: Path) -> Survey:
    """Read everything, and change nothing. Raises StoreError for what cannot be opened."""
    states, file = States(path), path / DATABASE
    found = Survey(0, [], None, [])
    if not file.exists() or not file.stat().st_size:
        if states.names() or (path / NEWEST).exists():
            found.damage.append(f"there are states, but no database {DATABASE!r} that says whose they are")
        return found
    with opening(path), closing(connected(path)) as database:
        try:
            (version,) = database.execute("pragma user_version").fetchone()
        except sqlite3.DatabaseError as error:
            if is_of_the_disk(error):
                raise
            found.damage.append(f"this is no store of sandboxes, or its database is damaged ({error})")
            return found
        found = found._replace(version=version)
        if version in (0, VERSION):
            return _Look(path, states, database, found).whole()
        return found


class _Look:
    """One look at one directory."""

    def __init__(self, path: Path, states: States, database: sqlite3.Connection, found: Survey) -> None:
        self._path, self._states, self._database, self._found = path, states, database, found
        self._steps = StepTables(database)

    def whole(self) -> Survey:
        found, damage = self._found, self._found.damage
        if found.version == 0:
            has_begun = self._states.names() or (self._path / NEWEST).exists()
            if has_begun or self._rows("select name from sqlite_master"):
                damage.append("there are states, but its database is empty or does not say its version")
            return found
        said = [text for (text,) in self._rows("pragma quick_check(1)")]
        if said != ["ok"]:
            damage.append(f"the database: {' '.join(said)[:200]}")
        facts = {name: value for _, name, value in self._sealed("facts", "name, value", "0")}
        if "secret" not in facts and (facts or self._rows("select id from worlds limit 1")):
            damage.append("the secret of its keys and tokens is not there")
        named = self._sandboxes()
        self._check_newest(int(facts.get("changes", 0)), {w.number: w.last for w in found.sandboxes})
        named |= {base for (base,) in self._rows("select base from freed")}
        damage.extend(f"states/{name} belongs to no sandbox" for name in sorted(self._states.names() - named))
        return found._replace(secret=facts.get("secret"))

    def _sandboxes(self) -> set[str]:
        """Find the sandboxes; answers the names of their states."""
        sandboxes, damage = self._found.sandboxes, self._found.damage
        rows = [(number, Kept(*rest)) for number, *rest in self._sealed("worlds", WORLD)]
        pinned = self._sealed("snapshots", SNAPSHOT, "world")
        known = {number for number, _ in rows} | {number for (number,) in self._rows("select world from ended")}
        if strangers := {number for number, *_ in pinned} - known:
            damage.append(f"snapshots belong to no sandbox ({len(strangers)})")
        tables = set(self._tried(lambda: iter(self._steps.worlds())))
        if tables - known:
            damage.append(f"steps belong to no sandbox ({len(tables - known)})")
        named = set()
        for number, kept in rows:
            own = tuple(KeptSnapshot(*rest) for world, *rest in pinned if world == number)
            named |= {kept.base, *(snapshot.base for snapshot in own)}
            own = tuple(s for s in own if self._is_whole(s.base, f"the snapshot {s.name} of the sandbox {kept.name}"))
            if self._is_whole(kept.base, f"the sandbox {kept.name}"):
                sandboxes.append(Whole(number, kept, own, self._last(number, kept)))
        return named

    def _last(self, number: int, kept: Kept) -> int:
        """The newest step of a sandbox up to which all are there and whole."""
        last = kept.step
        with closing(self._tried(lambda: self._steps.sealed(number, kept.step))) as steps:
            for step, line, seal in steps:
                if step != last + 1 or not isinstance(line, bytes) or seal != crc32(line):
                    what = "is damaged" if step == last + 1 else "is missing"
                    self._found.damage.append(f"step {last + 1} of the sandbox {kept.name} {what}")
                    break
                last = step
        return last

    def _is_whole(self, base: str, whose: str) -> bool:
        reason = self._states.fault(base)
        if reason is not None:
            self._found.damage.append(f"{whose}: states/{base} {reason}")
        return reason is None

    def _check_newest(self, changes: int, last: dict[int, int]) -> None:
        told = _newest(self._path)
        if told is None:
            if changes:
                self._found.damage.append(f"{NEWEST!r} is missing or damaged, which says what was written last")
        elif changes < told[0] or (changes == told[0] and told[1] and last.get(told[1], -1) < told[2]):
            self._found.damage.append("what was written last is not there")

    def _sealed(self, table: str, columns: str, before: str = "id") -> list[Any]:
        """The whole rows of a table; what stands `before` the columns has no part in the sum."""
        found = []
        for first, *values, seal in self._rows(f"select {before}, {columns}, seal from {table} order by rowid"):  # noqa: S608
            if seal_of(*values) == seal:
                found.append((first, *values))
            else:
                self._found.damage.append(f"a row of {table} is damaged")
        return found

    def _rows(self, statement: str) -> list[Any]:
        return list(self._tried(lambda: self._database.execute(statement)))

    def _tried(self, read: Callable[[], Iterable[Any]]) -> Generator[Any, None, None]:
        """What can be read up to where the database is damaged."""
        try:
            yield from read()
        except (sqlite3.Error, ValueError) as error:
            self._found.damage.append(f"the database cannot be read ({error})")
