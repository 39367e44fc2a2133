"""One isolated world: its stores, clock, timers, id streams, events and saved replies, changed by steps alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..contract.document import Lifecycle
from ..domain.deliveries import STANDARD
from ..domain.webhooks import Subscriber
from ..events.log import EventLog
from ..faults.rules import Faults
from ..kernel.clock import Clock, ClockState, iso
from ..kernel.ids import Ids, named_uuid
from ..kernel.problem import Unavailable
from ..kernel.record import Body, Row
from ..kernel.timers import Timers
from ..kernel.trace import Journal
from ..store.memory import Merchant, Store
from ..store.table import Table
from ..store.tables import Layout
from .log import Budget, Log, Unkept
from .replies import Replies
from .step import Put, ReplyKey, Step

DEFAULT = "default"  # the world that is there from the start
SILENT = 1 << 63
"""As `held`: nothing is delivered, of whatever event."""
BROKEN = "A defect has left the sandbox {} half changed; the server's log names it. POST /_sandbox/reset seeds it anew."
log = logging.getLogger("stub_server")

Opened: TypeAlias = tuple[Put, Body, Body, Row | None]
"""A version that a step writes, its public and hidden part, and the row that it replaces."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What every sandbox of a server shares and none of them changes.

    `lifecycles` and `changes` (the event types of each change that moves no state) by schema name; `payload_keys` by
    event type; `defaults` by schema name; `banks` are ISPB and name of where payers have their accounts, each as often
    as it is likely; `autopay` is seconds; `schedule` is what each attempt of a delivery waits, in ms.
    """

    layout: Layout
    lifecycles: Mapping[str, Lifecycle]
    changes: Mapping[str, Mapping[str, tuple[str, ...]]]
    payload_keys: Mapping[str, str]
    defaults: Mapping[str, Body]
    banks: tuple[tuple[str, str], ...]
    base_url: str
    autopay: int | None
    schedule: tuple[int, ...] = STANDARD


@dataclass(slots=True, weakref_slot=True)
class Sandbox:
    """A world of its own. Another sandbox's records, clock and credentials do not exist in it.

    State, which steps alone change: `stores`, `events`, `timers`, `replies`, the clock's setting, the positions of
    `ids`. Beside it, and no state: journal, fault rules, `in_progress` (Idempotency-Keys whose request still runs) and
    `subscribers` (who wants which events, remembered until a webhook changes); `seeded_keys` are the ids of the API
    keys that came with the seed, whose secrets follow the world's name. `recorded_clock` is the clock's setting
    after the newest step; a running clock shows a later instant by now.

    Deliveries of the first `held` events are not sent. `bell` is rung by a step that has something due before `alarm`,
    the instant (ms) at which somebody looks anyway. While a world `is_advancing`, its clock stands where its deliveries
    are; one that `is_gone` is nobody's any more.
    """

    name: str
    seed: int
    scenario: str
    rules: Rules
    clock: Clock
    ids: Ids
    log: Log
    timers: Timers = field(default_factory=Timers)
    stores: dict[str, Store] = field(default_factory=dict)
    home: str = ""
    events: EventLog = field(default_factory=EventLog)
    replies: Replies = field(default_factory=Replies)
    credentials: dict[str, str] = field(default_factory=dict, repr=False)
    sample: dict[str, str] = field(default_factory=dict)
    personas: dict[str, str] = field(default_factory=dict)
    seeded_keys: frozenset[str] = frozenset()
    journal: Journal = field(default_factory=Journal)
    in_progress: set[ReplyKey] = field(default_factory=set)
    subscribers: dict[tuple[str, str, str | None], list[Subscriber]] = field(default_factory=dict)
    is_broken: bool = False
    is_advancing: bool = False
    is_gone: bool = False
    held: int = 0
    bell: Callable[[Sandbox], None] | None = None
    alarm: int = SILENT
    recorded_clock: ClockState = field(init=False)
    faults: Faults = field(init=False)

    def __post_init__(self) -> None:
        self.recorded_clock = self.clock.state
        self.faults = Faults(self.seed)

    @property
    def store(self) -> Store:
        """The seeded merchant's store."""
        return self.stores[self.home]

    @property
    def touched(self) -> bool:
        """Whether anything was changed since the world was seeded."""
        return self.log.number > 0

    def store_of(self, merchant_id: str) -> Store:
        """A merchant's store. A merchant whom this world does not know has an empty one, which his first step opens."""
        store = self.stores.get(merchant_id)
        if store is not None:
            return store
        name = f"Loja {merchant_id[:8]}"
        merchant = Merchant(merchant_id, named_uuid("user", merchant_id), name, "São Paulo", iso(self.clock.now))
        return Store(merchant, self.rules.layout)

    # -- change

    def take(self, step: Step, opened: Sequence[Opened] | None = None) -> None:
        """Append a step to the log and fold it. When appending fails the world is as it was.

        Folding cannot refuse. Should it fail all the same, what is derived from the records is made anew from them.
        Should that fail too, the world is broken: it takes no step any more. Raises Unavailable.
        """
        if self.is_broken:
            raise Unavailable(BROKEN.format(self.name))
        self.log.append(step)
        try:
            self.fold(step, opened)
        except Exception:
            log.exception("defect while folding step %d of sandbox %s; its tables are rebuilt", step.number, self.name)
            self.is_broken = True
            self._repair(step)
            self.is_broken = False
        if self.bell is not None and step.timers_set and min(step.timers_set)[0] < self.alarm:
            self.bell(self)

    def fold(self, step: Step, opened: Sequence[Opened] | None = None) -> None:
        """Apply a step. `opened` are its versions, parsed, where the caller has them: it saves parsing them again."""
        store = self.stores.get(step.merchant.id) or self._store_for(step)
        tables = store.tables
        if opened is None:
            opened = [_opened(tables[put[0]], put) for put in step.puts]
        for (name, record, _), public, hidden, row in opened:
            store.put(tables[name], record, public, hidden, row)
            if name == "webhooks":
                self.subscribers.clear()
        for name, record in step.drops:
            store.drop(tables[name], tables[name].parse(record))
            if name == "webhooks":
                self.subscribers.clear()
        self._fold_rest(step, store)

    def _fold_rest(self, step: Step, store: Store) -> None:
        """What a step says beside records. Nothing here can fail half way, and doing it twice does it once."""
        for event in step.events[self.events.raised - step.events_before :]:
            self.events.append(event)
        for timer in step.timers_taken:
            self.timers.discard(timer)
        for timer in step.timers_set:
            self.timers.put(timer)
        for key_id, usage, _ in step.used:
            store.set_usage(key_id, usage)
            store.unrecorded.pop(key_id, None)
        for key, _ in step.forgotten_replies:
            self.replies.drop(key)
        if step.saved is not None:
            self.replies.put(*step.saved)
        if step.clock is not self.recorded_clock:
            self.clock.set(step.clock)
            self.recorded_clock = step.clock
        self.ids.position = step.position

    def unfold(self, step: Step) -> None:
        """Undo the newest step: have what it replaced. The log is not told.

        What keys were used since must have been recorded (`flush_usage`).
        """
        store = self._store_for(step)
        tables = store.tables
        for name, record in reversed(step.drops):
            row = tables[name].parse(record)
            store.put(tables[name], record, row.public, row.hidden, None)
        for name, record, before in reversed(step.puts):
            row = tables[name].parse(record)
            if before is None:
                store.drop(tables[name], row)
            else:
                old = tables[name].parse(before)
                store.put(tables[name], before, old.public, old.hidden, row)
        self.events.retract(len(step.events), step.forgotten_events)
        for timer in step.timers_set:
            self.timers.discard(timer)
        for timer in step.timers_taken:
            self.timers.put(timer)
        self.timers.last = step.timers_before
        for key_id, _, usage in step.used:
            store.set_usage(key_id, usage)
        if step.saved is not None:
            self.replies.drop(step.saved[0])
        self.replies.put_back(step.forgotten_replies)
        self.clock.set(step.clock_before)
        self.recorded_clock = step.clock_before
        self.ids.position = step.position_before
        if step.opens_store:
            del self.stores[step.merchant.id]
        self.subscribers.clear()

    def _store_for(self, step: Step) -> Store:
        store = self.stores.get(step.merchant.id)
        if store is None:
            store = self.stores[step.merchant.id] = Store(step.merchant, self.rules.layout)
        return store

    def _repair(self, step: Step) -> None:
        """Have what a step says after folding it has failed half way: the records, then what follows from them."""
        store = self._store_for(step)
        rows = {name: dict(table.rows) for name, table in store.tables.items()}  # a fork may share the tables
        for name, record, _ in step.puts:
            rows[name][record.key] = record
        for name, record in step.drops:
            rows[name].pop(record.key, None)
        store.rebuild(rows)
        self.subscribers.clear()
        self._fold_rest(step, store)

    @contextmanager
    def living_past(self, since: int) -> Iterator[None]:
        """The time before the world begins, from an instant on: with a clock and ids of its own, and steps not kept.

        What comes of it is the world's origin: its log is empty, its clock as it was set, its ids not begun.
        """
        clock, ids, steps = self.clock, self.ids, self.log
        self.clock, self.ids, self.log = Clock(since), ids.before(), Unkept(0, Budget())
        self.recorded_clock = self.clock.state
        try:
            yield
        finally:
            self.clock, self.ids, self.log = clock, ids, steps
            self.recorded_clock = clock.state

    # -- copies

    def fork(self, name: str) -> Sandbox:
        """A world with the same past and a future of its own, of which nobody is told.

        Fault rules come along, the journal stays behind.
        """
        twin = Sandbox(
            name=name,
            seed=self.seed,
            scenario=self.scenario,
            rules=self.rules,
            clock=self.clock.copy(),
            ids=self.ids.copy(name),
            log=self.log.fresh(self.log.number),
            timers=self.timers.copy(),
            stores={ident: store.copy() for ident, store in self.stores.items()},
            home=self.home,
            events=self.events.copy(),
            replies=self.replies.copy(),
            credentials=dict(self.credentials),
            sample=dict(self.sample),
            personas=dict(self.personas),
            seeded_keys=self.seeded_keys,
            held=SILENT,
        )
        twin.faults = self.faults.copy()
        return twin

    def speak(self) -> None:
        """Have deliveries of a fork's new events sent, under ids that its parent does not give."""
        self.held = self.events.raised
        self.ids.salt_events(self.name)

    def counts(self) -> dict[str, Any]:
        """How many records the seeded merchant has, by table."""
        return self.store.counts()


def _opened(table: Table, put: Put) -> Opened:
    _, record, before = put
    row = table.parse(record)
    return put, row.public, row.hidden, None if before is None else table.parse(before)
