"""Stores steps: each is committed before an answer or a delivery shows it, or its sandbox is opened
anew without it.

One commit is in flight at a time. What is recorded meanwhile is the next one. An answer waits for
the steps of its own sandbox alone, and so for the state of a large one, which is written before. A
commit adds steps and changes the row of each sandbox, if that still has the newest step and the
holder that this process knows. If it fails, its sandboxes are unloaded, and opened again with what
the store has. Work on the store is done in threads, beside the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import NamedTuple, TypeVar

import orjson

from ...core.log import log
from ...core.problem import Unavailable, undone, unwritten
from ...core.slices import BackgroundWorker
from ...engine import kept
from ...engine.sandbox import Sandbox
from ...engine.step import Step
from ...storage import sql
from ...storage.database import Change, Database, KeptState, Session, Statement, one_line
from ...storage.lines import Writer, parts_of
from ...storage.sql import keys_entered, place_of
from ...storage.state import Snapshot, capture
from .entry import Entry
from .making import SandboxFactory
from .pending import Pending

PAUSE = 0.5  # seconds between two attempts to write to a store that failed
T = TypeVar("T")


class Beside:
    """One connection, and one thread, in which one work is done after the other."""

    def __init__(self, store: Database) -> None:
        self._store, self._worker = store, BackgroundWorker()
        self._idle: Session | None = None  # the connection while no work has it

    async def run(self, work: Callable[[Session], T]) -> T:
        """Run work. Raises Unavailable. A connection that has failed is not used again."""

        def run() -> T:
            try:
                session, self._idle = self._idle or self._store.session(), None
                try:
                    result = work(session)
                except BaseException:
                    session.close()
                    raise
            except self._store.errors as error:
                raise unwritten(self._store.reason(error)) from None
            self._idle = session
            return result

        return await self._worker.beside(run)

    async def ended(self) -> None:
        """Close the connection after the work that is under way."""
        await self._worker.beside(self.close)

    def close(self) -> None:
        """Close the connection that no work has; further work opens another one."""
        session, self._idle = self._idle, None
        if session is not None:
            session.close()


class Lines(NamedTuple):
    """What is done beside each other: a request may wait for what is read, and what is opened or
    written may be large.
    """

    reading: Beside
    opening: Beside
    writing: Beside


class Commits:
    """What is to be committed, and what becomes of it."""

    store: Database  # set if there is one

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        """`factory` makes the sandboxes that are read."""
        self.has_store, self.factory = store is not None, factory
        self.is_shared, self.epoch = False, 0
        if store is not None:
            self.store, self.is_shared, self.epoch = store, store.is_shared, store.holder << 32
            self._lines = Lines(Beside(store), Beside(store), Beside(store))
        self._stored: dict[str, Entry] = {}
        # what is committed next, and what is being committed
        self._next: dict[Entry, Pending] = {}
        self._flying: dict[Entry, Pending] = {}
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self._wake, self._writer = asyncio.Event(), Writer()
        self.on_lost: Callable[[Sandbox], None] = lambda sandbox: None
        # while there is anything that is not stored yet
        self.committing: asyncio.Task[None] | None = None
        self._begun = 0.0  # when the oldest change came that is not stored: monotonic seconds

    def _follow(self, entry: Entry) -> None:
        """Store every further step of a sandbox."""
        sandbox = entry.sandbox
        self._stored[sandbox.name] = entry
        sandbox.status.is_halted = self.failure is not None

        def write(step: Step) -> None:
            self.check_written()
            pending = self._pending(entry)
            if step.size > kept.MOST_BYTES:  # no log has room for it
                entry.stored.leap = step.number
                self._wake.set()
                return
            line = self._writer.step(step)
            pending.steps.append((place_of(entry.stored.number, step.number), line))
            entry.stored.size += len(line)
            if entry.stored.is_long:
                self._wake.set()

        sandbox.log.writer, sandbox.log.stored = write, partial(self.settled, sandbox)

    def _pending(self, entry: Entry) -> Pending:
        """What is committed next of a sandbox, to be added to before anything else is done."""
        pending = self._next.get(entry)
        if pending is None:
            pending = self._next[entry] = Pending(number=entry.stored.number, entry=entry)
        if self.committing is None:
            self._begun = monotonic()
            self.committing = asyncio.create_task(self._commit())
        return pending

    async def _commit(self) -> None:
        """Commit until nothing is left that is ready."""
        while self._take_off():
            begun = monotonic()
            try:
                await self._commit_flying()
            except Exception as error:  # a defect must not look like a commit
                await self._fail(error)
            self._flying, self._begun = {}, begun
        self.committing = None

    def _take_off(self) -> bool:
        """Have what is ready committed next; whether there is any."""
        for entry, pending in [*self._next.items()]:
            if pending.is_ready:
                self._flying[entry] = self._next.pop(entry)
        return bool(self._flying)

    async def _commit_flying(self) -> None:
        flying = [*self._flying.values()]
        for pending in flying:
            pending.complete()
        lost = await self.store.commit(flying)
        for pending in flying:
            entry = pending.entry
            if pending.number not in lost:
                entry.stored.committed = 0 if pending.row is None else pending.row.newest
            elif entry.stored.committed is not None:
                self._lose(entry, is_undone=entry.stored.committed < entry.sandbox.log.number)
                pending.failure = unwritten(
                    "the sandbox no longer exists, or another server has it"
                )
            pending.known.set()

    async def write(self, *states: Sandbox | Snapshot) -> list[KeptState]:
        """Write the present states of sandboxes, and snapshots, beside the requests, for what is
        committed to refer to.

        Raises Unavailable.
        """
        if not self.has_store:
            return []
        self.check_written()
        found = []
        for state in states:
            if isinstance(state, Snapshot):
                about = orjson.dumps(state.head | {"contract": self.factory.contract}).decode()
                found.append((state.name, about, capture(state.sandbox)))
            else:
                found.append(("", "", capture(state)))

        def written(session: Session) -> list[KeptState]:
            return [
                sql.write_state(session, name, about, copy.log.number, parts_of(copy))
                for name, about, copy in found
            ]

        return await self._lines.writing.run(written)

    def _lose_all(self) -> None:
        """The lease has ended: other processes may have any sandbox."""
        for entry in list(self._stored.values()):
            self._lose(entry)

    def _lose(self, entry: Entry, *, is_undone: bool = True) -> None:
        """Unload a sandbox that another process has, that was deleted, or that may be otherwise in
        the store.
        """
        sandbox = entry.sandbox
        sandbox.status.is_undone = sandbox.status.is_undone or is_undone
        if self._stored.get(sandbox.name) is entry:
            del self._stored[sandbox.name]
            self.on_lost(sandbox)

    def check_written(self) -> None:
        """Check that the store can be written. Raises Unavailable."""
        if self.failure is not None:
            raise self.failure.again()

    async def settled(self, sandbox: Sandbox) -> None:
        """Wait until all steps that a sandbox has recorded are stored.

        Raises Unavailable when they are not.
        """
        if sandbox.status.is_undone:
            raise (self.failure or undone()).again()
        entry = self._stored.get(sandbox.name)
        if entry is None or entry.sandbox is not sandbox:
            return
        pending = self._next.get(entry) or self._flying.get(entry)
        if pending is not None:
            await pending.outcome()

    def store_row_soon(self, name: str, keys: Sequence[str] = ()) -> Pending | None:
        """Store the row of a sandbox, and API keys by which it is found, with the next commit; do
        not wait for that.
        """
        entry = self._stored.get(name)
        if entry is None:
            return None
        pending = self._pending(entry)
        pending.statements += keys_entered(keys, pending.number)
        return pending

    async def store_row(self, sandbox: Sandbox, *statements: Statement) -> None:
        """Store the row of a sandbox, with what these statements do, and wait for that. Raises
        Unavailable.
        """
        self.check_written()
        pending = self.store_row_soon(sandbox.name)
        if pending is not None:
            pending.statements += statements
            await pending.outcome()

    @property
    def lag(self) -> float:
        """How many seconds the oldest change has waited to be stored."""
        if self.committing is None:
            return 0.0
        return monotonic() - self._begun

    async def _fail(self, error: Exception) -> None:
        """Unload the sandboxes that the store may have otherwise, wait until it can be written, and
        accept changes again.

        They are opened again with what the store has. Until the store can be written, every sandbox
        refuses changes, stops its clock and sends no delivery.
        """
        self.failure = failure = unwritten(self.store.reason(error))
        log.error("the store cannot be written, and changes are refused (%s)", one_line(error))
        failed = [*self._flying.values(), *self._next.values()]
        self._flying, self._next = {}, {}
        for pending in failed:
            self._lose(pending.entry)  # nobody knows what was committed
            pending.failure = failure
        for entry in self._stored.values():
            entry.sandbox.status.is_halted = True
        can_be_written = await self._can_be_written()
        for pending in failed:
            pending.known.set()
        while not can_be_written:
            await asyncio.sleep(PAUSE)
            can_be_written = await self._can_be_written()
        log.warning("the store can be written again")
        self.failure = None
        self._wake.set()
        for entry in self._stored.values():
            sandbox = entry.sandbox
            sandbox.status.is_halted = False
            sandbox.status.on_due(sandbox)

    async def _can_be_written(self) -> bool:
        try:
            await self.store.recover()
            for beside in self._lines:  # their connections may be as broken
                beside.close()
            await self.store.commit([Change(0, statements=[sql.probe()])])
        except Exception as error:
            log.debug("the store still cannot be written (%s)", error)
            return False
        return True
