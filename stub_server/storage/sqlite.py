"""A directory with an SQLite database: one server at a time, nothing to install.

A commit is in the page cache before its answer: the end of the process loses nothing. What the end
of the machine may lose is bounded by a thread that brings it to the disk, or nothing with `--sync
always`.
"""

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..core.log import log
from . import sql
from .database import Change, Damage, Database, StoreError, Values, one_line

DATABASE = "sandboxes.sqlite"
LOCK = "lock"
ADVICE = (
    "If its rights are in order and the disk has room, it is damaged: restore it from a backup, or"
    " give the server an empty one. Nothing in it is deleted."
)
BUSY = 5.0  # seconds that a write waits for another one
PAGE = 8_192  # bytes: most steps have room in one
EVERY = 0.1  # seconds: so much may be lost when the machine dies
LONG = 8 * 1024 * 1024  # bytes of SQLite's log
VERY_LONG = 64 * 1024 * 1024
COLUMNS = {"int": "integer", "bytes": "blob"}


class SqliteSession:
    """A connection to SQLite, which any thread may use."""

    def __init__(self, file: Path, *, always: bool = False) -> None:
        """With `always` each commit is on the disk before it returns."""
        uri = f"file:{quote(str(file))}?mode=rw"
        self._database = sqlite3.connect(
            uri, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=True
        )
        # the sum of the row shows the damage
        self._database.text_factory = lambda text: text.decode(errors="replace")
        synchronous = "full" if always else "normal"
        try:
            for pragma in (f"synchronous={synchronous}", "wal_autocheckpoint=0", "foreign_keys=on"):
                self.run(f"pragma {pragma}")
        except BaseException:
            self.close()
            raise

    def run(self, statement: str, *values: Any) -> list[Values]:
        try:
            return self._database.execute(statement, values).fetchall()
        except UnicodeDecodeError:  # of an error that quotes the database
            raise sqlite3.DatabaseError("its schema is no text") from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._database.in_transaction:  # one that could not be ended
            self._database.rollback()
        self._database.execute("begin immediate")
        with self._database:  # commits, or rolls back
            yield

    def close(self) -> None:
        self._database.close()


class SqliteStore(Database):
    """One server per directory."""

    errors = sqlite3.Error
    advice = ADVICE

    def __init__(self, path: Path, seed: int, *, always: bool) -> None:
        """`seed` is that of a directory that is new. Raises StoreError."""
        self.name = f"--store {path}"
        self._file = path / DATABASE
        self._always = always
        self._wal = self._file.with_name(f"{DATABASE}-wal")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sync, name="syncing", daemon=True)
        # how many commits there were, and how many of them are on the disk
        self._commits = self._synced = 0
        self._has_failed = False  # whether the last write did not reach the disk
        with naming_errors(self.name):
            if path.exists() and not path.is_dir():
                raise StoreError(f"--store {path}: this is a file. Name a directory.")
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_mode & 0o077:
                log.warning(
                    "%s is readable by other users and contains keys. Run `chmod 700`.", self.name
                )
            if (path / LOCK).exists() and not self._file.exists():
                raise Damage(f"its database {DATABASE!r} is not there")
            # before the lock; what SQLite puts beside it gets the same rights
            self._file.touch(0o600)
            with ExitStack() as opened:
                self._lock = opened.enter_context(closing(locked(path)))
                self._main = opened.enter_context(closing(self.session()))
                if not self._main.run("select 1 from sqlite_master"):
                    self._main.run(f"pragma page_size={PAGE}")
                    self._main.run("pragma journal_mode=wal")
                    with self._main.transaction():  # which are there all or none
                        sql.begin(self._main, seed, COLUMNS)
                self.secret, self.seed = sql.facts(self._main, self.name)
                check_whole(self._main)
                opened.pop_all()
        self._thread.start()

    def session(self) -> SqliteSession:
        return SqliteSession(self._file, always=self._always)

    def reason(self, error: Exception) -> str:
        return str(error)  # SQLite's own text names no place

    def _commit(self, changes: Sequence[Change]) -> Collection[int]:
        lost = sql.commit(self._main, changes, self.holder)
        self._commits += 1
        return lost

    def close(self) -> None:
        """Sync everything to the disk, and close the directory."""
        self._done.set()
        self._thread.join(BUSY)
        self._main.close()
        self._lock.close()

    def _sync(self) -> None:
        """Sync to the disk beside the requests, and keep SQLite's log short."""
        with closing(self.session()) as session:
            while not self._done.wait(EVERY):
                self._sync_once(session)
            self._sync_once(session)

    def _sync_once(self, session: SqliteSession) -> None:
        commits = self._commits
        if commits == self._synced:
            return
        try:
            with open(self._wal, "r+b") as file:
                os.fsync(file.fileno())
            size = self._wal.stat().st_size
            if size > LONG:  # does not delay writers, and mostly copies the whole log
                session.run("pragma wal_checkpoint(passive)")
            if size > VERY_LONG:
                session.run("pragma wal_checkpoint(truncate)")
            self._synced = commits
            self._has_failed = False
        except (OSError, sqlite3.Error) as error:
            if not self._has_failed:
                log.error(
                    "the store could not be brought to the disk (%s); it is tried again until"
                    " it can",
                    error,
                )
            self._has_failed = True


def check_whole(session: SqliteSession) -> None:
    """Check the database of a directory as a whole. Raises Damage."""
    said = [text for (text,) in session.run("pragma integrity_check(1)")]
    if said != ["ok"]:
        raise Damage(f"the database: {' '.join(map(str, said))}")
    alone = session.run("pragma foreign_key_check") or session.run(
        "select 1 from steps where place >> 32 not in (select id from sandboxes) limit 1"
    )
    sql.check(not alone, "a row that other rows refer to")


def back_up(path: Path, file: Path) -> int:
    """Copy the database of a directory to a new file, while a server uses it. Returns its bytes.
    Raises StoreError.

    The copy is the database as it is at one moment. It is checked as a whole.
    """
    with naming_errors(f"{path} to {file}"):
        if not (path / DATABASE).exists():
            raise StoreError(f"{path}: there is no {DATABASE} here. Name the directory of --store.")
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise StoreError(f"{file} exists already. Name another file.") from None
        except FileNotFoundError:
            raise StoreError(
                f"There is no directory {file.parent}. Make it, or name another file."
            ) from None
        try:
            with (
                closing(sqlite3.connect(path / DATABASE, timeout=BUSY)) as source,
                closing(sqlite3.connect(file)) as target,
            ):
                # in one step: one in several begins anew whenever the server writes
                source.backup(target)
            with closing(SqliteSession(file)) as copy:
                check_whole(copy)
        except BaseException:
            file.unlink()
            raise
        return file.stat().st_size


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Within it, errors of a directory that is being opened become a StoreError of one line that
    names it.
    """
    try:
        yield
    except (OSError, sqlite3.Error, Damage) as error:
        raise StoreError(f"{name}: it cannot be used ({one_line(error)[:300]}). {ADVICE}") from None


def locked(path: Path) -> sqlite3.Connection:
    """A lock that the system releases when the process ends, however that happens.

    Raises StoreError.
    """
    (path / LOCK).touch(0o600)
    lock = sqlite3.connect(path / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise
        raise StoreError(
            f"--store {path}: another server uses this directory. Stop it, or give each one its"
            " own."
        ) from None
    return lock
