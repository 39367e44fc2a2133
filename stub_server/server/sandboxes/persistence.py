"""Stores the sandboxes of a server: creates and deletes them, keeps their snapshots, and rewrites
long states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from secrets import randbits
from typing import TypeVar

import orjson

from ...core.clock import wall_ms
from ...core.log import log
from ...core.problem import Unavailable, gone, store_unavailable
from ...core.record import Body
from ...engine.sandbox import DEFAULT
from ...storage import sql
from ...storage.database import (
    Change,
    Damage,
    Database,
    KeptState,
    Session,
    StoreError,
    one_line,
)
from ...storage.package import BadFile
from ...storage.state import Snapshot
from .commits import PAUSE, Commits
from .entry import Entry, Stored
from .making import SandboxFactory
from .pending import Pending

CLOSING = 1.0  # seconds that running long work gets when the server stops
T = TypeVar("T")


class Persistence(Commits):
    """One per server. Without a store it does nothing, and steps do not call it."""

    def __init__(self, store: Database | None, factory: SandboxFactory) -> None:
        """`factory` makes the sandboxes that are read."""
        super().__init__(store, factory)
        self.changing = asyncio.Lock()  # while a sandbox is created, replaced or deleted
        # what lists show of it, if another server has it at the start
        self.default_elsewhere: Body | None = None
        self._tending: asyncio.Task[None] | None = None

    # -- what was there before

    def read(self) -> Iterator[Entry]:
        """The sandboxes of the store; only the default one if the store is shared.

        Raises StoreError.
        """
        if not self.has_store:
            return
        with closing(self.store.session()) as session:
            names = [DEFAULT]
            if not self.is_shared:
                with self._naming(""):
                    names = [kept.name for kept in sql.listed(session)]
            for name in names:
                found = self._open(session, name)
                if isinstance(found, str):
                    kept = sql.sandbox(session, name)
                    if kept is not None:
                        self.default_elsewhere = orjson.loads(kept.about)
                elif found is not None:
                    yield self._entry(*found)

    async def open(self, name: str) -> Entry | str | None:
        """A sandbox that is not in memory; the address of the server that has it; None where there
        is none.

        Raises Unavailable, and StoreError for one that is damaged.
        """
        holder = self.store.holder
        address = await self.query(lambda session: self.store.claim(session, name))
        if address is not None:
            return address
        found = await self._lines.opening.run(lambda session: self._open(session, name))
        if not isinstance(found, tuple):
            return found
        if holder != self.store.holder:  # the lease ended meanwhile: another may have changed it
            return await self.open(name)
        self.check_lease()
        return self._entry(*found)

    def _open(self, session: Session, name: str) -> tuple[Entry, Sequence[Snapshot]] | str | None:
        with self._naming(f": the sandbox {name}"):
            address = self.store.claim(session, name)
            if address is not None:
                return address
            kept = sql.sandbox(session, name)
            if kept is None:
                return None
            if kept.expires_at is not None and kept.expires_at <= wall_ms():
                sql.commit(
                    session,
                    [Change(kept.id, ends=True, statements=[sql.steps_ended(kept.id)])],
                    self.store.holder,
                )
                return None
            return self.factory.open(session, kept, self.store.holder)

    @contextmanager
    def _naming(self, what: str) -> Iterator[None]:
        """Within it, something of the store is read: errors become a StoreError that names it."""
        where = f"{self.store.name}{what}"
        try:
            yield
        except (Damage, ValueError, self.store.errors) as error:
            if isinstance(error, BadFile) and error.kind == "unfit":
                reasons = "\n  ".join(error.reasons)
                raise StoreError(
                    f"{where} does not fit the contract that is served:\n  {reasons}"
                ) from None
            raise StoreError(
                f"{where} cannot be read ({one_line(error)}). {self.store.advice}"
            ) from None

    def _entry(self, entry: Entry, snapshots: Sequence[Snapshot]) -> Entry:
        entry.snapshots.keep(*snapshots)
        self._follow(entry)
        return entry

    # -- sandboxes that come and go

    async def put(self, entry: Entry, written: Sequence[KeptState]) -> bool:
        """Store a sandbox from now on, in place of the one of its name; False where another server
        has that, or may have it by now: the lease ended meanwhile.

        `written` is its state, then those of its snapshots. Raises Unavailable.
        """
        if not self.has_store:
            return True
        before, holder = self._stored.get(entry.name), self.store.holder
        self.check_written()
        number, own = randbits(31), written[0]  # as many bits as a step's place has left for it
        entry.stored = Stored(
            number, self.factory.contract, None, own.step, own.size, states=len(written)
        )
        if before is not None:
            self._pending(before).ends = True
        pending = self._pending(entry)
        pending.statements += sql.keys_entered(list(entry.keys), number)
        for state in written:
            pending.statements += sql.state_entered(number, state)
        if not await pending.outcome() or holder != self.store.holder:
            return False
        self.check_lease()
        try:
            # an earlier sandbox may have keys that a copy or a file brings
            entry.keys = set(await self.query(lambda session: sql.keys_of(session, number)))
        except Unavailable:
            if before is not None:  # the store does not have it any more
                self._lose(before)
            raise
        self._follow(entry)
        return True

    async def announce(self, name: str) -> None:
        """Let other servers of the store know that this one is creating a sandbox.

        Raises Unavailable.
        """
        if self.is_shared:
            await self._lines.reading.run(lambda session: self.store.announce(session, name))

    async def end_announcement(self, name: str) -> None:
        """Let them know that it no longer is.

        If the store is away, they believe so until this process ends.
        """
        if self.has_store and self.is_shared:  # a server that has stopped has taken back all
            with suppress(Unavailable):
                await self._lines.reading.run(
                    lambda session: self.store.end_announcement(session, name)
                )

    def delete(self, name: str) -> Pending | None:
        """Delete a sandbox from the store; what that is done with, where there is a store."""
        entry = self._stored.pop(name, None)
        if entry is None:
            return None
        pending = self._pending(entry)
        pending.ends = True
        return pending

    @property
    def lease(self) -> float | None:
        """For how many seconds this process may answer; None where no other process
        uses the store.
        """
        if not self.has_store:
            return None
        return self.store.lease_left

    def check_lease(self) -> None:
        """Refuse to answer for sandboxes: when the lease has ended, other servers may have them.

        Raises Unavailable.
        """
        if self.lease == 0:
            raise store_unavailable(
                "The store cannot be reached, and other servers may have the sandboxes of this one"
                " by now.",
                "Send this again in a few seconds.",
            )

    async def query(self, work: Callable[[Session], T]) -> T:
        """Read the store, beside the requests, once deleted sandboxes have left it.

        Raises Unavailable.
        """
        if self.is_shared:  # a commit whose connection broke may still come
            self.check_written()
        for pending in (*self._flying.values(), *self._next.values()):
            if pending.ends:
                await pending.known.wait()
        return await self._lines.reading.run(work)

    # -- snapshots

    async def keep_snapshot(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Store a snapshot in place of the one of its name; False when the sandbox was deleted
        meanwhile.

        Raises Conflict where there is no room, and Unavailable.
        """
        written = await self.write(snapshot)
        async with self.changing:
            if entry.sandbox.status.is_gone:
                return False
            entry.snapshots.check_room(snapshot)
            self.check_written()
            entry.stored.states += snapshot.name not in entry.snapshots
            for state in written:
                await self.store_row(entry.sandbox, *sql.state_entered(entry.stored.number, state))
            entry.snapshots.keep(snapshot)
            return True

    async def drop_snapshot(self, entry: Entry, name: str) -> None:
        """Delete a snapshot. Raises NotFound, Unavailable."""
        async with self.changing:
            if entry.sandbox.status.is_gone:
                raise gone()
            entry.snapshots.named(name)
            self.check_written()
            entry.stored.states -= 1
            await self.store_row(entry.sandbox, sql.state_ended(entry.stored.number, name))
            entry.snapshots.drop(name)

    # -- beside the requests

    def start(self) -> None:
        """Start to rewrite long states beside the requests, on the running event loop."""
        if self.has_store:
            self.store.start(self._lose_all)
            self._tending = asyncio.create_task(self._tend())
            self._wake.set()

    async def stop(self) -> None:
        """Store everything and close the store."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self.failure is None:
            for name in self._stored:
                self.store_row_soon(name)
        while self.committing is not None and self.failure is None:
            await asyncio.wait((self.committing,), timeout=PAUSE)
        if self.committing is not None:
            self.committing.cancel()
        if self.has_store:
            for beside in self._lines:
                with suppress(TimeoutError):  # its thread may still be within a transaction
                    await asyncio.wait_for(beside.ended(), CLOSING)
        self.close()

    def close(self) -> None:
        """Close the store as it is."""
        if self.has_store:
            self.has_store = False
            for entry in self._stored.values():
                entry.sandbox.log.writer = entry.sandbox.log.stored = None
            self._stored.clear()
            for beside in self._lines:
                beside.close()
            self.store.close()

    async def _tend(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(sql.UNUSED):
                    await self._wake.wait()
            self._wake.clear()
            try:
                for entry in [*self._stored.values(), *self._next]:
                    if entry.stored.is_long:
                        await self._rewrite(entry)
                while await self._lines.writing.run(sql.delete_unused):
                    pass
            except Unavailable as error:
                log.debug("the store could not be tidied (%s)", error)
                for pending in self._next.values():
                    if pending.entry.stored.lacks_state:
                        pending.failure = error
                        self._pending(pending.entry)
                await asyncio.sleep(PAUSE)
                self._wake.set()

    async def _rewrite(self, entry: Entry) -> None:
        """Write the present state of a sandbox, from which it is opened next time, in
        place of its steps.
        """
        stored, size = entry.stored, entry.stored.size
        (state,) = await self.write(entry.sandbox)
        is_there = self._stored.get(entry.name) is entry
        if is_there or entry in self._next:
            pending = self._pending(entry)
            last = sql.place_of(pending.number, state.step)
            stored.state_step, stored.state_size = state.step, state.size
            stored.size, stored.contract = stored.size - size, self.factory.contract
            pending.steps = [step for step in pending.steps if step[0] > last]
            pending.statements += sql.state_entered(pending.number, state)
            pending.statements.append(sql.steps_ended(pending.number, state.step))
