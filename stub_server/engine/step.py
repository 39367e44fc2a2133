"""A step: everything that one cause changes in a sandbox, as data, with what it replaced; and the
settings.

A step holds results: folding it runs no rule, so a log gives the same sandbox in another process or
after the rules have changed. Not in the log, on purpose: journal, inbox, snapshots, request ids and
fault rules, which describe requests; Idempotency-Keys whose request still runs; the use of keys
since the last step, since reading makes no step; the instant that a running clock shows; and which
deliveries are under way or held.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from ..core.clock import ClockState
from ..core.ends import Ends
from ..core.ids import Position
from ..core.record import Record
from ..core.timers import Timer
from ..domain.deliveries import SCHEDULES
from .events import Event
from .replies import ReplyKey, Saved
from .tables.memory import Merchant, Usage

OVERHEAD = 700  # bytes of a step besides what it names
OVERHEAD_EACH = 200  # of an event or a timer


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
        """Whether the record was deleted. A step has deletions last, as files have them."""
        return self.after is None

    @property
    def id(self) -> str:
        """The id of the record."""
        record = self.after or self.before
        assert record is not None
        return record.id

    @property
    def size(self) -> int:
        """About how many bytes both versions keep alive."""
        return sum([record.size for record in (self.before, self.after) if record is not None])


class Used(NamedTuple):
    """The usage of an API key after a step and before it; None where nothing is recorded."""

    key_id: str
    after: Usage | None
    before: Usage | None


class Part(NamedTuple):
    """What a step changes in one merchant's store.

    It is created with `opens` and deleted with `closes`.
    """

    merchant: Merchant
    opens: bool
    closes: bool
    changes: tuple[Change, ...]
    used: tuple[Used, ...]

    @property
    def size(self) -> int:
        """How many bytes the versions have."""
        return sum([change.size for change in self.changes])

    @property
    def mirrored(self) -> Part:
        """The changes that undo these."""
        return Part(
            self.merchant,
            self.closes,
            self.opens,
            tuple([Change(table, after, before) for table, before, after in self.changes]),
            tuple([Used(key_id, before, after) for key_id, after, before in self.used]),
        )


class Restored(NamedTuple):
    """The difference between the state before a step and the earlier state that it restores, of all
    merchants.

    `merchants_…` are their ids in order. `replies` holds pairs of key and saved reply. Timers are
    in the step itself. `size` is how many bytes the records keep alive: a difference that no log
    has room for has no `parts`.
    """

    parts: tuple[Part, ...]
    merchants_before: tuple[str, ...]
    merchants_after: tuple[str, ...]
    events: Ends
    replies: Ends
    size: int


class Step(NamedTuple):
    """Everything that one cause changed.

    It holds results, not inputs: folding it runs no rule. Members named `…_before` or `forgotten_…`
    are what the step replaced, which undoing it puts back.

    A step that restores an earlier state has `restored`, and no records, events, usage or replies
    of its own.
    """

    number: int
    at: int
    cause: Cause
    merchant: Merchant
    before: Standing
    after: Standing
    opens_store: bool = False
    changes: tuple[Change, ...] = ()
    events: tuple[Event, ...] = ()
    forgotten_events: tuple[Event, ...] = ()
    timers_set: tuple[Timer, ...] = ()
    timers_fired: tuple[Timer, ...] = ()
    used: tuple[Used, ...] = ()
    saved: tuple[ReplyKey, Saved] | None = None
    forgotten_replies: tuple[tuple[ReplyKey, Saved], ...] = ()
    restored: Restored | None = None

    @property
    def merchants_before(self) -> tuple[str, ...] | None:
        """The ids of all merchants before it; None where it restores no state."""
        return self.restored and self.restored.merchants_before

    @property
    def merchants_after(self) -> tuple[str, ...] | None:
        """The ids of all merchants after it; None where it restores no state."""
        return self.restored and self.restored.merchants_after

    @property
    def mirrored_parts(self) -> list[Part]:
        """The changes that undo those of each merchant's store."""
        return [part.mirrored for part in self.parts]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it changed in each merchant's store."""
        if self.restored is not None:
            return self.restored.parts
        return (Part(self.merchant, self.opens_store, False, self.changes, self.used),)

    @property
    def event_ends(self) -> Ends:
        """How the list of events differs before and after it."""
        if self.restored is not None:
            return self.restored.events
        return Ends(oldest_before=self.forgotten_events, newest_after=self.events)

    @property
    def reply_ends(self) -> Ends:
        """How the saved replies differ before and after it."""
        if self.restored is not None:
            return self.restored.replies
        return Ends(
            oldest_before=self.forgotten_replies,
            newest_after=() if self.saved is None else (self.saved,),
        )

    @property
    def size(self) -> int:
        """About how many bytes it keeps alive."""
        events, replies = [*self.forgotten_events], [*self.forgotten_replies]
        if self.saved is not None:
            replies.append(self.saved)
        if self.restored is not None:
            events += chain(*self.restored.events)
            replies += chain(*self.restored.replies)
        size = OVERHEAD + OVERHEAD_EACH * (
            len(self.events) + len(self.timers_set) + len(self.timers_fired)
        )
        if self.restored is not None:
            size += self.restored.size
        else:
            size += sum([part.size for part in self.parts])
        for event in events:
            size += event.size
        for _, saved in replies:
            size += len(saved.body)
        return size

    def __repr__(self) -> str:
        """Without records and replies, which may contain secrets."""
        return f"Step(number={self.number}, at={self.at}, cause={self.cause})"
