"""Keeps the worlds of a server in a directory: each step as it is taken, a whole state now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from ..engine.sandbox import Sandbox
from ..engine.step import Step
from ..files.directory import Directory, Unwritten
from ..files.lots import lot_lines
from ..files.state import capture
from ..files.states import opening
from ..files.survey import Kept, KeptSnapshot
from ..files.writing import step_line
from ..kernel.clock import wall_ms
from ..kernel.problem import Unavailable
from ..kernel.slices import Lane
from .base import Base, Followed, held_of, pinning
from .entry import Entry, Origin
from .inbox import Inbox
from .making import Maker
from .reopening import reopened
from .snapshots import Snapshot, Snapshots

LEAST = 64 * 1024 * 1024  # bytes of steps after which a whole state is written, of worlds whose state is smaller
_DONE = 1
log = logging.getLogger("stub_server")


class Unwritable(NamedTuple):
    """A step that may not be written, and what `held` was before it, which no step says."""

    followed: Followed
    step: Step
    held: int


Belongings: TypeAlias = Callable[[], tuple[Inbox, Snapshots]]
"""What a world has beside its state, empty."""


class Keeper:
    """One per server. Without a directory it does nothing, and nothing is asked of it for a step."""

    def __init__(self, directory: Directory | None, contract: str = "") -> None:
        """`contract` stands for what records are held to: those that another one has passed are held to it anew."""
        self._directory, self._contract = directory, contract
        self._followed: dict[str, Followed] = {}
        self._due: set[str] = set()
        self.is_behind = False  # whether there are steps that are not written yet: their answers wait
        self.failure: Unavailable | None = None  # why the newest write failed, until one succeeds
        self._unwritten: list[Unwritable] = []
        self.unknown: list[Unwritable] = []  # of which the store has not told yet whether it has them
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self._waiting: list[tuple[Sandbox, asyncio.Future[None]]] = []
        self._wake: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    # -- what was there before

    def read(self, maker: Maker, origin: Origin, belongings: Belongings) -> Iterator[Entry]:
        """The worlds of the directory as they were, those replaced last at the end. Raises StoreError."""
        directory = self._directory
        if directory is None:
            return
        for number, kept in directory.worlds():
            if kept.expires_at is not None and kept.expires_at <= wall_ms():
                with suppress(Unwritten):
                    directory.drop(kept.name)
            else:
                yield self._reopened(directory, number, kept, maker, origin, belongings)

    def _reopened(
        self, directory: Directory, number: int, kept: Kept, maker: Maker, origin: Origin, belongings: Belongings
    ) -> Entry:
        world, kept, size, since, held = reopened(directory, number, kept, maker, origin, self._contract)
        entry = Entry(
            world,
            kept.parent,
            kept.mentioned,
            kept.created_at,
            kept.last_used_at,
            kept.expires_at,
            *belongings(),
            kept.incarnation,
            kept.origin_events,
        )
        for snapshot in held:
            entry.snapshots.keep(snapshot)
        self._follow(entry, number, Base(kept.base, kept.step, size), since)
        return entry

    # -- worlds that come and go

    async def prepare(self, world: Sandbox, lane: Lane, snapshots: Sequence[Snapshot] = ()) -> Base | None:
        """Write the state of a world that nobody can reach yet, beside the requests of others."""
        if self._directory is None:
            return None
        try:
            return await lane.beside(self._writing(self._directory, world, snapshots))
        except OSError as error:
            raise unwritten(_reason(error)) from None

    def prepare_at_once(self, world: Sandbox, snapshots: Sequence[Snapshot] = ()) -> Base | None:
        """The same where nobody is served yet."""
        if self._directory is None:
            return None
        with opening(self._directory.path):
            return self._writing(self._directory, world, snapshots)()

    def _writing(self, directory: Directory, world: Sandbox, snapshots: Sequence[Snapshot] = ()) -> Callable[[], Base]:
        state, name = capture(world), directory.next_base()
        others = [pinning(directory, snapshot, self._contract) for snapshot in snapshots]

        def write() -> Base:
            size = directory.write_base(name, lot_lines(state))
            return Base(name, state.step, size, tuple([pin() for pin in others]))

        return write

    def discard(self, base: Base | None) -> None:
        """The world of a state is not wanted after all."""
        if self._directory is not None and base is not None:
            self._directory.discard(base.name)
            for kept in base.snapshots:
                self.discard_snapshot(kept)

    def enter(self, entry: Entry, base: Base | None) -> None:
        """Keep a world from now on, in place of the one of its name. Raises Unavailable."""
        if self._directory is None or base is None:
            return
        try:
            number = self._written(lambda directory: directory.enter(self._kept(entry, base), base.snapshots))
        except Unavailable:
            self.discard(base)
            raise
        self._follow(entry, number, base, 0)

    def leave(self, name: str) -> None:
        """Keep a world no longer. Raises Unavailable."""
        if name in self._followed:
            self._written(lambda directory: directory.drop(name))
            del self._followed[name]

    def note(self, entry: Entry) -> None:
        """Write what no step says of a world: what its events are called, and which are held. Raises Unavailable."""
        followed = self._followed.get(entry.world.name)
        if followed is not None:
            kept = self._kept(entry, followed.base)
            self._written(lambda directory: directory.note(followed.number, kept))

    def _kept(self, entry: Entry, base: Base) -> Kept:
        return Kept(
            entry.world.name,
            base.name,
            base.step,
            self._contract,
            entry.parent,
            entry.mentioned,
            entry.created_at,
            entry.last_used_at,
            entry.expires_at,
            held_of(entry.world),
            entry.incarnation,
            entry.origin_events,
            entry.world.log.number,
        )

    # -- snapshots

    async def prepare_snapshot(self, snapshot: Snapshot, lane: Lane) -> KeptSnapshot | None:
        """Write the state of a snapshot that nobody knows of yet. Raises Unavailable."""
        if self._directory is None:
            return None
        try:
            return await lane.beside(pinning(self._directory, snapshot, self._contract))
        except OSError as error:
            raise unwritten(_reason(error)) from None

    def discard_snapshot(self, kept: KeptSnapshot | None) -> None:
        """A snapshot that was prepared is not wanted after all."""
        if self._directory is not None and kept is not None:
            self._directory.discard(kept.base)

    def enter_snapshot(self, world: str, kept: KeptSnapshot | None) -> None:
        """Keep a snapshot from now on, in place of the one of its name. Raises Unavailable."""
        followed = self._followed.get(world)
        if followed is not None and kept is not None:
            self._written(lambda directory: directory.enter_snapshot(followed.number, kept))

    def leave_snapshot(self, world: str, name: str) -> None:
        """Keep a snapshot no longer. Raises Unavailable."""
        followed = self._followed.get(world)
        if followed is not None:
            self._written(lambda directory: directory.drop_snapshot(followed.number, name))

    # -- steps

    def _follow(self, entry: Entry, number: int, base: Base, size: int) -> None:
        """Have every step of a world written from now on."""
        assert self._directory is not None
        world, directory = entry.world, self._directory
        followed = self._followed[world.name] = Followed(entry, number, base, size)

        def write(step: Step) -> None:
            line = step_line(step, part=bytes.decode)
            directory.append(number, step.number, line)
            if self._loop is None or self.failure is not None:
                self._written(Directory.flush)
            else:
                self._unwritten.append(Unwritable(followed, step, world.held))
                self.is_behind = True
                self._flush_soon()
            followed.size += len(line)
            if followed.size > max(LEAST, followed.base.size // 2):  # a state is read in half the time of its steps
                self._is_due(world.name)

        world.log.writer = write

    def _flush_soon(self) -> None:
        if self._loop is not None and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the steps of this turn of the event loop, all at once; then their answers are sent."""
        self._is_scheduled = False
        if self._unwritten:
            with suppress(Unavailable):  # those who wait for what was not written have been told
                self._written(Directory.flush)
        waiting, self._waiting, self.is_behind = self._waiting, [], False
        for _, answer in waiting:
            if not answer.done():
                answer.set_result(None)

    async def settled(self, world: Sandbox) -> None:
        """Wait until all steps that a world has taken are written. Raises Unavailable when they are undone."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((world, answer))
        self._flush_soon()
        await answer

    def _written(self, change: Callable[[Directory], int | None]) -> int:
        """Change the directory, steps that are not written yet included. Raises Unavailable."""
        assert self._directory is not None
        try:
            done = change(self._directory) or 0
        except Unwritten as error:
            failure = unwritten(_reason(error))
            self._fail(failure)
            raise failure from None
        if not self._directory.is_behind:
            self._unwritten.clear()
        if self.failure is not None:
            log.warning("the store can be written again")
            self.failure = None
            for followed in self._followed.values():
                world = followed.entry.world
                world.is_halted = False
                if world.bell is not None:
                    world.bell(world)
        return done

    def check_writable(self, entry: Entry) -> None:
        """Look whether the store can be written, if the newest write failed. Raises Unavailable."""
        if self.failure is not None:
            self.note(entry)

    # -- what could not be written

    def _fail(self, failure: Unavailable) -> None:
        """Undo what was not written. Until something can be written, time and deliveries wait in all sandboxes."""
        if self.failure is None:
            log.error("%s", failure)
            for followed in self._followed.values():
                followed.entry.world.is_halted = True
        self.failure = failure
        self.unknown += self._unwritten
        undone = {id(unwritten.followed.entry.world) for unwritten in self._unwritten}
        self._unwritten = []
        self._undo_unknown()
        for world, answer in self._waiting:
            if id(world) in undone and not answer.done():
                answer.set_exception(failure)

    def check(self, world: Sandbox) -> None:
        """Refuse requests to a sandbox of whose newest steps nobody knows whether the store has them.

        Raises Unavailable.
        """
        failure = self._undo_unknown()
        if failure is not None and any(followed.entry.world is world for followed, _, _ in self.unknown):
            raise failure

    def _undo_unknown(self) -> Unavailable | None:
        """Have sandboxes be as the store has them, which is asked how far they have come; answers why it cannot be."""
        directory, unknown = self._directory, self.unknown
        try:
            while directory is not None and unknown:
                followed, step, held = unknown[-1]
                world = followed.entry.world
                if not world.is_gone and directory.newest(followed.number, followed.base.step) < step.number:
                    world.take_back(step)
                    world.held = held
                unknown.pop()
        except Unwritten as error:
            return unwritten(_reason(error))
        return None

    # -- whole states now and then

    def start(self, lane: Lane) -> None:
        """Begin to write whole states and to tidy up, on the event loop that runs."""
        if self._directory is not None:
            self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
            self._task = asyncio.create_task(self._tend(self._directory, self._wake, lane))
            self._wake.set()

    async def stop(self) -> None:
        """Let the directory go, with everything on the disk."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.close()

    def close(self) -> None:
        """The same outside of an event loop."""
        self._loop = None
        if self._directory is not None:
            for followed in self._followed.values():
                with suppress(Unavailable):  # which was logged
                    self.note(followed.entry)
                followed.entry.world.log.writer = None
            self._followed.clear()
            self._directory.close()
            self._directory = None

    def _is_due(self, name: str) -> None:
        self._due.add(name)
        if self._wake is not None:
            self._wake.set()

    async def _tend(self, directory: Directory, wake: asyncio.Event, lane: Lane) -> None:
        while True:
            await wake.wait()
            wake.clear()
            for name in sorted(self._due):
                self._due.discard(name)
                followed = self._followed.get(name)
                if followed is not None:
                    await self._attempted(self._rebase(directory, followed, lane))
            await self._attempted(self._tidy(directory.tidied()))

    async def _attempted(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (OSError, Unwritten, Unavailable) as error:
            log.warning("the store could not be tidied (%s); its steps are all there, and it is tried again", error)

    async def _rebase(self, directory: Directory, followed: Followed, lane: Lane) -> None:
        """Have a world begin with the state that it has now."""
        world = followed.entry.world
        writing, size = self._writing(directory, world), followed.size
        base = await lane.beside(writing)
        if self._followed.get(world.name) is followed:
            try:
                self._written(lambda to: to.rebase(followed.number, self._kept(followed.entry, base)))
            except Unavailable:
                directory.discard(base.name)
                raise
            followed.base, followed.size = base, followed.size - size
        else:  # it was reset or dropped meanwhile
            directory.discard(base.name)

    async def _tidy(self, tidying: Iterator[None]) -> None:
        while self.failure is None and not self._written(lambda _: next(tidying, _DONE)):
            await asyncio.sleep(0)


def unwritten(reason: str) -> Unavailable:
    """503 for what is not done because the store cannot be written."""
    return Unavailable(
        f"The store cannot be written ({reason}). Until it can, changes are refused and reads are answered.",
        code="store_unavailable",
        headers={"Retry-After": "5"},
    )


def _reason(error: OSError | Unwritten) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
