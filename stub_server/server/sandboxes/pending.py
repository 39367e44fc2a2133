"""What is to be committed of a sandbox: how far it is stored, and what goes together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ...core.problem import Refusal
from ...storage.database import Change
from ...storage.sql import steps_ended, steps_entered
from .entry import Entry

# bytes of steps after which a state is written, of sandboxes whose state is smaller
LEAST = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class Stored:
    """A sandbox whose steps are stored: after which step the state is that opening it begins with,
    how many bytes that has, and the steps since.

    `committed` is the number of the newest step that is stored, None while the sandbox is not.
    `leap` is the newest step that has no line, since a log does not keep one of that size: a
    state is stored in place of it.
    """

    entry: Entry
    state_step: int
    state_size: int
    committed: int | None
    size: int = 0
    leap: int = 0

    @property
    def lacks_state(self) -> bool:
        """Whether nothing can be committed before a state is written."""
        return self.leap > self.state_step

    @property
    def is_long(self) -> bool:
        """Whether a state is to be written. One is read in half the time of its steps."""
        return self.lacks_state or self.size > max(LEAST, self.state_size // 2)


@dataclass(slots=True, eq=False, kw_only=True)
class Pending(Change):
    """What is committed of a sandbox at once.

    `steps` come with their place. `known` is set when the outcome is known; `failure` says why it
    is not done.
    """

    stored: Stored
    steps: list[tuple[int, bytes]] = field(default_factory=list)
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can be committed, or fails."""
        return self.ends or self.failure is not None or not self.stored.lacks_state

    async def outcome(self) -> bool:
        """Wait until it is stored; False where the name of a new sandbox is taken.

        Raises Unavailable where it is not stored.
        """
        await self.known.wait()
        if self.failure is not None:
            raise self.failure.again()
        return self.stored.committed is not None

    def complete(self) -> None:
        """Add the row of the sandbox as it is now, unless it is to be deleted. Raises its
        failure.
        """
        if self.failure is not None:
            raise self.failure
        if self.ends:
            self.statements = [steps_ended(self.number)]
        else:
            stored = self.stored
            self.statements += steps_entered(self.steps)
            self.before = stored.committed
            self.row = stored.entry.row()
