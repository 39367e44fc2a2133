"""Stores steps: each is committed before anybody is told of it, or undone.

One commit is in flight at a time. What is recorded meanwhile is the next one. An answer waits for the steps of its own
sandbox alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..engine.step import Step
from ..files.writing import step_line
from ..kernel.problem import Refusal, Unavailable
from ..kernel.slices import Lane
from ..worlds.entry import Entry
from ..worlds.inbox import Inbox
from ..worlds.snapshots import Snapshots
from . import store as sql
from .rows import Kept, KeptState, chained, place_of
from .store import Batch, Head, Session, Statement, Store

LEAST = 64 * 1024 * 1024  # bytes of steps after which a state is written, of sandboxes whose state is smaller
MOST = 100_000  # sandboxes of a store
CLOSING = 1.0  # seconds that long work which goes on gets when the server stops
PAUSE = 0.5  # seconds between two looks whether a store that failed can be written again
_DONE = object()
R = TypeVar("R", bound=Refusal)
T = TypeVar("T")
log = logging.getLogger("stub_server")

Belongings: TypeAlias = Callable[[], tuple[Inbox, Snapshots]]
"""What a sandbox has beside its state, empty."""


@dataclass(slots=True)
class Stored:
    """A sandbox whose steps are stored: the state that opening it begins with, and the bytes of steps since.

    `newest` is the number of the newest step and `chain` its sum, `committed` both of the newest one that is stored.
    `contract` is empty where the state and the steps are not all of one.
    """

    entry: Entry
    number: int
    state: KeptState
    contract: str
    newest: int
    chain: int
    committed: tuple[int, int]
    size: int = 0


class Unstored(NamedTuple):
    """A step that is not stored yet, and what `held` and the chain's sum were before it."""

    stored: Stored
    step: Step
    held: int
    chain: int


@dataclass(slots=True)
class Change:
    """What comes, goes or is replaced: statements, and the row of a sandbox that is as it is stored so far.

    The row names a later `state` if there is one. `ends` is the sandbox that goes. `known` is set when the outcome is
    known, or cannot be for now; `failure` says why it is not done. It is not done either where a name `is_taken`.
    """

    statements: Sequence[Statement] = ()
    stored: Stored | None = None
    state: KeptState | None = None
    ends: Stored | None = None
    is_taken: bool = False
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None


@dataclass(slots=True)
class Pending:
    """The next commit: steps and the sandboxes whose rows they change, then changes, each by itself.

    `known` and `failure` are of the steps.
    """

    lines: list[tuple[int, bytes, int]] = field(default_factory=list)
    steps: list[Unstored] = field(default_factory=list)
    touched: dict[int, Stored] = field(default_factory=dict)
    keys: list[Statement] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None
    begun: float = field(default_factory=monotonic)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.touched or self.changes)


class Commits:
    """What is to be committed, and what becomes of it."""

    def __init__(self, store: Store | None, contract: str) -> None:
        self._store, self.contract = store, contract
        self._stored: dict[str, Stored] = {}
        self._pending = Pending()
        self._flying: Pending | None = None  # the commit that is under way
        self.is_behind = False  # whether there is anything that is not stored yet
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self.unknown: dict[int, Stored] = {}  # sandboxes of which the store has not told what it has
        self._untidy: set[int] = set()  # sandboxes that may have steps or states that nobody needs
        self._due: set[str] = set()  # sandboxes of which a state is to be written
        self._session: Session | None = None  # of long work beside the requests, which takes turns
        self._lane: Lane | None = None  # set while an event loop runs
        self._wake = asyncio.Event()
        self.on_lost: Callable[[Sandbox], None] = lambda sandbox: None
        self._committing: asyncio.Task[None] | None = None

    def _follow(self, stored: Stored) -> None:
        """Have every step of a sandbox stored from now on."""
        sandbox = stored.entry.world
        self._stored[sandbox.name] = stored

        def write(step: Step) -> None:
            self._check_written()
            line, pending = step_line(step, part=bytes.decode), self._pending
            pending.steps.append(Unstored(stored, step, sandbox.held, stored.chain))
            stored.newest, stored.chain = step.number, chained(line, stored.chain)
            pending.lines.append((place_of(stored.number, step.number), line, stored.chain))
            pending.touched[stored.number] = stored
            stored.size += len(line)
            if stored.size > max(LEAST, stored.state.size // 2):  # a state is read in half the time of its steps
                self._due.add(sandbox.name)
                self._wake.set()
            self._commit_soon()

        sandbox.log.writer, sandbox.log.stored = write, partial(self.settled, sandbox)

    def _head(self, stored: Stored, newest: int, chain: int) -> Head:
        """The row of a sandbox after one of its steps."""
        entry = stored.entry
        kept = self._kept(entry, stored, newest, chain)
        return Head(stored.number, stored.committed[0], kept)

    def _kept(self, entry: Entry, stored: Stored, newest: int, chain: int) -> Kept:
        return Kept(
            entry.world.name,
            entry.parent,
            int(entry.mentioned),
            entry.created_at,
            entry.expires_at,
            stored.contract,
            entry.last_used_at,
            None if entry.world.held == SILENT else entry.world.held,
            entry.incarnation,
            entry.origin_events,
            newest,
            chain,
            stored.state.id,
            _next_due(entry.world),
            _summary(entry.world),
        )

    def _batch(self, pending: Pending) -> Batch:
        touched = pending.touched.values()
        heads = [self._head(stored, stored.newest, stored.chain) for stored in touched]
        return Batch(pending.keys, heads, pending.lines)

    def _batch_of(self, change: Change) -> Batch:
        stored = change.stored
        if stored is not None and change.state is not None:
            stored.state, stored.contract = change.state, self.contract
        heads = [] if stored is None else [self._head(stored, *stored.committed)]
        return Batch(change.statements, heads, is_one=True, ends=[] if change.ends is None else [change.ends.number])

    def _commit_soon(self) -> None:
        self.is_behind = True
        if self._lane is None:
            self._commit_at_once()
        elif self._committing is None:
            self._committing = asyncio.create_task(self._commit())

    def _commit_at_once(self) -> None:
        """Commit where no event loop runs. Raises Unavailable."""
        assert self._store is not None
        pending, self._pending, holder = self._pending, Pending(), self._store.holder
        for batch in (self._batch(pending), *map(self._batch_of, pending.changes)):
            self._with_session(partial(sql.commit, batch=batch, holder=holder))
            self._settle(pending, batch, ())
        self.is_behind = False

    async def _commit(self) -> None:
        """Commit until there is nothing more to."""
        while not self._pending.is_empty:
            self._flying = pending = self._pending
            self._pending = Pending()
            try:
                await self._commit_one(pending)
            except Exception as error:  # a defect in it is no reason to say that something was stored
                await self._fail(error)
        self._committing = self._flying = None
        self.is_behind = False

    async def _commit_one(self, pending: Pending) -> None:
        assert self._store is not None
        if pending.touched:
            batch = self._batch(pending)
            self._settle(pending, batch, await self._store.commit(batch))
        pending.known.set()
        for change in pending.changes:
            try:
                lost = await self._store.commit(self._batch_of(change))
                for stored in (change.stored, change.ends):
                    if stored is not None and stored.number in lost:
                        self._lose(stored)
                        change.failure = unwritten("another server has taken the sandbox over")
            except self._store.errors as error:
                if not self._store.is_taken(error):
                    raise
                change.is_taken = True
            change.known.set()

    def _settle(self, pending: Pending, batch: Batch, lost: Collection[int]) -> None:
        """Steps are stored, but for those of sandboxes that are gone, or another process's by now."""
        for number, _, kept in batch.heads:
            if number in lost:
                self._lose(pending.touched[number])
                pending.failure = unwritten("the sandbox is no more, or another server has it")
            elif number in pending.touched:
                pending.touched[number].committed = kept.newest, kept.chain

    def _lose_all(self) -> None:
        """The lease has ended: other processes may have any sandbox."""
        for stored in list(self._stored.values()):
            self._lose(stored)

    def _lose(self, stored: Stored) -> None:
        """Another process has a sandbox, or it is no more: it is none of ours any more."""
        self._untidy.add(stored.number)
        if self._stored.get(stored.entry.world.name) is stored:
            del self._stored[stored.entry.world.name]
            self.on_lost(stored.entry.world)

    async def _changed(self, change: Change) -> None:
        """Wait until a change is stored. Raises Unavailable."""
        self._check_written()
        self._pending.changes.append(change)
        self._commit_soon()
        await change.known.wait()
        if change.failure is not None:
            raise again(change.failure)

    def _check_written(self) -> None:
        """Refuse what is to be stored while the store cannot be written. Raises Unavailable."""
        if self.failure is not None:
            raise again(self.failure)

    async def settled(self, sandbox: Sandbox) -> None:
        """Wait until all steps that a sandbox has recorded are stored. Raises Unavailable when they are undone."""
        stored = self._stored.get(sandbox.name)
        if stored is None or stored.entry.world is not sandbox:
            return
        newest = stored.newest
        for pending in (self._pending, self._flying):
            if pending is not None and stored.number in pending.touched:
                await pending.known.wait()
                if pending.failure is not None and (stored.committed[0] < newest):
                    raise again(pending.failure)
                return

    async def confirm(self, sandbox: Sandbox, undone_at: int) -> None:
        """Wait until what a copy of a sandbox has is stored; `undone_at` was the sandbox's before.

        Raises Unavailable when a step was undone since.
        """
        await self.settled(sandbox)
        if sandbox.undone_at != undone_at:
            raise again(self.failure or unwritten("it could not be for a moment"))

    def _touch(self, name: str) -> Stored | None:
        stored = self._stored.get(name)
        if stored is not None:
            self._pending.touched[stored.number] = stored
            self._commit_soon()
        return stored

    @property
    def lag(self) -> float:
        """For how many seconds the oldest change has waited that is not stored yet."""
        waiting = self._flying or self._pending
        return 0.0 if waiting.is_empty else monotonic() - waiting.begun

    # -- what could not be stored

    async def _fail(self, error: Exception) -> None:
        """Have sandboxes be as the store has them, and wait until it can be written.

        Until then changes are refused, and time and deliveries stand in all sandboxes.
        """
        assert self._store is not None
        assert self._flying is not None
        self.failure = failure = unwritten(self._store.reason(error))
        log.error("the store cannot be written, and changes are refused (%s)", " ".join(str(error).split()))
        for stored in self._stored.values():
            stored.entry.world.is_halted = True
        failed = self._flying, self._pending
        self._pending = Pending()
        for pending in failed:
            self.unknown |= pending.touched
            for change in pending.changes:
                self.unknown |= {stored.number: stored for stored in (change.stored, change.ends) if stored is not None}
            awaited: list[Pending | Change] = [pending, *pending.changes]
            for what in awaited:
                if not what.known.is_set():
                    what.failure = failure
        steps = [step for pending in failed if pending.failure is not None for step in pending.steps]
        self._flying = None
        while True:
            try:
                if self.unknown:
                    self._undo(steps, await self._store.known(self.unknown))
                await self._store.commit(Batch())
                break
            except Exception as again_error:
                log.debug("the store still cannot be written (%s)", again_error)
            finally:
                for pending in failed:
                    pending.known.set()
                    for change in pending.changes:
                        change.known.set()
            await asyncio.sleep(PAUSE)
        log.warning("the store can be written again")
        self.failure = None
        self._wake.set()
        for stored in self._stored.values():
            stored.entry.world.is_halted = False
            if stored.entry.world.bell is not None:
                stored.entry.world.bell(stored.entry.world)

    def _undo(self, steps: list[Unstored], known: Mapping[int, tuple[int, int, KeptState]]) -> None:
        """Undo the steps that the store does not have."""
        for number, stored in self.unknown.items():
            if number in known:
                newest, chain, stored.state = known[number]
                stored.committed = newest, chain
            else:
                self._lose(stored)
        for stored, step, held, chain in reversed(steps):
            sandbox = stored.entry.world
            if not sandbox.is_gone and stored.committed[0] < step.number:
                sandbox.take_back(step)
                sandbox.held, stored.newest, stored.chain = held, step.number - 1, chain
        self.unknown = {}

    def check(self, sandbox: Sandbox) -> None:
        """Refuse requests to a sandbox of which nobody knows what the store has. Raises Unavailable."""
        if self.failure is not None and any(stored.entry.world is sandbox for stored in self.unknown.values()):
            raise again(self.failure)

    def _with_session(self, work: Callable[[Session], T]) -> T:
        """Run work on the connection for what goes on beside the requests. Raises Unavailable."""
        assert self._store is not None
        try:
            if self._session is None:
                self._session = self._store.session()
            return work(self._session)
        except self._store.errors as error:
            if self._session is not None:
                self._session.close()
            self._session = None
            raise unwritten(self._store.reason(error)) from None

    async def _beside(self, lane: Lane, work: Callable[[Session], T]) -> T:
        self._check_written()
        return await lane.beside(lambda: self._with_session(work))


def _next_due(sandbox: Sandbox) -> int | None:
    """When the next delivery of a sandbox is due, in ms of the machine; None where none is, or its clock stands."""
    timers, clock = sandbox.timers, sandbox.clock
    if clock.frozen or sandbox.held == SILENT:
        return None
    due = [timer[0] for timer in timers.claimed.values()]
    attempt = timers.next_attempt()
    if attempt is not None:
        due.append(attempt)
    return min(due) - clock.state.offset if due else None


def records_of(sandbox: Sandbox) -> int:
    """How many records all merchants of a sandbox have."""
    return sum([len(table.rows) for store in sandbox.stores.values() for table in store.tables.values()])


def _summary(sandbox: Sandbox) -> str:
    """What lists of sandboxes show of one that is not in memory."""
    told = {
        "scenario": sandbox.scenario,
        "seed": sandbox.seed,
        "records": records_of(sandbox),
        "clock": tuple(sandbox.recorded_clock),
    }
    return orjson.dumps(told).decode()


def unwritten(reason: str) -> Unavailable:
    """503 for what is not done because the store cannot be written."""
    return Unavailable(
        f"The store cannot be written ({reason}). Until it can, changes are refused and reads are answered.",
        code="store_unavailable",
        headers={"Retry-After": "5"},
    )


def again(failure: R) -> R:
    """The same refusal for another request: the traceback of one that is raised would hold all of them."""
    return type(failure)(failure.message, code=failure.code, details=failure.details, headers=failure.headers)
