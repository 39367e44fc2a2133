"""What is to be committed of a sandbox: how far it is stored, and what goes together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import orjson

from ...core.problem import Refusal
from ...engine.sandbox import SILENT, Sandbox
from ...storage.database import Change, Kept
from .entry import Entry, records_of

# bytes of steps after which a state is written, of sandboxes whose state is smaller
LEAST = 64 * 1024 * 1024


@dataclass(slots=True)
class Stored:
    """A sandbox whose steps are stored: after which step the state is that opening it begins with,
    how many bytes that has, and the steps since.

    `newest` is the number of the newest step and `chain` its sum, `committed` the number of the
    newest one that is stored, None while the sandbox is not. `contract` is empty where the state
    and the steps are not all of one.
    """

    entry: Entry
    number: int
    contract: str
    state_step: int
    state_size: int
    newest: int
    chain: int
    committed: int | None
    size: int = 0

    @property
    def is_long(self) -> bool:
        """Whether a state is to be written. One is read in half the time of its steps."""
        return self.size > max(LEAST, self.state_size // 2)

    def row(self) -> Kept:
        """Its row after the newest step."""
        entry, sandbox = self.entry, self.entry.sandbox
        about = {
            "parent": entry.parent,
            "on_first_use": entry.created_on_first_use,
            "incarnation": entry.incarnation,
            "origin_events": entry.origin_events,
            "generation": sandbox.origin.generation,
            "contract": self.contract,
            "held": sandbox.status.held_before,
            "scenario": sandbox.origin.scenario,
            "seed": sandbox.origin.seed,
            "records": records_of(sandbox),
            "clock": tuple(sandbox.clock.recorded),
        }
        return Kept(
            sandbox.name,
            entry.created_at,
            entry.expires_at,
            entry.last_used_at,
            _next_due(sandbox),
            self.newest,
            self.chain,
            orjson.dumps(about).decode(),
        )


@dataclass(slots=True, eq=False, kw_only=True)
class Pending(Change):
    """What is committed of a sandbox at once.

    It may be stored in place of what was `replaced`. One that `is_renewed` has its state stored in
    place of its steps: a log does not keep one of these. `known` is set when the outcome is known;
    `failure` says why it is not done.
    """

    stored: Stored
    replaced: Stored | None = None
    is_renewed: bool = False
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None

    async def outcome(self) -> bool:
        """Wait until it is stored; False where the name of a new sandbox is taken.

        Raises Unavailable where it is not stored.
        """
        await self.known.wait()
        if self.failure is not None:
            raise self.failure.again()
        return self.stored.committed is not None

    def complete(self) -> None:
        """Add the row of the sandbox as it is now, unless it is to be deleted."""
        if self.ends == self.number:
            self.steps, self.statements, self.is_renewed = [], [], False
        else:
            self.before, self.row = self.stored.committed, self.stored.row()


def _next_due(sandbox: Sandbox) -> int | None:
    """When the next delivery of a sandbox is due, in ms of the machine; None where none is, or its
    clock is frozen.
    """
    timers, clock = sandbox.timers, sandbox.clock
    if clock.frozen or sandbox.status.held_before == SILENT:
        return None
    due = [timer[0] for timer in timers.claimed.values()]
    attempt = timers.next_attempt()
    if attempt is not None:
        due.append(attempt)
    if not due:
        return None
    return min(due) - clock.state.offset
