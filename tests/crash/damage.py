"""Directories that are damaged: a bit flipped, a file cut off, a row or a file removed.

Nothing is lost in silence.
"""

import logging
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from stub_server.app import create_app
from stub_server.data.keys import own_pair
from stub_server.storage.database import StoreError
from stub_server.storage.sqlite import DATABASE

from ..stored.writing import written
from .child import facts, settings

DAMAGES = ("flip", "cut", "remove")
_TABLES = ("parts", "sandboxes", "settings", "states", "steps")


class Suffered(NamedTuple):
    """What came of damages: how many were found, how many changed nothing, and what is wrong."""

    found: int
    harmless: int
    wrong: list[str]


def suffer(folder: Path, counts: tuple[int, int, int], seed: int) -> Suffered:
    """Damage copies of a directory, so often each way."""
    logging.disable()  # of what is damaged on purpose
    try:
        return _suffered(folder, counts, seed)
    finally:
        logging.disable(logging.NOTSET)


def _suffered(folder: Path, counts: tuple[int, int, int], seed: int) -> Suffered:
    random, found, wrong, copy = Random(seed), Counter[bool](), list[str](), folder / "copy"
    shutil.copytree(written() / "store", copy)
    expected = _opened(copy)
    for kind, count in zip(DAMAGES, counts, strict=True):
        for _ in range(count):
            shutil.rmtree(copy)
            shutil.copytree(written() / "store", copy)
            what = _damage(copy, kind, random)
            reasons, was_found = _looked_at(copy, expected)
            found[was_found] += 1
            wrong += [f"{kind} {what}: {reason}" for reason in reasons]
    return Suffered(found[True], found[False], wrong)


def _opened(folder: Path) -> Any:
    """What must not be lost."""
    app = create_app(settings(folder))
    try:
        return facts(app), own_pair(app.sandboxes.default)
    finally:
        app.sandboxes.persistence.close()


def _damage(folder: Path, kind: str, random: Random) -> str:
    """Damage the database of a directory, or remove a row of it, or the whole."""
    file = folder / DATABASE
    if kind == "remove" and random.random() < 0.8:
        return _deleted(file, random)
    if kind == "remove":
        file.unlink()
        return file.name
    data = bytearray(file.read_bytes())
    place = random.randrange(len(data))
    if kind == "flip":
        data[place] ^= 1 << random.randrange(8)
    else:
        del data[place:]
    file.write_bytes(data)
    return f"{file.name} at {place} of {len(data)}"


def _deleted(file: Path, random: Random) -> str:
    """Delete a row of some table."""
    table = random.choice(_TABLES)
    with sqlite3.connect(file) as database:
        rows = [row for (row,) in database.execute(f"select rowid from {table}")]  # noqa: S608 - one of ours
        row = random.choice(rows)
        database.execute(f"delete from {table} where rowid = ?", (row,))  # noqa: S608 - one of ours
    database.close()
    return f"row {row} of {table}"


def _looked_at(folder: Path, expected: Any) -> tuple[list[str], bool]:
    """What is wrong with what opens, and whether the damage was found."""
    was_there = (folder / DATABASE).exists()
    try:
        return ([] if _opened(folder) == expected else ["lost in silence"]), False
    except StoreError as error:
        wrong = ["several lines"] if "\n" in str(error) else []
        if "cannot be" not in str(error):
            wrong.append(str(error))
        if was_there and not (folder / DATABASE).exists():
            wrong.append("the refusal deleted the file")
        return wrong, True
    except Exception as error:
        return [f"{error!r}"], True
