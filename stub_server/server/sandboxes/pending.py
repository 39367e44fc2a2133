"""What is to be committed of a sandbox: how far it is stored, and the changes that go together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

import orjson

from ...core.problem import Refusal
from ...engine.sandbox import SILENT, Sandbox
from ...storage.database import Batch, Kept
from .entry import Entry, records_of

# bytes of steps after which a state is written, of sandboxes whose state is smaller
LEAST = 64 * 1024 * 1024


@dataclass(slots=True)
class Stored:
    """A sandbox whose steps are stored: how many bytes the state has that opening it begins with,
    and the steps since.

    `newest` is the number of the newest step and `chain` its sum, `committed` both of the newest
    one that is stored. `contract` is empty where the state and the steps are not all of one.
    `renewals` counts the steps with which the state after them is stored, and `rewriting` is the
    newest change that stores one beside the requests.
    """

    entry: Entry
    number: int
    contract: str
    state_size: int
    newest: int
    chain: int
    committed: tuple[int, int]
    size: int = 0
    renewals: int = 0
    rewriting: Pending | None = None

    @property
    def is_long(self) -> bool:
        """Whether a state is to be written. One is read in half the time of its steps."""
        return self.size > max(LEAST, self.state_size // 2)

    def row(self, newest: int, chain: int) -> Kept:
        """Its row after a step."""
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
            newest,
            chain,
            orjson.dumps(about).decode(),
        )


@dataclass(slots=True)
class Pending(Batch):
    """What is committed together: steps, or a change, which is made wholly or not at all
    (`is_atomic`).

    `touched` are the sandboxes whose rows are stored, by a change as they are stored so far. Of
    those that are `rewritten` the state is stored in place of their steps: a log does not keep one
    of these. `gone` are those that end. `known` is set when the outcome is known; `failure` says
    why it is not done. It is not done either where a name `is_duplicate`.
    """

    touched: dict[int, Stored] = field(default_factory=dict)
    rewritten: dict[int, Stored] = field(default_factory=dict)
    gone: Sequence[Stored] = ()
    is_duplicate: bool = False
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None
    begun: float = field(default_factory=monotonic)

    async def outcome(self) -> None:
        """Wait until it is stored. Raises Unavailable where it is not."""
        await self.known.wait()
        if self.failure is not None:
            raise self.failure.again()

    def add_rows(self) -> None:
        """Add the rows of the sandboxes that were touched, as they are now."""
        for number, stored in self.touched.items():
            after = stored.newest, stored.chain
            if self.is_atomic:
                after = stored.committed
            self.rows.append((number, stored.committed[0], stored.row(*after)))


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
