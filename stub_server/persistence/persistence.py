"""Stores the sandboxes of a server: creates and deletes them, keeps their snapshots, and rewrites long states."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from typing import TypeAlias, TypeVar

import orjson

from ..engine.sandbox import DEFAULT, Sandbox
from ..files.lines import chunks_of
from ..files.state import SandboxState, Snapshot, capture
from ..kernel.clock import wall_ms
from ..kernel.problem import Refusal, Unavailable, store_unavailable
from ..kernel.record import Body
from ..sandboxes.entry import Entry, keys_of, too_many
from ..sandboxes.making import SandboxFactory
from . import sql
from .commits import PAUSE, Commits, Pending, Stored
from .opening import opened
from .sql import Batch, Damage, Database, KeptSnapshot, KeptState, Session, Statement, StoreError

MOST = 100_000  # sandboxes of a store
CLOSING = 1.0  # seconds that running long work gets when the server stops
_DONE = object()
T = TypeVar("T")
log = logging.getLogger("stub_server")

Written: TypeAlias = tuple[int, Sequence[KeptState]]
"""The number of a sandbox, and states of it to which nothing refers yet: its own, then those of its snapshots."""


class Persistence(Commits):
    """One per server. Without a store it does nothing, and steps do not call it."""

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        """`factory` makes the sandboxes that are read. Long work runs beside the requests, in its worker."""
        super().__init__(store, factory)
        self.changing = asyncio.Lock()  # while a sandbox is created, replaced or deleted
        self._writing: list[int] = []  # sandboxes with states being written, to which nothing refers yet
        self._ends: list[int] = []  # deleted sandboxes, which the store still has
        self.elsewhere: dict[str, Body] = {}  # what lists show of sandboxes that others had when this server started
        self._tending: asyncio.Task[None] | None = None

    # -- what was there before

    def read(self, most: int) -> Iterator[Entry]:
        """At most `most` sandboxes of the store; only the default one if the store is shared. Raises StoreError."""
        if not self.has_store:
            return
        with closing(self.store.session()) as session:
            try:
                names = [DEFAULT] if self.is_shared else sql.names(session, most)
                self._untidy |= sql.untidy(session, self.store.holder)
            except self.store.errors as error:
                raise StoreError(f"{self.store.name} cannot be read ({error}). {self.store.advice}") from None
            for name in names:
                found = self._open(session, name)
                if isinstance(found, str):
                    self.elsewhere[name] = sql.summary(session, name)
                elif found is not None:
                    yield self._entry(*found)

    async def open(self, name: str) -> Entry | str | None:
        """A sandbox that is not in memory; the address of the server that has it; None where there is none.

        Raises Unavailable, and StoreError for one that is damaged.
        """
        found = await self.query(lambda session: self._open(session, name))
        return self._entry(*found) if isinstance(found, tuple) else found

    def _open(self, session: Session, name: str) -> tuple[Stored, Sequence[Snapshot]] | str | None:
        where = f"{self.store.name}: the sandbox {name}"
        try:
            number = self.store.claim(session, name)
            if not isinstance(number, int):
                return number
            kept = sql.sandbox(session, number)
            if kept.expires_at is not None and kept.expires_at <= wall_ms():
                sql.commit(session, Batch(ends=[number]), self.store.holder)
                return None
            return opened(self.factory, session, number, kept, self.store.holder)
        except Damage as error:
            raise StoreError(f"{where} is damaged: {error}. {self.store.advice}") from None
        except StoreError as error:
            raise StoreError(f"{where} {error}") from None
        except self.store.errors as error:
            raise StoreError(f"{where} cannot be read ({error}). {self.store.advice}") from None

    def _entry(self, stored: Stored, snapshots: Sequence[Snapshot]) -> Entry:
        stored.entry.snapshots.keep(*snapshots)
        self._follow(stored)
        return stored.entry

    # -- sandboxes that come and go

    @asynccontextmanager
    async def written(self, sandbox: Sandbox, snapshots: Sequence[Snapshot] = ()) -> AsyncIterator[Written | None]:
        """Write the state of a sandbox that nobody can reach yet, beside the requests. Raises Unavailable.

        After the block the state is deleted, unless the sandbox was `put`. Within it, no other sandbox is created or
        deleted.
        """
        writing = self._written(_states(sandbox, snapshots)) if self.has_store else nullcontext()
        async with writing as written, self.changing:
            yield written

    async def put(self, entry: Entry, written: Written | None, snapshots: Sequence[Snapshot] = ()) -> bool:
        """Store a sandbox from now on, in place of the one of its name; False where another server has that.

        Raises Unavailable.
        """
        if written is not None:
            await self._end()
            before = self._stored.get(entry.sandbox.name)
            stored, changes = self._entering(entry, written, snapshots)
            if not await self._changed(changes, stored, ends=[before] if before else ()):
                return False
            if before is not None:
                self._tidy_soon(before.number)
            self._follow(stored)
        return True

    def begin(self, entry: Entry, snapshots: Sequence[Snapshot] = ()) -> bool:
        """Store the first sandbox of a new store, before any request is served. Raises Unavailable.

        False where another server of the store was quicker: its name is unique, so one of them has it.
        """
        if not self.has_store:
            return True
        states, holder = _states(entry.sandbox, snapshots), self.store.holder
        number = self._with_session(lambda session: sql.reserve(session, entry.sandbox.log.number, holder))
        written = self._with_session(lambda session: _write(session, number, 0, states))
        stored, changes = self._entering(entry, written, snapshots)
        batch = self._batch(Pending(changes, {number: stored}, is_atomic=True))

        def is_first(session: Session) -> bool:
            try:
                sql.commit(session, batch, holder)
            except self.store.errors as error:
                if self.store.is_duplicate(error):
                    return False
                raise
            return True

        if not self._with_session(is_first):
            return False
        self._follow(stored)
        return True

    def _entering(
        self, entry: Entry, written: Written, snapshots: Sequence[Snapshot]
    ) -> tuple[Stored, list[Statement]]:
        number, (state, *others) = written
        changes = sql.entered(number, entry.sandbox.name, state.id)
        changes += [sql.key_entered(key, number) for key in keys_of(entry.sandbox)]
        for snapshot, other in zip(snapshots, others, strict=True):
            changes += sql.snapshot_entered(number, self._kept_snapshot(snapshot, other))
        return Stored(entry, number, state, self.factory.contract, state.step, 0, (state.step, 0)), changes

    def _kept_snapshot(self, snapshot: Snapshot, state: KeptState) -> KeptSnapshot:
        description = orjson.dumps(snapshot.description).decode()
        return KeptSnapshot(
            snapshot.name, description, snapshot.now, snapshot.created_at, self.factory.contract, state.id
        )

    async def delete(self, name: str) -> None:
        """Delete a sandbox from the store. Raises Unavailable."""
        stored = self._stored.get(name)
        if stored is not None:
            await self._changed(ends=[stored])

    def delete_soon(self, name: str) -> None:
        """The same without waiting."""
        stored = self._stored.pop(name, None)
        if stored is not None:
            self._ends.append(stored.number)
            self._wake.set()

    async def _end(self) -> None:
        """Delete from the store what `delete_soon` named, so that the names are free. Raises Unavailable."""
        if ends := self._ends[:]:
            await self._changed(self._ended())
            self._ends = [number for number in self._ends if number not in ends]
            self._untidy.update(ends)

    def _ended(self) -> list[Statement]:
        return [sql.ended(number, self.store.holder) for number in self._ends]

    @property
    def lease(self) -> float | None:
        """For how many seconds this process may answer; None where no other process uses the store."""
        return self.store.lease_left if self.has_store else None

    def check_lease(self) -> None:
        """Refuse to answer for sandboxes: when the lease has ended, other servers may have them. Raises Unavailable."""
        if self.is_shared and self.store.lease_left == 0:
            message = "The store cannot be reached, and other servers may have the sandboxes of this one by now."
            raise store_unavailable(message, "Send this again in a few seconds.")

    def is_settled(self, sandbox: Sandbox) -> bool:
        """Whether everything of a sandbox is stored."""
        stored = self._stored.get(sandbox.name)
        every = (*self._flying, self._pending, *self._changes)
        return stored is not None and all(stored.number not in pending.touched for pending in every)

    async def release(self, name: str) -> None:
        """Give up a sandbox that is wholly stored and unused: any server may open it. Raises Unavailable."""
        stored = self._stored.pop(name, None)
        if stored is not None:
            await self._changed([sql.released(stored.number, self.store.holder)])

    async def query(self, work: Callable[[Session], T]) -> T:
        """Read the store, beside the requests, once deleted sandboxes have left it. Raises Unavailable."""
        await self._end()
        return await self._beside(work)

    # -- snapshots

    async def keep_snapshot(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Store a snapshot in place of the one of its name; False when the sandbox was deleted meanwhile.

        Raises Conflict where there is no room, and Unavailable.
        """
        async with self.changing:
            stored = self._stored.get(entry.sandbox.name)
            if stored is not None:
                async with self._written([capture(snapshot.sandbox)], stored) as (number, (state,)):
                    if not entry.sandbox.is_gone:
                        entry.snapshots.check_room(snapshot.name, snapshot.size)
                        await self._changed(sql.snapshot_entered(number, self._kept_snapshot(snapshot, state)), stored)
            if entry.sandbox.is_gone:
                return False
            entry.snapshots.keep(snapshot)
            return True

    async def delete_snapshot(self, entry: Entry, name: str) -> None:
        """Delete a snapshot from the store. Raises Unavailable."""
        stored = self._stored.get(entry.sandbox.name)
        if stored is not None:
            await self._changed(sql.snapshot_ended(stored.number, name), stored)
            self._tidy_soon(stored.number)

    # -- beside the requests: whole states, and deleting what is no longer needed

    def start(self) -> None:
        """Start to tidy beside the requests, on the running event loop."""
        if self.has_store:
            self.store.start(self._lose_all)
            self._tending = asyncio.create_task(self._tend())
            self._wake.set()

    async def stop(self) -> None:
        """Store everything and close the store."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self.has_store and self.failure is None:
            self._pending.touched |= {stored.number: stored for stored in self._stored.values()}
            if self._ends:
                self._changes.append(Pending(self._ended(), is_atomic=True))
            self._commit_soon()
        while self.committing is not None and self.failure is None:
            await asyncio.wait((self.committing,), timeout=PAUSE)
        if self.committing is not None:
            self.committing.cancel()
        session, self._session = self._session, None
        if session is not None:
            with suppress(TimeoutError):  # its thread may still be within a transaction
                await asyncio.wait_for(self.factory.worker.beside(session.close), CLOSING)
        self.close()

    def close(self) -> None:
        """Close the store as it is."""
        if self.has_store:
            self.has_store = False
            for stored in self._stored.values():
                stored.entry.sandbox.log.writer = stored.entry.sandbox.log.stored = None
            self._stored.clear()
            if self._session is not None:
                self._session.close()
            self.store.close()

    def _tidy_soon(self, number: int) -> None:
        self._untidy.add(number)
        self._wake.set()

    async def _tend(self) -> None:
        has_failed = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                for stored in [*self._stored.values()]:
                    if stored.is_long:
                        await self._rewrite(stored)
                await self._end()
                await self._tidy()
                has_failed = False
            except Unavailable as error:
                if not has_failed:
                    log.warning("the store could not be tidied (%s); nothing is lost, and it is tried again", error)
                has_failed = True
                await asyncio.sleep(PAUSE)
                self._wake.set()

    async def _rewrite(self, stored: Stored) -> None:
        """Write the present state of a sandbox, from which it is opened next time, in place of the earlier one."""
        sandbox, size, undone_at = stored.entry.sandbox, stored.size, stored.entry.sandbox.undone_at
        async with self._written([capture(sandbox)], stored) as (_, (state,)):
            if self._stored.get(sandbox.name) is stored and sandbox.undone_at == undone_at:
                try:
                    await self._changed(sql.state_replaced(stored.state.id, state.id), stored, state=state)
                except Refusal:
                    if self._stored.get(sandbox.name) is stored:  # else it is no more
                        raise
                stored.size -= size

    @asynccontextmanager
    async def _written(self, states: Sequence[SandboxState], stored: Stored | None = None) -> AsyncIterator[Written]:
        """Write states of a sandbox beside the requests, by default of one that is being created.

        States to which nothing refers after the block are deleted.
        """
        begun: list[int] = []
        chain, holder = 0 if stored is None else stored.chain, self.store.holder

        def write(session: Session) -> Written:
            if stored is None and sql.count(session) >= MOST:
                raise too_many(MOST, "store")
            number = sql.reserve(session, states[0].sandbox.log.number, holder) if stored is None else stored.number
            begun.append(number)
            self._writing.append(number)
            return _write(session, number, chain, states)

        try:
            yield await self._beside(write)
        finally:
            for number in begun:
                self._writing.remove(number)
                if stored is not None or all(other.number != number for other in self._stored.values()):
                    self._tidy_soon(number)

    async def _tidy(self) -> None:
        numbers, self._untidy = sorted(self._untidy), set()
        try:
            work = await self._beside(lambda session: sql.tidying(session, self.store, numbers, self._writing))
            while await self._beside(lambda _: next(work, _DONE)) is not _DONE:
                pass
        except Unavailable:
            self._untidy |= set(numbers)
            raise


def _states(sandbox: Sandbox, snapshots: Sequence[Snapshot]) -> list[SandboxState]:
    return [capture(each) for each in (sandbox, *(snapshot.sandbox for snapshot in snapshots))]


def _write(session: Session, number: int, chain: int, states: Sequence[SandboxState]) -> Written:
    steps = [(state.sandbox.log.number, state) for state in states]
    return number, [sql.write_state(session, number, step, chain, chunks_of(state)) for step, state in steps]
