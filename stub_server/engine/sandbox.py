"""One isolated world: its stores, clock, timers, id streams, events and saved replies, changed by steps alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, TypeAlias

from ..domain.webhooks import Subscriber
from ..events.log import EventLog
from ..faults.fault_rules import Faults
from ..kernel.clock import Clock, ClockState, iso
from ..kernel.ids import Ids, named_uuid
from ..kernel.problem import broken
from ..kernel.record import Body, Row
from ..kernel.slices import at_once
from ..kernel.timers import Timers
from ..store.memory import Merchant, Store
from ..store.table import Table
from .journal import Journal
from .log import Budget, Log, Unkept
from .replies import Replies
from .restoring import change_records, rebuild, undo_records
from .rules import Rules, SandboxSettings
from .step import Put, ReplyKey, Restored, Step

DEFAULT = "default"  # the world that is there from the start
SILENT = 1 << 63
"""As `held`: nothing is delivered, of whatever event."""
log = logging.getLogger("stub_server")

Opened: TypeAlias = tuple[Put, Body, Body, Row | None]
"""A version that a step writes, its public and hidden part, and the row that it replaces."""


@dataclass(slots=True, weakref_slot=True)
class Sandbox:
    """A world of its own. Another sandbox's records, clock and credentials do not exist in it.

    State, which steps alone change: `stores`, `events`, `timers`, `replies`, `settings`, the clock's setting, the
    positions of `ids`. Beside it, and no state: journal, fault rules, `in_progress` (Idempotency-Keys whose request
    still runs) and `subscribers` (who wants which events, remembered until a webhook changes); `seeded_keys` are the
    ids of the API keys that came with the seed, whose secrets follow the world's name. `recorded_clock` is the clock's
    setting after the newest step; a running clock shows a later instant by now. A reset restores `first_settings`.

    While a past is lived, `declining` has the subscriptions whose cards are refused when they are charged next, and
    why: the failure code.
    Deliveries of the first `held` events are not sent. `bell` is rung by a step that has something due before `alarm`,
    the instant (ms) at which somebody looks anyway. While a world `is_advancing`, its clock stands where its deliveries
    are; one that `is_gone` is nobody's any more. In one that `is_halted` time and deliveries wait, for its steps cannot
    be written; `undone_at` says when one was last undone for that, in ns of the machine's counter. Whoever does what is
    due has the `turn`.
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
    is_halted: bool = False
    undone_at: int = 0
    held: int = 0
    declining: dict[str, str] = field(default_factory=dict)
    bell: Callable[[Sandbox], None] | None = None
    alarm: int = SILENT
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    recorded_clock: ClockState = field(init=False)
    faults: Faults = field(init=False)
    settings: SandboxSettings = field(init=False)
    first_settings: SandboxSettings = field(init=False)

    def __post_init__(self) -> None:
        self.settings = self.first_settings = self.rules.settings
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

    def take(self, step: Step, opened: Iterable[Opened] | None = None, reached: Sandbox | None = None) -> None:
        """Append a step to the log and fold it. When appending fails the world is as it was.

        `reached` is a copy in the state that the step restores: its tables are taken over. Folding cannot refuse.
        Should it fail all the same, what is derived from the records is made anew from them. Should that fail too, the
        world is broken: it takes no step any more. Raises Unavailable.
        """
        if self.is_broken:
            raise broken(self.name)
        self.log.append(step)
        self.log.budget.steps += 1
        try:
            if reached is None:
                self.fold(step, opened)
            else:
                self._adopt(step, reached)
        except Exception:
            log.exception("defect while folding step %d of sandbox %s; its tables are rebuilt", step.number, self.name)
            self.is_broken = True
            if reached is not None:
                raise
            self._repair(step)
            self.is_broken = False
        # Of attempts that are parked some may go on now.
        if self.bell and (self.timers.parked or (step.timers_set and min(step.timers_set)[0] < self.alarm)):
            self.bell(self)

    def fold(self, step: Step, opened: Iterable[Opened] | None = None) -> None:
        """Apply a step. `opened` are its versions, parsed, where the caller has them: it saves parsing them again."""
        if step.restored is not None:
            return self._restore(step, step.restored)
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
        if step.events:
            for event in step.events[self.events.raised - step.events_before :]:
                self.events.append(event)
        for timer in step.timers_taken:
            self.timers.discard(timer)
        for timer in step.timers_set:
            self.timers.put(timer)
        for key_id, usage, _ in step.used:
            store.set_usage(key_id, usage)
            store.unrecorded.pop(key_id, None)
        if step.saved is not None:
            for key, _ in step.forgotten_replies:
                self.replies.drop(key)
            self.replies.put(*step.saved)
        if step.settings is not None:
            self.settings = step.settings
        if step.clock is not self.recorded_clock:
            self.clock.set(step.clock)
            self.recorded_clock = step.clock
        self.ids.position = step.position

    def _restore(self, step: Step, restored: Restored) -> None:
        """Fold a step that restores an earlier state."""
        at_once(change_records(self.stores, restored.parts, restored.merchants_after, self.rules.layout))
        self.events.exchange(restored.events, restored.raised_after)
        self.replies.exchange(restored.replies)
        self._hold_the_past()
        self._fold_rest(step, self.store)

    def _adopt(self, step: Step, reached: Sandbox) -> None:
        """Fold a step that restores a state by taking over a copy that has reached it, which nobody uses any more.

        Stores stay the same objects: requests that wait meanwhile hold them.
        """
        for ident, store in self.stores.items():
            store.adopt(reached.stores.get(ident) or Store(store.merchant, self.rules.layout))
        self.stores = {ident: self.stores.get(ident, store) for ident, store in reached.stores.items()}
        self.events, self.replies, self.timers = reached.events, reached.replies, reached.timers
        self.timers.last = step.timers_before
        self._hold_the_past()
        self._fold_rest(step, self.store)

    def _hold_the_past(self) -> None:
        """What is due of a restored past is not sent again, but when somebody says so."""
        self.subscribers.clear()
        if self.held != SILENT:
            self.held = self.events.raised

    def unfold(self, step: Step) -> None:
        """Undo the newest step: have what it replaced. The log is not told.

        A step must have recorded what its keys were used since.
        """
        if step.restored is not None:
            parts = [part.mirrored for part in step.restored.parts]
            at_once(change_records(self.stores, parts, step.restored.merchants_before, self.rules.layout))
        else:
            undo_records(self._store_for(step), step)
            if step.opens_store:
                del self.stores[step.merchant.id]
        self.unfold_rest(step)

    def unfold_rest(self, step: Step) -> None:
        """Undo what a step did beside records, usage and stores."""
        if step.restored is not None:
            self.events.exchange(step.restored.events.mirrored, step.restored.raised_before)
            self.replies.exchange(step.restored.replies.mirrored)
        self.events.retract(len(step.events), step.forgotten_events)
        if step.saved is not None:
            self.replies.drop(step.saved[0])
        self.replies.put_back(step.forgotten_replies)
        for timer in step.timers_set:
            self.timers.discard(timer)
        for timer in step.timers_taken:
            self.timers.put(timer)
        self.timers.last = step.timers_before
        if step.settings is not None:
            self.settings = step.settings_before or self.rules.settings
        self.clock.set(step.clock_before)
        self.recorded_clock = step.clock_before
        self.ids.position = step.position_before
        self.subscribers.clear()

    def take_back(self, step: Step) -> None:
        """Undo the newest step as if it had never been taken. What reads have counted of its keys since is lost."""
        store = self.stores[step.merchant.id]
        self.unfold(step)
        for key_id, _, _ in step.used:
            store.unrecorded.pop(key_id, None)
        self.log.take_back(step)
        self.undone_at = perf_counter_ns()

    def _store_for(self, step: Step) -> Store:
        store = self.stores.get(step.merchant.id)
        if store is None:
            store = self.stores[step.merchant.id] = Store(step.merchant, self.rules.layout)
        return store

    def _repair(self, step: Step) -> None:
        """Have what a step says after folding it has failed half way: the records, then what follows from them."""
        store = self._store_for(step)
        rebuild(store, step)
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
        """A world with the same past and a future of its own, of which nobody is told; fault rules come along."""
        twin = Sandbox(
            name=name,
            seed=self.seed,
            scenario=self.scenario,
            rules=self.rules,
            clock=self.clock.copy(),
            ids=self.ids.copy(name),
            log=self.log.fresh(self.log.number),
            journal=self.journal.fresh(),
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
        twin.settings, twin.first_settings = self.settings, self.first_settings
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
