"""A step: everything that one cause changes in a world, as data, with what it replaced."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.ends import Ends
from ..kernel.ids import Position
from ..kernel.record import Record
from ..kernel.timers import TimerData
from ..store.memory import Merchant, Usage
from .rules import SandboxSettings

ReplyKey: TypeAlias = tuple[str, str, str, str]
"""Merchant, method, path and Idempotency-Key of a request."""

OVERHEAD = 700  # bytes of a step besides what it names
OVERHEAD_EACH = 200  # of an event or a timer


class Cause(NamedTuple):
    """What brought a step about.

    `kind` is `request`, `control`, `job`, `clock` or `delivery`; `id` a request's id or the record that a job is for;
    `operation` the operationId or the name of the job.
    """

    kind: str
    id: str
    operation: str


Put: TypeAlias = tuple[str, Record, Record | None]
"""A version that was written: its table, the record, and the one that it replaced; None for a new record."""


class Drop(NamedTuple):
    """A record that was taken out."""

    table: str
    record: Record


class Used(NamedTuple):
    """How often a key has been used, and what was recorded of it before; None where nothing is."""

    key_id: str
    after: Usage | None
    before: Usage | None


class Saved(NamedTuple):
    """The reply to a request with an Idempotency-Key: `expires` is ms of the sandbox clock."""

    fingerprint: bytes
    expires: int
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def __repr__(self) -> str:
        """Without the body, which may hold a secret."""
        return f"Saved(status={self.status}, expires={self.expires})"


class Part(NamedTuple):
    """What restoring a state changes in one merchant's store. `opens` says that the world did not know him before,
    `closes` that it does not know him afterwards.
    """

    merchant: Merchant
    opens: bool
    closes: bool
    puts: tuple[Put, ...]
    drops: tuple[Drop, ...]
    used: tuple[Used, ...]

    @property
    def mirrored(self) -> Part:
        """The way back."""
        return Part(
            self.merchant,
            self.closes,
            self.opens,
            (
                *[(table, before, record) for table, record, before in self.puts if before is not None],
                *[(drop.table, drop.record, None) for drop in self.drops],
            ),
            tuple([Drop(table, record) for table, record, before in self.puts if before is None]),
            tuple([Used(key_id, before, after) for key_id, after, before in self.used]),
        )


class Restored(NamedTuple):
    """What separates the state before a step from the earlier one that it restores, of all merchants.

    `merchants_…` are their ids in order, `raised_…` how many events there had been. `replies` holds pairs of key and
    saved reply. Timers, clock and positions of ids stand in the step itself.
    """

    parts: tuple[Part, ...]
    merchants_before: tuple[str, ...]
    merchants_after: tuple[str, ...]
    events: Ends
    raised_before: int
    raised_after: int
    replies: Ends


class Step(NamedTuple):
    """Everything that one cause changed.

    It holds results, not inputs: folding it runs no rule. `clock` and `position` are as the step leaves them. What is
    named `…_before` or `forgotten_…` is what the step replaced, and undoing it puts that back; `events_before` and
    `timers_before` are how many of them there had ever been. `size` is about how many bytes the step keeps alive.

    `settings` are those of the sandbox where the step changes them.

    A step that restores an earlier state says so in `restored`, and names no records, events, usage or replies beside.
    """

    number: int
    at: int
    cause: Cause
    merchant: Merchant
    opens_store: bool
    puts: tuple[Put, ...]
    drops: tuple[Drop, ...]
    events: tuple[Event, ...]
    events_before: int
    forgotten_events: tuple[Event, ...]
    timers_set: tuple[TimerData, ...]
    timers_before: int
    timers_taken: tuple[TimerData, ...]
    used: tuple[Used, ...]
    saved: tuple[ReplyKey, Saved] | None
    forgotten_replies: tuple[tuple[ReplyKey, Saved], ...]
    clock: ClockState
    clock_before: ClockState
    position: Position
    position_before: Position
    size: int
    restored: Restored | None = None
    settings: SandboxSettings | None = None
    settings_before: SandboxSettings | None = None

    def __repr__(self) -> str:
        """Without records and replies, which may hold secrets."""
        return f"Step(number={self.number}, at={self.at}, cause={self.cause})"
