"""The sandboxes in memory: found by name or opened from the store, put there, and removed."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from time import monotonic

from ...core.clock import wall_ms
from ...core.log import log
from ...core.problem import NotFound, Refusal, store_unavailable
from ...core.slices import BackgroundWorker
from ...engine.sandbox import DEFAULT, Sandbox
from ...storage import sql
from ...storage.database import StoreError
from .entry import Entry, Generations, folded, is_name
from .making import SandboxFactory
from .pending import Pending
from .persistence import Persistence

REMEMBERED = 1.0  # seconds for which it is remembered which server has a sandbox
# seconds between two searches for deliveries that are due in sandboxes that no server has in memory
SCAN = 1.0


class LoadedSandboxes:
    """Sandboxes by name. One that has expired is deleted when it is looked for.

    Those of a store may not be in memory, since other servers have them, or a failed commit has
    unloaded them.
    """

    def __init__(
        self, factory: SandboxFactory, on_due: Callable[[Sandbox], None], persistence: Persistence
    ) -> None:
        """`factory` fills what is made; `on_due` is called with a sandbox that is new or gone, and
        when something falls due in one.
        """
        self.factory, self.worker, self.settings = factory, factory.worker, factory.settings
        self._on_due, self.persistence = on_due, persistence
        self.generations = Generations(factory.settings)
        persistence.on_lost = self.unload
        self._entries: dict[str, Entry] = {}
        # creations under way, and failed ones, until somebody asks why
        self._creations: dict[str, asyncio.Task[Entry]] = {}
        # count the names that are made up, and the beginnings of sandboxes
        self._named, self._begun = count(persistence.epoch + 1), count(1)
        self._started = wall_ms()
        self.default: Sandbox  # the sandbox that is there from the start
        self._elsewhere: dict[str, tuple[str, float]] = {}
        self._openings = BackgroundWorker()
        self._scanning: asyncio.Task[None] | None = None

    def _found(self, name: str) -> Entry | None:
        """What is known of a sandbox, if it is there and has not expired."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            return None
        return entry

    def find(self, name: str) -> Sandbox | None:
        """A sandbox that exists already."""
        entry = self._found(name)
        return None if entry is None else entry.sandbox

    def choose(self, name: str) -> Sandbox | None:
        """A sandbox that exists already, which somebody uses now."""
        entry = self._found(name)
        if entry is None:
            return None
        entry.last_used_at, entry.uses = wall_ms(), entry.uses + 1
        return entry.sandbox

    def entry(self, name: str) -> Entry:
        """What is known of a sandbox that exists. Raises NotFound."""
        entry = self._found(name)
        if entry is None:
            raise NotFound(
                f"There is no sandbox {name[:63]}. POST /_sandbox/sandboxes creates one.",
                code="sandbox_not_found",
            )
        return entry

    def entries(self) -> list[Entry]:
        """The sandboxes that have not expired, those made last first."""
        for entry in list(self._entries.values()):
            self._has_expired(entry)
        return list(reversed(self._entries.values()))

    def owner(self, key: str) -> str | None:
        """The sandbox in memory that an API key belongs to, by a private key's digest or a public
        key.

        The sandbox decides whether the key is valid.
        """
        for name, entry in self._entries.items():
            if key in entry.keys:
                return name
        return None

    def seeded_owner(self, unique: str, value: str) -> str | None:
        """The sandbox that was seeded with an API key, which is no secret; None for other keys."""
        sandbox = self.find(self.owner(value) or "")
        if sandbox is None:
            return None
        key = sandbox.store.api_keys.holder(unique, value)
        return sandbox.name if key in sandbox.origin.seeded_keys else None

    def sandboxes(self) -> list[Sandbox]:
        """The sandboxes that are in memory, those made first first."""
        return [entry.sandbox for entry in self._entries.values()]

    # -- those of the store

    async def sandbox_of(self, key: str) -> str | None:
        """The sandbox of an API key, by a private key's digest or a public key.

        Raises Unavailable.
        """
        return self.owner(key) or await self.persistence.query(
            lambda session: sql.sandbox_with(session, key)
        )

    async def locate(self, name: str) -> Sandbox | str | None:
        """A sandbox; the address of the server that has it; None where there is none of this name.

        Raises Unavailable.
        """
        found = self.choose(name)
        if found is not None or not self.persistence.has_store:
            return found
        name = folded(name)
        address, until = self._elsewhere.get(name, ("", 0.0))
        if until > monotonic():
            return address
        if is_name(name) is None:  # PostgreSQL refuses some texts
            return None
        async with self._openings.own(name):  # else two requests would open it twice
            return self.choose(name) or await self._open(name)

    async def _open(self, name: str) -> Sandbox | str | None:
        try:
            opened = await self.persistence.open(name)
        except StoreError as error:
            log.error("%s", error)
            raise store_unavailable(
                f"The sandbox {name} cannot be opened. The server's log says why."
            ) from None
        if isinstance(opened, str):
            self._elsewhere[name] = opened, monotonic() + REMEMBERED
            return opened
        if opened is not None:
            self.put(opened)
        return self.choose(name)

    def forget_holder(self, name: str) -> None:
        """Forget which server has a sandbox."""
        self._elsewhere.pop(folded(name), None)

    def start(self) -> None:
        """Start to store sandboxes beside the requests, and to search for deliveries that are due
        in those that no server has in memory.
        """
        self.persistence.start()
        if self.persistence.has_store:
            self._scanning = asyncio.create_task(self._scan())

    def stop(self) -> None:
        """Stop to search."""
        if self._scanning is not None:
            self._scanning.cancel()

    async def _scan(self) -> None:
        while True:
            await asyncio.sleep(SCAN)
            try:
                due = partial(sql.due, store=self.persistence.store, now=wall_ms())
                for name in await self.persistence.query(due):
                    if self.find(name) is None:
                        await self.locate(name)
            except Refusal as error:
                log.debug("sandboxes whose deliveries are due could not be opened (%s)", error)

    # -- coming and going

    def put(self, entry: Entry) -> None:
        """Add a sandbox, in place of the one of its name. A copy takes no key from its parent."""
        sandbox = entry.sandbox
        before = self._entries.get(sandbox.name)
        for other in self._entries.values():
            if other is not before:
                entry.keys -= entry.keys & other.keys
        self._entries[sandbox.name] = entry
        if before is not None:
            self._leave(before)
        if sandbox.name == DEFAULT:
            self.default = sandbox
        sandbox.status.on_due = self._on_due
        self._on_due(sandbox)

    def forget(self, name: str) -> Pending | None:
        """Delete a sandbox, if it is there and not the default one; the next use of its name
        creates another. Returns what deletes it from the store.
        """
        if name == DEFAULT or name not in self._entries:
            return None
        entry = self._entries.pop(name)
        self.generations.delete(name, entry.sandbox.origin.generation)
        self._leave(entry)
        return self.persistence.delete(name)

    def unload(self, sandbox: Sandbox) -> None:
        """Remove a sandbox from memory; the store keeps it."""
        entry = self._entries.get(sandbox.name)
        if entry is not None and entry.sandbox is sandbox:
            self._leave(self._entries.pop(sandbox.name))
            if sandbox is self.default:
                # for what is refused before a sandbox is chosen
                self.default = sandbox.fork(DEFAULT)

    def _leave(self, entry: Entry) -> None:
        """Free what a removed sandbox held; its pending jobs are not done."""
        entry.sandbox.status.is_gone = True
        entry.sandbox.log.close()
        entry.sandbox.journal.clear()
        self._on_due(entry.sandbox)
        entry.inbox.clear()
        entry.snapshots.clear()

    def _has_expired(self, entry: Entry) -> bool:
        """Whether a sandbox has expired; if so, it is deleted."""
        if entry.expires_at is None or entry.expires_at > wall_ms():
            return False
        self.forget(entry.name)
        return True
