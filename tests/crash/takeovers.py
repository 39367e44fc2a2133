"""A process that ends anywhere while it takes a directory over, or salvages one: the next one has all there was."""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stub_server.app import create_app
from stub_server.persistence import sqlite
from stub_server.persistence.sqlite import DATABASE, SqliteSession

from ..support.before import unpacked
from .child import facts, settings
from .damage import intact
from .places import die

_CALLS: tuple[tuple[Any, str], ...] = (
    (Path, "rename"), (Path, "touch"), (Path, "mkdir"), (Path, "unlink"), (SqliteSession, "run"),
    (SqliteSession, "many"), (sqlite, "write_newest"),
)  # fmt: skip


class Ending(NamedTuple):
    """How many places there were to end at, and what is wrong with what was left."""

    places: int
    wrong: list[str]


def ended_within(folder: Path, every: int) -> Ending:
    """End a process at every so many places of a takeover, and of a salvage."""
    logging.disable()  # of what is damaged on purpose
    try:
        return _ended_within(folder, every)
    finally:
        logging.disable(logging.NOTSET)


def _ended_within(folder: Path, every: int) -> Ending:
    before = unpacked(folder / "before")
    (folder / "damaged").mkdir()
    damaged = intact(folder / "damaged", 1, killed=True).folder
    with sqlite3.connect(damaged / DATABASE) as database:
        database.execute("delete from steps where place = (select max(place) from steps)")
    database.close()
    first, second = _ended(before, folder / "copy", every), _ended(damaged, folder / "copy", every)
    return Ending(first.places + second.places, first.wrong + second.wrong)


def _ended(store: Path, copy: Path, every: int) -> Ending:
    files = _files(store)
    _copied(store, copy)
    calls = _counted(lambda: _opened(copy))
    expected = _opened(copy)
    wrong = []
    for place in range(1, calls, every):
        _copied(store, copy)
        child = os.fork()
        if not child:
            _end_at(place)
            try:
                _opened(copy)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        try:
            if _opened(copy) != expected:
                wrong.append(f"{store.name}: a process that ended at call {place} has lost something")
            if files - _files(copy):
                wrong.append(f"{store.name}: a process that ended at call {place} has lost a file of before")
        except Exception as error:
            wrong.append(f"{store.name}: a process ended at call {place}: {error!r}")
    return Ending(len(range(1, calls, every)), wrong)


def _copied(store: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store, copy)


def _files(folder: Path) -> set[bytes]:
    """What is in the files of a directory, wherever they are."""
    files = [
        file for file in folder.rglob("*") if file.is_file() and not file.match("*-shm") and not file.match("lock*")
    ]
    return {data for file in files if (data := file.read_bytes())}


def _opened(folder: Path) -> Any:
    """What the sandboxes of a directory are."""
    app = create_app(replace(settings(folder), salvage=True))
    try:
        return facts(app)
    finally:
        app.sandboxes.persistence.close()


def _end_at(place: int) -> None:
    left = [place]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            die()

    _watch(count)


def _counted(work: Callable[[], object]) -> int:
    """How many calls some work has, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        calls: list[None] = []
        _watch(lambda: calls.append(None))
        work()
        os.write(writer, b"%d" % len(calls))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = int(pipe.read())
    os.waitpid(child, 0)
    return told


def _watch(before: Callable[[], None]) -> None:
    """Have something done before each of the calls, in a process that ends soon."""
    for owner, name in _CALLS:
        real = getattr(owner, name)

        def wrapped(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            before()
            return _real(*args, **kwargs)

        setattr(owner, name, wrapped)
