"""What the directory has of a world: a whole state, and how many bytes of steps since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..engine.sandbox import SILENT, Sandbox
from ..files.directory import Directory
from ..files.lots import lot_lines
from ..files.state import capture
from ..files.survey import KeptSnapshot
from .entry import Entry
from .snapshots import Snapshot


@dataclass(slots=True)
class Base:
    """A whole state in the directory: its name there, its step, its bytes, and the snapshots that come with it."""

    name: str
    step: int
    size: int
    snapshots: tuple[KeptSnapshot, ...] = ()


@dataclass(slots=True)
class Followed:
    """A world whose steps are written: its number in the directory, and the bytes of steps since its state."""

    entry: Entry
    number: int
    base: Base
    size: int = 0


def pinning(directory: Directory, snapshot: Snapshot, contract: str) -> Callable[[], KeptSnapshot]:
    """Writes the state of a snapshot, in whatever thread: nobody changes what is pinned."""
    told, base = snapshot.told, directory.next_base()

    def write() -> KeptSnapshot:
        directory.write_base(base, lot_lines(capture(told.world)))
        return KeptSnapshot(told.name, told.description, told.now, told.created_at, base, contract)

    return write


def held_of(world: Sandbox) -> int | None:
    """Of how many events nothing is delivered, None for all."""
    return None if world.held == SILENT else world.held
