"""A directory in which worlds outlive the process: whole states in files, steps since then in SQLite.

A step is written to the page cache before its answer: the end of the process loses nothing, and what the end of the
machine may lose is bounded by `Syncing`. A state is written beside and synced before anything refers to it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..version import __version__
from .states import States, StoreError, locked
from .steps import Line, StepTables
from .syncing import Syncing

VERSION = 3  # of the directory, and of the states in it
BUSY = 5.0  # seconds that a write waits for one of the housekeeping
LOT = 50  # steps that are deleted at once
ENDED = 1 << 62  # stands for all steps of a world that is gone
PAGE = 8_192  # bytes: most steps have room in one
log = logging.getLogger("stub_server")
_TABLES = """
create table if not exists worlds (
    id integer primary key autoincrement, name text not null unique, base text not null, step integer not null,
    contract text not null, parent text, mentioned integer not null, created_at integer not null,
    last_used_at integer not null, expires_at integer, held integer, incarnation text not null,
    origin_events integer not null, noted integer not null
);
create table if not exists snapshots (
    id integer primary key autoincrement, world integer not null, name text not null, description text,
    now integer not null, created_at integer not null, base text not null, contract text not null, unique (world, name)
);
create table if not exists facts (name text primary key, value text not null);
"""


class Unwritten(Exception):
    """The directory takes no changes, with the reason. What was to be written is not there."""


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
    """What is kept of a snapshot beside its state, the base. Times are ms; `contract` is what it was held to."""

    name: str
    description: str | None
    now: int
    created_at: int
    base: str
    contract: str


class Directory(States):
    """One per server, and one server per directory. To be used by one thread, but for `write_base`."""

    def __init__(self, path: Path, *, always: bool) -> None:
        """`always` has every step on the disk before its answer. Raises StoreError."""
        super().__init__(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.begin()
            if path.stat().st_mode & 0o077:
                log.warning("--store %s is open to others: it holds keys. chmod 700 shuts it.", path)
            self._lock = locked(path / "lock")
            try:
                self._open(always=always)
            except BaseException:
                self._lock.close()
                raise
        except OSError as error:
            raise StoreError(f"--store {path}: {error.strerror or error}.") from None
        except sqlite3.Error as error:
            raise StoreError(f"--store {path}: this is no store of sandboxes ({error}).") from None

    def _open(self, *, always: bool) -> None:
        file = self.path / "worlds"
        file.touch(0o600)  # what SQLite puts beside it gets the same rights
        self._database = sqlite3.connect(file, BUSY, isolation_level=None, check_same_thread=False)
        (version,) = self._database.execute("pragma user_version").fetchone()
        if version > VERSION:
            self._database.close()
            raise StoreError(
                f"--store {self.path}: it was written by a newer version of the server: its format is {version}, and "
                f"this one ({__version__}) reads up to {VERSION}."
            )
        self._database.execute(f"pragma page_size={PAGE}")
        self._database.execute("pragma journal_mode=wal")
        self._database.execute(f"pragma synchronous={'full' if always else 'normal'}")
        self._database.execute("pragma wal_autocheckpoint=0")
        self._steps = StepTables(self._database)
        self._database.executescript(f"begin immediate; {_TABLES}")
        self._steps.upgrade()
        self._database.execute(f"pragma user_version={VERSION}")
        known = dict(self._database.execute("select id, step from worlds"))
        for world in self._steps.worlds():
            if world in known:
                self._steps.forget(world, known[world])
            else:
                self._steps.drop(world)
        self._database.execute("commit")
        self._database.execute("delete from snapshots where world not in (select id from worlds)")
        bases = self._database.execute("select base from worlds union select base from snapshots")
        self.sweep({name for (name,) in bases})
        self._stale: list[tuple[int, int]] = []
        self._pending: list[Line] = []
        self._freed: list[str] = []  # states that nothing refers to once the change that goes on is written
        self._ended: list[int] = []  # and worlds that are gone then
        self.syncing = Syncing(file)

    def close(self) -> None:
        """Have everything on the disk, and let the directory go."""
        self.syncing.close()
        self._database.close()
        self._lock.close()

    def secret(self, fresh: bytes) -> bytes:
        """The random bytes that this directory's server signs with; `fresh` from now on, where there are none."""
        self._database.execute("insert or ignore into facts values ('secret', ?)", (fresh.hex(),))
        (value,) = self._database.execute("select value from facts where name = 'secret'").fetchone()
        return bytes.fromhex(value)

    # -- worlds

    def worlds(self) -> list[tuple[int, Kept]]:
        """Every world that is kept, with its number, in the order in which they were made."""
        rows = self._database.execute("select * from worlds order by id").fetchall()
        return [(number, Kept(*rest)._replace(mentioned=bool(rest[6]))) for number, *rest in rows]

    def enter(self, kept: Kept, snapshots: Iterable[KeptSnapshot] = ()) -> int:
        """Keep a world with its snapshots, in place of the one of its name; answers its number. Raises Unwritten."""
        with self._changing():
            self._drop(kept.name)
            statement = "insert into worlds values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # the members of Kept
            number = self._database.execute(statement, kept).lastrowid
            assert number is not None
            self._steps.create(number)
            for snapshot in snapshots:
                self._enter_snapshot(number, snapshot)
        return number

    def drop(self, name: str) -> None:
        """Keep a world no longer. Raises Unwritten."""
        with self._changing():
            self._drop(name)

    def _drop(self, name: str) -> None:
        found = self._database.execute("select id, base from worlds where name = ?", (name,)).fetchone()
        if found is not None:
            self._database.execute("delete from worlds where id = ?", (found[0],))
            for base in (found[1], *(kept.base for kept in self.snapshots(found[0]))):
                self._freed.append(base)
            self._database.execute("delete from snapshots where world = ?", (found[0],))
            self._ended.append(found[0])

    def note(self, number: int, kept: Kept) -> None:
        """Keep what no step says of a world, but for its base. Raises Unwritten."""
        values = kept.last_used_at, kept.held, kept.incarnation, kept.origin_events, kept.noted, number
        statement = (
            "update worlds set last_used_at = ?, held = ?, incarnation = ?, origin_events = ?, noted = ? where id = ?"
        )
        with self._changing():
            self._database.execute(statement, values)

    # -- snapshots

    def snapshots(self, world: int) -> list[KeptSnapshot]:
        """The snapshots of a world, in the order in which they were made."""
        statement = (
            "select name, description, now, created_at, base, contract from snapshots where world = ? order by id"
        )
        return [KeptSnapshot(*row) for row in self._database.execute(statement, (world,))]

    def enter_snapshot(self, world: int, kept: KeptSnapshot) -> None:
        """Keep a snapshot of a world, in place of the one of its name. Raises Unwritten."""
        with self._changing():
            self._enter_snapshot(world, kept)

    def _enter_snapshot(self, world: int, kept: KeptSnapshot) -> None:
        self._drop_snapshot(world, kept.name)
        self._database.execute("insert into snapshots values (null, ?, ?, ?, ?, ?, ?, ?)", (world, *kept))

    def drop_snapshot(self, world: int, name: str) -> None:
        """Keep a snapshot no longer. Raises Unwritten."""
        with self._changing():
            self._drop_snapshot(world, name)

    def _drop_snapshot(self, world: int, name: str) -> None:
        which = world, name
        found = self._database.execute("select base from snapshots where world = ? and name = ?", which).fetchone()
        if found is not None:
            self._database.execute("delete from snapshots where world = ? and name = ?", which)
            self._freed.append(found[0])

    # -- steps

    def append(self, world: int, number: int, line: bytes) -> None:
        """Have a step written with the next change, or by `flush`."""
        self._pending.append((world, number, line))

    @property
    def is_behind(self) -> bool:
        """Whether there are steps that are not written yet."""
        return bool(self._pending)

    def flush(self) -> None:
        """Write the steps that are not written yet. Raises Unwritten: then they still are not."""
        if len(self._pending) != 1:
            with self._changing():
                return
        try:
            self._steps.write(self._pending)  # a statement by itself, without a transaction around it
        except sqlite3.Error as error:
            raise Unwritten(str(error)) from None
        self._pending.clear()
        self.syncing.is_behind = True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """All of several changes or none: steps that are not written yet, then the block. Raises Unwritten."""
        database, count = self._database, len(self._pending)
        self._freed, self._ended = [], []
        try:
            database.execute("begin immediate")
            try:
                self._steps.write(self._pending)
                yield
                database.execute("commit")
            except BaseException:
                if database.in_transaction:
                    database.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise Unwritten(str(error)) from None
        del self._pending[:count]
        self.syncing.is_behind = True
        self._stale.extend((world, ENDED) for world in self._ended)
        for base in self._freed:
            self.discard(base)

    def count(self, world: int) -> int:
        """How many steps of a world there are since its base."""
        return self._steps.count(world)

    def steps(self, world: int) -> Iterator[bytes]:
        """The steps of a world since its base, line by line."""
        return self._steps.lines(world)

    def tidied(self) -> Iterator[None]:
        """Delete steps that no world needs any more, with a pause after each lot of them."""
        while self._stale:
            world, last = self._stale[-1]
            first = self._steps.first(world)
            if first is not None and first <= last:
                with self._changing():
                    self._steps.forget(world, min(last, first + LOT))
            elif last == ENDED:
                with self._changing():
                    self._steps.drop(world)
                self._stale = [other for other in self._stale if other[0] != world]
            else:
                self._stale.remove((world, last))
            yield

    def rebase(self, world: int, base: str, step: int, contract: str) -> None:
        """Have a world begin with a later state: its steps up to there are not needed any more."""
        with self._changing():
            (before,) = self._database.execute("select base from worlds where id = ?", (world,)).fetchone()
            values = base, step, contract, world
            self._database.execute("update worlds set base = ?, step = ?, contract = ? where id = ?", values)
        self._stale.append((world, step))
        self.discard(before)

    def discard(self, base: str) -> None:
        """A state is not needed any more. On the disk it stays until what refers to another one is there too."""
        self.syncing.after_next(lambda: (self._bases / base).unlink(missing_ok=True))
