"""A world that is about to come: its state is written before anybody can reach it."""

from __future__ import annotations

from ..engine.sandbox import Sandbox
from ..kernel.slices import Lane
from .keeping import Base, Keeper


class Prepared:
    """The state of a world that is about to come, written; it goes again unless it is `taken` in the block."""

    def __init__(self, keeper: Keeper, world: Sandbox, lane: Lane) -> None:
        self._keeper, self._world, self._lane = keeper, world, lane
        self._base: Base | None = None
        self._taken = False

    async def __aenter__(self) -> Prepared:
        self._base = await self._keeper.prepare(self._world, self._lane)
        return self

    def taken(self) -> Base | None:
        """The state, for good."""
        self._taken = True
        return self._base

    async def __aexit__(self, *_: object) -> None:
        if not self._taken:
            self._keeper.discard(self._base)
