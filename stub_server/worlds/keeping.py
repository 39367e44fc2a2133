"""Keeps the worlds of a server in a directory: each step as it is taken, a whole state now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

from ..engine.sandbox import Sandbox
from ..engine.step import Step
from ..files.directory import Directory, Kept, KeptSnapshot, Unwritten
from ..files.lots import lot_lines
from ..files.state import capture
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
log = logging.getLogger("stub_server")
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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self._waiting: list[asyncio.Future[None]] = []
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
                directory.drop(kept.name)
            else:
                yield self._reopened(directory, number, kept, maker, origin, belongings)

    def _reopened(
        self, directory: Directory, number: int, kept: Kept, maker: Maker, origin: Origin, belongings: Belongings
    ) -> Entry:
        world, size, since, held = reopened(directory, number, kept, maker, origin, self._contract)
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
        return await lane.beside(self._writing(self._directory, world, snapshots))

    def prepare_at_once(self, world: Sandbox, snapshots: Sequence[Snapshot] = ()) -> Base | None:
        """The same where nobody is served yet."""
        return None if self._directory is None else self._writing(self._directory, world, snapshots)()

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
        number = self._written(lambda directory: directory.enter(self._kept(entry, base), base.snapshots))
        self._follow(entry, number, base, 0)

    def leave(self, name: str) -> None:
        """Keep a world no longer. Raises Unavailable."""
        if self._followed.pop(name, None) is not None:
            self._written(lambda directory: directory.drop(name))

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
            raise _unwritten(error) from None

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
            if self._loop is None:
                self._written(Directory.flush)
            else:
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
        """Write the steps of this turn of the event loop, all at once; whoever waits to answer is told."""
        self._is_scheduled = False
        waiting, self._waiting = self._waiting, []
        failure: Unavailable | None = None
        try:
            self._written(Directory.flush)
            self.is_behind = False
        except Unavailable as error:
            log.exception("the store cannot be written; changes are answered with 503 until it can")
            failure = error
        for answer in waiting:
            if not answer.done():
                if failure is None:
                    answer.set_result(None)
                else:
                    answer.set_exception(failure)

    async def settled(self) -> None:
        """Wait until all steps that were taken are written. Raises Unavailable."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._flush_soon()
        await answer

    def _written(self, change: Callable[[Directory], int | None]) -> int:
        assert self._directory is not None
        try:
            return change(self._directory) or 0
        except Unwritten as error:
            raise _unwritten(error) from None

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
            await self._attempted(_gently(directory))

    async def _attempted(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (OSError, Unwritten):
            log.exception("the store could not be tidied; its steps are all there, and it is tried again")

    async def _rebase(self, directory: Directory, followed: Followed, lane: Lane) -> None:
        """Have a world begin with the state that it has now."""
        world = followed.entry.world
        writing, size = self._writing(directory, world), followed.size
        base = await lane.beside(writing)
        if self._followed.get(world.name) is followed:
            directory.rebase(followed.number, base.name, base.step, self._contract)
            self.note(followed.entry)
            followed.base, followed.size = base, followed.size - size
        else:  # it was reset or dropped meanwhile
            directory.discard(base.name)


async def _gently(directory: Directory) -> None:
    for _ in directory.tidied():
        await asyncio.sleep(0)


def _unwritten(error: Exception) -> Unavailable:
    return Unavailable(f"The store cannot be written ({error}). Until it can, nothing that changes is answered.")
