"""Has a directory that cannot be opened as it is be one that can: one of format 4, or a damaged one.

What is whole is copied to a new database. The files that were there are moved to a directory in this one.
"""

from __future__ import annotations

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

from . import store
from .chunks import grouped
from .rows import Damage, Kept, KeptSnapshot, KeptState, StoreError, chained, checked, place_of, sum_of
from .sqlite import DATABASE, NEWEST, SqliteSession, begin, check_whole, locked, opening, read_newest, write_newest
from .store import Batch, Head

BEFORE = "worlds"  # the database of format 4, whose states are files
_FILES_BEFORE = ("states", f"{BEFORE}-wal", f"{BEFORE}-shm", NEWEST, BEFORE)
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


class Pinned(NamedTuple):
    """A snapshot and its state; the number of that is none of this store."""

    kept: KeptSnapshot
    step: int
    lines: Iterable[bytes]


class Whole(NamedTuple):
    """What can be read of a sandbox: itself, the state after a step, the steps since, its snapshots."""

    kept: Kept
    step: int
    lines: Iterable[bytes]
    steps: Iterable[bytes]
    snapshots: list[Pinned]


def prepare(path: Path, *, salvage: bool) -> None:
    """Take a directory of format 4 over, once. With `salvage` keep what is whole of a damaged directory.

    Raises StoreError.
    """
    if not path.is_dir():
        return
    database, fresh = path / DATABASE, path / f"{DATABASE}.new"
    with opening(f"--store {path}"), closing(locked(path)):
        if (path / BEFORE).exists():
            if not database.exists():
                _write(path, fresh, _before(path, _tell(path, salvage=salvage)))
                fresh.rename(database)
            _move(path, _FILES_BEFORE, path / "before")
            write_newest(path, 0)
            log.warning("--store %s: it has a new format now; what was there before is in %s", path, path / "before")
        elif salvage and (reasons := list(_damage(path))):
            for reason in reasons:
                log.warning("--store %s: %s", path, reason)
            _write(path, fresh, _now(path, _tell(path, salvage=True)))
            aside = next(to for n in count(1) if not (to := path / f"damaged-{n}").exists())
            _move(path, _FILES, aside)
            log.warning("--store %s: what is whole goes on, and the damaged files are in %s", path, aside)
        if fresh.exists() and not database.exists():  # else it is of a process that ended while it was written
            fresh.rename(database)
            write_newest(path, 0)


def _tell(path: Path, *, salvage: bool) -> Tell:
    def tell(reason: str) -> None:
        if not salvage:
            raise Damage(reason)
        log.warning("--store %s: %s", path, reason)

    return tell


def _move(path: Path, names: Iterable[str], to: Path) -> None:
    to.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        if (path / name).exists() and not (to / name).exists():
            (path / name).rename(to / name)


# -- writing


def _write(path: Path, fresh: Path, found: Iterator[Whole | str]) -> None:
    """A new database of what was found: sandboxes, and before them the secret."""
    fresh.unlink(missing_ok=True)
    fresh.touch(0o600)
    with closing(SqliteSession(fresh)) as session:
        begin(session)
        for whole in found:
            if isinstance(whole, str):
                store.set_fact(session, "secret", whole)
            else:
                _enter(session, whole)


def _enter(session: SqliteSession, whole: Whole) -> None:
    number = store.reserve(session, whole.step, 0)
    state = _state(session, number, whole.step, whole.lines)
    changes = [store.state_used(state.id, is_used=True)]
    for pinned, step, lines in whole.snapshots:
        changes += store.snapshot_entered(number, pinned._replace(state=_state(session, number, step, lines).id))
    newest, chain = whole.step, 0
    steps = []
    for line in whole.steps:
        newest, chain = newest + 1, chained(line, chain)
        steps.append((place_of(number, newest), line, chain))
    kept = whole.kept._replace(newest=newest, chain=chain, state=state.id)
    store.commit(session, Batch(changes, [Head(number, whole.step, kept)], steps), 0)


def _state(session: SqliteSession, sandbox: int, step: int, lines: Iterable[bytes]) -> KeptState:
    return store.write_chunks(session, sandbox, store.begin_state(session, sandbox, step, 0), grouped(lines))


# -- a damaged directory


def _damage(path: Path) -> Iterator[str]:
    """What is damaged in a directory."""
    if not (path / DATABASE).exists():
        if (path / NEWEST).exists():
            yield f"its database {DATABASE!r} is not there"
        return
    damage: list[str] = []
    try:
        with closing(SqliteSession(path / DATABASE)) as session:
            commits = int(store.facts(session).get("commits", -1))
            check_whole(session)
            for _ in _now(path, damage.append):
                pass
        if commits < read_newest(path):
            raise Damage("what was written last is not there")
    except (Damage, sqlite3.Error) as error:
        damage.append(str(error))
    yield from damage


def _now(path: Path, tell: Tell) -> Iterator[Whole | str]:
    """What is whole of a directory of this format."""
    if not (path / DATABASE).exists():
        return
    with closing(SqliteSession(path / DATABASE)) as session:
        found = _tried(tell, "", lambda: store.facts(session).get("secret"))
        if found is not None:
            yield found
        for row in _tried(tell, "", lambda: list(store.rows_of_sandboxes(session))) or ():
            whole = _tried(tell, f"the sandbox {str(row[1])[:80]}: ", partial(_sandbox, session, row, tell))
            if whole is not None:
                yield whole


def _sandbox(session: SqliteSession, row: Any, tell: Tell) -> Whole:
    number, kept = store.sandbox_of(row)
    state, digests = store.state(session, kept.state)
    lines, where = list(store.lines_of(session, digests)), f"the sandbox {kept.name}: "
    steps: list[bytes] = []
    _tried(tell, where, lambda: steps.extend(store.steps_of(session, number, kept, state)))
    snapshots = []
    for snapshot in _tried(tell, where, lambda: store.snapshots(session, number, kept)) or ():
        pinned = _tried(tell, f"{where}the snapshot {snapshot.name}: ", partial(_pinned, session, snapshot))
        snapshots += [pinned] if pinned else []
    return Whole(kept, state.step, lines, steps, snapshots)


def _pinned(session: SqliteSession, kept: KeptSnapshot) -> Pinned:
    state, digests = store.state(session, kept.state)
    return Pinned(kept, state.step, list(store.lines_of(session, digests)))


def _tried(tell: Tell, where: str, read: Callable[[], T]) -> T | None:
    """What is read, or None where it is damaged."""
    try:
        return read()
    except (Damage, sqlite3.Error, ValueError, TypeError) as error:
        tell(f"{where}{error}")
        return None


# -- format 4


def _before(path: Path, tell: Tell) -> Iterator[Whole | str]:
    """What is whole of a directory of format 4: rows and steps in SQLite, states as files."""
    database = sqlite3.connect(f"file:{quote(str(path / BEFORE))}?mode=ro", uri=True)
    with closing(database):
        ((version,),) = database.execute("pragma user_version")
        if version != 4:
            raise StoreError(f"--store {path}: its format is {version}. Start it once with version 0.1 of the server.")
        for value, told in database.execute("select value, seal from facts where name = 'secret'"):
            if sum_of("secret", value) == told:
                yield value
            else:
                tell("the secret of its keys and tokens is damaged")
        for row in database.execute(f"select id, {_SANDBOX}, seal from worlds order by id").fetchall():  # noqa: S608
            whole = _tried(
                tell, f"the sandbox {str(row[1])[:80]}: ", partial(_sandbox_before, path, database, row, tell)
            )
            if whole is not None:
                yield whole


def _sandbox_before(path: Path, database: sqlite3.Connection, row: Any, tell: Tell) -> Whole:
    number, *values = row
    name, base, step, contract, parent, mentioned, *times, held, incarnation, origin_events, noted = checked(
        "its row", values
    )
    created_at, last_used_at, expires_at = times
    steps: list[bytes] = []
    statement = f"select number, line, seal from steps_{number} where number > ? order by number"  # noqa: S608
    for place, line, told in database.execute(statement, (step,)):
        if place != step + len(steps) + 1 or not isinstance(line, bytes) or crc32(line) != told:
            tell(f"the sandbox {name}: step {step + len(steps) + 1} is damaged or missing")
            break
        steps.append(line)
        restored = orjson.loads(line)["step"].get("restored") if place > noted and b'"restored"' in line else None
        if restored is not None and held is not None:
            held = restored["events_raised"]
    snapshots = []
    statement = f"select {_SNAPSHOT}, seal from snapshots where world = ? order by id"  # noqa: S608
    for told in database.execute(statement, (number,)).fetchall():
        pinned = _tried(tell, f"a snapshot of the sandbox {name}: ", partial(_snapshot_before, path, told))
        snapshots += [pinned] if pinned else []
    kept = Kept(
        name, parent, int(mentioned), created_at, expires_at, contract, last_used_at, held, incarnation, origin_events,
        0, 0, 0, None, "{}",
    )  # fmt: skip
    return Whole(kept, step, list(_file(path, base)), steps, snapshots)


def _snapshot_before(path: Path, row: Any) -> Pinned:
    name, description, now, created_at, base, contract = checked("its row", row)
    lines = list(_file(path, base))
    ((_, head),) = orjson.loads(lines[0]).items()
    told = orjson.dumps(description).decode()
    return Pinned(KeptSnapshot(name, told, now, created_at, contract, 0), head["step"], lines)


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
