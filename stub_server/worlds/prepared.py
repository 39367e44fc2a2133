"""A world or a snapshot that is about to come: its state is written before anybody can reach it."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.sandbox import Sandbox
from ..kernel.slices import Lane
from .base import Base
from .entry import Entry
from .keeping import Keeper
from .snapshots import Snapshot


class Prepared:
    """The state of a world that is about to come, written; it goes again unless it is `taken` in the block."""

    def __init__(self, keeper: Keeper, world: Sandbox, lane: Lane, snapshots: Sequence[Snapshot] = ()) -> None:
        """`snapshots` come with the world."""
        self._keeper, self._world, self._lane, self._snapshots = keeper, world, lane, snapshots
        self._base: Base | None = None
        self._taken = False

    async def __aenter__(self) -> Prepared:
        self._base = await self._keeper.prepare(self._world, self._lane, self._snapshots)
        return self

    def taken(self) -> Base | None:
        """The state, for good."""
        self._taken = True
        return self._base

    async def __aexit__(self, *_: object) -> None:
        if not self._taken:
            self._keeper.discard(self._base)


async def keep_snapshot(keeper: Keeper, lane: Lane, entry: Entry, snapshot: Snapshot) -> bool:
    """Keep a snapshot of a world, written before anybody is told; False when the world is gone by then.

    Raises Conflict where there is no room, and Unavailable.
    """
    kept = await keeper.prepare_snapshot(snapshot, lane)
    try:
        if entry.world.is_gone:
            return False
        entry.snapshots.check_room(snapshot.name, snapshot.size)
        keeper.enter_snapshot(entry.world.name, kept)
        kept = None
        entry.snapshots.keep(snapshot)
        return True
    finally:
        keeper.discard_snapshot(kept)
