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
from typing import TypeVar

import orjson

from ...core.log import log
from ...core.problem import Unavailable, undone, unwritten
from ...core.record import Body
from ...core.slices import BackgroundWorker
from ...engine import kept
from ...engine.sandbox import Sandbox
from ...engine.step import Step
from ...storage import sql
from ...storage.database import Change, Database, KeptState, Session, Statement, one_line
from ...storage.lines import Writer, parts_of
from ...storage.sql import keys_entered, place_of
from ...storage.state import Snapshot, capture
from .making import SandboxFactory
from .pending import Pending, Stored

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


class Commits:
    """What is to be committed, and what becomes of it."""

    store: Database  # set if there is one

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        """`factory` makes the sandboxes that are read."""
        self.has_store, self.factory = store is not None, factory
        self.is_shared, self.epoch = False, 0
        self.changing = asyncio.Lock()  # while a sandbox is created, replaced or deleted
        # what lists show of it, if another server has it at the start
        self.default_elsewhere: Body | None = None
        self._tending: asyncio.Task[None] | None = None
        if store is not None:
            self.store, self.is_shared, self.epoch = store, store.is_shared, store.holder << 32
            # a request may wait for what is read; what is opened or written may be large
            self._lines = Beside(store), Beside(store), Beside(store)
            self._reading, self._opening, self._writing = self._lines
        self._stored: dict[str, Stored] = {}
        # what is committed next, and what is being committed
        self._next: dict[Stored, Pending] = {}
        self._flying: dict[Stored, Pending] = {}
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self._wake, self._writer = asyncio.Event(), Writer()
        self.on_lost: Callable[[Sandbox], None] = lambda sandbox: None
        # while there is anything that is not stored yet
        self.committing: asyncio.Task[None] | None = None
        self._begun = 0.0  # when the oldest change came that is not stored: monotonic seconds

    def _follow(self, stored: Stored) -> None:
        """Store every further step of a sandbox."""
        sandbox = stored.entry.sandbox
        self._stored[sandbox.name] = stored
        sandbox.status.is_halted = self.failure is not None

        def write(step: Step) -> None:
            self.check_written()
            pending = self._pending(stored)
            if step.size > kept.MOST_BYTES:  # no log has room for it
                stored.leap = step.number
                self._wake.set()
                return
            line = self._writer.step(step)
            pending.steps.append((place_of(stored.entry.number, step.number), line))
            stored.size += len(line)
            if stored.is_long:
                self._wake.set()

        sandbox.log.writer, sandbox.log.stored = write, partial(self.settled, sandbox)

    def _pending(self, stored: Stored) -> Pending:
        """What is committed next of a sandbox, to be added to before anything else is done."""
        pending = self._next.get(stored)
        if pending is None:
            pending = self._next[stored] = Pending(number=stored.entry.number, stored=stored)
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
        for stored, pending in [*self._next.items()]:
            if pending.is_ready:
                self._flying[stored] = self._next.pop(stored)
        return bool(self._flying)

    async def _commit_flying(self) -> None:
        flying = [*self._flying.values()]
        for pending in flying:
            pending.complete()
        lost = await self.store.commit(flying)
        for pending in flying:
            stored = pending.stored
            if pending.number not in lost:
                stored.committed = 0 if pending.row is None else pending.row.newest
            elif stored.committed is not None:
                self._lose(stored, is_undone=stored.committed < stored.entry.sandbox.log.number)
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
                head = state.head | {"contract": self.factory.contract}
                about = orjson.dumps(head).decode()
                found.append((state.name, about, capture(state.sandbox)))
            else:
                found.append(("", "", capture(state)))

        def written(session: Session) -> list[KeptState]:
            return [
                sql.write_state(session, name, about, copy.log.number, parts_of(copy))
                for name, about, copy in found
            ]

        return await self._writing.run(written)

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
        stored = self._stored.get(sandbox.name)
        if stored is None or stored.entry.sandbox is not sandbox:
            return
        pending = self._next.get(stored) or self._flying.get(stored)
        if pending is not None:
            await pending.outcome()

    def store_row_soon(self, name: str, keys: Sequence[str] = ()) -> Pending | None:
        """Store the row of a sandbox, and API keys by which it is found, with the next commit; do
        not wait for that.
        """
        stored = self._stored.get(name)
        if stored is None:
            return None
        pending = self._pending(stored)
        pending.statements += keys_entered(keys, pending.number)
        return pending

    async def store_row(
        self, sandbox: Sandbox, beside: Callable[[int], Sequence[Statement]] = lambda number: ()
    ) -> None:
        """Store the row of a sandbox, with what is stored `beside` it for its number, and wait for
        that. Raises Unavailable.
        """
        self.check_written()
        pending = self.store_row_soon(sandbox.name)
        if pending is not None:
            pending.statements += beside(pending.number)
            await pending.outcome()

    @property
    def lag(self) -> float:
        """How many seconds the oldest change has waited to be stored."""
        if self.committing is None:
            return 0.0
        return monotonic() - self._begun

    async def _fail(self, error: Exception) -> None:
        """Unload the sandboxes that the store may have otherwise, and wait until it can be written.

        They are opened again with what the store has. Until the store can be written, every sandbox
        refuses changes, stops its clock and sends no delivery.
        """
        self.failure = failure = unwritten(self.store.reason(error))
        log.error("the store cannot be written, and changes are refused (%s)", one_line(error))
        failed = [*self._flying.values(), *self._next.values()]
        self._flying, self._next = {}, {}
        for pending in failed:
            self._lose(pending.stored)  # nobody knows what was committed
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
                beside.close()
            await self.store.commit([Change(0, statements=[sql.probe()])])
        except Exception as error:
            log.debug("the store still cannot be written (%s)", error)
            return False
        return True
