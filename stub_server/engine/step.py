"""A step: everything that one cause changes in a sandbox, as data, with what it replaced; and the
settings.

A step holds results: folding it runs no rule, so a log gives the same sandbox in another process or
after the rules have changed. Not in the log, on purpose: journal, inbox, snapshots, request ids and
fault rules, which describe requests; Idempotency-Keys whose request still runs; the use of keys
since the last step, since reading makes no step; the instant that a running clock shows; and which
deliveries are under way or held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from ..core.clock import ClockState
from ..core.ids import Position
from ..core.record import Record
from ..core.timers import Timer
from ..domain.deliveries import SCHEDULES
from .lists import Ends, Event
from .tables.store import Merchant, Usage
from .tables.table import size_of

OVERHEAD = 700  # bytes of a step besides what it names
OVERHEAD_EACH = 200  # of an event, a timer, a part, or the usage of a key


class SandboxSettings(NamedTuple):
    """The settings of one sandbox. They are state: only steps change them.

    The members are those of `SandboxSettings` in the contract; `autopay` is seconds of the sandbox
    clock.
    """

    autopay: int | None = None
    check_digits: bool = True
    webhook_schedule: str = "standard"
    unknown_query: str = "warn"
    strict_amounts: bool = False

    @property
    def schedule(self) -> tuple[int, ...]:
        """How long each attempt of a delivery waits, in ms."""
        return SCHEDULES[self.webhook_schedule]


class Standing(NamedTuple):
    """How a sandbox stands after a step, besides its records and lists.

    `position` is that of its ids; `events` and `timers` are how many there have been.
    """

    clock: ClockState
    position: Position
    events: int
    timers: int
    settings: SandboxSettings


class Cause(NamedTuple):
    """Why a step was recorded.

    `kind` is `request`, `control`, `job`, `clock` or `delivery`; `id` a request's id or the record
    that a job is for; `operation` the operationId or the name of the job.
    """

    kind: str
    id: str
    operation: str


class Change(NamedTuple):
    """A record that was written or deleted: the version before, None for a new one, and the one
    after it, if any.
    """

    table: str
    before: Record | None
    after: Record | None

    def deletes(self) -> bool:
        """Whether the record was deleted."""
        return self.after is None

    @property
    def id(self) -> str:
        """The id of the record."""
        return self._record.id

    @property
    def key(self) -> int:
        """The key of the record in its table."""
        return self._record.key

    @property
    def _record(self) -> Record:
        record = self.after or self.before
        assert record is not None
        return record

    @property
    def size(self) -> int:
        """About how many bytes both versions keep alive."""
        return size_of(self.before) + size_of(self.after)


class Used(NamedTuple):
    """The usage of an API key after a step and before it; None where nothing is recorded."""

    key_id: str
    after: Usage | None
    before: Usage | None


class Part(NamedTuple):
    """What a step changes in one merchant's store, and how many bytes the versions have.

    It is created with `opens` and deleted with `closes`.
    """

    merchant: Merchant
    opens: bool
    closes: bool
    changes: tuple[Change, ...]
    used: tuple[Used, ...]
    size: int

    @classmethod
    def of(
        cls,
        merchant: Merchant,
        changes: Iterable[Change],
        used: Iterable[Used],
        *,
        opens: bool,
        closes: bool,
    ) -> Part:
        """A part of these changes, of which deletions come last, as files have them."""
        ordered = sorted(changes, key=Change.deletes)
        kept = tuple(used)
        size = sum([change.size for change in ordered]) + OVERHEAD_EACH * (1 + len(kept))
        return cls(merchant, opens, closes, tuple(ordered), kept, size)

    @property
    def mirrored(self) -> Part:
        """The changes that undo these."""
        return Part(
            self.merchant,
            self.closes,
            self.opens,
            tuple([Change(table, after, before) for table, before, after in self.changes]),
            tuple([Used(key_id, before, after) for key_id, after, before in self.used]),
            self.size,
        )


@dataclass(slots=True)
class Step:
    """Everything that one cause changed, never changed itself.

    It holds results, not inputs: folding it runs no rule. It changes the records of one
    merchant, in one part, and raises the events that it adds.

    The parts of one that `restores` an earlier state are the difference from one state to the
    other, of each merchant that differs, and events and replies that it adds are those of the
    earlier state.
    """

    number: int
    at: int
    cause: Cause
    before: Standing
    after: Standing
    parts: tuple[Part, ...]
    event_ends: Ends
    reply_ends: Ends
    timers_set: tuple[Timer, ...] = ()
    timers_fired: tuple[Timer, ...] = ()
    restores: bool = False
    changes: tuple[Change, ...] = field(init=False, default=())
    events: tuple[Event, ...] = field(init=False, default=())
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Note what its cause changed and which events it raised, neither of which one has that
        restores a state, and about how many bytes it keeps alive.
        """
        if not self.restores:
            self.changes = self.parts[0].changes
            self.events = self.event_ends.after
        own = len(self.events) + len(self.timers_set) + len(self.timers_fired)
        size = OVERHEAD + OVERHEAD_EACH * own
        for part in self.parts:
            size += part.size
        if not self.changes:  # else the events share the bytes of its records
            for event in chain(*self.event_ends):
                size += event.size
        for saved in chain(*self.reply_ends):
            size += len(saved.body)
        self.size = size

    @property
    def mirrored(self) -> Step:
        """The step that undoes it."""
        return replace(
            self,
            before=self.after,
            after=self.before,
            parts=tuple([part.mirrored for part in self.parts]),
            event_ends=self.event_ends.mirrored,
            reply_ends=self.reply_ends.mirrored,
            timers_set=self.timers_fired,
            timers_fired=self.timers_set,
        )

    def __repr__(self) -> str:
        """Without records and replies, which may contain secrets."""
        return f"Step(number={self.number}, at={self.at}, cause={self.cause})"
