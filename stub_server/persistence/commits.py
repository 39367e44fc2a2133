"""Stores steps: each is committed before an answer or a delivery shows it, or it is undone.

One commit is in flight at a time. What is recorded meanwhile is the next one. An answer waits for the steps of its own
sandbox alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..engine.step import Step
from ..files.lines import step_line
from ..kernel.problem import Refusal, Unavailable, undone, unwritten
from ..sandboxes.entry import Entry, records_of
from ..sandboxes.making import SandboxFactory
from .sql import Batch, Database, Kept, KeptState, Known, Session, Statement, chained, key_entered, line_of, place_of

LEAST = 64 * 1024 * 1024  # bytes of steps after which a state is written, of sandboxes whose state is smaller
PAUSE = 0.5  # seconds between two attempts to write to a store that failed
T = TypeVar("T")
log = logging.getLogger("stub_server")


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

    @property
    def is_long(self) -> bool:
        """Whether a state is to be written. One is read in half the time of its steps."""
        return self.size > max(LEAST, self.state.size // 2)


@dataclass(slots=True)
class Pending:
    """What is committed together: steps, or a change, which is made wholly or not at all (`is_atomic`).

    `undo` says what `held_before` and the chain's sum were before each step. `touched` are the sandboxes whose rows are
    stored, by a change as they are stored so far, but with its `state` if it has one; `ends` are those that go. `known`
    is set when the outcome is known, or cannot be for now; `failure` says why it is not done. It is not done either
    where a name `is_duplicate`.
    """

    changes: list[Statement] = field(default_factory=list)
    touched: dict[int, Stored] = field(default_factory=dict)
    steps: list[tuple[int, bytes, int]] = field(default_factory=list)
    undo: list[tuple[Stored, Step, int, int]] = field(default_factory=list)
    is_atomic: bool = False
    state: KeptState | None = None
    ends: Sequence[Stored] = ()
    is_duplicate: bool = False
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Refusal | None = None
    begun: float = field(default_factory=monotonic)


class Commits:
    """What is to be committed, and what becomes of it."""

    store: Database  # set if there is one

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        self.has_store, self.factory = store is not None, factory
        self.is_shared, self.epoch = False, 0
        if store is not None:
            self.store, self.is_shared, self.epoch = store, store.is_shared, store.epoch
        self._stored: dict[str, Stored] = {}
        self._pending = Pending()  # steps that are to be committed next
        self._changes: list[Pending] = []  # changes to be committed, each by itself
        self._flying: list[Pending] = []  # being committed, steps first
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self.unknown: dict[int, Stored] = {}  # sandboxes of which is not known what the store has
        self._untidy: set[int] = set()  # sandboxes that may have steps or states that are no longer needed
        self._session: Session | None = None  # for long work beside the requests, one at a time
        self._wake = asyncio.Event()
        self.on_lost: Callable[[Sandbox], None] = lambda sandbox: None
        self.committing: asyncio.Task[None] | None = None  # while there is anything that is not stored yet

    def _follow(self, stored: Stored) -> None:
        """Store every further step of a sandbox."""
        sandbox = stored.entry.sandbox
        self._stored[sandbox.name] = stored

        def write(step: Step) -> None:
            self._check_written()
            line, pending = step_line(step, part=bytes.decode), self._pending
            pending.undo.append((stored, step, sandbox.held_before, stored.chain))
            stored.newest, stored.chain = step.number, chained(line, stored.chain)
            pending.steps.append((place_of(stored.number, step.number), line, stored.chain))
            pending.touched[stored.number] = stored
            stored.size += len(line)
            if stored.is_long:
                self._wake.set()
            self._commit_soon()

        sandbox.log.writer, sandbox.log.stored = write, partial(self.settled, sandbox)

    def _batch(self, pending: Pending) -> Batch:
        """The rows of sandboxes as they are to be, with what else is pending."""
        rows = []
        for stored in pending.touched.values():
            state, contract = stored.state, stored.contract
            if pending.state is not None:
                state, contract = pending.state, self.factory.contract
            entry, sandbox = stored.entry, stored.entry.sandbox
            kept = Kept(
                sandbox.name,
                entry.parent,
                int(entry.created_on_first_use),
                entry.created_at,
                entry.expires_at,
                contract,
                entry.last_used_at,
                None if sandbox.held_before == SILENT else sandbox.held_before,
                entry.incarnation,
                entry.origin_events,
                sandbox.generation,
                *(stored.committed if pending.is_atomic else (stored.newest, stored.chain)),
                state.id,
                _next_due(sandbox),
                _summary(sandbox),
            )
            rows.append((stored.number, stored.committed[0], kept))
        ends = [stored.number for stored in pending.ends]
        return Batch(pending.changes, rows, pending.steps, is_atomic=pending.is_atomic, ends=ends)

    def _commit_soon(self) -> None:
        if self.committing is None:
            self._pending.begun = monotonic()
            self.committing = asyncio.create_task(self._commit())

    async def _commit(self) -> None:
        """Commit until nothing is left: what steps have touched, then each change by itself."""
        while self._pending.touched or self._changes:
            self._flying, self._pending, self._changes = [self._pending, *self._changes], Pending(), []
            try:
                for pending in self._flying:
                    if pending.touched or pending.is_atomic:
                        await self._commit_one(pending)
            except Exception as error:  # a defect must not look like a commit
                await self._fail(error)
        self.committing, self._flying = None, []

    async def _commit_one(self, pending: Pending) -> None:
        batch = self._batch(pending)
        lost: Collection[int] = ()
        try:
            lost = await self.store.commit(batch)
        except self.store.errors as error:
            if not (pending.is_atomic and self.store.is_duplicate(error)):
                raise
            pending.is_duplicate = True
        gone = "the sandbox no longer exists, or another server has it"
        if pending.is_atomic:
            gone = "another server has taken the sandbox over"
        for number, _, kept in batch.rows:
            if number not in lost:
                stored = pending.touched[number]
                stored.committed = kept.newest, kept.chain
                if pending.state is not None:
                    stored.state, stored.contract = pending.state, kept.contract
        for stored in (*pending.touched.values(), *pending.ends):
            if stored.number in lost:
                self._lose(stored)
                pending.failure = unwritten(gone)
        pending.known.set()

    def _lose_all(self) -> None:
        """The lease has ended: other processes may have any sandbox."""
        for stored in list(self._stored.values()):
            self._lose(stored)

    def _lose(self, stored: Stored) -> None:
        """Unload a sandbox that another process has, or that was deleted."""
        self._untidy.add(stored.number)
        if self._stored.get(stored.entry.sandbox.name) is stored:
            del self._stored[stored.entry.sandbox.name]
            self.on_lost(stored.entry.sandbox)

    async def _changed(
        self,
        changes: Sequence[Statement] = (),
        stored: Stored | None = None,
        *,
        state: KeptState | None = None,
        ends: Sequence[Stored] = (),
    ) -> bool:
        """Make a change, and wait until it is stored; False where a name is taken. Raises Unavailable."""
        self._check_written()
        touched = {} if stored is None else {stored.number: stored}
        change = Pending([*changes], touched, is_atomic=True, state=state, ends=ends)
        self._changes.append(change)
        self._commit_soon()
        await change.known.wait()
        if change.failure is not None:
            raise change.failure.again()
        return not change.is_duplicate

    def _check_written(self) -> None:
        """Check that the store can be written. Raises Unavailable."""
        if self.failure is not None:
            raise self.failure.again()

    async def settled(self, sandbox: Sandbox) -> None:
        """Wait until all steps that a sandbox has recorded are stored. Raises Unavailable when they are undone."""
        stored = self._stored.get(sandbox.name)
        if stored is None or stored.entry.sandbox is not sandbox:
            return
        newest = stored.newest
        for pending in (self._pending, *self._flying[:1]):
            if stored.number in pending.touched:
                await pending.known.wait()
                if pending.failure is not None and stored.committed[0] < newest:
                    raise pending.failure.again()
                return

    async def confirm(self, sandbox: Sandbox, undone_at: int) -> None:
        """Wait until what a copy of a sandbox has is stored; `undone_at` was the sandbox's before.

        Raises Unavailable when a step was undone since.
        """
        await self.settled(sandbox)
        if sandbox.undone_at != undone_at:
            raise (self.failure or undone()).again()

    def store_row_soon(self, name: str, keys: Iterable[str] = ()) -> None:
        """Store the row of a sandbox, and API keys by which it is found, with the next commit; do not wait for that."""
        stored = self._stored.get(name)
        if stored is not None:
            self._pending.touched[stored.number] = stored
            self._pending.changes += [key_entered(key, stored.number) for key in keys]
            self._commit_soon()

    async def store_row(self, sandbox: Sandbox) -> None:
        """Store the row of a sandbox, and wait for that. Raises Unavailable."""
        stored = self._stored.get(sandbox.name)
        if stored is not None:
            await self._changed(stored=stored)

    @property
    def lag(self) -> float:
        """How many seconds the oldest change has waited to be stored."""
        return monotonic() - (*self._flying, self._pending)[0].begun if self.committing else 0.0

    # -- what could not be stored

    async def _fail(self, error: Exception) -> None:
        """Undo in memory what the store does not have, and wait until it can be written.

        Until then changes are refused, and time and deliveries stand in all sandboxes.
        """
        self.failure = failure = unwritten(self.store.reason(error))
        log.error("the store cannot be written, and changes are refused (%s)", line_of(error))
        for stored in self._stored.values():
            stored.entry.sandbox.is_halted = True
        every = (*self._flying, self._pending, *self._changes)
        failed = [pending for pending in every if not pending.known.is_set()]
        self._flying, self._pending, self._changes = [], Pending(), []
        for pending in failed:
            pending.failure = failure
            self.unknown |= pending.touched | {stored.number: stored for stored in pending.ends}
        steps = [step for pending in failed for step in pending.undo]
        while True:
            try:
                if self.unknown:
                    self._undo(steps, await self.store.known(self.unknown))
                await self.store.commit(Batch())
                break
            except Exception as again_error:
                log.debug("the store still cannot be written (%s)", again_error)
            finally:
                for pending in failed:
                    pending.known.set()
            await asyncio.sleep(PAUSE)
        log.warning("the store can be written again")
        self.failure = None
        self._wake.set()
        for stored in self._stored.values():
            stored.entry.sandbox.is_halted = False
            if stored.entry.sandbox.on_due is not None:
                stored.entry.sandbox.on_due(stored.entry.sandbox)

    def _undo(self, steps: list[tuple[Stored, Step, int, int]], known: Known) -> None:
        """Undo the steps that the store does not have."""
        for number, stored in self.unknown.items():
            if number in known:
                newest, chain, stored.state = known[number]
                stored.committed = newest, chain
            else:
                self._lose(stored)
        for stored, step, held, chain in reversed(steps):
            sandbox = stored.entry.sandbox
            if not sandbox.is_gone and stored.committed[0] < step.number:
                sandbox.take_back(step)
                sandbox.held_before, stored.newest, stored.chain = held, step.number - 1, chain
        self.unknown = {}

    def check(self, sandbox: Sandbox) -> None:
        """Check that it is known what the store has of a sandbox. Raises Unavailable."""
        if self.failure is not None and any(stored.entry.sandbox is sandbox for stored in self.unknown.values()):
            raise self.failure.again()

    def _with_session(self, work: Callable[[Session], T]) -> T:
        """Run work on the connection for long work beside the requests. Raises Unavailable."""
        try:
            if self._session is None:
                self._session = self.store.session()
            return work(self._session)
        except self.store.errors as error:
            if self._session is not None:
                self._session.close()
            self._session = None
            raise unwritten(self.store.reason(error)) from None

    async def _beside(self, work: Callable[[Session], T]) -> T:
        self._check_written()
        return await self.factory.worker.beside(lambda: self._with_session(work))


def _next_due(sandbox: Sandbox) -> int | None:
    """When the next delivery of a sandbox is due, in ms of the machine; None where none is, or its clock is frozen."""
    timers, clock = sandbox.timers, sandbox.clock
    if clock.frozen or sandbox.held_before == SILENT:
        return None
    due = [timer[0] for timer in timers.claimed.values()]
    attempt = timers.next_attempt()
    if attempt is not None:
        due.append(attempt)
    return min(due) - clock.state.offset if due else None


def _summary(sandbox: Sandbox) -> str:
    """What lists of sandboxes show of one that is not in memory."""
    body = {
        "scenario": sandbox.scenario,
        "seed": sandbox.seed,
        "records": records_of(sandbox),
        "clock": tuple(sandbox.recorded_clock),
    }
    return orjson.dumps(body).decode()
