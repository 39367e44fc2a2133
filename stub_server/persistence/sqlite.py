"""A directory with an SQLite database: one server at a time, nothing to install.

A commit is in the page cache before its answer: the end of the process loses nothing. What the end of the machine may
lose is bounded by a thread that brings it to the disk, or nothing with `--sync always`.
"""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from . import sql
from .sql import Batch, Damage, Known, Session, StoreError, line_of, sum_of

DATABASE, LOCK, NEWEST = "sandboxes.sqlite", "lock", "newest"
ADVICE = "Restore the directory from a backup, or give the server an empty one: nothing in it is deleted."
BUSY = 5.0  # seconds that a write waits for another one
MOMENT = 0.01  # seconds of them that requests wait too, which is enough for those of this process
PAGE = 8_192  # bytes: most steps have room in one
EVERY = 0.1  # seconds: so much may be lost when the machine dies
LONG, VERY_LONG = 8 * 1024 * 1024, 64 * 1024 * 1024  # bytes of SQLite's log
COLUMNS = {"id": "integer primary key autoincrement", "int": "integer", "bytes": "blob"}
_OF_THE_DISK = frozenset((3, 5, 8, 10, 13, 14))  # SQLite's codes for rights, locks, input and output, and no room
log = logging.getLogger("stub_server")


class SqliteSession:
    def __init__(self, file: Path, *, always: bool = False, reads_only: bool = False, wait: float = BUSY) -> None:
        """With `always` each commit is on the disk before it returns. With `reads_only` no file changes.

        A write waits so many seconds for another one.
        """
        mode = "ro" if reads_only else "rw"
        uri = f"file:{quote(str(file))}?mode={mode}"
        self._database = sqlite3.connect(uri, wait, isolation_level=None, check_same_thread=False, uri=True)
        self._database.text_factory = lambda text: text.decode(errors="replace")  # the sum of the row shows the damage
        self.run(f"pragma synchronous={'full' if always else 'normal'}")
        self.run("pragma wal_autocheckpoint=0")
        self.run("pragma foreign_keys=on")

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(statement, values).fetchall()
        except UnicodeDecodeError:  # of an error that quotes the database
            raise sqlite3.DatabaseError("its schema is no text") from None

    def many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._database.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._database.in_transaction:  # one that could not be ended
            self._database.rollback()
        self._database.execute("begin immediate")
        with self._database:  # commits, or rolls back
            yield

    def close(self) -> None:
        self._database.close()


class SqliteStore:
    """One server per directory."""

    errors: type[Exception] = sqlite3.Error
    holder = 0
    living = "0"
    is_shared = False
    advice = ADVICE
    lease_left = None
    others: Sequence[tuple[str, Mapping[str, str]]] = ()

    def __init__(self, path: Path, seed: int, *, always: bool) -> None:
        """`seed` is that of a directory that is new. Raises StoreError."""
        self.name, self._file, self._always = f"--store {path}", path / DATABASE, always
        self._wal, self._done = self._file.with_name(f"{DATABASE}-wal"), threading.Event()
        self._thread: threading.Thread | None = None
        self._has_failed = False  # whether the last write did not reach the disk
        with naming_errors(self.name):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_mode & 0o077:
                log.warning("%s is readable by other users and contains keys. Run `chmod 700`.", self.name)
            self._lock = locked(path)
            try:
                if not self._file.exists():
                    if (path / NEWEST).exists():
                        raise Damage(f"its database {DATABASE!r} is not there")
                    make_database(self._file, seed)
                with closing(SqliteSession(self._file, reads_only=True)) as session:
                    facts = check_whole(session, path)
                self.secret, self.seed = bytes.fromhex(facts["secret"]), int(facts["seed"])
                self._commits = self._synced = self.epoch = int(facts["commits"])
                if not self._commits:
                    write_newest(path, 0)
                self._main = SqliteSession(self._file, always=always, wait=MOMENT)
            except BaseException:
                self._lock.close()
                raise

    def session(self) -> SqliteSession:
        return SqliteSession(self._file, always=self._always)

    def is_duplicate(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_UNIQUE

    def reason(self, error: Exception) -> str:
        return str(error)  # SQLite's own text names no place

    def start(self, lost: Callable[[], None]) -> None:
        """Start to sync what is written to the disk."""
        self._thread = threading.Thread(target=self._sync, name="syncing", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> Collection[int]:
        """Commit, in the thread of the event loop: it takes no longer than a request."""
        commits = self._commits + 1
        count = str(commits)
        counted = "update settings set value = ?, sum = ? where name = 'commits'", (count, sum_of("commits", count))
        counting, until = replace(batch, changes=[*batch.changes, counted]), monotonic() + BUSY
        while True:
            try:
                lost = sql.commit(self._main, counting, self.holder)
                break
            except sqlite3.OperationalError as error:  # another program may write
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > until:
                    raise
                await asyncio.sleep(MOMENT)
        if not (lost and batch.is_atomic):
            self._commits = commits
        return lost

    async def known(self, numbers: Iterable[int]) -> Known:
        return sql.known(self._main, numbers, self.holder)

    def claim(self, session: Session, name: str) -> int | None:
        """The number of a sandbox, if it is there: no other process uses the directory."""
        found = session.run("select id from sandboxes where name = ?", name)
        return int(found[0][0]) if found else None

    def close(self) -> None:
        """Sync everything to the disk, and close the directory."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(BUSY)
        self._main.close()
        with suppress(OSError):
            write_newest(self._file.parent, self._commits)
        self._lock.close()

    def _sync(self) -> None:
        """Sync to the disk beside the requests, and keep SQLite's log short."""
        with closing(sqlite3.connect(self._file, BUSY, isolation_level=None)) as database:
            while not self._done.wait(EVERY):
                self._sync_once(database)
            self._sync_once(database)

    def _sync_once(self, database: sqlite3.Connection) -> None:
        commits = self._commits
        if commits == self._synced:
            return
        try:
            with open(self._wal, "r+b") as file:
                os.fsync(file.fileno())
            write_newest(self._file.parent, commits)
            size = self._wal.stat().st_size
            if size > LONG:  # does not delay writers, and mostly copies the whole log
                database.execute("pragma wal_checkpoint(passive)").fetchall()
            if size > VERY_LONG:
                database.execute("pragma wal_checkpoint(truncate)").fetchall()
            self._synced, self._has_failed = commits, False
        except (OSError, sqlite3.Error) as error:
            if not self._has_failed:
                log.error("the store could not be brought to the disk (%s); it is tried again until it can", error)
            self._has_failed = True


def make_database(file: Path, seed: int) -> None:
    """Make a new database, which is there whole or not at all."""
    fresh = file.with_name(f"{file.name}.new")
    files = [fresh.with_name(fresh.name + rest) for rest in ("", "-wal", "-shm")]
    try:
        for left in files:
            left.unlink(missing_ok=True)
        fresh.touch(0o600)  # what SQLite puts beside it gets the same rights
        with closing(SqliteSession(fresh)) as session:
            session.run(f"pragma page_size={PAGE}")
            session.run("pragma journal_mode=wal")
            with session.transaction():
                sql.begin(session, seed, COLUMNS)
                sql.set_fact(session, "commits", "0")
            session.run("pragma wal_checkpoint(truncate)")
        fresh.rename(file)
    finally:
        for left in files:
            left.unlink(missing_ok=True)


def check_whole(session: SqliteSession, path: Path) -> dict[str, str]:
    """Check the database of a directory as a whole; returns the rows of `settings`. Raises StoreError."""
    facts = sql.facts(session, f"--store {path}")
    said = [text for (text,) in session.run("pragma integrity_check(1)")]
    if said != ["ok"]:
        raise Damage(f"the database: {' '.join(map(str, said))}")
    sql.check_owners(session)
    commits = int(facts.get("commits", -1))
    if commits < read_newest(path, commits):
        raise Damage("its newest commits are missing")
    return facts


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Within it, errors of a directory that is being opened become a StoreError of one line that names it."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{name}: it cannot be used ({error.strerror or error}).") from None
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
            raise StoreError(f"{name}: it cannot be used ({error}).") from None
        raise StoreError(f"{name} is damaged: the database cannot be read ({line_of(error)[:300]}). {ADVICE}") from None
    except Damage as error:
        raise StoreError(f"{name} is damaged: {line_of(error)[:300]}. {ADVICE}") from None


def locked(path: Path) -> sqlite3.Connection:
    """A lock that the system releases when the process ends, however that happens. Raises StoreError."""
    (path / LOCK).touch(0o600)
    lock = sqlite3.connect(path / LOCK, 0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise
        message = f"--store {path}: another server uses this directory. Stop it, or give each one its own."
        raise StoreError(message) from None
    return lock


def write_newest(path: Path, commits: int) -> None:
    """Write how many commits are on the disk, since a log that was cut looks complete to SQLite."""
    file = os.open(path / NEWEST, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, b"%016x %08x\n" % (commits, sum_of(commits)), 0)
    finally:
        os.close(file)


def read_newest(path: Path, commits: int) -> int:
    """How many commits there were at least, of which there is no file before the first. Raises Damage."""
    if not commits and not (path / NEWEST).exists():
        return 0
    try:
        newest, checksum = (int(part, 16) for part in (path / NEWEST).read_bytes().split())
        if checksum == sum_of(newest):
            return newest
    except (FileNotFoundError, ValueError):
        pass
    raise Damage(f"{NEWEST!r}, the number of the last commit, is missing or damaged")
