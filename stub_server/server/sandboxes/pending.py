"""What is to be committed of a sandbox together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ...core.problem import Refusal
from ...storage.database import Change
from ...storage.sql import steps_ended, steps_entered
from .entry import Entry


@dataclass(slots=True, eq=False, kw_only=True)
class Pending(Change):
    """What is committed of a sandbox at once.

    `steps` come with their place. `known` is set when the outcome is known; `failure` says why it
    is not done.
    """

    entry: Entry
    steps: list[tuple[int, bytes]] = field(default_factory=list)
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can be committed, or fails."""
        return self.ends or self.failure is not None or not self.entry.stored.lacks_state

    async def outcome(self) -> bool:
        """Wait until it is stored; False where the name of a new sandbox is taken.

        Raises Unavailable where it is not stored.
        """
        await self.known.wait()
        if self.failure is not None:
            raise self.failure.again()
        return self.entry.stored.committed is not None

    def complete(self) -> None:
        """Add the row of the sandbox as it is now, unless it is to be deleted. Raises its
        failure.
        """
        if self.failure is not None:
            raise self.failure
        if self.ends:
            self.statements = [steps_ended(self.number)]
        else:
            self.statements += steps_entered(self.steps)
            self.before, self.row = self.entry.stored.committed, self.entry.row()
