"""One isolated world: its stores, clock, timers, identifiers, events and saved replies."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .contract.document import Lifecycle
from .events.log import Event, EventLog
from .kernel.clock import Clock, iso
from .kernel.ids import Ids, named_uuid
from .kernel.record import Body, Change, Emit, Record
from .kernel.timers import Timers
from .kernel.trace import Trace
from .store.memory import Merchant, Store
from .store.table import Check

JOURNAL = 2_000
MOST_JOBS = 100_000  # of one step of the clock: nobody else is served meanwhile


class Fired(NamedTuple):
    """A job that the clock has done."""

    at: int
    job: str
    subject: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What every sandbox of a server shares and none of them changes.

    `checks` by schema name; `payload_keys` by event type; `jobs` by name; `blanks` by schema name; `banks` are ISPB and
    name of where payers have their accounts; `autopay` is seconds.
    """

    checks: Mapping[str, Check]
    lifecycles: Mapping[str, Lifecycle]
    payload_keys: Mapping[str, str]
    jobs: Mapping[str, "Job"]
    on_event: "Callable[[Sandbox, Store, Event], None]"
    blanks: Mapping[str, Body]
    banks: tuple[tuple[str, str], ...]
    base_url: str
    autopay: int | None


@dataclass(slots=True)
class Saved:
    """A reply kept for its Idempotency-Key; `parts` is None while the first request still runs."""

    fingerprint: bytes
    expires: int
    status: int = 0
    parts: bytes | None = field(default=None, repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True)
class Sandbox:
    """A world of its own. Another sandbox's records, clock and credentials do not exist in it.

    `touched` tells whether anything was changed since it was seeded.
    """

    name: str
    seed: int
    scenario: str
    rules: Rules
    clock: Clock
    ids: Ids
    timers: Timers = field(default_factory=Timers)
    stores: dict[str, Store] = field(default_factory=dict)
    home: str = ""
    events: EventLog = field(default_factory=EventLog)
    replies: dict[tuple[str, str, str, str], Saved] = field(default_factory=dict)
    journal: deque[Trace] = field(default_factory=lambda: deque(maxlen=JOURNAL))
    credentials: dict[str, str] = field(default_factory=dict, repr=False)
    sample: dict[str, str] = field(default_factory=dict)
    personas: dict[str, str] = field(default_factory=dict)
    touched: bool = False

    @property
    def store(self) -> Store:
        """The seeded merchant's store."""
        return self.stores[self.home]

    def store_of(self, merchant_id: str) -> Store:
        """A merchant's store; a merchant that a token of ours names for the first time gets an empty one."""
        store = self.stores.get(merchant_id)
        if store is None:
            merchant = Merchant(
                merchant_id,
                named_uuid("user", merchant_id),
                f"Loja {merchant_id[:8]}",
                "São Paulo",
                iso(self.clock.now),
            )
            store = self.stores[merchant_id] = Store(merchant, self.rules.checks)
        return store

    # -- change

    def apply(self, store: Store, change: Change) -> dict[str, Record]:
        """Write a change and raise its events as one step. Answers the new versions by id."""
        written = store.write(change)
        self.touched = True
        merchant_id = store.merchant.id
        for emit in change.emits:
            event = self._event(store, emit, written)
            self.events.append(event)
            self.rules.on_event(self, store, event)
        for due, job, subject in change.later:
            self.timers.set(due, job, merchant_id, subject)
        return written

    def _event(self, store: Store, emit: Emit, written: Mapping[str, Record]) -> Event:
        type_, table_name, ident, beside, project, resource = emit
        hidden = b""
        if resource is None:
            table = store.tables[table_name]
            record = written.get(ident) or table.find(ident)
            assert record is not None  # an event without its resource is about a record that is there
            resource = store.shown(table, record)
            if beside.names:
                hidden = record.hidden
        return Event(
            self.ids.event(),
            type_,
            self.clock.now,
            store.merchant.id,
            self.rules.payload_keys[type_],
            ident,
            project,
            resource,
            hidden,
            beside,
        )

    # -- time

    def tick(self) -> int:
        """Latch the time of the step that begins now, after everything that was due before it."""
        now = self.clock.read()
        due = self.timers.next_due()
        if due is not None and due <= now:
            self._run_until(now)
            due = self.timers.next_due()
            if due is not None and due <= now:  # more than one step does: time waits until the next one
                return self.clock.now
        self.clock.latch(now)
        return now

    def advance(self, to: int) -> list[Fired]:
        """Jump to an instant; all jobs on the way are done in the order of their time, those they set included.

        After MOST_JOBS the clock stops where the last one was: the next step goes on from there.
        """
        fired = self._run_until(to)
        due = self.timers.next_due()
        self.clock.move(self.clock.now if due is not None and due <= to else to)
        return fired

    def _run_until(self, now: int) -> list[Fired]:
        fired: list[Fired] = []
        done = 0
        while done < MOST_JOBS and (timer := self.timers.pop_due(now)) is not None:
            done += 1
            self.clock.latch(max(self.clock.now, timer.due))
            before = self.events.raised
            store = self.stores.get(timer.merchant_id)
            if store is None or not self.rules.jobs[timer.job](self, store, timer.subject):
                continue
            raised = self.events.raised - before
            types = tuple(event.type for event, _ in zip(self.events.newest(), range(raised), strict=False))[::-1]
            fired.append(Fired(timer.due, timer.job, timer.subject, types))
        return fired

    # -- copies

    def fork(self, name: str) -> "Sandbox":
        """A world with the same past and a future of its own. Saved replies and the journal stay behind."""
        return Sandbox(
            name=name,
            seed=self.seed,
            scenario=self.scenario,
            rules=self.rules,
            clock=self.clock.copy(),
            ids=self.ids.copy(name),
            timers=self.timers.copy(),
            stores={ident: store.copy() for ident, store in self.stores.items()},
            home=self.home,
            events=self.events.copy(),
            credentials=dict(self.credentials),
            sample=dict(self.sample),
            personas=dict(self.personas),
            touched=self.touched,
        )

    def counts(self) -> dict[str, Any]:
        """How many records the seeded merchant has, by table."""
        return self.store.counts()


Job = Callable[[Sandbox, Store, str], bool]
"""Does one due job for a subject; answers whether there was still anything to do."""
