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
from unittest.mock import patch

from stub_server.app import create_app
from stub_server.data.keys import own_pair
from stub_server.server.layers.routing import Application
from stub_server.server.sandboxes import entry
from stub_server.storage.database import StoreError
from stub_server.storage.sqlite import DATABASE

from ..engine.inside import Inside
from .child import ACTIONS, NAMES, facts, settings, started

DAMAGES = ("flip", "cut", "remove")
_TABLES = ("parts", "sandboxes", "settings", "states", "steps")


class Suffered(NamedTuple):
    """What came of damages: how many were found, how many changed nothing, and what is wrong."""

    found: int
    harmless: int
    wrong: list[str]


class Intact(NamedTuple):
    """A directory before it is damaged, and what its sandboxes are."""

    folder: Path
    facts: Any


def intact(folder: Path, seed: int, *, killed: bool) -> Intact:
    """A directory with a life behind it, of a server that was stopped, or `killed`."""
    random, files = Random(seed), dict[str, bytes]()
    with patch.object(entry, "LEAST", 12_000):
        app = create_app(settings(folder / "living"))
        inside = Inside(app)
        inside.run(started(app))
        for _ in range(40):
            action = random.choices(
                ("customer", "rename", "advance", "fork", "rewind", "reset"), (20, 20, 3, 3, 2, 2)
            )[0]
            ACTIONS[action](inside, app, random.choice(NAMES), random, files)
        assert 201 == inside.ask("POST", "/_sandbox/snapshots", {"name": "kept"}).status
        ACTIONS["customer"](inside, app, "one", random, files)
        ACTIONS["customer"](inside, app, "default", random, files)
        if killed:
            shutil.copytree(folder / "living", folder / "intact")
        told = _facts(app)
        inside.run(app.sandboxes.persistence.stop())
        inside.close()
    if not killed:
        shutil.copytree(folder / "living", folder / "intact")
    return Intact(folder / "intact", told)


def _facts(app: Application) -> Any:
    """What must not be lost."""
    return facts(app), own_pair(app.sandboxes.default)


def suffer(folder: Path, counts: tuple[int, int, int], seed: int) -> Suffered:
    """Damage copies of two directories, so often each way."""
    logging.disable()  # of what is damaged on purpose
    try:
        return _suffered(folder, counts, seed)
    finally:
        logging.disable(logging.NOTSET)


def _suffered(folder: Path, counts: tuple[int, int, int], seed: int) -> Suffered:
    random, found, wrong = Random(seed), Counter[str](), list[str]()
    stores = []
    for killed in (False, True):
        (folder / str(killed)).mkdir()
        stores.append(intact(folder / str(killed), seed, killed=killed))
    for kind, count in zip(DAMAGES, counts, strict=True):
        for number in range(count):
            store, copy = stores[number % 2], folder / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(store.folder, copy)
            what = _damage(copy, kind, random)
            reasons, was_found = _looked_at(copy, store)
            found["found" if was_found else "harmless"] += 1
            wrong += [f"{kind} {what}: {reason}" for reason in reasons]
    return Suffered(found["found"], found["harmless"], wrong)


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


def _looked_at(folder: Path, store: Intact) -> tuple[list[str], bool]:
    """What is wrong with what opens, and whether the damage was found."""
    was_there = (folder / DATABASE).exists()
    try:
        app = create_app(settings(folder))
    except StoreError as error:
        wrong = ["several lines"] if "\n" in str(error) else []
        if "cannot be" not in str(error):
            wrong.append(str(error))
        if was_there and not (folder / DATABASE).exists():
            wrong.append("the refusal deleted the file")
        return wrong, True
    except Exception as error:
        return [f"{error!r}"], True
    try:
        return ([] if _facts(app) == store.facts else ["lost in silence"]), False
    finally:
        app.sandboxes.persistence.close()
