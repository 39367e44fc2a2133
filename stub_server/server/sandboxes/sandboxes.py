"""The sandboxes of one server: the first one, and one in place of another, by reset, import,
rotation and rewind.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ...core.clock import iso
from ...core.ids import keyed_digest
from ...core.problem import Conflict, Refusal, gone
from ...core.record import Body, Record
from ...core.slices import Sliced
from ...core.text import glob
from ...data.keys import keep_newest, renewed
from ...engine.draft import Draft
from ...engine.history import go_back
from ...engine.resources import change_key, drop_key
from ...engine.sandbox import DEFAULT, Sandbox
from ...engine.scheduler import MOST_CHANGED, do_due
from ...engine.step import Cause, Step
from ...engine.tables.store import Store
from ...storage import sql
from ...storage.database import Kept
from ...storage.package import read_file
from ...storage.state import Snapshot
from .creating import MadeSandboxes
from .entry import Entry, folded, keys_of, records_of
from .making import AS_AT_THE_START, Beginning


class Sandboxes(MadeSandboxes):
    """All sandboxes of a server by name."""

    def open(self) -> None:
        """Read the stored sandboxes, and make the default one if the store has none.

        Raises StoreError, BadFile, ScenarioError, Unavailable.
        """
        self._read_stored()
        is_kept = DEFAULT in self._entries or self.persistence.default_elsewhere is not None
        if not is_kept and not self._begin_default():
            self._read_stored()  # another server of the store has begun it meanwhile
        kept = self.persistence.default_elsewhere
        if kept is not None:
            # A stand-in with the same keys: what is refused before a sandbox is chosen is journaled
            # in it.
            self.default = self.factory.make(
                DEFAULT, kept["generation"], self.factory.beginning(kept)
            )

    def _read_stored(self) -> None:
        """Put the stored sandboxes in memory that the persistence reads at a start.

        Raises StoreError.
        """
        for entry in sorted(self.persistence.read(), key=lambda entry: entry.created_at):
            self.put(entry)

    def _begin_default(self) -> bool:
        """Make the default sandbox; False where another server of the store was quicker.

        Raises BadFile, ScenarioError, Unavailable.
        """
        snapshots: Sequence[Snapshot] = ()
        generation = self.generations.first(DEFAULT)
        if self.settings.restore is None:
            sandbox = self.factory.make(DEFAULT, generation)
        else:
            sandbox, snapshots, _ = self.factory.read(
                DEFAULT, generation, read_file(self.settings.restore), abroad=False
            )
        entry = self._entry(sandbox)
        entry.snapshots.check_room_instead(snapshots)
        # before any request is served, and so with an event loop of its own
        if self.persistence.has_store and not asyncio.run(self._put(entry, snapshots)):
            return False
        self.put(entry)
        entry.snapshots.keep(*snapshots)
        return True

    async def _put(self, entry: Entry, snapshots: Sequence[Snapshot]) -> bool:
        return await self.persistence.put(
            entry, await self.persistence.write(entry.sandbox, *snapshots)
        )

    # -- finding

    def control_key(self, name: str) -> str:
        """The key that opens the controls of one sandbox in its generation. Raises NotFound."""
        entry = self.entry(name)
        named = f"control/{entry.sandbox.identity}/{entry.created_at}".encode()
        return "sk_control_" + keyed_digest(self.factory.control_secret, named).hex()[:48]

    def pay_key(self, sandbox: Sandbox, order: str) -> str | None:
        """What the address of an order's pay page has to contain on a public server; None on a
        plain one.
        """
        if not self.settings.is_public:
            return None
        named = f"pay/{sandbox.identity}/{order}".encode()
        return "sk_pay_" + keyed_digest(sandbox.rules.secret, named).hex()[:32]

    def add_keys(self, name: str, keys: Sequence[str]) -> None:
        """API keys that a sandbox has from now on: digests of private ones, and public ones."""
        self.entry(name).keys.update(keys)
        self.persistence.store_row_soon(name, keys)

    async def listed(self, pattern: str) -> list[Entry | Kept]:
        """All sandboxes whose name matches a glob, in which capitals mean the same, in memory or
        not; those made last first.

        Raises Unavailable.
        """
        found: list[Entry | Kept] = [*self.entries()]
        if self.persistence.has_store:
            rows = await self.persistence.query(sql.listed)
            found += [row for row in rows if row.name not in self._entries]
            found.sort(key=lambda each: each.created_at, reverse=True)
        pattern = folded(pattern)
        return [each for each in found if glob(pattern, each.name)]

    # -- coming and going

    def take_back(self, entry: Entry) -> bool:
        """Delete the sandbox of a request that failed after it created it, unless others have used
        it since.
        """
        if self._entries.get(entry.name) is not entry or entry.uses:
            return False
        self.forget(entry.name)
        self.generations.take_back(entry.name, entry.sandbox.origin.generation)
        return True

    # -- one in place of another

    async def reset(self, name: str, beginning: Beginning = AS_AT_THE_START) -> Sandbox:
        """Seed a sandbox again, as it began where nothing else is given. Raises NotFound."""
        origin = self.entry(name).sandbox.origin
        again = Beginning(
            beginning.scenario or origin.scenario,
            origin.seed if beginning.seed is None else beginning.seed,
            beginning.clock or origin.first_clock,
            origin.first_settings._asdict() | (beginning.settings or {}),
        )
        sandbox = await self._seeded(name, origin.generation, again)
        return (await self._replace(name, sandbox)).sandbox

    async def import_(
        self,
        name: str,
        file: bytes | bytearray,
        *,
        deliver: bool,
        abroad: bool,
    ) -> tuple[Entry, Body]:
        """Replace a sandbox by that of a file. With `deliver` its new events are delivered.

        The journal is that of the file too. `abroad` says that a page of another machine sent the
        file. Returns the entry, and what was replaced.

        Raises NotFound, and BadFile for a file that cannot be used.
        """
        present = self.entry(name).sandbox
        name, generation = present.name, present.origin.generation
        sandbox, snapshots, _ = await self.worker.beside(
            lambda: self.factory.read(name, generation, file, abroad=abroad)
        )
        if deliver:
            sandbox.speak()
        old = self.entry(name).sandbox
        replaced = {"step": old.log.number, "records": records_of(old), "now": iso(old.clock.now)}
        return await self._replace(name, sandbox, snapshots), replaced

    def put_in_place(self, sandbox: Sandbox) -> None:
        """Replace the sandbox of its name, if there is one, on a server without a store."""
        self.put(self._entry(sandbox))

    async def _replace(
        self, name: str, sandbox: Sandbox, brought: Sequence[Snapshot] = ()
    ) -> Entry:
        """Replace the sandbox of a name, with the snapshots of the new one.

        Raises NotFound, BadFile.
        """
        written = await self.persistence.write(sandbox, *brought)
        async with self.persistence.changing:
            before = await self._present(name)
            # it was rotated meanwhile
            if before.sandbox.origin.generation != sandbox.origin.generation:
                raise gone()
            before.snapshots.check_room_instead(brought)
            inbox, snapshots = self.factory.belongings()
            entry = replace(
                before,
                sandbox=sandbox,
                parent=None,
                inbox=inbox,
                snapshots=snapshots,
                keys=keys_of(sandbox),
            )
            self._name_events(entry)
            if not await self.persistence.put(entry, written):
                raise gone()
            self.put(entry)
            entry.snapshots.keep(*brought)
            return entry

    async def rotate(
        self, name: str, cause: Cause, *, keys: bool, most: int
    ) -> tuple[Entry, list[tuple[Store, Record]], int]:
        """Begin another generation of a sandbox; its tokens, seeded keys, control key and pay links
        end.

        Returns it, the newest API keys that its users made, and how many these are; with `keys`
        they are deleted. Raises NotFound, Unavailable.
        """
        present = (await self._present(name)).sandbox
        earlier = present.origin.generation
        await do_due(present, self.worker)
        async with self.persistence.changing:
            entry = await self._present(name)
            sandbox, number = entry.sandbox, entry.sandbox.log.number
            if sandbox.origin.generation != earlier:  # deleted meanwhile, and made again
                raise gone()
            sandbox.renew(self.generations.after(sandbox.name, earlier))
            try:
                self.add_keys(sandbox.name, _renew_keys(sandbox, cause))
                made = list(islice(_made_keys(sandbox), most))
                total = sum([len(store.api_keys) for store in sandbox.stores.values()])
                total -= len(sandbox.origin.seeded_keys & sandbox.store.api_keys.keys.keys())
                dropping = _drop_keys(sandbox, cause)
                if keys:
                    next(dropping, None)  # before anybody else is served
                await self.persistence.store_row(sandbox)
            except Refusal:
                if sandbox.log.number <= number:  # the step was not recorded, or is undone
                    sandbox.renew(earlier)
                raise
            if keys:
                await self.worker.in_slices(dropping, sandbox.name)
            return entry, made, total

    async def delete(self, name: str) -> None:
        """Delete a sandbox. Raises NotFound, Unavailable, and Conflict for the default one."""
        if folded(name) == DEFAULT:
            raise Conflict.at(
                "sandboxName",
                f"The default sandbox cannot be deleted. POST /s/{DEFAULT}/_sandbox/reset seeds it"
                " again.",
                "sandbox_protected",
                where="path",
            )
        async with self.persistence.changing:
            name = (await self._present(name)).sandbox.name
            self.persistence.check_written()
            deleted = self.forget(name)
            if deleted is not None:
                await deleted.outcome()

    # -- time

    def go_back(
        self,
        sandbox: Sandbox,
        then: Sandbox,
        cause: Cause,
        instant: int | None = None,
        since: int | None = None,
    ) -> tuple[Entry, Step]:
        """Restore an earlier state of a sandbox, a copy that is used up; its seeded keys have the
        secrets of today. `since` is the number of its step, if it has one.

        Returns the sandbox's entry and the step. Readers of its events begin again. Raises
        Conflict.
        """
        keep_newest(then, sandbox)
        step = go_back(sandbox, then, cause, instant, since)
        entry = self.entry(sandbox.name)
        self._name_events(entry)
        self.persistence.store_row_soon(sandbox.name)
        sandbox.status.on_due(sandbox)
        return entry, step


def _renew_keys(sandbox: Sandbox, cause: Cause) -> list[str]:
    """Give the seeded keys secrets of the new generation; returns these."""
    draft, keys_now = Draft(sandbox, sandbox.store, cause), list[str]()
    for ident in sorted(sandbox.origin.seeded_keys):
        row = draft.open("api_keys", ident)
        if row is not None:  # nobody has deleted it
            key = renewed(sandbox, row)
            change_key(draft, key)
            keys_now += key.hidden["digest"], key.public["public_key"]
    draft.record()
    return keys_now


def _made_keys(sandbox: Sandbox) -> Iterator[tuple[Store, Record]]:
    """The API keys that users of a sandbox made, of each merchant the newest first."""
    for store in reversed(sandbox.stores.values()):
        for key in reversed(store.api_keys.order):
            record = store.api_keys.rows[key]
            if record.id not in sandbox.origin.seeded_keys:
                yield store, record


def _drop_keys(sandbox: Sandbox, cause: Cause) -> Sliced[None]:
    """Delete the API keys that users have made by now, with a pause after each step."""
    for store, keys in [(store, [*store.api_keys.keys]) for store in sandbox.stores.values()]:
        for begin in range(0, len(keys), MOST_CHANGED):
            draft = Draft(sandbox, store, cause)
            for ident in keys[begin : begin + MOST_CHANGED]:
                row = draft.open("api_keys", ident)
                if row is not None and ident not in sandbox.origin.seeded_keys:
                    drop_key(draft, row)
            draft.record()
            yield
