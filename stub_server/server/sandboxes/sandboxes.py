"""The sandboxes of one server: made by name or by request, forked, reset, and put in
place of each other.
"""

import asyncio
import hmac
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from ...core.clock import SECOND, iso, wall_ms
from ...core.problem import Conflict, NotFound, Refusal, gone
from ...core.record import Body, Record
from ...core.text import glob, nearest
from ...data.keys import derive_keys, keep_newest, ready_pair, renewed
from ...data.scenario import known_scenarios
from ...engine.draft import Draft
from ...engine.history import free, go_back, state_at
from ...engine.resources import change_key, drop_key
from ...engine.sandbox import DEFAULT, Sandbox
from ...engine.scheduler import do_due
from ...engine.step import Cause, SandboxSettings, Step
from ...engine.tables.memory import Store
from ...storage import sql
from ...storage.database import Kept
from ...storage.package import read_file
from ...storage.state import Snapshot
from .entry import (
    NAMING,
    Entry,
    duplicate_name,
    folded,
    is_name,
    keys_of,
    made_up,
    records_of,
    too_many,
)
from .generations import Generations
from .loaded import LoadedSandboxes
from .making import SandboxFactory
from .persistence import Persistence
from .residence import Residence

MOST, MOST_CREATIONS = 1_000, 64


class Sandboxes(LoadedSandboxes):
    """All sandboxes by name, of which a server makes at most `MOST`."""

    def __init__(
        self, factory: SandboxFactory, on_due: Callable[[Sandbox], None], persistence: Persistence
    ) -> None:
        """`on_due` is called with a sandbox that is new or gone, and when something falls due in
        one.

        `persistence` has the sandboxes of an earlier process. Raises StoreError, BadFile,
        ScenarioError.
        """
        super().__init__(on_due, persistence, Generations(factory.settings))
        # those that are under way, and failed ones
        self._creations: dict[str, asyncio.Task[Entry]] = {}
        self._named = count(persistence.epoch + 1)  # counts the names that are made up
        self.factory, self.worker, self.settings = factory, factory.worker, factory.settings
        self.scenario, self.seed = self.settings.scenario, self.settings.seed
        self._started, self._begun = wall_ms(), count(1)
        # set with a store, which may have sandboxes that are not in memory
        self.residence: Residence | None = None
        self._read_stored()
        self.has_kept_default = (
            DEFAULT in self._entries or persistence.default_elsewhere is not None
        )
        if not self.has_kept_default and not self._begin_default():
            self._read_stored()  # another server of the store has begun it meanwhile
        kept = persistence.default_elsewhere
        if kept is not None:
            # A stand-in with the same keys: what is refused before a sandbox is chosen is journaled
            # in it.
            scenario = factory.permitted(kept["scenario"])
            self.default = factory.make(DEFAULT, kept["generation"], scenario, kept["seed"], None)

    def _read_stored(self) -> None:
        """Put the stored sandboxes in memory that the persistence reads at a start.

        Raises StoreError.
        """
        for entry in sorted(self.persistence.read(MOST), key=lambda entry: entry.created_at):
            self.put(entry)

    def _begin_default(self) -> bool:
        """Make the default sandbox; False where another server of the store was quicker.

        Raises BadFile, ScenarioError, Unavailable.
        """
        snapshots: Sequence[Snapshot] = ()
        generation = self.generations.first(DEFAULT)
        if self.settings.restore is None:
            sandbox = self.factory.make(DEFAULT, generation, self.scenario, self.seed, None)
        else:
            file = read_file(self.settings.restore)
            sandbox, snapshots = self.factory.read(DEFAULT, generation, file, abroad=False)
            self.factory.belongings()[1].check_room_instead(snapshots)
        entry = self._entry(sandbox, None)
        if not self.persistence.begin(entry, snapshots):
            return False
        self.put(entry)
        entry.snapshots.keep(*snapshots)
        return True

    # -- finding

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that a request may name, besides the one that the server was
        started with.
        """
        return known_scenarios(self.factory.seeding.fixtures)

    def control_key(self, name: str) -> str:
        """The key that opens the controls of one sandbox in its generation. Raises NotFound."""
        entry = self.entry(name)
        named = f"control/{entry.sandbox.identity}/{entry.created_at}".encode()
        return "sk_control_" + hmac.digest(self.factory.control_secret, named, "sha256").hex()[:48]

    def pay_key(self, sandbox: Sandbox, order: str) -> str | None:
        """What the address of an order's pay page has to contain on a public server; None on a
        plain one.
        """
        if not self.settings.is_public:
            return None
        named = f"pay/{sandbox.identity}/{order}".encode()
        return "sk_pay_" + hmac.digest(self.factory.secret, named, "sha256").hex()[:32]

    def add_keys(self, name: str, keys: Sequence[str]) -> None:
        """API keys that a sandbox has from now on: digests of private ones, and public ones."""
        self.keyring.add(name, keys)
        self.persistence.store_row_soon(name, keys)

    async def listed(self, pattern: str) -> list[Entry | Kept]:
        """All sandboxes whose name matches a glob, in memory or not, those made last first.

        Raises Unavailable.
        """
        found: list[Entry | Kept] = [*self.entries(pattern)]
        if self.residence is not None:
            pattern = folded(pattern)
            for row in await self.persistence.query(sql.listed):
                if row.name not in self._entries and glob(pattern, row.name):
                    found.append(row)
            found.sort(key=lambda each: each.created_at, reverse=True)
        return found

    # -- coming and going

    def take_back(self, entry: Entry) -> bool:
        """Delete the sandbox of a request that failed after it created it, unless others have used
        it since.
        """
        if self._entries.get(entry.sandbox.name) is not entry or entry.uses:
            return False
        self.forget(entry.sandbox.name)
        self.generations.take_back(entry.sandbox.name, entry.sandbox.origin.generation)
        return True

    # -- making

    async def pending_sandbox(
        self, name: str, *, creates: bool = True, suggests: bool = False
    ) -> Sandbox:
        """The sandbox of this name, or where the server allows that a new one, for `register`.
        Raises NotFound.

        Without `creates` it must exist. With `suggests` the refusal names a similar sandbox.
        """
        sandbox = self.choose(name)
        if sandbox is not None:
            return sandbox
        name = folded(name)
        if is_name(name) is None:
            raise NotFound(f"The name of a sandbox has {NAMING}.", code="sandbox_not_found")
        if self.settings.is_public or not creates:
            raise self._no_such_name(name, suggests=suggests)
        try:
            return await self.factory.begin(
                name, self.generations.first(name), self.scenario, self.seed, None
            )
        except NotFound as error:
            raise _none(name, error) from None

    def _no_such_name(self, name: str, *, suggests: bool) -> NotFound:
        """404 for a name that no sandbox has, with the call that creates it."""
        message, call = f"There is no sandbox {name}.", f"GET /s/{name}/_sandbox/credentials"
        if suggests:
            similar = nearest(name, [*self._entries])
            message += f" Did you mean {similar}?" if similar else ""
        if self.settings.is_public:
            call = "POST /_sandbox/sandboxes"
        return NotFound(f"{message} {call} creates it.", code="sandbox_not_found")

    async def register(self, pending: Sandbox) -> Sandbox:
        """A pending sandbox, or the one of its name that another request has created meanwhile.

        Raises NotFound.
        """
        try:
            return (await self._admit(pending, None, None, on_first_use=True)).sandbox
        except Conflict as error:
            sandbox = self.choose(pending.name)
            if sandbox is None:
                raise _none(pending.name, error) from None
            return sandbox

    async def create(
        self,
        name: str | None,
        scenario: str | None = None,
        seed: int | None = None,
        *,
        now: int | None = None,
        ttl: int | None = None,
        settings: Body | None = None,
    ) -> Entry:
        """A new sandbox, with a generated name if it has none. `ttl` is seconds. Raises Conflict,
        NotFound.

        `settings` are those that differ from the server's.
        """
        name = await self._new_name(name, "sandbox")
        if seed is None:
            seed = self.seed
        sandbox = await self.factory.begin(
            name, self.generations.first(name), scenario or self.scenario, seed, now
        )
        _begin_with(sandbox, sandbox.settings, settings)
        if now is not None:
            sandbox.origin.first_clock = (now, True)
        return await self._admit(sandbox, None, ttl)

    async def create_beside(
        self, name: str | None, scenario: str | None, seed: int | None, **beginning: Any
    ) -> tuple[str, asyncio.Task[Entry]]:
        """Begin to `create` a sandbox, which goes on when the request has been answered.

        Raises Conflict, Unavailable.
        """
        name = await self._new_name(name, "sandbox")
        async with self.persistence.changing:
            self._check_creations(name)
            await self.persistence.announce(name)
            task = asyncio.create_task(self._create_announced(name, scenario, seed, **beginning))
            self._creations[name] = task
        return name, task

    def _check_creations(self, name: str) -> None:
        """Check that a sandbox can be created beside others. Raises Conflict."""
        under_way = [each for each, task in self._creations.items() if not task.done()]
        if name in under_way:
            raise duplicate_name(name)
        if len(under_way) >= MOST_CREATIONS:
            message = (
                f"{MOST_CREATIONS} sandboxes are being created, the maximum. Create this one when"
                " one is ready."
            )
            raise Conflict.at("name", message, "too_many_sandboxes")
        # nobody has asked for what became of the others
        if len(self._creations) >= 2 * MOST_CREATIONS:
            for each in self._creations.keys() - set(under_way):
                del self._creations[each]

    async def _create_announced(
        self, name: str, scenario: str | None, seed: int | None, **beginning: Any
    ) -> Entry:
        try:
            return await self.create(name, scenario, seed, **beginning)
        finally:
            await self.persistence.end_announcement(name)

    def creation(self, name: str) -> float | None:
        """How much is done of a sandbox that is being created, from 0 to 1; None for any other.

        Raises, once, why it was not created.
        """
        name = folded(name)
        task = self._creations.get(name)
        if task is None:
            return None
        if not task.done():
            return self.factory.progress(name)
        del self._creations[name]
        try:
            task.result()
        except Refusal as error:
            raise _none(name, error) from None
        return None

    async def fork(
        self,
        parent: str,
        name: str | None,
        step: int | None,
        ttl: int | None,
        *,
        deliver: bool = False,
    ) -> Entry:
        """A sandbox with the past of another, up to a step if one is given. Raises NotFound,
        Conflict.

        With `deliver` new events are delivered; earlier ones never are.
        """
        origin = (await self._present(parent)).sandbox
        name = await self._new_name(name, "fork")
        if step is None:
            sandbox = origin.fork(name)
        else:
            sandbox = await self.worker.in_line(state_at(origin, step, name))
        await self.persistence.settled(origin)
        sandbox.renew(self.generations.first(name))
        sandbox.origin.first_clock = sandbox.clock.now, sandbox.clock.frozen
        derive_keys(sandbox, self.factory.secret)
        if deliver:
            sandbox.speak()
        return await self._admit(sandbox, origin.name, ttl)

    async def _present(self, name: str) -> Entry:
        """A sandbox that may have been deleted or unloaded while this waited.

        Raises NotFound, Unavailable.
        """
        if self.residence is not None and isinstance(await self.residence.locate(name), str):
            raise gone()  # another server has it
        return self.entry(name)

    def ensure_room(self) -> None:
        """Make room for one more sandbox: at the limit the one idle longest of those created on
        first use is deleted.

        Raises Conflict.
        """
        entries = self.entries()  # deletes those that have expired
        if len(entries) >= MOST:
            unnamed = [entry for entry in entries if entry.created_on_first_use]
            if not unnamed:
                raise too_many(MOST)
            self.forget(min(reversed(unnamed), key=lambda entry: entry.last_used_at).sandbox.name)

    async def _new_name(self, name: str | None, prefix: str) -> str:
        """The requested name, or a generated one, and room for it.

        Raises Conflict, also where the name exists.
        """
        chosen = folded(name or made_up(prefix, next(self._named)))
        while await self._exists(chosen):
            if name is not None:
                raise duplicate_name(chosen)
            chosen = made_up(prefix, next(self._named))
        self.ensure_room()
        return chosen

    async def _exists(self, name: str) -> bool:
        """Whether there is a sandbox of a name, in memory or not. Raises Unavailable."""
        if self.find(name) is not None:
            return True
        return self.residence is not None and await self.persistence.query(
            partial(sql.has, name=name)
        )

    async def _admit(
        self, sandbox: Sandbox, parent: str | None, ttl: int | None, *, on_first_use: bool = False
    ) -> Entry:
        """Register a sandbox for which there was a name and room, if there still is.

        Raises Conflict.
        """
        written = await self.persistence.write(sandbox)
        async with self.persistence.changing:
            if self.find(sandbox.name) is not None:
                raise duplicate_name(sandbox.name)
            self.ensure_room()
            entry = self._entry(sandbox, parent, ttl=ttl, on_first_use=on_first_use)
            if not await self.persistence.put(entry, written):
                if on_first_use:
                    raise gone()
                raise duplicate_name(sandbox.name)  # another server was faster
            self.put(entry)
            return entry

    # -- one in place of another

    async def reset(
        self,
        name: str,
        scenario: str | None = None,
        seed: int | None = None,
        now: int | None = None,
        settings: Body | None = None,
    ) -> Sandbox:
        """Seed a sandbox again, with its present scenario and seed unless others are given.

        `now` freezes the clock at that instant; without it the clock is as it began. `settings` are
        those that differ from the ones that it began with. Raises NotFound.
        """
        origin = self.entry(name).sandbox.origin
        if seed is None:
            seed = origin.seed
        first_clock = origin.first_clock
        if now is not None:
            first_clock = (now, True)
        begins, stands = first_clock or (None, True)
        sandbox = await self.factory.begin(
            name, origin.generation, scenario or origin.scenario, seed, begins
        )
        sandbox.origin.first_clock = first_clock
        if not stands:
            sandbox.recorded_clock = sandbox.clock.resumed()
            sandbox.clock.set(sandbox.recorded_clock)
        _begin_with(sandbox, origin.first_settings, settings)
        return (await self._replace(name, sandbox)).sandbox

    async def import_(
        self,
        name: str,
        file: bytes | bytearray,
        *,
        deliver: bool = False,
        abroad: bool = False,
    ) -> tuple[Entry, Body]:
        """Replace a sandbox by that of a file. With `deliver` its new events are delivered.

        The journal is that of the file too. `abroad` says that a page of another machine sent the
        file. Returns the entry, and what was replaced.

        Raises NotFound, and BadFile for a file that cannot be used.
        """
        present = self.entry(name).sandbox
        name, generation = present.name, present.origin.generation
        sandbox, snapshots = await self.worker.beside(
            lambda: self.factory.read(name, generation, file, abroad=abroad)
        )
        if deliver:
            sandbox.speak()
        old = self.entry(name).sandbox
        replaced = {"step": old.log.number, "records": records_of(old), "now": iso(old.clock.now)}
        return await self._replace(name, sandbox, snapshots), replaced

    async def put_in_place(self, sandbox: Sandbox) -> None:
        """Replace the sandbox of its name, which is created where there is none, and its
        generation.
        """
        if self.find(sandbox.name) is None:
            await self.create(sandbox.name)
        self.entry(sandbox.name).sandbox.renew(sandbox.origin.generation)
        await self._replace(sandbox.name, sandbox)

    async def _replace(
        self, name: str, sandbox: Sandbox, brought: Sequence[Snapshot] = ()
    ) -> Entry:
        """Replace the sandbox of a name, with the snapshots of the new one.

        Raises NotFound, BadFile.
        """
        written = await self.persistence.write(sandbox, *(snapshot.sandbox for snapshot in brought))
        async with self.persistence.changing:
            before = await self._present(name)
            # it was rotated meanwhile
            if before.sandbox.origin.generation != sandbox.origin.generation:
                raise gone()
            before.snapshots.check_room_instead(brought)
            inbox, snapshots = self.factory.belongings()
            entry = replace(before, sandbox=sandbox, parent=None, inbox=inbox, snapshots=snapshots)
            self._name_events(entry)
            if not await self.persistence.put(entry, written, brought):
                raise gone()
            self.put(entry)
            entry.snapshots.keep(*brought)
            return entry

    async def rotate(
        self, name: str, cause: Cause, *, keys: bool
    ) -> tuple[Entry, list[tuple[Store, Record]]]:
        """Begin another generation of a sandbox; its tokens, seeded keys, control key and pay links
        end.

        Returns it, and the API keys that its users made; with `keys` these are deleted. Raises
        NotFound, Unavailable.
        """
        await do_due((await self._present(name)).sandbox, self.worker)
        async with self.persistence.changing:
            entry = await self._present(name)
            sandbox = entry.sandbox
            earlier, number = sandbox.origin.generation, sandbox.log.number
            ready = sandbox.origin.credentials
            sandbox.renew(self.generations.after(sandbox.name, earlier))
            try:
                made = self._renew_keys(sandbox, cause, deletes_others=keys)
                self.keyring.forget(sandbox.name)
                self.add_keys(sandbox.name, list(keys_of(sandbox)))
                await self.persistence.store_row(sandbox)
            except Refusal:
                if sandbox.log.number <= number:  # the step was not recorded, or is undone
                    sandbox.renew(earlier)
                    sandbox.origin.credentials = ready
                raise
            return entry, made

    def _renew_keys(
        self, sandbox: Sandbox, cause: Cause, *, deletes_others: bool
    ) -> list[tuple[Store, Record]]:
        """Give the seeded keys secrets of the new generation.

        Returns the other keys, which may be deleted.
        """
        others = []
        for store in sandbox.stores.values():
            draft = Draft(sandbox, store, cause)
            for row in store.api_keys.all_rows():
                if row.id in sandbox.origin.seeded_keys:
                    change_key(draft, row, *renewed(sandbox, row, self.factory.secret))
                    continue
                others.append((store, row.record))
                if deletes_others:
                    drop_key(draft, row)
            draft.record()
        sandbox.origin.credentials = ready_pair(sandbox, self.factory.secret)
        return others

    async def delete(self, name: str) -> None:
        """Delete a sandbox. Raises NotFound, Unavailable, and Conflict for the default one."""
        if folded(name) == DEFAULT:
            message = (
                f"The default sandbox cannot be deleted. POST /s/{DEFAULT}/_sandbox/reset seeds it"
                " again."
            )
            raise Conflict.at("sandboxName", message, "sandbox_protected", where="path")
        async with self.persistence.changing:
            name = (await self._present(name)).sandbox.name
            await self.persistence.delete(name)
            self.forget(name)

    # -- time

    async def go_back(
        self, sandbox: Sandbox, then: Sandbox, cause: Cause, instant: int | None = None
    ) -> tuple[Entry, Step]:
        """Restore an earlier state of a sandbox, a copy that is used up; its seeded keys have the
        secrets of today.

        Returns the sandbox's entry and the step. Readers of its events begin again. Raises
        Conflict.
        """
        keep_newest(then, sandbox, self.factory.secret)
        old = sandbox.own_tables()
        step = go_back(sandbox, then, cause, instant)
        entry = self.entry(sandbox.name)
        self._name_events(entry)
        self.persistence.store_row_soon(sandbox.name)
        if sandbox.status.on_due is not None:
            sandbox.status.on_due(sandbox)
        await self.worker.in_slices(free(old))
        return entry, step

    def _entry(
        self,
        sandbox: Sandbox,
        parent: str | None,
        *,
        ttl: int | None = None,
        on_first_use: bool = False,
    ) -> Entry:
        now = wall_ms()
        entry = Entry(sandbox, parent, on_first_use, now, now, None, *self.factory.belongings())
        if ttl is not None:
            entry.expires_at = now + ttl * SECOND
        self._name_events(entry)
        return entry

    def _name_events(self, entry: Entry) -> None:
        """Give the events of a sandbox ids that no earlier event had."""
        entry.incarnation = f"{self._started:x}-{next(self._begun)}"
        entry.origin_events = entry.sandbox.events.raised


def _begin_with(sandbox: Sandbox, settings: SandboxSettings, changes: Body | None) -> None:
    sandbox.settings = sandbox.origin.first_settings = settings._replace(**(changes or {}))


def _none(name: str, error: Refusal) -> NotFound:
    """404 instead of the refusal to create a sandbox, which the request did not ask for."""
    return NotFound(f"There is no sandbox {name}. {error.message}", code="sandbox_not_found")
