"""Directories that are damaged: a bit of a file flipped, a file cut off or removed. Nothing is lost in silence."""

import logging
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from stub_server.files.directory import Directory
from stub_server.files.states import StoreError
from stub_server.files.survey import survey

from stub_server.app import create_app
from stub_server.http.application import Application
from stub_server.worlds import keeping

from ..engine.inside import Inside
from .child import ACTIONS, NAMES, digest, facts, settings, started

DAMAGES = ("flip", "cut", "remove")
_MOVED = ("worlds", "worlds-wal", "newest", "states")


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
    with patch.object(keeping, "LEAST", 12_000):
        app = create_app(settings(folder / "living"))
        inside = Inside(app)
        inside.run(started(app))
        for _ in range(40):
            action = random.choices(("customer", "rename", "advance", "fork", "rewind", "reset"), (20, 20, 3, 3, 2, 2))[
                0
            ]
            ACTIONS[action](inside, app, random.choice(NAMES), random, files)
        assert 201 == inside.ask("POST", "/_sandbox/snapshots", {"name": "kept"}).status
        ACTIONS["customer"](inside, app, "one", random, files)
        ACTIONS["customer"](inside, app, "default", random, files)
        if killed:
            shutil.copytree(folder / "living", folder / "intact")
        told = _facts(app)
        inside.run(app.sandboxes.keeper.stop())
        inside.close()
    if not killed:
        shutil.copytree(folder / "living", folder / "intact")
    return Intact(folder / "intact", told)


def _facts(app: Application) -> Any:
    """What must not be lost."""
    snapshots = {
        (entry.world.name, snapshot.name): digest(snapshot.pinned)
        for entry in app.sandboxes.entries()
        for snapshot in entry.snapshots.oldest()
    }
    return facts(app), snapshots, app.server.tokens is not None and app.sandboxes.default.credentials


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
    """Damage a file of a directory; small files as often as large ones."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and (kind == "remove" or file.stat().st_size))
    file = random.choice(files)
    if kind == "remove":
        file.unlink()
        return file.name
    data = bytearray(file.read_bytes())
    place = random.randrange(len(data))
    if kind == "flip":
        data[place] ^= 1 << random.randrange(8)
        file.write_bytes(data)
    else:
        file.write_bytes(data[:place])
    return f"{file.name} at {place} of {len(data)}"


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for name in _MOVED
        for file in ([folder / name] if (folder / name).is_file() else (folder / name).rglob("*"))
        if file.stat().st_size  # looking at a database leaves an empty log
    }


def _looked_at(folder: Path, store: Intact) -> tuple[list[str], bool]:
    """What is wrong with what opens, and whether the damage was found."""
    before = _contents(folder)
    try:
        app = create_app(settings(folder))
    except StoreError as error:
        wrong = ["several lines"] if "\n" in str(error) else []
        if before != _contents(folder):
            wrong.append("the refusal changed a file")
        return wrong + _salvaged(folder, before, store), True
    except Exception as error:
        return [f"{error!r}"], True
    try:
        return ([] if _facts(app) == store.facts else ["lost in silence"]), False
    finally:
        app.sandboxes.keeper.close()


def _salvaged(folder: Path, before: dict[str, bytes], store: Intact) -> list[str]:
    """Keep what is whole: of each sandbox nothing that it was not, and the damaged files as they were."""
    try:
        Directory(folder, always=False, salvage=True).close()
        if survey(folder).damage:
            return [f"salvaged, it is damaged: {survey(folder).damage}"]
        if before != _contents(folder / "damaged-1"):
            return ["the damaged files are not all there"]
        app = create_app(settings(folder))
    except Exception as error:
        return [f"salvaging: {error!r}"]
    try:
        return [
            f"{name} is what it never was"
            for name, (_, number, state) in facts(app).items()
            if name in store.facts[0] and number == store.facts[0][name][1] and state != store.facts[0][name][2]
        ]
    finally:
        app.sandboxes.keeper.close()
