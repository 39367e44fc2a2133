"""Stores the sandboxes of a server: those that come and go, their snapshots, and a whole state now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from typing import NamedTuple, TypeAlias, TypeVar

import orjson

from ..engine.sandbox import DEFAULT, Sandbox
from ..files.state import WorldState, capture
from ..kernel.clock import wall_ms
from ..kernel.problem import Refusal, Unavailable
from ..kernel.slices import Lane
from ..worlds.entry import Entry
from ..worlds.inbox import Inbox
from ..worlds.keyring import keys_of
from ..worlds.names import too_many
from ..worlds.snapshots import Snapshot, Snapshots
from . import store as sql
from .commits import Change, Commits, Stored, again
from .opening import Opened, Opener
from .rows import Damage, KeptSnapshot, KeptState, StoreError
from .store import Batch, Listed, Session, Statement, Store

MOST = 100_000  # sandboxes of a store
CLOSING = 1.0  # seconds that long work which goes on gets when the server stops
PAUSE = 0.5  # seconds between two looks whether a store that failed can be written again
_DONE = object()
R = TypeVar("R", bound=Refusal)
T = TypeVar("T")
log = logging.getLogger("stub_server")

Belongings: TypeAlias = Callable[[], tuple[Inbox, Snapshots]]
"""What a sandbox has beside its state, empty."""


class Reserved(NamedTuple):
    """A sandbox that is about to come: its number, its state, and its snapshots."""

    number: int
    state: KeptState
    snapshots: tuple[KeptSnapshot, ...]


class Persistence(Commits):
    """One per server. Without a store it does nothing, and nothing is asked of it for a step."""

    def __init__(self, store: Store | None, contract: str = "") -> None:
        """`contract` stands for what records are held to: those that another one has passed are held to it anew."""
        super().__init__(store, contract)
        self._reserved: set[int] = set()  # sandboxes that are about to come
        self._coming: set[int] = set()  # states that nothing refers to yet
        self._ends: list[int] = []  # sandboxes that are no more, which the store is yet to be told
        self.elsewhere: list[str] = []  # sandboxes that other servers had when this one started
        self._tending: asyncio.Task[None] | None = None

    # -- what was there before

    def read(self, opener: Opener, belongings: Belongings, most: int) -> Iterator[Entry]:
        """At most so many sandboxes of the store as they were; of a shared one the default alone. Raises StoreError."""
        if self._store is None:
            return
        with closing(self._store.session()) as session:
            try:
                names = [DEFAULT] if self._store.is_shared else sql.names(session, most)
                self._untidy |= sql.untidy(session, self._store.holder)
            except self._store.errors as error:
                raise StoreError(f"{self._store.name} cannot be read ({error}). {self._store.advice}") from None
            for name in names:
                opened = self._open(session, name, opener)
                if isinstance(opened, Opened):
                    yield self._entry(opened, belongings)
                elif opened is not None:
                    self.elsewhere.append(name)

    async def open(self, name: str, opener: Opener, belongings: Belongings, lane: Lane) -> Entry | str | None:
        """A sandbox that is not in memory; the address of the server that has it; None where there is none.

        Raises Unavailable, and StoreError for one that is damaged.
        """
        if self._store is None:
            return None
        await self._end()
        found = await self._beside(lane, lambda session: self._open(session, name, opener))
        return self._entry(found, belongings) if isinstance(found, Opened) else found

    def _open(self, session: Session, name: str, opener: Opener) -> Opened | str | None:
        assert self._store is not None
        where = f"{self._store.name}: the sandbox {name}"
        try:
            held = self._store.claim(session, name)
            if held is None or held.address is not None:
                return held and held.address
            number, kept = sql.row_of_sandbox(session, held.number)
            if kept.expires_at is not None and kept.expires_at <= wall_ms():
                sql.commit(session, Batch(ends=[number]), self._store.holder)
                return None
            return opener.open(session, number, kept, self._store.holder)
        except Damage as error:
            raise StoreError(f"{where} is damaged: {error}. {self._store.advice}") from None
        except StoreError as error:
            raise StoreError(f"{where} {error}") from None
        except self._store.errors as error:
            raise StoreError(f"{where} cannot be read ({error}). {self._store.advice}") from None

    def _entry(self, opened: Opened, belongings: Belongings) -> Entry:
        kept = opened.kept
        entry = Entry(
            opened.sandbox,
            kept.parent,
            bool(kept.on_first_use),
            kept.created_at,
            kept.last_used_at,
            kept.expires_at,
            *belongings(),
            kept.incarnation,
            kept.origin_events,
        )
        for snapshot in opened.snapshots:
            entry.snapshots.keep(snapshot)
        newest = kept.newest, kept.chain
        contract = kept.contract if kept.contract == self.contract else ""  # of several, with what follows
        stored = Stored(entry, opened.number, opened.state, contract, *newest, newest, opened.since)
        self._follow(stored)
        return entry

    # -- sandboxes that come and go

    async def prepare(self, sandbox: Sandbox, lane: Lane, snapshots: Sequence[Snapshot] = ()) -> Reserved | None:
        """Write the state of a sandbox that nobody can reach yet, beside the requests. Raises Unavailable."""
        if self._store is None:
            return None
        return await self._beside(lane, self._writing(sandbox, snapshots))

    def prepare_at_once(self, sandbox: Sandbox, snapshots: Sequence[Snapshot] = ()) -> Reserved | None:
        """The same where nobody is served yet. Raises Unavailable."""
        if self._store is None:
            return None
        return self._with_session(self._writing(sandbox, snapshots))

    def _writing(self, sandbox: Sandbox, snapshots: Sequence[Snapshot]) -> Callable[[Session], Reserved]:
        assert self._store is not None
        holder = self._store.holder
        state, pinned = capture(sandbox), [(snapshot, capture(snapshot.told.world)) for snapshot in snapshots]

        def write(session: Session) -> Reserved:
            if sql.count(session) >= MOST:
                raise too_many(MOST, "store")
            number = sql.reserve(session, state.step, holder)
            self._reserved.add(number)
            try:
                written = sql.write_state(session, number, state, 0)
                others = [self._told(told, sql.write_state(session, number, was, 0)) for told, was in pinned]
            except BaseException:
                self._reserved.discard(number)
                self._untidy.add(number)
                raise
            return Reserved(number, written, tuple(others))

        return write

    def _told(self, snapshot: Snapshot, state: KeptState) -> KeptSnapshot:
        name, description, now, created_at, _ = snapshot.told
        return KeptSnapshot(name, orjson.dumps(description).decode(), now, created_at, self.contract, state.id)

    def discard(self, reserved: Reserved | None) -> None:
        """The sandbox is not wanted after all, unless it was entered."""
        if reserved is not None and reserved.number in self._reserved:
            self._reserved.discard(reserved.number)
            self._tidy_soon(reserved.number)

    async def enter(self, entry: Entry, reserved: Reserved | None) -> bool:
        """Store a sandbox from now on, in place of the one of its name; False where another server has that.

        Raises Unavailable.
        """
        if reserved is not None:
            await self._end()
            before = self._stored.get(entry.world.name)
            change = self._entering(entry, reserved, before)
            await self._changed(change)
            if change.is_taken:
                return False
            self._entered(change.stored, before)
        return True

    def enter_at_once(self, entry: Entry, reserved: Reserved | None) -> None:
        """The same where nobody is served yet. Raises Unavailable."""
        if reserved is not None:
            change = self._entering(entry, reserved, None)
            self._pending.changes.append(change)
            self._commit_at_once()
            self._entered(change.stored, None)

    def _entering(self, entry: Entry, reserved: Reserved, before: Stored | None) -> Change:
        number, state, snapshots = reserved
        changes = sql.entered(number, entry.world.name, state.id)
        changes += [sql.key_entered(key, number) for key in keys_of(entry.world)]
        for kept in snapshots:
            changes += sql.snapshot_entered(number, kept)
        return Change(changes, Stored(entry, number, state, self.contract, state.step, 0, (state.step, 0)), ends=before)

    def _entered(self, stored: Stored | None, before: Stored | None) -> None:
        assert stored is not None
        self._reserved.discard(stored.number)
        if before is not None:
            self._tidy_soon(before.number)
        self._follow(stored)

    async def leave(self, name: str) -> None:
        """Store a sandbox no longer. Raises Unavailable."""
        stored = self._stored.get(name)
        if stored is not None:
            await self._changed(Change(ends=stored))
            self._stored.pop(name, None)
            self._tidy_soon(stored.number)

    def leave_soon(self, name: str) -> None:
        """The same for one that nobody waits for."""
        stored = self._stored.pop(name, None)
        if stored is not None:
            self._ends.append(stored.number)
            self._wake.set()

    async def _end(self) -> None:
        """Have the store know of sandboxes that are no more: their names are free. Raises Unavailable."""
        if ends := self._ends[:]:
            await self._changed(Change(self._ended()))
            self._ends = [number for number in self._ends if number not in ends]
            self._untidy.update(ends)

    def _ended(self) -> list[Statement]:
        assert self._store is not None
        return [sql.ended(number, self._store.holder) for number in self._ends]

    async def note(self, entry: Entry) -> None:
        """Store what no step says of a sandbox. Raises Unavailable."""
        self._check_written()
        if self._touch(entry.world.name) is not None:
            pending = self._pending
            await pending.known.wait()
            if pending.failure is not None:
                raise again(pending.failure)

    def note_soon(self, entry: Entry) -> None:
        """The same with the next commit, for which nobody waits."""
        self._touch(entry.world.name)

    def add_keys(self, name: str, keys: Sequence[str]) -> None:
        """Store with the next commit by which API keys a sandbox is found from now on."""
        stored = self._touch(name)
        if stored is not None:
            self._pending.keys += [sql.key_entered(key, stored.number) for key in keys]

    @property
    def epoch(self) -> int:
        """A number that is higher at every start of a process of the store, by more than it counts from there."""
        return 0 if self._store is None else self._store.epoch

    @property
    def lease(self) -> float | None:
        """For how many seconds this process may answer, None where no other one uses the store."""
        return None if self._store is None else self._store.lease_left

    @property
    def is_shared(self) -> bool:
        """Whether other servers may have sandboxes of the store."""
        return self._store is not None and self._store.is_shared

    def check_lease(self) -> None:
        """Refuse to answer for sandboxes: when the lease has ended, other servers may have them. Raises Unavailable."""
        if self.lease == 0:
            message = "The store cannot be reached, and other servers may have the sandboxes of this one by now."
            raise Unavailable(
                message,
                advice="Send this again in a few seconds.",
                code="store_unavailable",
                headers={"Retry-After": "5"},
            )

    def is_settled(self, sandbox: Sandbox) -> bool:
        """Whether everything of a sandbox is stored."""
        stored = self._stored.get(sandbox.name)
        batches = (self._pending, self._flying)
        return stored is not None and not any(batch is not None and stored.number in batch.touched for batch in batches)

    async def release(self, name: str) -> None:
        """Have a sandbox be nobody's that is wholly stored and that nobody uses any more. Raises Unavailable."""
        stored = self._stored.pop(name, None)
        if stored is not None and self._store is not None:
            await self._changed(Change([sql.released(stored.number, self._store.holder)]))

    async def sandbox_of(self, key: str, lane: Lane) -> str | None:
        """The name of the sandbox that an API key is of. Raises Unavailable."""
        return await self._beside(lane, lambda session: sql.sandbox_with(session, key))

    async def has(self, name: str, lane: Lane) -> bool:
        """Whether there is a sandbox of a name in the store. Raises Unavailable."""
        await self._end()
        found = "select 1 from sandboxes where name = ? and (expires_at is null or expires_at > ?)"
        return bool(await self._beside(lane, lambda session: session.run(found, name, wall_ms())))

    async def listed(self, lane: Lane) -> list[Listed]:
        """Every sandbox of the store, in the order in which they were made. Raises Unavailable."""
        return [] if self._store is None else await self._beside(lane, sql.listed)

    async def looked(self, now: int, lane: Lane) -> tuple[int, list[str]]:
        """How many sandboxes the store has, and some that have something due at an instant (ms) and are in no memory.

        Raises Unavailable.
        """
        store = self._store
        if store is None:
            return 0, []
        count, due = await self._beside(lane, lambda session: (sql.count(session), store.due(now, session)))
        return count, [name for name in due if name not in self._stored]

    # -- snapshots

    async def keep_snapshot(self, entry: Entry, snapshot: Snapshot, lane: Lane) -> bool:
        """Store a snapshot in place of the one of its name; False when the sandbox is gone by then.

        Raises Conflict where there is no room, and Unavailable.
        """
        stored = self._stored.get(entry.world.name)
        if stored is not None:
            async with self._written(stored, capture(snapshot.told.world), 0, lane) as written:
                if not entry.world.is_gone:
                    entry.snapshots.check_room(snapshot.name, snapshot.size)
                    changes = sql.snapshot_entered(stored.number, self._told(snapshot, written))
                    await self._changed(Change(changes, stored))
        if entry.world.is_gone:
            return False
        entry.snapshots.keep(snapshot)
        return True

    async def leave_snapshot(self, entry: Entry, name: str) -> None:
        """Store a snapshot no longer. Raises Unavailable."""
        stored = self._stored.get(entry.world.name)
        if stored is not None:
            await self._changed(Change(sql.snapshot_ended(stored.number, name), stored))
            self._tidy_soon(stored.number)

    # -- beside the requests: whole states, and what nobody needs any more

    def start(self, lane: Lane) -> None:
        """Begin to commit beside the requests, on the event loop that runs."""
        if self._store is not None:
            self._lane = lane
            self._store.start(self._lose_all)
            self._tending = asyncio.create_task(self._tend(lane))
            self._wake.set()

    async def stop(self) -> None:
        """Let the store go, with everything in it."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self._committing is not None and self.failure is None:
            await self._committing
        session, self._session = self._session, None
        if session is not None and self._lane is not None:
            with suppress(TimeoutError):  # its thread may still be within a transaction
                await asyncio.wait_for(self._lane.beside(session.close), CLOSING)
        self.close()

    def close(self) -> None:
        """The same outside of an event loop."""
        store, self._lane = self._store, None
        if store is None:
            return
        if self._committing is not None:
            self._committing.cancel()
        for stored in self._stored.values():
            self._pending.touched[stored.number] = stored
            stored.entry.world.log.writer = stored.entry.world.log.stored = None
        if self._ends:
            self._pending.changes.append(Change(self._ended()))
        if self.failure is None:
            with suppress(Unavailable):
                self._commit_at_once()
        if self._session is not None:
            self._session.close()
        self._stored.clear()
        store.close()
        self._store = None

    def _tidy_soon(self, number: int) -> None:
        self._untidy.add(number)
        self._wake.set()

    async def _tend(self, lane: Lane) -> None:
        has_failed = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                for name in sorted(self._due):
                    self._due.discard(name)
                    if name in self._stored:
                        await self._rewrite(self._stored[name], lane)
                await self._end()
                await self._tidy(lane)
                has_failed = False
            except Unavailable as error:
                if not has_failed:
                    log.warning("the store could not be tidied (%s); nothing is lost, and it is tried again", error)
                has_failed = True
                await asyncio.sleep(PAUSE)
                self._wake.set()

    async def _rewrite(self, stored: Stored, lane: Lane) -> None:
        """Have a sandbox be opened from the state that it has now."""
        sandbox, size, chain, undone_at = stored.entry.world, stored.size, stored.chain, stored.entry.world.undone_at
        async with self._written(stored, capture(sandbox), chain, lane) as written:
            self._check_written()
            if self._stored.get(sandbox.name) is stored and sandbox.undone_at == undone_at:
                changes = [sql.state_used(stored.state.id, is_used=False), sql.state_used(written.id, is_used=True)]
                contract = stored.contract
                try:
                    await self._changed(Change(changes, stored, written))
                except Refusal:
                    stored.contract = contract
                    if self._stored.get(sandbox.name) is stored:  # else it is no more
                        raise
                stored.size -= size

    @asynccontextmanager
    async def _written(self, stored: Stored, state: WorldState, chain: int, lane: Lane) -> AsyncIterator[KeptState]:
        """Write a state of a sandbox beside the requests. If nothing refers to it after the block, it goes again."""
        numbers = []

        def write(session: Session) -> KeptState:
            written = sql.write_state(session, stored.number, state, chain)
            numbers.append(written.id)
            self._coming.add(written.id)
            return written

        try:
            yield await self._beside(lane, write)
        finally:
            self._coming.difference_update(numbers)
            self._tidy_soon(stored.number)

    async def _tidy(self, lane: Lane) -> None:
        assert self._store is not None
        store, numbers, self._untidy = self._store, sorted(self._untidy), set()
        work: Iterator[None] | None = None

        def go_on(session: Session) -> bool:
            nonlocal work
            work = work or sql.tidying(session, store, numbers, self._reserved, self._coming)
            return next(work, _DONE) is _DONE

        try:
            while not await self._beside(lane, go_on):
                pass
        except Unavailable:
            self._untidy |= set(numbers)
            raise
