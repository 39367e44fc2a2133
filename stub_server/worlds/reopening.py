"""Makes a world of what an earlier process has left in the directory."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.building import build
from ..files.directory import Directory, Kept, StoreError
from ..files.fitting import Shapes, misfits
from ..files.reading import Reader, Unreadable
from ..files.secrets import adopted
from .entry import Origin
from .making import Maker


def reopened(
    directory: Directory, number: int, kept: Kept, maker: Maker, origin: Origin, contract: str
) -> tuple[Sandbox, int, int]:
    """A world, the bytes of its whole state, and those of the steps since. Raises StoreError.

    Records that were held to another contract than `contract` are held to the one that is served.
    """
    where = f"--store {directory.path}: the sandbox {kept.name}"
    reader = Reader(adopted(origin.secret, kept.name, anew=False), origin.history)
    try:
        size = _read(reader, directory.read_base(kept.base))
        reader.skip = max(0, directory.count(number) - origin.history)
        since = _read(reader, directory.steps(number))
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
    return world, size, since


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
