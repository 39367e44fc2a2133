"""Converts a directory that cannot be opened as it is: one of format 4, or a damaged one.

What is whole is copied to a new database. The files that were there are moved to a directory in this one.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from zlib import crc32

import orjson

from ..files.lines import grouped
from . import sql
from .sql import Batch, Damage, Kept, KeptSnapshot, StoreError, chained, checked, place_of, sum_of
from .sqlite import DATABASE, NEWEST, SqliteSession, check_whole, locked, made, naming_errors

_DATABASE_4 = "worlds"  # the database of format 4, whose states are files
_FILES_4 = ("states", f"{_DATABASE_4}-wal", f"{_DATABASE_4}-shm", NEWEST, _DATABASE_4)
_FILES = (f"{DATABASE}-wal", f"{DATABASE}-shm", NEWEST, DATABASE)
_SANDBOX = (
    "name, base, step, contract, parent, mentioned, created_at, last_used_at, expires_at, held, incarnation, "
    "origin_events, noted"
)
_SNAPSHOT = "name, description, now, created_at, base, contract"
T = TypeVar("T")
log = logging.getLogger("stub_server")

Tell = Callable[[str], None]
"""Is given what is damaged. May raise Damage."""

StoredSnapshot = tuple[KeptSnapshot, int, Iterable[bytes]]
"""A snapshot, the step that its state follows, and the lines of that; its number is none of this store."""


class Whole(NamedTuple):
    """What can be read of a sandbox: itself, the state after a step, the steps since, its snapshots."""

    kept: Kept
    step: int
    lines: Iterable[bytes]
    steps: Iterable[bytes]
    snapshots: list[StoredSnapshot]


def prepare(path: Path, *, salvage: bool) -> None:
    """Take a directory of format 4 over, once. With `salvage` keep what is whole of a damaged directory.

    Raises StoreError.
    """
    if not path.is_dir():
        return
    database, whole = path / DATABASE, path / f"{DATABASE}.whole"
    with naming_errors(f"--store {path}"), closing(locked(path)):
        is_format_4 = (path / _DATABASE_4).exists() and not database.exists()
        if not whole.exists():
            if is_format_4:
                _write(whole, _of_format_4(path, partial(_tell, path, salvage)))
            else:
                reasons: list[str] = []
                for _ in _of_this_format(path, reasons.append) if salvage else ():
                    pass  # it is looked at as a whole
                if not reasons:
                    return
                for reason in reasons:
                    log.warning("--store %s: %s", path, reason)
                _write(whole, _of_this_format(path, lambda reason: None))
        # A process that ends from here on has the next one go on.
        backup = (
            path / "before" if is_format_4 else next(to for n in count(1) if not (to := path / f"damaged-{n}").exists())
        )
        for name in _FILES_4 if is_format_4 else _FILES:
            if (path / name).exists():
                backup.mkdir(mode=0o700, exist_ok=True)
                (path / name).rename(backup / name)
        whole.rename(database)
        log.warning("--store %s: what is whole is in %s now, and the earlier files are in %s", path, DATABASE, backup)


def _tell(path: Path, salvages: bool, reason: str) -> None:
    if not salvages:
        raise Damage(reason)
    log.warning("--store %s: %s", path, reason)


# -- writing


def _write(file: Path, found: Iterator[Whole | str]) -> None:
    """A new database of what was found: sandboxes, and the secret, or else another one."""
    with made(file) as session:
        for whole in found:
            if isinstance(whole, str):
                sql.set_fact(session, "secret", whole)
            else:
                _enter(session, whole)


def _enter(session: SqliteSession, whole: Whole) -> None:
    number = sql.reserve(session, whole.step, 0)
    state = sql.write_state(session, number, whole.step, 0, grouped(whole.lines))
    changes = sql.entered(number, whole.kept.name or "", state.id)
    newest, chain = whole.step, 0
    steps = []
    for line in whole.steps:
        newest, chain = newest + 1, chained(line, chain)
        steps.append((place_of(number, newest), line, chain))
    for snapshot, step, lines in whole.snapshots:
        if step <= newest:  # else it is of steps that were lost
            then = sql.write_state(session, number, step, 0, grouped(lines))
            changes += sql.snapshot_entered(number, snapshot._replace(state=then.id))
    kept = whole.kept._replace(newest=newest, chain=chain, state=state.id)
    sql.commit(session, Batch(changes, [(number, whole.step, kept)], steps), 0)


# -- a damaged directory


def _of_this_format(path: Path, tell: Tell) -> Iterator[Whole | str]:
    """What is whole of a directory of this format."""
    if not (path / DATABASE).exists():
        if (path / NEWEST).exists():
            tell(f"its database {DATABASE!r} is not there")
        return
    session = _tried(tell, "", lambda: SqliteSession(path / DATABASE, reads_only=True))
    if session is None:
        return
    with closing(session):
        _tried(tell, "", lambda: check_whole(session, path))
        found = _tried(tell, "", lambda: session.run("select name, value, sum from settings where name = 'secret'"))
        secrets = [_tried(tell, "", partial(checked, "a row of settings", row)) for row in found or ()]
        yield from (secret for _, secret in filter(None, secrets))
        rows = _tried(tell, "", lambda: sql.rows_of_sandboxes(session)) or ()
        for row in rows:
            whole = _tried(tell, f"the sandbox {str(row[1])[:80]!r}: ", partial(_sandbox, session, row, tell))
            if whole is not None:
                yield whole


def _sandbox(session: SqliteSession, row: Any, tell: Tell) -> Whole:
    number, kept = sql.sandbox_of(row)
    state, lines = sql.state(session, kept.state)
    steps, where = list[bytes](), f"the sandbox {kept.name}: "
    _tried(tell, where, lambda: steps.extend(sql.steps_of(session, number, kept, state)))
    _tried(tell, where, lambda: sql.snapshots(session, number, kept))  # whether one is missing
    rows = _tried(tell, where, lambda: sql.rows_of_snapshots(session, number)) or ()
    snapshots = [_tried(tell, f"{where}a snapshot: ", partial(_stored_snapshot, session, row)) for row in rows]
    return Whole(kept, state.step, list(lines), steps, [snapshot for snapshot in snapshots if snapshot])


def _stored_snapshot(session: SqliteSession, row: Any) -> StoredSnapshot:
    kept = sql.snapshot_of(row)
    state, lines = sql.state(session, kept.state)
    return kept, state.step, list(lines)


def _tried(tell: Tell, where: str, read: Callable[[], T]) -> T | None:
    """What is read, or None where it is damaged."""
    try:
        return read()
    except (Damage, sqlite3.Error, ValueError, TypeError) as error:
        tell(f"{where}{error}")
        return None


# -- format 4


def _of_format_4(path: Path, tell: Tell) -> Iterator[Whole | str]:
    """What is whole of a directory of format 4: rows and steps in SQLite, states as files."""
    database = sqlite3.connect(f"file:{quote(str(path / _DATABASE_4))}?mode=ro", uri=True)

    def rows(statement: str) -> list[Any]:
        return _tried(tell, "the database: ", lambda: database.execute(statement).fetchall()) or []

    with closing(database):
        for (version,) in rows("pragma user_version"):
            if version != 4:
                raise StoreError(
                    f"--store {path}: its format is {version}. Start it once with version 0.1 of the server."
                )
        for value, checksum in rows("select value, seal from facts where name = 'secret'"):
            if sum_of("secret", value) == checksum:
                yield value
            else:
                tell("the secret of its keys and tokens is damaged")
        for row in rows(f"select id, {_SANDBOX}, seal from worlds order by id"):  # noqa: S608 - no values
            where = f"the sandbox {str(row[1])[:80]!r}: "
            whole = _tried(tell, where, partial(_sandbox_of_format_4, path, database, row, tell))
            if whole is not None:
                yield whole


def _sandbox_of_format_4(path: Path, database: sqlite3.Connection, row: Any, tell: Tell) -> Whole:
    number, *values = row
    name, base, step, contract, parent, mentioned, *times, held, incarnation, origin_events, noted = checked(
        "its row", values
    )
    created_at, last_used_at, expires_at = times
    steps: list[bytes] = []
    statement = f"select number, line, seal from steps_{number} where number > ? order by number"  # noqa: S608 - no values
    for place, line, checksum in database.execute(statement, (step,)):
        if place != step + len(steps) + 1 or not isinstance(line, bytes) or crc32(line) != checksum:
            tell(f"the sandbox {name}: step {step + len(steps) + 1} is damaged or missing")
            break
        steps.append(line)
        restored = orjson.loads(line)["step"].get("restored") if place > noted and b'"restored"' in line else None
        if restored is not None and held is not None:
            held = restored["events_raised"]
    snapshots = []
    statement = f"select {_SNAPSHOT}, seal from snapshots where world = ? order by id"  # noqa: S608 - no values
    for row in database.execute(statement, (number,)).fetchall():
        snapshot = _tried(tell, f"a snapshot of the sandbox {name}: ", partial(_snapshot_of_format_4, path, row))
        snapshots += [snapshot] if snapshot else []
    kept = Kept(
        name, parent, int(mentioned), created_at, expires_at, contract, last_used_at, held, incarnation, origin_events,
        "", 0, 0, 0, None, "{}",
    )  # fmt: skip
    return Whole(kept, step, list(_file(path, base)), steps, snapshots)


def _snapshot_of_format_4(path: Path, row: Any) -> StoredSnapshot:
    name, description, now, created_at, base, contract = checked("its row", row)
    lines = list(_file(path, base))
    ((_, head),) = orjson.loads(lines[0]).items()
    text = orjson.dumps(description).decode()
    return KeptSnapshot(name, text, now, created_at, contract, 0), head["step"], lines


def _file(path: Path, base: str) -> Iterator[bytes]:
    """The lines of a state, which end with their sum. Raises Damage."""
    file, seal = path / "states" / base, 0
    if not file.exists():
        file = file.with_name(base + ".new")  # what refers to it was on the disk already
    if not file.exists():
        raise Damage(f"states/{base} is not there")
    for line in file.read_bytes().split(b"\n"):
        if line.startswith(b'{"end":'):
            if orjson.loads(line)["end"] == seal:
                return
            break
        seal = crc32(line, seal)
        yield line
    raise Damage(f"states/{base} is damaged")
