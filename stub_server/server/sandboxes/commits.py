"""Stores steps: each is committed before an answer or a delivery shows it, or its sandbox is opened
anew without it.

One commit is in flight at a time. What is recorded meanwhile is the next one. An answer waits for
the steps of its own sandbox alone. A commit adds steps and changes the row of each sandbox, if that
still has the newest step and the holder that this process knows. If it fails, its sandboxes are
unloaded, and opened again with what the store has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from time import monotonic

import orjson

from ...core.log import log
from ...core.problem import Unavailable, undone, unwritten
from ...engine.sandbox import Sandbox
from ...engine.step import Step
from ...storage import sql
from ...storage.database import (
    Batch,
    Database,
    KeptState,
    NamedState,
    Session,
    Statement,
    one_line,
)
from ...storage.lines import chunks_of, step_line
from ...storage.sql import STEPS, chained, keys_entered, place_of
from ...storage.state import SandboxState, capture
from .beside import Beside, Lines
from .making import SandboxFactory
from .pending import Pending, Stored

PAUSE = 0.5  # seconds between two attempts to write to a store that failed


class Commits:
    """What is to be committed, and what becomes of it."""

    store: Database  # set if there is one

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        self.has_store, self.factory = store is not None, factory
        self.is_shared, self.epoch = False, 0
        if store is not None:
            self.store, self.is_shared, self.epoch = store, store.is_shared, store.epoch
            self._lines = Lines(Beside(store), Beside(store), Beside(store))
        self._stored: dict[str, Stored] = {}
        self._pending = Pending()  # steps that are to be committed next
        self._changes: list[Pending] = []  # changes to be committed, each by itself
        self._flying: list[Pending] = []  # being committed, steps first
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self._wake = asyncio.Event()
        self.on_lost: Callable[[Sandbox], None] = lambda sandbox: None
        # while there is anything that is not stored yet
        self.committing: asyncio.Task[None] | None = None

    def _follow(self, stored: Stored) -> None:
        """Store every further step of a sandbox."""
        sandbox = stored.entry.sandbox
        self._stored[sandbox.name] = stored
        sandbox.status.is_halted = self.failure is not None

        def write(step: Step) -> None:
            self._check_written()
            pending = self._pending
            stored.newest = step.number
            pending.touched[stored.number] = stored
            self._commit_soon()
            if not sandbox.log.has_room(step.size):
                self._rewrite_soon(stored)
                return
            line = step_line(step)
            stored.chain = chained(line, stored.chain)
            pending.steps.append((place_of(stored.number, step.number), line, stored.chain))
            stored.size += len(line)
            if stored.is_long:
                self._wake.set()

        sandbox.log.writer, sandbox.log.stored = write, partial(self.settled, sandbox)

    def _rewrite_soon(self, stored: Stored) -> None:
        """Store the state of a sandbox with the next commit, in place of all of its steps."""
        self._pending.rewritten[stored.number] = stored
        stored.renewals += 1
        stored.size, stored.contract = 0, self.factory.contract
        for change in self._changes:
            if change is stored.rewriting:  # which would store an earlier state after it
                change.changes.clear()

    def _commit_soon(self) -> None:
        if self.committing is None:
            self._pending.begun = monotonic()
            self.committing = asyncio.create_task(self._commit())

    async def _commit(self) -> None:
        """Commit until nothing is left: what steps have touched, then each change by itself."""
        while self._pending.touched or self._changes:
            self._flying = [self._pending, *self._changes]
            self._pending, self._changes = Pending(), []
            try:
                for pending in self._flying:
                    if pending.touched or pending.is_atomic:
                        await self._commit_one(pending)
            except Exception as error:  # a defect must not look like a commit
                await self._fail(error)
        self.committing, self._flying = None, []

    async def _commit_one(self, pending: Pending) -> None:
        pending.add_rows()
        if pending.rewritten:
            await self._rewrite_in(pending)
        lost: Collection[int] = ()
        try:
            lost = await self.store.commit(pending)
        except self.store.errors as error:
            if not (pending.is_atomic and self.store.is_duplicate(error)):
                raise
            pending.is_duplicate = True
        for number, _, kept in pending.rows:
            if number not in lost:
                pending.touched[number].committed = kept.newest, kept.chain
        for stored in (*pending.touched.values(), *pending.gone):
            if stored.number in lost:
                self._lose(stored, is_undone=stored.committed[0] < stored.newest)
                pending.failure = unwritten(
                    "the sandbox no longer exists, or another server has it"
                )
        pending.known.set()

    async def _rewrite_in(self, pending: Pending) -> None:
        """Store the present states of sandboxes in place of their steps."""
        every = list(pending.rewritten.values())
        chains = [stored.chain for stored in every]
        written = await self.write(*(stored.entry.sandbox for stored in every))
        for stored, chain, state in zip(every, chains, written, strict=True):
            pending.states[stored.number] = self._in_place_of_steps(stored, state, chain)
            stored.state_size = state.size
        pending.steps = [
            step for step in pending.steps if step[0] >> STEPS not in pending.rewritten
        ]

    async def write(self, *sandboxes: Sandbox) -> list[KeptState]:
        """Write the present states of sandboxes, beside the requests, for what is committed to
        refer to.

        Raises Unavailable.
        """
        if not self.has_store:
            return []
        self._check_written()
        states = list(map(capture, sandboxes))
        return await self._lines.writing.run(lambda session: written(session, states))

    def _in_place_of_steps(self, stored: Stored, state: KeptState, chain: int) -> list[Statement]:
        changes = sql.state_entered(stored.number, self._own(state, chain))
        return [*changes, sql.steps_ended(stored.number, state.step)]

    def _own(self, state: KeptState, chain: int) -> NamedState:
        return NamedState(
            "", orjson.dumps({"contract": self.factory.contract}).decode(), chain, state
        )

    def _lose_all(self) -> None:
        """The lease has ended: other processes may have any sandbox."""
        for stored in list(self._stored.values()):
            self._lose(stored)

    def _lose(self, stored: Stored, *, is_undone: bool = True) -> None:
        """Unload a sandbox that another process has, that was deleted, or that may be otherwise in
        the store.
        """
        sandbox = stored.entry.sandbox
        sandbox.status.is_undone = sandbox.status.is_undone or is_undone
        if self._stored.get(sandbox.name) is stored:
            del self._stored[sandbox.name]
            self.on_lost(sandbox)

    def _change_soon(
        self,
        changes: Iterable[Statement] = (),
        stored: Stored | None = None,
        ends: Sequence[Stored] = (),
    ) -> Pending:
        numbers = [each.number for each in ends]
        change = Pending([*changes], is_atomic=True, ends=numbers, gone=ends)
        if stored is not None:
            change.touched[stored.number] = stored
        self._changes.append(change)
        self._commit_soon()
        return change

    async def _changed(
        self,
        changes: Iterable[Statement] = (),
        stored: Stored | None = None,
        ends: Sequence[Stored] = (),
    ) -> bool:
        """Make a change, and wait until it is stored; False where a name is taken.

        Raises Unavailable.
        """
        self._check_written()
        change = self._change_soon(changes, stored, ends)
        await change.outcome()
        return not change.is_duplicate

    def _check_written(self) -> None:
        """Check that the store can be written. Raises Unavailable."""
        if self.failure is not None:
            raise self.failure.again()

    async def settled(self, sandbox: Sandbox) -> None:
        """Wait until all steps that a sandbox has recorded are stored.

        Raises Unavailable when they are not.
        """
        if sandbox.status.is_undone:
            raise (self.failure or undone()).again()
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

    def store_row_soon(self, name: str, keys: Sequence[str] = ()) -> None:
        """Store the row of a sandbox, and API keys by which it is found, with the next commit; do
        not wait for that.
        """
        stored = self._stored.get(name)
        if stored is not None:
            self._pending.touched[stored.number] = stored
            self._pending.changes += keys_entered(keys, stored.number)
            self._commit_soon()

    async def store_row(self, sandbox: Sandbox) -> None:
        """Store the row of a sandbox, and wait for that. Raises Unavailable."""
        stored = self._stored.get(sandbox.name)
        if stored is not None:
            await self._changed(stored=stored)

    @property
    def lag(self) -> float:
        """How many seconds the oldest change has waited to be stored."""
        if self.committing is None:
            return 0.0
        oldest, *_ = *self._flying, self._pending
        return monotonic() - oldest.begun

    async def _fail(self, error: Exception) -> None:
        """Unload the sandboxes that the store may have otherwise, and wait until it can be written.

        They are opened again with what the store has. Until the store can be written, every sandbox
        refuses changes, stops its clock and sends no delivery.
        """
        self.failure = failure = unwritten(self.store.reason(error))
        log.error("the store cannot be written, and changes are refused (%s)", one_line(error))
        every = (*self._flying, self._pending, *self._changes)
        self._flying, self._pending, self._changes = [], Pending(), []
        failed = [pending for pending in every if not pending.known.is_set()]
        for pending in failed:
            # a broken connection leaves open whether a change was made
            if pending.steps or pending.rewritten or self.is_shared:
                for stored in (*pending.touched.values(), *pending.gone):
                    self._lose(stored)
            pending.failure = failure
        for stored in self._stored.values():
            stored.entry.sandbox.status.is_halted = True
        can_be_written = await self._can_be_written()
        for pending in failed:
            pending.known.set()
        while not can_be_written:
            await asyncio.sleep(PAUSE)
            can_be_written = await self._can_be_written()
        log.warning("the store can be written again")
        self._go_on()

    def _go_on(self) -> None:
        """Accept changes again."""
        self.failure = None
        self._wake.set()
        for stored in self._stored.values():
            sandbox = stored.entry.sandbox
            sandbox.status.is_halted = False
            sandbox.status.on_due(sandbox)

    async def _can_be_written(self) -> bool:
        try:
            await self.store.recover()
            for beside in self._lines:  # their connections may be as broken
                beside.renew()
            await self.store.commit(Batch([sql.probe()]))
        except Exception as error:
            log.debug("the store still cannot be written (%s)", error)
            return False
        return True


def written(session: Session, states: Iterable[SandboxState]) -> list[KeptState]:
    """Write states that nothing refers to yet."""
    return [
        sql.write_state(session, state.sandbox.log.number, chunks_of(state)) for state in states
    ]
