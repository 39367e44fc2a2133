"""A sandbox: its stores, clock, timers, ids, events and saved replies, which only steps change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

from ..contract.document import Document
from ..contract.lifecycles import Changes, Lifecycle
from ..contract.schema import Schemas
from ..core.clock import Clock, iso
from ..core.ids import Ids, named_uuid
from ..core.problem import broken
from ..core.record import Body, Record, Row, place
from ..core.slices import OneByOne, Sliced, at_once
from ..core.timers import Timers
from .fault_rules import Faults
from .kept import Budget, Journal, Log
from .lists import EventLog, Replies, ReplyKey
from .step import Part, SandboxSettings, Standing, Step, Used
from .tables.specs import Layout
from .tables.store import Merchant, Store
from .tables.table import Table

DEFAULT = "default"  # the sandbox that always exists
SILENT = 1 << 63
"""As `held_before`: no delivery is sent, whatever its event."""
PAUSE_AFTER = 16  # records changed
CREATION = {"createdAt", "created_at", "updatedAt"}
"""Members that say when a record was made, until it is changed."""

Opened = tuple[str, Row | None, Row | None]
"""A change, parsed: its table, the version before, and the one after."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What all sandboxes of a server share and none of them changes.

    `lifecycles` and `defaults` are by schema name, `payload_keys` by event type. `banks` are the
    ISPB and name of payers' banks, each as often as it is likely. `document` and `schemas` are
    those of the served contract, `settings` those of a new sandbox. The server signs with its
    `secret`.
    """

    layout: Layout
    lifecycles: Mapping[str, Lifecycle]
    changes: Changes
    payload_keys: Mapping[str, str]
    defaults: Mapping[str, Body]
    banks: tuple[tuple[str, str], ...]
    document: Document
    schemas: Schemas
    base_url: str
    settings: SandboxSettings
    secret: bytes = field(repr=False)

    def new(self, table: str, ident: str, at: int) -> Row:
        """A record of a table that is made at an instant (ms), with the contract's defaults."""
        public = self.defaults[self.layout.tables[table].schema] | {"id": ident}
        public |= dict.fromkeys(CREATION & public.keys(), iso(at))
        return Row(table, Record(ident, place(at, ident), 0, b"", b""), public, {})


@dataclass(slots=True)
class Origin:
    """How a sandbox was seeded, which no step changes.

    A reset restores `first_settings` and `first_clock`: an instant (ms) and whether the clock is
    frozen, or None for the clock of the server's start. `home` is the seeded merchant's id;
    `sample` and `personas` are ids of records by name. `seeded_keys` are the ids of the API keys
    that came with the seed. `generation` is part of the secrets of these keys; nothing that goes
    back in time changes it.

    While the sandbox `is_seeding` its past, which began at `seeding_since` (ms), `declining` has
    the failure code of each subscription whose next charge is declined, and it `raises_events` only
    once somebody listens.
    """

    seed: int
    scenario: str
    first_settings: SandboxSettings
    first_clock: tuple[int, bool] | None = None
    generation: str = ""
    home: str = ""
    sample: dict[str, str] = field(default_factory=dict)
    personas: dict[str, str] = field(default_factory=dict)
    seeded_keys: frozenset[str] = frozenset()
    is_seeding: bool = False
    seeding_since: int = 0
    declining: dict[str, str] = field(default_factory=dict)
    raises_events: bool = True


@dataclass(slots=True)
class Status:
    """How things stand with a sandbox in this process. It is not part of its state.

    One that `is_broken` accepts no steps, because a defect made folding one fail; one that
    `is_gone` was reset or deleted. While it `is_halted`, its steps cannot be stored, and time and
    deliveries wait; one that `is_undone` was unloaded, as the store may not have its newest steps.
    While it `is_advancing`, its clock stops at each delivery. Deliveries of the first `held_before`
    events are not sent. A step with something due before the `next_look` (ms) of the courier calls
    `on_due`. `turn` is locked while due jobs run; `in_progress` are the Idempotency-Keys of
    requests that still run, and `requests` lets others between them.
    """

    is_broken: bool = False
    is_gone: bool = False
    is_halted: bool = False
    is_undone: bool = False
    is_advancing: bool = False
    held_before: int = 0
    next_look: int = SILENT
    on_due: Callable[[Sandbox], None] = lambda sandbox: None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    in_progress: set[ReplyKey] = field(default_factory=set)
    requests: OneByOne = field(default_factory=OneByOne)


@dataclass(slots=True, weakref_slot=True, eq=False)
class Sandbox:
    """One sandbox, with its own records, clock and credentials.

    State, which only steps change: `stores`, `events`, `timers`, `replies`, `settings`, the clock's
    setting and the positions of `ids`. Not state: its status, journal and fault rules.
    """

    name: str
    origin: Origin
    rules: Rules
    clock: Clock
    ids: Ids
    log: Log
    settings: SandboxSettings
    faults: Faults
    journal: Journal
    timers: Timers = field(default_factory=Timers)
    stores: dict[str, Store] = field(default_factory=dict)
    events: EventLog = field(default_factory=EventLog)
    replies: Replies = field(default_factory=Replies)
    status: Status = field(default_factory=Status)

    @property
    def store(self) -> Store:
        """The seeded merchant's store."""
        return self.stores[self.origin.home]

    def tables(self) -> Iterator[Table]:
        """The tables of all merchants."""
        for store in self.stores.values():
            yield from store.tables.values()

    @property
    def standing(self) -> Standing:
        """How it stands after the newest step, besides its records and lists."""
        return Standing(
            self.clock.recorded,
            self.ids.position,
            self.events.raised,
            self.timers.last,
            self.settings,
        )

    @property
    def present(self) -> int:
        """The present instant, in ms. A clock that advances stands where it has stopped."""
        if self.status.is_advancing:
            return self.clock.now
        return self.clock.read()

    @property
    def identity(self) -> str:
        """What its credentials are made from: its name and its generation, without
        the empty one.
        """
        if not self.origin.generation:
            return self.name
        return f"{self.name}/{self.origin.generation}"

    def renew(self, generation: str) -> None:
        """Begin another generation. Its seeded keys are still those of the one before."""
        self.origin.generation = generation
        self.ids.identify(self.identity)

    def store_of(self, merchant_id: str) -> Store:
        """A merchant's store; for a new merchant an empty one, which the merchant's first
        step adds.
        """
        store = self.stores.get(merchant_id)
        if store is not None:
            return store
        name = f"Loja {merchant_id[:8]}"
        return Store(
            Merchant(
                merchant_id, named_uuid("user", merchant_id), name, "São Paulo", iso(self.clock.now)
            ),
            self.rules.layout,
        )

    # -- change

    def take(
        self, step: Step, opened: Iterable[Opened] | None = None, copy: Sandbox | None = None
    ) -> None:
        """Append a step to the log and fold it. If appending fails, nothing has changed. Raises
        Unavailable.

        `copy` is in the state that the step restores; its tables become those of the sandbox. If a
        defect makes folding fail, the sandbox is broken and accepts no steps.
        """
        if self.status.is_broken:
            raise broken(self.name)
        self.log.append(step)
        self.log.budget.steps += 1
        brings_work = self._brings_work(step)
        self.status.is_broken = True
        if copy is None:
            self.fold(step, opened)
        else:
            self._adopt(step, copy)
        if step.restores and self.status.held_before != SILENT:
            # the deliveries of a restored past are not sent again
            self.status.held_before = self.events.raised
        self.status.is_broken = False
        if brings_work:
            self.status.on_due(self)

    def _brings_work(self, step: Step) -> bool:
        """Whether something is due before the courier looks next; parked attempts may be
        due by now.
        """
        if self.timers.parked:
            return True
        return bool(step.timers_set) and min(step.timers_set).due < self.status.next_look

    def fold(self, step: Step, opened: Iterable[Opened] | None = None) -> None:
        """Apply a step. `opened` are its versions, parsed, where the caller has them."""
        if opened is None:
            at_once(self.change(step))
        else:
            (part,) = step.parts
            store = self._store_for(part)
            for version in opened:
                store.replace(*version)
            _use(store, part.used)
        self.fold_rest(step)

    def _store_for(self, part: Part) -> Store:
        """The store that a part changes, which is new if the part opens it."""
        if part.opens:
            self.stores[part.merchant.id] = Store(part.merchant, self.rules.layout)
        return self.stores[part.merchant.id]

    def fold_rest(self, step: Step) -> None:
        """Apply what a step changes beside records, usage and stores."""
        if any(step.event_ends):
            self.events.exchange(step.event_ends)
        if any(step.reply_ends):  # few requests have an Idempotency-Key
            self.replies.exchange(step.reply_ends)
        self.timers.exchange(step.timers_fired, step.timers_set)
        self.stand(step.after)

    def stand(self, standing: Standing) -> None:
        """Stand so, besides its records and lists."""
        clock, self.ids.position, raised, self.timers.last, self.settings = standing
        self.events.raised = raised
        self.clock.set(clock)

    def _adopt(self, step: Step, copy: Sandbox) -> None:
        """Fold a step that restores a state: use the tables of a copy in that state, which nobody
        else uses.

        Stores remain the same objects, because waiting requests refer to them.
        """
        for ident, store in self.stores.items():
            store.adopt(copy.stores.get(ident) or Store(store.merchant, self.rules.layout))
        kept = [ident for ident in {**self.stores, **copy.stores} if ident in copy.stores]
        self.stores = {ident: self.stores.get(ident, copy.stores[ident]) for ident in kept}
        self.timers = copy.timers
        self.fold_rest(step)

    def change(self, step: Step) -> Sliced[None]:
        """Change records and usage, with pauses, in which the state is incomplete."""
        for part in step.parts:
            yield from _change(self._store_for(part), part)
            if part.closes:
                del self.stores[part.merchant.id]

    @contextmanager
    def seeding_past(self, since: int) -> Iterator[None]:
        """Within it, time before the sandbox begins passes, from an instant on, with its own clock
        and ids and no log.

        The result is the origin of the sandbox: afterwards log, clock and ids are as they were.
        """
        clock = self.clock
        ids = self.ids
        steps = self.log
        self.clock = Clock(since)
        self.ids = ids.before()
        self.log = Log(0, Budget())
        self.origin.is_seeding = True
        self.origin.seeding_since = since
        try:
            yield
        finally:
            self.clock, self.ids, self.log, self.origin.is_seeding = clock, ids, steps, False

    # -- copies

    def fork(self, name: str, *, with_stores: bool = True) -> Sandbox:
        """An independent copy of this generation, fault rules included, that sends no deliveries
        until `speak`.
        """
        twin = Sandbox(
            name=name,
            origin=copy(self.origin),
            rules=self.rules,
            clock=copy(self.clock),
            ids=self.ids.copy(name),
            log=self.log.fresh(self.log.number),
            settings=self.settings,
            faults=self.faults.copy(),
            journal=self.journal.fresh(),
            timers=self.timers.copy(),
            events=self.events.copy(),
            replies=self.replies.copy(),
            status=Status(held_before=SILENT),
        )
        twin.clock.set(twin.clock.state)
        twin.ids.identify(twin.identity)
        if with_stores:
            for ident, store in self.stores.items():
                twin.stores[ident] = store.copy()
        return twin

    def speak(self) -> None:
        """Send deliveries of a fork's new events, under ids that its parent does not use."""
        self.status.held_before = self.events.raised
        self.ids.salt_events(self.name)


def _change(store: Store, part: Part) -> Iterator[None]:
    """Change one store, with a pause after some records."""
    for number, (name, before, after) in enumerate(part.changes):
        table = store.tables[name]
        store.replace(name, before and table.parse(before), after and table.parse(after))
        if number % PAUSE_AFTER == 0:
            yield
    _use(store, part.used)


def _use(store: Store, used: Iterable[Used]) -> None:
    """Have keys been used as often as a step says."""
    for key_id, usage, _ in used:
        store.set_usage(key_id, usage)
        store.unrecorded.pop(key_id, None)
