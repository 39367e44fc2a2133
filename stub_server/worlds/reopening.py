"""Makes a world and its snapshots of what an earlier process has left in the directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.building import build
from ..files.directory import Directory
from ..files.fitting import Shapes, misfits
from ..files.parts import Unreadable
from ..files.pinned import Pinned, Shared, pin
from ..files.reading import Reader
from ..files.secrets import adopted
from ..files.state import WorldState
from ..files.states import StoreError
from ..files.survey import Kept
from .entry import Origin
from .making import Maker
from .snapshots import Snapshot, snapshot_of


def reopened(
    directory: Directory, number: int, kept: Kept, maker: Maker, origin: Origin, contract: str
) -> tuple[Sandbox, int, int, list[Snapshot]]:
    """A world, the bytes of its whole state, those of the steps since, and its snapshots. Raises StoreError.

    Records that were held to another contract than `contract` are held to the one that is served.
    """
    where = f"--store {directory.path}: the sandbox {kept.name}"
    reader = Reader(adopted(origin.secret, kept.name, anew=False), origin.history)
    try:
        size = _read(reader, directory.read_base(kept.base))
        reader.skip = max(0, directory.count(number, kept.step) - origin.history)
        since = _read(reader, directory.steps(number, kept.step))
        state = reader.state
    except (Unreadable, ValueError) as error:
        raise StoreError(f"{where} cannot be read: {error}.") from None
    steps = reader.steps[-origin.history :] if origin.history else []
    if kept.contract != contract and (reasons := misfits(origin.rules, Shapes(origin.seeding.fixtures), state, steps)):
        raise StoreError(f"{where} does not fit the contract that is served:\n  " + "\n  ".join(reasons))
    world = maker.carried(kept.name, state.scenario, state.seed)
    build(world, state, origin.secret, state.clock)
    world.log.refill(steps)
    world.held = _held(kept, reader)
    return world, size, since, list(_snapshots(directory, number, kept.name, state, maker, origin, contract))


def _snapshots(
    directory: Directory, number: int, name: str, state: WorldState, maker: Maker, origin: Origin, contract: str
) -> Iterator[Snapshot]:
    """The snapshots of a world whose state is given. Raises StoreError."""
    pinned, shared = directory.snapshots(number), Shared()
    if pinned:
        shared.share(state)
    for kept in pinned:
        where = f"--store {directory.path}: the snapshot {kept.name} of the sandbox {name}"
        reader = Reader(adopted(origin.secret, name, anew=False))
        try:
            _read(reader, directory.read_base(kept.base))
            was = reader.state
        except (Unreadable, ValueError) as error:
            raise StoreError(f"{where} cannot be read: {error}.") from None
        if kept.contract != contract and (reasons := misfits(origin.rules, Shapes(origin.seeding.fixtures), was, ())):
            raise StoreError(f"{where} does not fit the contract that is served:\n  " + "\n  ".join(reasons))
        shared.share(was)
        world = maker.carried(name, was.scenario, was.seed)
        pin(world, was, origin.secret)
        yield snapshot_of(Pinned(kept.name, kept.description, kept.now, kept.created_at, world))


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    size = 0
    for line in lines:
        size += len(line)
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    return size


def _held(kept: Kept, reader: Reader) -> int:
    """Which deliveries are held back: what was noted, or what a later step has said that went back in time."""
    if kept.held is None:
        return SILENT
    later = [step.restored.raised_after for step in reader.restorations if step.restored and step.number > kept.noted]
    return later[-1] if later else kept.held
