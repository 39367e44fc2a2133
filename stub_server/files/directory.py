"""A directory in which worlds outlive the process: whole states in files, steps since then in SQLite.

A step is written to the page cache before its answer: the end of the process loses nothing, and what the end of the
machine may lose is bounded by `Syncing`. A state is written beside and synced before anything refers to it.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

from ..version import __version__
from .states import States, StoreError, locked, opening
from .steps import Line, StepTables
from .survey import (
    DATABASE,
    NEWEST,
    SNAPSHOT,
    VERSION,
    WORLD,
    Kept,
    KeptSnapshot,
    Newest,
    Survey,
    connected,
    seal_of,
    survey,
)
from .syncing import Syncing

BUSY = 5.0  # seconds that a write waits for one of the housekeeping
LOT = 50  # steps that are deleted at once
ENDED = 1 << 62  # stands for all steps of a world that is gone
PAGE = 8_192  # bytes: most steps have room in one
log = logging.getLogger("stub_server")
_SALVAGE = (
    "Start once with --salvage: what is whole is kept, and the damaged files are moved to a directory in this one."
)
_FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", NEWEST, "states")
_TABLES = """
create table if not exists worlds (
    id integer primary key autoincrement, name text not null unique, base text not null, step integer not null,
    contract text not null, parent text, mentioned integer not null, created_at integer not null,
    last_used_at integer not null, expires_at integer, held integer, incarnation text not null,
    origin_events integer not null, noted integer not null, seal integer not null default 0
);
create table if not exists snapshots (
    id integer primary key autoincrement, world integer not null, name text not null, description text,
    now integer not null, created_at integer not null, base text not null, contract text not null,
    seal integer not null default 0, unique (world, name)
);
create table if not exists facts (name text primary key, value text not null, seal integer not null default 0);
create table if not exists ended (world integer primary key);
create table if not exists freed (base text primary key);
"""
_SEALED = {"worlds": WORLD, "snapshots": SNAPSHOT, "facts": "name, value"}


class Unwritten(Exception):
    """The directory takes no changes, with the reason. What was to be written is not there."""


class Directory(States):
    """One per server, and one server per directory. To be used by one thread, but for `write_base`."""

    def __init__(self, path: Path, *, always: bool, salvage: bool = False) -> None:
        """`always` has every step on the disk before its answer; `salvage` keeps what is whole of a damaged one.

        Raises StoreError.
        """
        super().__init__(path)
        with opening(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_mode & 0o077:
                log.warning("--store %s is open to others: it holds keys. chmod 700 shuts it.", path)
            self._lock = locked(path / "lock")
            try:
                found = survey(path)
                if found.version > VERSION:
                    raise StoreError(
                        f"--store {path}: it was written by a newer version of the server: its format is "
                        f"{found.version}, and this one ({__version__}) reads up to {VERSION}."
                    )
                if found.damage and not salvage:
                    more = f" ({len(found.damage) - 1} more findings)" if len(found.damage) > 1 else ""
                    raise StoreError(f"--store {path} is damaged: {found.damage[0]}{more}. {_SALVAGE}")
                if found.damage:
                    self._salvage(found)
                    found = survey(path)
                self.begin()
                self._open(found.version, always=always)
            except BaseException:
                self._lock.close()
                raise

    def _salvage(self, found: Survey) -> None:
        """Have a new directory of what is whole, and move the damaged one to a directory in this one."""
        fresh, aside = (
            next(to for n in count(1) if not (to := self.path / f"{name}-{n}").exists())
            for name in ("whole", "damaged")
        )
        whole = Directory(fresh, always=False)
        try:
            whole.take_over(self, found)
        finally:
            whole.close()
        aside.mkdir(mode=0o700)
        for name in _FILES:
            if (self.path / name).exists():
                (self.path / name).rename(aside / name)
        for name in _FILES:
            if (fresh / name).exists():
                (fresh / name).rename(self.path / name)
        shutil.rmtree(fresh)
        for text in found.damage:
            log.warning("--store %s: %s", self.path, text)
        log.warning("--store %s: what is whole goes on, and the damaged files are in %s", self.path, aside)

    def take_over(self, old: States, found: Survey) -> None:
        """Have what is whole of another directory. Raises Unwritten."""

        def copied(base: str) -> str:
            name = self.next_base()
            self.write_base(name, old.read_base(base))
            return name

        if found.secret is not None:
            self.secret(bytes.fromhex(found.secret))
        if not found.sandboxes:
            return
        with closing(connected(old.path)) as database:
            steps = StepTables(database)
            for number, kept, snapshots, last in found.sandboxes:
                own = self.enter(
                    kept._replace(base=copied(kept.base)),
                    [snapshot._replace(base=copied(snapshot.base)) for snapshot in snapshots],
                )
                with closing(steps.sealed(number, kept.step)) as lines:
                    for step, line, _ in lines:
                        if step > last:
                            break
                        self.append(own, step, line)
                self.flush()

    def _open(self, version: int, *, always: bool) -> None:
        file = self.path / DATABASE
        file.touch(0o600)  # what SQLite puts beside it gets the same rights
        self._database = sqlite3.connect(file, BUSY, isolation_level=None, check_same_thread=False)
        self._database.execute(f"pragma page_size={PAGE}")
        self._database.execute("pragma journal_mode=wal")
        self._database.execute(f"pragma synchronous={'full' if always else 'normal'}")
        self._database.execute("pragma wal_autocheckpoint=0")
        self._database.create_function("seal_of", -1, seal_of, deterministic=True)
        self._steps = StepTables(self._database)
        self._database.executescript(f"begin immediate; {_TABLES}")
        if version < VERSION:
            self._upgrade()
        self._database.execute("commit")
        self._pending: list[Line] = []
        self._freed: list[str] = []  # states that nothing refers to once the change that goes on is written
        self._settled: list[str] = []  # and those that something refers to then
        self._ended: list[int] = []  # and worlds that are gone then
        self._stale = [(world, ENDED) for (world,) in self._database.execute("select world from ended")]
        self._stale += self._database.execute("select id, step from worlds").fetchall()
        facts = dict(self._database.execute("select name, value from facts"))
        self._changes, self._last = int(facts.get("changes", 0)), (0, 0)
        wanted = {
            name for (name,) in self._database.execute("select base from worlds union select base from snapshots")
        }
        freed = {name for (name,) in self._database.execute("select base from freed")}
        self.sweep(wanted, freed - wanted)
        self._database.execute("delete from freed")
        self._newest = Newest(self.path)
        self._tell_newest()
        self.syncing = Syncing(file)

    def _upgrade(self) -> None:
        """Have a new directory, or one of an earlier version, be of this one."""
        self._steps.upgrade()
        for table, columns in _SEALED.items():
            if "seal" not in [row[1] for row in self._database.execute(f"pragma table_info({table})")]:
                self._database.execute(f"alter table {table} add column seal integer not null default 0")
            self._database.execute(f"update {table} set seal = seal_of({columns})")  # noqa: S608
        known = {number for (number,) in self._database.execute("select id from worlds")}
        self._database.executemany(
            "insert into ended values (?)", [(w,) for w in self._steps.worlds() if w not in known]
        )
        self._database.execute("delete from snapshots where world not in (select id from worlds)")
        bases = "select base from worlds union select base from snapshots"
        for name in self.names() - {name for (name,) in self._database.execute(bases)}:
            log.warning("--store %s: states/%s belongs to no sandbox; it is %s.unknown now", self.path, name, name)
            (self._bases / name).rename(self._bases / f"{name}.unknown")
        self._database.execute(f"pragma user_version={VERSION}")

    def close(self) -> None:
        """Have everything on the disk, and let the directory go."""
        self.syncing.close()
        self._newest.close()
        self._database.close()
        self._lock.close()

    def secret(self, fresh: bytes) -> bytes:
        """The random bytes that this directory's server signs with; `fresh` from now on, where there are none."""
        with opening(self.path):
            statement = "insert or ignore into facts values ('secret', ?, ?)"
            self._database.execute(statement, (fresh.hex(), seal_of("secret", fresh.hex())))
            (value,) = self._database.execute("select value from facts where name = 'secret'").fetchone()
        return bytes.fromhex(value)

    # -- worlds

    def worlds(self) -> list[tuple[int, Kept]]:
        """Every world that is kept, with its number, in the order in which they were made."""
        rows = self._database.execute(f"select id, {WORLD} from worlds order by id").fetchall()  # noqa: S608
        return [(number, Kept(*rest)._replace(mentioned=bool(rest[6]))) for number, *rest in rows]

    def enter(self, kept: Kept, snapshots: Iterable[KeptSnapshot] = ()) -> int:
        """Keep a world with its snapshots, in place of the one of its name; answers its number. Raises Unwritten."""
        with self._changing():
            self._drop(kept.name)
            places = ", ".join("?" * len(kept))
            statement = f"insert into worlds ({WORLD}) values ({places})"  # noqa: S608
            number = self._database.execute(statement, kept).lastrowid
            assert number is not None
            self._seal("worlds", number)
            self._steps.create(number)
            self._settled.append(kept.base)
            for snapshot in snapshots:
                self._enter_snapshot(number, snapshot)
        return number

    def _seal(self, table: str, row: int) -> None:
        self._database.execute(f"update {table} set seal = seal_of({_SEALED[table]}) where rowid = ?", (row,))  # noqa: S608

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
            self._database.execute("insert into ended values (?)", (found[0],))
            self._ended.append(found[0])

    def note(self, number: int, kept: Kept) -> None:
        """Keep what no step says of a world, but for its base. Raises Unwritten."""
        with self._changing():
            self._note(number, kept)

    def _note(self, number: int, kept: Kept) -> None:
        values = kept.last_used_at, kept.held, kept.incarnation, kept.origin_events, kept.noted, number
        statement = (
            "update worlds set last_used_at = ?, held = ?, incarnation = ?, origin_events = ?, noted = ? where id = ?"
        )
        self._database.execute(statement, values)
        self._seal("worlds", number)

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
        statement = f"insert into snapshots (world, {SNAPSHOT}) values (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        row = self._database.execute(statement, (world, *kept)).lastrowid
        assert row is not None
        self._seal("snapshots", row)
        self._settled.append(kept.base)

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
        """Write the steps that are not written yet. Raises Unwritten: whether they are, `newest` says."""
        if len(self._pending) != 1:
            with self._writing():
                return
        self._last = self._pending[0][:2]
        try:
            self._steps.write(self._pending)  # a statement by itself, without a transaction around it
        except sqlite3.Error as error:
            raise Unwritten(str(error)) from None
        finally:
            self._pending.clear()
        self._tell_newest()
        self.syncing.is_behind = True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """All of several changes or none: steps that are not written yet, then the block. Raises Unwritten."""
        self._freed, self._settled, self._ended, changes = [], [], [], self._changes + 1
        with self._writing():
            yield
            self._database.executemany("insert or ignore into freed values (?)", [(base,) for base in self._freed])
            statement = "insert or replace into facts values ('changes', ?, ?)"
            self._database.execute(statement, (str(changes), seal_of("changes", str(changes))))
            self._changes = changes
        self._stale.extend((world, ENDED) for world in self._ended)
        for base in self._settled:
            self.syncing.after_next(partial(self.settle, base))
        for base in self._freed:
            self.discard(base)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Steps that are not written yet and the block, in one transaction. Raises Unwritten."""
        database, changes = self._database, self._changes
        try:
            database.execute("begin immediate")
            try:
                self._steps.write(self._pending)
                yield
                database.execute("commit")
            except BaseException:
                self._changes = changes
                if database.in_transaction:
                    database.execute("rollback")
                raise
            is_counted = self._changes != changes  # what came before it is there if the count is
            self._last = self._pending[-1][:2] if self._pending and not is_counted else (0, 0)
        except sqlite3.Error as error:
            raise Unwritten(str(error)) from None
        finally:
            self._pending.clear()
        self._tell_newest()
        self.syncing.is_behind = True

    def _tell_newest(self) -> None:
        with suppress(OSError):  # the next change says it again
            self._newest.write(self._changes, *self._last)

    def newest(self, world: int, base: int) -> int:
        """The number of a world's newest step; `base` is that of its state. Raises Unwritten."""
        try:
            if self._database.in_transaction:  # one that could not be ended
                self._database.execute("rollback")
            return max(base, self._steps.last(world) or 0)
        except sqlite3.Error as error:
            raise Unwritten(str(error)) from None

    def count(self, world: int, base: int) -> int:
        """How many steps of a world there are since its base, a step."""
        return self._steps.count(world, base)

    def steps(self, world: int, base: int) -> Iterator[bytes]:
        """The steps of a world since its base, line by line."""
        return self._steps.lines(world, base)

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
                    self._database.execute("delete from ended where world = ?", (world,))
                self._stale = [other for other in self._stale if other[0] != world]
            else:
                self._stale.remove((world, last))
            yield

    def rebase(self, world: int, kept: Kept) -> None:
        """Have a world begin with a later state: its steps up to there are not needed any more. Raises Unwritten."""
        with self._changing():
            (before,) = self._database.execute("select base from worlds where id = ?", (world,)).fetchone()
            values = kept.base, kept.step, kept.contract, world
            self._database.execute("update worlds set base = ?, step = ?, contract = ? where id = ?", values)
            self._note(world, kept)
            self._settled.append(kept.base)
            self._freed.append(before)
        self._stale.append((world, kept.step))

    def mix(self, world: int) -> None:
        """Note that the steps of a world will be of another contract than its state. Raises Unwritten."""
        with self._changing():
            self._database.execute("update worlds set contract = '' where id = ?", (world,))
            self._seal("worlds", world)

    def discard(self, base: str) -> None:
        """A state is not needed any more. On the disk it stays until what refers to another one is there too."""
        self.syncing.after_next(partial(self.remove, base))
