"""A step: everything that one cause changes in a world, as data, with what it replaced."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.ids import Position
from ..kernel.record import Record
from ..kernel.timers import TimerData
from ..store.memory import Merchant, Usage

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


class Step(NamedTuple):
    """Everything that one cause changed.

    It holds results, not inputs: folding it runs no rule. `clock` and `position` are as the step leaves them. What is
    named `…_before` or `forgotten_…` is what the step replaced, and undoing it puts that back; `events_before` and
    `timers_before` are how many of them there had ever been. `size` is about how many bytes the step keeps alive.
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

    def __repr__(self) -> str:
        """Without records and replies, which may hold secrets."""
        return f"Step(number={self.number}, at={self.at}, cause={self.cause})"
