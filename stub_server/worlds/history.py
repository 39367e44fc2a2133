"""A world of a server that goes back in time: in slices, and whoever follows its events is told."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from ..engine.sandbox import Sandbox
from .entry import Entry
from .sandboxes import Sandboxes

T = TypeVar("T")


async def go_back(sandboxes: Sandboxes, world: Sandbox, work: Generator[None, None, T]) -> tuple[Entry, T]:
    """Do what has a world be in an earlier state. Answers its entry, and what the work answers."""
    entry = sandboxes.entry(world.name)
    done = await sandboxes.lane.in_line(work)
    sandboxes.begin_anew(entry)
    if world.bell is not None:
        world.bell(world)
    return entry, done
