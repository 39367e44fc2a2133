"""Snapshots as lines: a line `snapshot` that says what it is called, then the lines of its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from ..engine.sandbox import Sandbox
from ..events.log import Event
from ..kernel.record import Record
from .state import WorldState


class Snapshot(NamedTuple):
    """A state with a name: a copy of a sandbox that nobody changes.

    `now` is the instant (ms) that its clock showed, `created_at` the machine's. `size` is about how many bytes it may
    keep alive, once that was measured.
    """

    name: str
    description: str | None
    now: int
    created_at: int
    pinned: Sandbox
    size: int = 0


def head_line(name: str, description: str | None, now: int, created_at: int) -> bytes:
    """What a snapshot is called: its state follows."""
    told = {"name": name, "description": description, "now": now, "created_at": created_at}
    return orjson.dumps({"snapshot": told})


class Shared:
    """What the states of one sandbox have in common, once in memory: restoring compares versions by identity."""

    def __init__(self) -> None:
        self._records: dict[Record, Record] = {}
        self._events: dict[str, Event] = {}

    def share(self, state: WorldState) -> None:
        """Have a state hold what an earlier one holds, where they are equal."""
        records, events = self._records, self._events
        for owned in state.owned.values():
            for rows in owned.rows.values():
                for key, record in rows.items():
                    rows[key] = records.setdefault(record, record)
        for place, event in enumerate(state.events):
            held = events.setdefault(event.id, event)
            if held == event:
                state.events[place] = held


def strangers(state: WorldState, snapshot: WorldState) -> Iterator[str]:
    """What shows that a snapshot is not of the sandbox whose state is given."""
    for name in ("scenario", "seed", "home", "seeded_keys"):
        if getattr(state, name) != getattr(snapshot, name):
            yield f"its {name} is another than the sandbox's"
    pairs: list[tuple[str, Any, Any]] = [
        ("step", snapshot.step, state.step),
        ("timers_set", snapshot.timers_last, state.timers_last),
        *(("position", mine, own) for mine, own in zip(snapshot.position, state.position, strict=True)),
    ]
    for name, mine, own in pairs:
        if mine > own:
            yield f"its {name} is beyond the sandbox's"
