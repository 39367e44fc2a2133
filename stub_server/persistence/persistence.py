"""Stores the sandboxes of a server: each step before its answer, a whole state now and then.

One commit is in flight at a time. What is recorded meanwhile is the next one. An answer waits for the steps of its own
sandbox alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

from ..engine.sandbox import SILENT, Sandbox
from ..engine.step import Step
from ..files.state import WorldState, capture
from ..files.writing import step_line
from ..kernel.clock import wall_ms
from ..kernel.problem import Unavailable
from ..kernel.slices import Lane
from ..worlds.entry import Entry
from ..worlds.inbox import Inbox
from ..worlds.snapshots import Snapshot, Snapshots
from . import store as sql
from .opening import Opener
from .rows import SALVAGE, Damage, Kept, KeptSnapshot, KeptState, StoreError, chained, place_of
from .store import Batch, Session, Statement, Store

LEAST = 64 * 1024 * 1024  # bytes of steps after which a state is written, of sandboxes whose state is smaller
PAUSE = 0.5  # seconds between two looks whether a store that failed can be written again
_DONE = object()
T = TypeVar("T")
log = logging.getLogger("stub_server")

Belongings: TypeAlias = Callable[[], tuple[Inbox, Snapshots]]
"""What a sandbox has beside its state, empty."""


class Reserved(NamedTuple):
    """A sandbox that is about to come: its number, its state, and its snapshots."""

    number: int
    state: KeptState
    snapshots: tuple[KeptSnapshot, ...]


@dataclass(slots=True)
class Stored:
    """A sandbox whose steps are stored: the state that opening it begins with, and the bytes of steps since.

    `newest` is the number of the newest step, with its sum `chain`; `committed` that of the newest one that is stored.
    """

    entry: Entry
    number: int
    state: KeptState
    newest: int
    chain: int
    committed: int
    size: int = 0


class Unstored(NamedTuple):
    """A step that is not stored yet, and what `held` and the chain's sum were before it."""

    stored: Stored
    step: Step
    held: int
    chain: int


@dataclass(slots=True)
class Pending:
    """What the next commit has. `known` is set when its outcome is known, or cannot be for now; `failure` says why.

    `ends` are numbers of sandboxes that go for sure: where a commit fails, the next one has them too.
    """

    lines: list[tuple[int, bytes, int]] = field(default_factory=list)
    steps: list[Unstored] = field(default_factory=list)
    touched: dict[int, Stored] = field(default_factory=dict)
    changes: list[Statement] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    known: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Unavailable | None = None
    begun: float = field(default_factory=monotonic)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.touched or self.changes or self.ends)


class Persistence:
    """One per server. Without a store it does nothing, and nothing is asked of it for a step."""

    def __init__(self, store: Store | None, contract: str = "") -> None:
        """`contract` stands for what records are held to: those that another one has passed are held to it anew."""
        self._store, self.contract = store, contract
        self._stored: dict[str, Stored] = {}
        self._pending = Pending()
        self._flying: Pending | None = None  # the commit that is under way
        self.is_behind = False  # whether there is anything that is not stored yet
        self.failure: Unavailable | None = None  # why the newest commit failed, until one succeeds
        self.unknown: list[Unstored] = []  # steps of which the store has not told whether it has them
        self._reserved: set[int] = set()  # sandboxes that are about to come
        self._coming: set[int] = set()  # states that nothing refers to yet
        self._untidy: set[int] = set()  # sandboxes that may have steps or states that nobody needs
        self._due: set[str] = set()  # sandboxes of which a state is to be written
        self._session: Session | None = None  # of long work beside the requests, which takes turns
        self._lane: Lane | None = None  # set while an event loop runs
        self._wake = asyncio.Event()
        self._committing: asyncio.Task[None] | None = None
        self._tending: asyncio.Task[None] | None = None

    # -- what was there before

    def read(self, opener: Opener, belongings: Belongings) -> Iterator[Entry]:
        """The sandboxes of the store as they were, those replaced last at the end. Raises StoreError."""
        if self._store is None:
            return
        with closing(self._store.session()) as session:
            name = self._store.name
            try:
                for row in sql.rows_of_sandboxes(session):
                    number, kept = sql.sandbox_of(row)
                    name = f"{self._store.name}: the sandbox {kept.name}"
                    self._untidy.add(number)
                    if kept.expires_at is not None and kept.expires_at <= wall_ms():
                        sql.commit(session, Batch([sql.ended(kept.name or "")]))
                    else:
                        yield self._opened(session, number, kept, opener, belongings)
                self._untidy |= {number for (number,) in session.run("select id from sandboxes where name is null")}
            except Damage as error:
                raise StoreError(f"{name} is damaged: {error}. {SALVAGE}") from None
            except StoreError as error:
                raise StoreError(f"{self._store.name}: {error}") from None
            except self._store.errors as error:
                raise StoreError(f"{name} cannot be read ({error}). {SALVAGE}") from None

    def _opened(self, session: Session, number: int, kept: Kept, opener: Opener, belongings: Belongings) -> Entry:
        opened = opener.open(session, number, kept)
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
        stored = Stored(entry, number, opened.state, kept.newest, kept.chain, kept.newest, opened.since)
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
        state, pinned = capture(sandbox), [(snapshot, capture(snapshot.told.world)) for snapshot in snapshots]

        def write(session: Session) -> Reserved:
            number = sql.reserve(session)
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
        told = snapshot.told
        return KeptSnapshot(told.name, told.description, told.now, told.created_at, self.contract, state.id)

    def discard(self, reserved: Reserved | None) -> None:
        """The sandbox is not wanted after all, unless it was entered."""
        if reserved is not None and reserved.number in self._reserved:
            self._reserved.discard(reserved.number)
            self._tidy_soon(reserved.number)

    async def enter(self, entry: Entry, reserved: Reserved | None) -> None:
        """Store a sandbox from now on, in place of the one of its name. Raises Unavailable."""
        if reserved is not None:
            self._check_written()
            stored = self._enter(entry, reserved)
            await self._committed()
            self._entered(stored)

    def enter_at_once(self, entry: Entry, reserved: Reserved | None) -> None:
        """The same where nobody is served yet. Raises Unavailable."""
        if reserved is not None:
            stored = self._enter(entry, reserved)
            self._commit_at_once()
            self._entered(stored)

    def _enter(self, entry: Entry, reserved: Reserved) -> Stored:
        number, state, snapshots = reserved
        changes = sql.entered(number, entry.world.name, state.id)
        for kept in snapshots:
            changes += sql.snapshot_entered(number, kept)
        self._pending.changes += changes
        self._pending.touched[number] = stored = Stored(entry, number, state, state.step, 0, state.step)
        return stored

    def _entered(self, stored: Stored) -> None:
        self._reserved.discard(stored.number)
        self.leave_soon(stored.entry.world.name)  # the one before it, with the steps that it has recorded since
        self._follow(stored)

    async def leave(self, name: str) -> None:
        """Store a sandbox no longer. Raises Unavailable."""
        if name in self._stored:
            await self._changed([sql.ended(name)])
            self.leave_soon(name)  # it may have expired meanwhile

    def leave_soon(self, name: str) -> None:
        """The same for one that nobody waits for."""
        stored = self._stored.pop(name, None)
        if stored is not None:
            self._pending.ends.append(stored.number)
            self._commit_soon()

    async def note(self, entry: Entry) -> None:
        """Store what no step says of a sandbox. Raises Unavailable."""
        self._check_written()
        if self._touch(entry.world.name) is not None:
            await self._committed()

    def note_soon(self, entry: Entry) -> None:
        """The same with the next commit, for which nobody waits."""
        self._touch(entry.world.name)

    def _touch(self, name: str) -> Stored | None:
        stored = self._stored.get(name)
        if stored is not None:
            self._pending.touched[stored.number] = stored
            self._commit_soon()
        return stored

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
                    await self._changed(sql.snapshot_entered(stored.number, self._told(snapshot, written)))
        if entry.world.is_gone:
            return False
        entry.snapshots.keep(snapshot)
        return True

    async def leave_snapshot(self, entry: Entry, name: str) -> None:
        """Store a snapshot no longer. Raises Unavailable."""
        stored = self._stored.get(entry.world.name)
        if stored is not None:
            await self._changed(sql.snapshot_ended(stored.number, name))
            self._tidy_soon(stored.number)

    # -- steps

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

        sandbox.log.writer = write

    def _kept(self, stored: Stored) -> Kept:
        entry = stored.entry
        return Kept(
            entry.world.name,
            entry.parent,
            int(entry.mentioned),
            entry.created_at,
            entry.expires_at,
            self.contract,
            entry.last_used_at,
            None if entry.world.held == SILENT else entry.world.held,
            entry.incarnation,
            entry.origin_events,
            stored.newest,
            stored.chain,
            stored.state.id,
        )

    def _batch(self, pending: Pending) -> Batch:
        ends = [sql.ended_number(number) for number in pending.ends]
        heads = [(number, self._kept(stored)) for number, stored in pending.touched.items()]
        return Batch(pending.changes + ends, [head for head in heads if head[0] not in pending.ends], pending.lines)

    def _commit_soon(self) -> None:
        self.is_behind = True
        if self._lane is None:
            self._commit_at_once()
        elif self._committing is None:
            self._committing = asyncio.create_task(self._commit())

    def _commit_at_once(self) -> None:
        """Commit where no event loop runs. Raises Unavailable."""
        pending, self._pending = self._pending, Pending()
        self._with_session(lambda session: sql.commit(session, self._batch(pending)))
        self._settle(pending)
        self.is_behind = False

    async def _commit(self) -> None:
        """Commit until there is nothing more to."""
        assert self._store is not None
        while not self._pending.is_empty:
            self._flying = pending = self._pending
            self._pending = Pending()
            try:
                await self._store.commit(self._batch(pending))
            except Exception as error:  # a defect in it is no reason to say that something was stored
                await self._fail(error)
            else:
                self._settle(pending)
        self._committing = self._flying = None
        self.is_behind = False

    def _settle(self, pending: Pending) -> None:
        """A commit is there."""
        for stored, step, _, _ in pending.steps:
            stored.committed = step.number
        for number in pending.ends:
            self._tidy_soon(number)
        pending.known.set()

    async def _committed(self) -> None:
        """Wait until what is pending is stored. Raises Unavailable."""
        self._check_written()
        pending = self._pending
        self._commit_soon()
        await pending.known.wait()
        if pending.failure is not None:
            raise again(pending.failure)

    async def _changed(self, changes: Sequence[Statement]) -> None:
        self._check_written()
        self._pending.changes += changes
        await self._committed()

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
                if pending.failure is not None and stored.committed < newest:
                    raise again(pending.failure)
                return

    async def confirm(self, sandbox: Sandbox, undone_at: int) -> None:
        """Wait until what a copy of a sandbox has is stored; `undone_at` was the sandbox's before.

        Raises Unavailable when a step was undone since.
        """
        await self.settled(sandbox)
        if sandbox.undone_at != undone_at:
            raise again(self.failure or unwritten("it could not be for a moment"))

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
        self.failure = failure = unwritten(str(error))
        log.error("%s", failure)
        for stored in self._stored.values():
            stored.entry.world.is_halted = True
        failed = self._flying, self._pending
        self._pending = Pending(ends=[number for pending in failed for number in pending.ends])
        touched: dict[int, Stored] = {}
        for pending in failed:
            pending.failure = failure
            touched |= pending.touched
            self.unknown += pending.steps
        self._flying = None
        is_known = False
        while True:
            try:
                if not is_known:
                    self._undo(touched, await self._store.known(touched))
                    is_known = True
                    continue
                await self._store.commit(Batch())
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
            stored.entry.world.is_halted = False
            if stored.entry.world.bell is not None:
                stored.entry.world.bell(stored.entry.world)

    def _undo(self, touched: dict[int, Stored], known: dict[int, tuple[int, KeptState]]) -> None:
        """Undo the steps that the store does not have."""
        for number, (newest, state) in known.items():
            touched[number].committed, touched[number].state = newest, state
        while self.unknown:
            stored, step, held, chain = self.unknown[-1]
            sandbox = stored.entry.world
            if not sandbox.is_gone and stored.committed < step.number:
                sandbox.take_back(step)
                sandbox.held, stored.newest, stored.chain = held, step.number - 1, chain
            self.unknown.pop()

    def check(self, sandbox: Sandbox) -> None:
        """Refuse requests to a sandbox of whose newest steps nobody knows whether the store has them.

        Raises Unavailable.
        """
        if self.failure is not None and any(stored.entry.world is sandbox for stored, _, _, _ in self.unknown):
            raise again(self.failure)

    # -- beside the requests: whole states, and what nobody needs any more

    def start(self, lane: Lane) -> None:
        """Begin to commit beside the requests, on the event loop that runs."""
        if self._store is not None:
            self._lane = lane
            self._store.start()
            self._tending = asyncio.create_task(self._tend(lane))
            self._wake.set()

    async def stop(self) -> None:
        """Let the store go, with everything in it."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self._committing is not None and self.failure is None:
            await self._committing
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
            stored.entry.world.log.writer = None
        self._session = None  # the thread of long work may be within a transaction
        if self.failure is None:
            with suppress(Unavailable):
                self._commit_at_once()
        if self._session is not None:
            self._session.close()
        self._stored.clear()
        store.close()
        self._store = None

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
            raise unwritten(str(error)) from None

    async def _beside(self, lane: Lane, work: Callable[[Session], T]) -> T:
        self._check_written()
        return await lane.beside(lambda: self._with_session(work))

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
                before, stored.state = stored.state, written
                self._touch(sandbox.name)
                changes = [sql.state_used(before.id, is_used=False), sql.state_used(written.id, is_used=True)]
                await self._changed(changes)
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
        numbers, self._untidy = sorted(self._untidy), set()
        work: Iterator[None] | None = None

        def go_on(session: Session) -> bool:
            nonlocal work
            work = work or sql.tidying(session, numbers, self._reserved, self._coming)
            return next(work, _DONE) is _DONE

        try:
            while not await self._beside(lane, go_on):
                pass
        except Unavailable:
            self._untidy |= set(numbers)
            raise


def unwritten(reason: str) -> Unavailable:
    """503 for what is not done because the store cannot be written."""
    return Unavailable(
        f"The store cannot be written ({reason}). Until it can, changes are refused and reads are answered.",
        code="store_unavailable",
        headers={"Retry-After": "5"},
    )


def again(failure: Unavailable) -> Unavailable:
    """The same refusal for another request: the traceback of one that is raised would hold all of them."""
    return Unavailable(failure.message, code=failure.code, headers=failure.headers)
