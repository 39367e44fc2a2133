"""The worlds of one server: made by name or by request, forked, reset, and put in place of each other."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..engine.journal import MOST_BYTES_IN_ALL as MOST_JOURNAL_BYTES
from ..engine.log import Budget
from ..engine.past import state_at
from ..engine.rules import SandboxSettings
from ..engine.sandbox import DEFAULT, SILENT, Sandbox
from ..files.admitting import LeftOut
from ..files.carrying import Customs
from ..files.package import BadFile
from ..files.requests import traces_of
from ..kernel.clock import SECOND, wall_ms
from ..kernel.globs import glob
from ..kernel.problem import Conflict, Missing, Refusal, detail, gone
from ..kernel.record import Body
from ..kernel.slices import Lane
from ..kernel.text import nearest
from ..persistence.opening import Opener
from ..persistence.persistence import Persistence, Reserved
from ..persistence.store import Listed
from ..scenarios.scenario import known_scenarios
from ..seeding.own_keys import derive_keys
from .entries import MOST, Entries, taken
from .entry import Entry, Origin
from .inbox import MOST_BYTES_IN_ALL, Inbox
from .making import Maker
from .names import NAMING, folded, is_name
from .residence import Residence
from .snapshots import MOST_BYTES_IN_ALL as MOST_SNAPSHOT_BYTES
from .snapshots import Snapshot, Snapshots, snapshot_of


class Replaced(NamedTuple):
    """What an import has replaced: a state with so many requests in its journal, which it keeps or not."""

    step: int
    records: int
    now: int
    requests: int
    keeps_requests: bool


class Sandboxes(Entries):
    """All worlds by name."""

    def __init__(
        self,
        origin: Origin,
        *,
        open_names: bool,
        bell: Callable[[Sandbox], None] = lambda world: None,
        lane: Lane | None = None,
        persistence: Persistence | None = None,
        restored: Callable[[], bytes] | None = None,
    ) -> None:
        """`open_names`: a name that is mentioned for the first time makes its world; else it is unknown.

        `bell` is rung for a world that is new or gone, and when something is due in one. Long work takes its turn in
        `lane`. `persistence` has the sandboxes of an earlier process; `restored` reads a file that the default one
        begins with, unless it is there from earlier. Raises StoreError, BadFile, ScenarioError.
        """
        super().__init__(bell, persistence or Persistence(None))
        self.origin, self.scenario, self.seed, self._open = origin, origin.scenario, origin.seed, open_names
        self.lane = lane or Lane()
        self._started, self._begun = wall_ms(), 0
        self._for_inboxes, self._for_snapshots = Budget(MOST_BYTES_IN_ALL), Budget(MOST_SNAPSHOT_BYTES)
        self.maker = Maker(origin, Budget(), Budget(MOST_JOURNAL_BYTES), self.lane)
        self._customs = Customs(origin.seeding.fixtures, origin.secret, origin.rules)
        self._changing = asyncio.Lock()  # of what comes, goes and is replaced: each looks what there is, and waits
        self.residence: Residence | None = None  # set with a store, which may have more sandboxes than are in memory
        self.opener = Opener(self.maker, origin, self.persistence.contract)
        found = self.persistence.read(self.opener, self.belongings, MOST)
        for entry in sorted(found, key=lambda entry: entry.created_at):
            self.put(entry)
        for entry in sorted(self._entries.values(), key=lambda entry: entry.last_used_at):
            entry.turn = next(self._turns)
        self.has_kept_default = DEFAULT in self._entries
        if self.has_kept_default:
            return
        if restored is not None:
            world, snapshots, left_out = self._admission(DEFAULT, restored(), drop_unfit=origin.drop_unfit)()
            if left_out is not None:
                left_out.tell("--restore")
            _check_room(Snapshots(self._for_snapshots), snapshots)
        else:
            world, snapshots = self.maker.make(DEFAULT, origin.scenario, origin.seed, None), []
        entry = self._entry(world, None)
        if DEFAULT in self.persistence.elsewhere:
            self.default = world  # here it is a stand-in: what is refused before a sandbox is chosen is journaled in it
            return
        self.persistence.enter_at_once(entry, self.persistence.prepare_at_once(world, snapshots))
        self.put(entry)
        _fill(entry, snapshots)

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that a request may name, besides the one that the server was started with."""
        return known_scenarios(self.origin.seeding.fixtures)

    def control_key(self, name: str) -> str:
        """The key that opens the controls of one sandbox, until it is deleted. Raises Missing."""
        entry = self.entry(name)
        named = f"control/{entry.world.name}/{entry.created_at}".encode()
        return "sk_control_" + hmac.digest(self.origin.control_secret, named, "sha256").hex()[:48]

    async def listed(self, pattern: str) -> list[Entry | Listed]:
        """All sandboxes whose name matches a glob, those made last first, be they in memory or not.

        Raises Unavailable.
        """
        found: list[Entry | Listed] = [*self.entries(pattern)]
        if self.residence is not None:
            here, now, pattern = {entry.world.name for entry in self.entries()}, wall_ms(), folded(pattern)
            found += [
                told
                for told in await self.persistence.listed(self.lane)
                if told.name not in here and glob(pattern, told.name) and (told.expires_at or now + 1) > now
            ]
            found.sort(key=lambda each: each.created_at, reverse=True)
        return found

    # -- making

    async def mention(self, name: str) -> Sandbox:
        """The world of this name, which its first mention makes where names are open. Raises Missing."""
        return await self.let_in(await self.meant(name))

    async def meant(self, name: str, *, creates: bool = True, suggests: bool = False) -> Sandbox:
        """The same, but a new sandbox is not registered before `let_in`. Raises Missing.

        Without `creates` it must exist. Whom it `suggests` may learn which name was probably meant.
        """
        world = self.choose(name)
        if world is not None:
            return world
        name = folded(name)
        if is_name(name) is None:
            raise Missing(f"The name of a sandbox has {NAMING}.", code="sandbox_not_found")
        if not (self._open and creates):
            similar = nearest(name, [*self.names()]) if suggests else None
            hint = f" Did you mean {similar}?" if similar else ""
            how = (
                f"GET /s/{name}/_sandbox/credentials creates it."
                if self._open
                else "POST /_sandbox/sandboxes makes one."
            )
            raise Missing(f"There is no sandbox {name}.{hint} {how}", code="sandbox_not_found")
        try:
            return await self.maker.begin(name, self.scenario, self.seed, None)
        except Missing as error:
            raise _none(name, error) from None

    async def let_in(self, meant: Sandbox) -> Sandbox:
        """A world that is meant, or the one that somebody else has let in under its name meanwhile. Raises Missing."""
        name = meant.name
        world = self.choose(name)
        if world is not None:
            return world
        try:
            await self.ensure_room()
            reserved = await self.persistence.prepare(meant, self.lane)
            async with self._changing:
                try:
                    world = self.choose(name)
                    if world is not None:
                        return world
                    await self.ensure_room()
                    return (await self._enter(meant, None, reserved, mentioned=True)).world
                finally:
                    self.persistence.discard(reserved)
        except Conflict as error:
            raise _none(name, error) from None

    async def create(
        self,
        name: str | None,
        scenario: str | None,
        seed: int | None,
        now: int | None,
        ttl: int | None,
        settings: Body | None = None,
    ) -> Entry:
        """A new world by request; without a name one is made. `ttl` is seconds. Raises Conflict, Missing.

        `settings` are those that differ from the server's.
        """
        name = await self._new_name(name, "world")
        await self.ensure_room()
        world = await self.maker.begin(name, scenario or self.scenario, self.seed if seed is None else seed, now)
        _begin_with(world, world.settings, settings)
        return await self._admit(world, None, ttl)

    async def fork(
        self, parent: str, name: str | None, step: int | None, ttl: int | None, *, deliver: bool = False
    ) -> Entry:
        """A world with the past of another, up to one of its kept steps if asked. Raises Missing, Conflict.

        What happens in it is delivered if `deliver` says so; what happened before never is.
        """
        origin = (await self._present(parent)).world
        name = await self._new_name(name, "fork")
        await self.ensure_room()
        undone_at = origin.undone_at
        if step is None:
            world = origin.fork(name)
        else:
            world = await self.lane.in_line(state_at(origin, step, name))
        await self.persistence.confirm(origin, undone_at)
        derive_keys(world, self.origin.secret)
        if deliver:
            world.speak()
        return await self._admit(world, origin.name, ttl)

    async def _present(self, name: str) -> Entry:
        """A sandbox that may have been dropped, let go or lost while this waited. Raises Missing, Unavailable."""
        if self.residence is not None and isinstance(await self.residence.locate(name), str):
            raise gone()  # another server has it
        return self.entry(name)

    async def ensure_room(self) -> None:
        """Have one more sandbox fit. Raises Conflict, Unavailable."""
        if self.residence is not None:
            await self.residence.make_room()
        else:
            self.make_room()

    async def _new_name(self, name: str | None, prefix: str) -> str:
        """A name as it was asked for, or a new one. Raises Conflict for one that is taken, Unavailable."""
        free = self.free_name(name, prefix)
        if name is not None and self.residence is not None and await self.persistence.has(free, self.lane):
            raise taken(free)
        return free

    async def _admit(self, world: Sandbox, parent: str | None, ttl: int | None) -> Entry:
        """Let a world in for which there was a name and room, and may be still. Raises Conflict."""
        reserved = await self.persistence.prepare(world, self.lane)
        async with self._changing:
            try:
                self.free_name(world.name, "")
                await self.ensure_room()
                return await self._enter(world, parent, reserved, ttl=ttl)
            finally:
                self.persistence.discard(reserved)

    # -- one in place of another

    async def reset(
        self,
        name: str,
        scenario: str | None = None,
        seed: int | None = None,
        now: int | None = None,
        settings: Body | None = None,
    ) -> Sandbox:
        """Throw a world away and seed it anew; without scenario or seed with what it was seeded with last.

        `now` freezes the clock at that instant; without it the clock is as at the server's start. `settings` are those
        that differ from the ones that it began with last. Raises Missing.
        """
        old = self.entry(name).world
        world = await self.maker.begin(name, scenario or old.scenario, old.seed if seed is None else seed, now)
        _begin_with(world, old.first_settings, settings)
        return (await self._replace(name, world)).world

    async def import_(
        self, name: str, file: bytes | bytearray, *, deliver: bool = False, drop_unfit: bool = False
    ) -> tuple[Entry, Replaced, LeftOut | None]:
        """Put the sandbox of a file in the place of another; what happens in it is delivered if `deliver` says so.

        Its journal is that of the file, or the one that was here if the file has no requests. With `drop_unfit` what
        does not fit the contract is left out.

        Raises Missing, and BadFile for a file that cannot be used.
        """
        name = self.entry(name).world.name
        world, snapshots, left_out = await self.lane.beside(self._admission(name, file, drop_unfit=drop_unfit))
        if deliver:
            world.speak()
        old, keeps = self.entry(name).world, not len(world.journal)
        records = sum(sum(store.counts().values()) for store in old.stores.values())
        requests = sum(not trace.is_control for trace in old.journal)
        replaced = Replaced(old.log.number, records, old.clock.now, requests, keeps)
        return await self._replace(name, world, snapshots, keeps_journal=keeps), replaced, left_out

    async def put_in_place(self, name: str, scenario: str, seed: int, fill: Callable[[Sandbox], None]) -> Sandbox:
        """Have a world that `fill` makes of one without records, in the place of another, if there is one."""
        if self.find(name) is None:
            await self.create(name, None, None, None, None)
        world = self.maker.carried(name, scenario, seed)
        fill(world)
        return (await self._replace(name, world)).world

    async def _replace(
        self, name: str, world: Sandbox, brought: Sequence[Snapshot] = (), *, keeps_journal: bool = False
    ) -> Entry:
        """Have another world of the same name, with the snapshots that it brings. Raises Missing, BadFile."""
        reserved = await self.persistence.prepare(world, self.lane, brought)
        async with self._changing:
            try:
                before = await self._present(name)
                _check_room(before.snapshots, brought)
                inbox, snapshots = self.belongings()
                entry = replace(before, world=world, parent=None, inbox=inbox, snapshots=snapshots)
                self._name_events(entry)
                if not await self.persistence.enter(entry, reserved):
                    raise gone()
            finally:
                self.persistence.discard(reserved)
            if keeps_journal:
                world.journal, before.world.journal = before.world.journal, world.journal
                for trace in world.journal:
                    trace.is_of_another = True
            self.put(entry)
            _fill(entry, brought)
            return entry

    async def delete(self, name: str) -> None:
        """Drop a world. Raises Missing, Unavailable, and Conflict for the default one."""
        if folded(name) == DEFAULT:
            message = f"The default sandbox stays. POST /s/{DEFAULT}/_sandbox/reset begins it anew."
            details = [detail("sandboxName", "sandbox_protected", message, "path")]
            raise Conflict(message, code="sandbox_protected", details=details)
        async with self._changing:
            name = (await self._present(name)).world.name
            await self.persistence.leave(name)
            self.forget(name)

    # -- snapshots

    async def keep_snapshot(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Keep a snapshot in place of the one of its name; False when the sandbox is gone by then.

        Raises Conflict where there is no room, and Unavailable.
        """
        async with self._changing:
            return await self.persistence.keep_snapshot(entry, snapshot, self.lane)

    async def drop_snapshot(self, name: str, snapshot: str) -> None:
        """Delete a snapshot. Raises Missing, Unavailable."""
        async with self._changing:
            entry = await self._present(name)
            entry.snapshots.get(snapshot)
            await self.persistence.leave_snapshot(entry, snapshot)
            entry.snapshots.drop(snapshot)

    def _admission(
        self, name: str, file: bytes | bytearray, *, drop_unfit: bool
    ) -> Callable[[], tuple[Sandbox, list[Snapshot], LeftOut | None]]:
        """Reads and judges a file, in whatever thread: a sandbox that delivers nothing, and its snapshots."""
        empty = partial(self.maker.carried, name)

        def admitted() -> tuple[Sandbox, list[Snapshot], LeftOut | None]:
            world, steps, pinned, left_out, requests = self._customs.admit(
                file, name, self.origin.history, empty, drop_unfit=drop_unfit
            )
            world.log.refill(steps)
            for trace in traces_of(requests, steps, name, keeps_bodies=world.journal.keeps_bodies):
                trace.is_of_another = trace.before > world.log.number  # of a file without the steps since
                world.journal.append(trace)
            world.held = SILENT
            return world, [snapshot_of(told) for told in pinned], left_out

        return admitted

    async def _enter(
        self,
        world: Sandbox,
        parent: str | None,
        reserved: Reserved | None,
        *,
        mentioned: bool = False,
        ttl: int | None = None,
    ) -> Entry:
        entry = self._entry(world, parent, mentioned=mentioned, ttl=ttl)
        if not await self.persistence.enter(entry, reserved):
            raise gone() if mentioned else taken(world.name)  # another server was faster
        self.put(entry)
        return entry

    def _entry(self, world: Sandbox, parent: str | None, *, mentioned: bool = False, ttl: int | None = None) -> Entry:
        now = wall_ms()
        expires_at = None if ttl is None else now + ttl * SECOND
        entry = Entry(
            world,
            parent,
            mentioned,
            now,
            now,
            expires_at,
            *self.belongings(),
            self._next_incarnation(),
            world.events.raised,
            next(self._turns),
        )
        entry.born = entry.turn
        return entry

    def belongings(self) -> tuple[Inbox, Snapshots]:
        """What a world has beside its state."""
        return Inbox(self._for_inboxes), Snapshots(self._for_snapshots)

    def begin_anew(self, entry: Entry) -> None:
        """The events of a world are others from here on: whoever follows them is told."""
        self._name_events(entry)
        self.persistence.note_soon(entry)

    def _name_events(self, entry: Entry) -> None:
        entry.incarnation, entry.origin_events = self._next_incarnation(), entry.world.events.raised

    def _next_incarnation(self) -> str:
        self._begun += 1
        return f"{self._started:x}-{self._begun}"


def _begin_with(world: Sandbox, settings: SandboxSettings, changes: Body | None) -> None:
    world.settings = world.first_settings = settings._replace(**(changes or {}))


def _none(name: str, error: Refusal) -> Missing:
    """No operation was asked to make a world: there is none of this name."""
    return Missing(f"There is no sandbox {name}. {error.message}", code="sandbox_not_found")


def _check_room(before: Snapshots, brought: Sequence[Snapshot]) -> None:
    """Refuse a file whose snapshots do not fit in the place of those that were there. Raises BadFile."""
    try:
        before.check_room_instead(brought)
    except Conflict as error:
        raise BadFile("too_large", error.message) from None


def _fill(entry: Entry, brought: Sequence[Snapshot]) -> None:
    for snapshot in brought:
        entry.snapshots.keep(snapshot)
