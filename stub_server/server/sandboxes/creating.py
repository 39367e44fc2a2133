"""The sandboxes that a server makes: on the first use of a name, by request, and as copies."""

import asyncio
from functools import partial

from ...core.clock import SECOND, wall_ms
from ...core.problem import Conflict, NotFound, Refusal, gone
from ...core.text import did_you_mean
from ...data.keys import derive_keys
from ...engine.history import state_at
from ...engine.sandbox import Sandbox
from ...storage import sql
from .entry import (
    NAMING,
    Entry,
    duplicate_name,
    folded,
    is_name,
    keys_of,
    made_up,
)
from .loaded import LoadedSandboxes
from .making import AS_AT_THE_START, Beginning

MOST, MOST_CREATIONS = 1_000, 64


class MadeSandboxes(LoadedSandboxes):
    """Makes sandboxes, of which a server has at most `MOST`."""

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
            return await self.factory.begin(self.factory.empty(name, self.generations.first(name)))
        except NotFound as error:
            raise _none(name, error) from None

    def _no_such_name(self, name: str, *, suggests: bool) -> NotFound:
        """404 for a name that no sandbox has, with the call that creates it."""
        hint = did_you_mean(name, [*self._entries]) if suggests else ""
        call = f"GET /s/{name}/_sandbox/credentials"
        if self.settings.is_public:
            call = "POST /_sandbox/sandboxes"
        return NotFound(
            f"There is no sandbox {name}.{hint} {call} creates it.", code="sandbox_not_found"
        )

    async def register(self, pending: Sandbox) -> Sandbox:
        """A pending sandbox, or the one of its name that another request has created meanwhile.

        Raises NotFound.
        """
        try:
            return (await self._admit(self._entry(pending, on_first_use=True))).sandbox
        except Conflict as error:
            sandbox = self.choose(pending.name)
            if sandbox is None:
                raise _none(pending.name, error) from None
            return sandbox

    async def create(
        self, name: str | None, beginning: Beginning = AS_AT_THE_START, ttl: int | None = None
    ) -> Entry:
        """A new sandbox, with a generated name if it has none. `ttl` is seconds. Raises Conflict,
        NotFound.
        """
        name = await self._new_name(name, "sandbox")
        sandbox = await self._seeded(name, self.generations.first(name), beginning)
        return await self._admit(self._entry(sandbox, ttl=ttl))

    async def _seeded(self, name: str, generation: str, beginning: Beginning) -> Sandbox:
        """A seeded sandbox as it is to begin. What was before has the settings of the server."""
        sandbox = await self.factory.begin(self.factory.empty(name, generation, beginning))
        origin, clock = sandbox.origin, beginning.clock
        origin.first_clock = clock
        if clock is not None and not clock[1]:
            sandbox.clock.set(sandbox.clock.resumed())
        origin.first_settings = origin.first_settings._replace(**(beginning.settings or {}))
        sandbox.settings = origin.first_settings
        return sandbox

    async def create_beside(
        self, name: str | None, beginning: Beginning, ttl: int | None
    ) -> tuple[str, asyncio.Task[Entry]]:
        """Begin to `create` a sandbox, which goes on when the request has been answered.

        Raises Conflict, Unavailable.
        """
        name = await self._new_name(name, "sandbox")
        async with self.persistence.changing:
            self._check_creations(name)
            await self.persistence.announce(name)
            task = asyncio.create_task(self._create_announced(name, beginning, ttl))
            self._creations[name] = task
            asyncio.gather(task, return_exceptions=True)  # nobody may ever ask why it failed
        return name, task

    def _check_creations(self, name: str) -> None:
        """Check that a sandbox can be created beside others. Raises Conflict."""
        creation = self._creations.get(name)
        if creation is not None and not creation.done():
            raise duplicate_name(name)
        if len(self._creations) < MOST_CREATIONS:
            return
        for earlier, task in self._creations.items():
            if task.done():  # nobody has asked why it failed
                del self._creations[earlier]
                return
        raise _too_many(
            f"{MOST_CREATIONS} sandboxes are being created, the maximum. Create this one when one"
            " is ready."
        )

    async def _create_announced(self, name: str, beginning: Beginning, ttl: int | None) -> Entry:
        try:
            entry = await self.create(name, beginning, ttl)
            del self._creations[name]
            return entry
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
            sandbox = await self.worker.in_line(state_at(origin, step, name), origin.name)
        await self.persistence.settled(origin)
        sandbox.renew(self.generations.first(name))
        sandbox.origin.first_clock = sandbox.clock.now, sandbox.clock.frozen
        derive_keys(sandbox)
        if deliver:
            sandbox.speak()
        return await self._admit(self._entry(sandbox, origin.name, ttl))

    async def _present(self, name: str) -> Entry:
        """A sandbox that may have been deleted or unloaded while this waited.

        Raises NotFound, Unavailable.
        """
        if isinstance(await self.locate(name), str):
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
                raise _too_many(
                    f"There are {MOST} sandboxes, the maximum of a server. DELETE"
                    " /_sandbox/sandboxes/NAME deletes one; those that are created with ttl_seconds"
                    " expire."
                )
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
        return self.persistence.has_store and await self.persistence.query(
            partial(sql.has, name=name)
        )

    async def _admit(self, entry: Entry) -> Entry:
        """Register a sandbox for which there was a name and room, if there still is.

        Raises Conflict.
        """
        written = await self.persistence.write(entry.sandbox)
        # nobody may open it from the store before it is in memory: there would be two of it
        async with self.persistence.changing, self._openings.own(entry.name):
            if self.find(entry.name) is not None:
                raise duplicate_name(entry.name)
            self.ensure_room()
            if not await self.persistence.put(entry, written):
                if entry.created_on_first_use:
                    raise gone()
                raise duplicate_name(entry.name)  # another server was faster
            self.put(entry)
            return entry

    def _entry(
        self,
        sandbox: Sandbox,
        parent: str | None = None,
        ttl: int | None = None,
        *,
        on_first_use: bool = False,
    ) -> Entry:
        now = wall_ms()
        expires_at = None if ttl is None else now + ttl * SECOND
        belongings, keys = self.factory.belongings(), keys_of(sandbox)
        entry = Entry(sandbox, parent, on_first_use, now, now, expires_at, *belongings, keys)
        self._name_events(entry)
        return entry

    def _name_events(self, entry: Entry) -> None:
        """Give the events of a sandbox ids that no earlier event had."""
        entry.incarnation = f"{self._started:x}-{next(self._begun)}"
        entry.origin_events = entry.sandbox.events.raised


def _too_many(message: str) -> Conflict:
    return Conflict.at("name", message, "too_many_sandboxes")


def _none(name: str, error: Refusal) -> NotFound:
    """404 instead of the refusal to create a sandbox, which the request did not ask for."""
    return NotFound(f"There is no sandbox {name}. {error.message}", code="sandbox_not_found")
