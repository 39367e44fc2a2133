"""The worlds of one server: chosen by name, made, forked, reset and dropped, and never more than fit."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import count

from ..engine.journal import MOST_BYTES_IN_ALL as MOST_JOURNAL_BYTES
from ..engine.journal import Journal
from ..engine.log import Budget, Log
from ..engine.past import state_at
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.clock import SECOND, Clock, wall_ms
from ..kernel.ids import Ids
from ..kernel.problem import Conflict, Missing, detail
from ..kernel.slices import Lane
from ..scenarios.scenario import ScenarioError
from ..seeding.own_keys import derive_keys, mark_seeded
from .entry import Entry, Origin
from .inbox import MOST_BYTES_IN_ALL, Inbox
from .keyring import Keyring
from .names import NAMING, folded, is_name, made_up
from .snapshots import MOST_BYTES_IN_ALL as MOST_SNAPSHOT_BYTES
from .snapshots import Snapshots

MOST = 1_000


class Sandboxes:
    """All worlds by name."""

    def __init__(
        self, origin: Origin, *, open_names: bool, bell: Callable[[Sandbox], None] = lambda world: None
    ) -> None:
        """`open_names`: a name that is mentioned for the first time makes its world; else it is unknown.

        `bell` is rung for a world that is new or gone, and when something is due in one.
        """
        self._bell = bell
        self._origin, self.scenario, self.seed, self._open = origin, origin.scenario, origin.seed, open_names
        self._budget, self.keyring, self.lane = Budget(), Keyring(), Lane()
        self._started, self._begun = wall_ms(), 0
        self._for_inboxes, self._for_snapshots = Budget(MOST_BYTES_IN_ALL), Budget(MOST_SNAPSHOT_BYTES)
        self._for_journals = Budget(MOST_JOURNAL_BYTES)
        self._entries: dict[str, Entry] = {}
        self._named, self._turns = 0, count(1)  # how many names were made up, and how often worlds were used
        self.default = self._enter(self._make(DEFAULT, origin.scenario, origin.seed, None), None).world

    # -- finding

    def find(self, name: str) -> Sandbox | None:
        """A world that exists already."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        return None if entry is None or self._has_expired(entry) else entry.world

    def choose(self, name: str) -> Sandbox | None:
        """A world that exists already, which somebody uses now."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            return None
        entry.last_used_at, entry.turn = wall_ms(), next(self._turns)
        return entry.world

    async def mention(self, name: str) -> Sandbox:
        """The world of this name, which its first mention makes where names are open. Raises Missing."""
        world = self.choose(name)
        if world is not None:
            return world
        name = folded(name)
        if is_name(name) is None:
            raise Missing(f"The name of a sandbox has {NAMING}.", code="sandbox_not_found")
        if not self._open:
            raise Missing(f"There is no sandbox {name}. POST /_sandbox/sandboxes makes one.", code="sandbox_not_found")
        try:
            self._make_room()
            made = await self._begin(name, self.scenario, self.seed, None)
            world = self.choose(name)  # somebody else may have mentioned it meanwhile
            if world is not None:
                return world
            self._make_room()
        except (Conflict, Missing) as error:  # no operation was asked to make a world: there is none of this name
            raise Missing(f"There is no sandbox {name}. {error.message}", code="sandbox_not_found") from None
        return self._enter(made, None, mentioned=True).world

    def entry(self, name: str) -> Entry:
        """What is known of a world that exists. Raises Missing."""
        entry = self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            raise Missing(f"There is no sandbox {name[:63]}.", code="sandbox_not_found")
        return entry

    def inbox(self, world: Sandbox) -> Inbox:
        """What has arrived for a world. Raises Missing when it was dropped meanwhile."""
        return self.entry(world.name).inbox

    def entries(self, pattern: str = "*") -> list[Entry]:
        """The worlds whose name matches a glob, those made last first."""
        for entry in list(self._entries.values()):
            self._has_expired(entry)
        return [entry for name, entry in reversed(self._entries.items()) if fnmatchcase(name, pattern)]

    def seeded_owner(self, unique: str, value: str) -> str | None:
        """The world that was seeded with an API key: everybody may know that one. Of made keys nothing is told."""
        world = self.find(self.keyring.world_of(value) or "")
        if world is None or world.store.api_keys.holder(unique, value) not in world.seeded_keys:
            return None
        return world.name

    # -- making and dropping

    async def create(
        self, name: str | None, scenario: str | None, seed: int | None, now: int | None, ttl: int | None
    ) -> Entry:
        """A new world by request; without a name one is made. `ttl` is seconds. Raises Conflict, Missing."""
        name = self._free_name(name, "world")
        self._make_room()
        world = await self._begin(name, scenario or self.scenario, self.seed if seed is None else seed, now)
        self._free_name(name, "world")
        self._make_room()
        return self._enter(world, None, ttl=ttl)

    async def fork(
        self, parent: str, name: str | None, step: int | None, ttl: int | None, *, deliver: bool = False
    ) -> Entry:
        """A world with the past of another, up to one of its kept steps if asked. Raises Missing, Conflict.

        What happens in it is delivered if `deliver` says so; what happened before never is.
        """
        origin = self.entry(parent).world
        name = self._free_name(name, "fork")
        self._make_room()
        if step is None:
            world = origin.fork(name)
        else:
            world = await self.lane.in_slices(state_at(origin, step, name))
            self._free_name(name, "fork")
            self._make_room()
        derive_keys(world, self._origin.secret)
        if deliver:
            world.speak()
        return self._enter(world, origin.name, ttl=ttl)

    async def reset(
        self, name: str, scenario: str | None = None, seed: int | None = None, now: int | None = None
    ) -> Sandbox:
        """Throw a world away and seed it anew; without scenario or seed with what it was seeded with last.

        `now` freezes the clock at that instant; without it the clock is as at the server's start. Raises Missing.
        """
        old = self.entry(name).world
        world = await self._begin(name, scenario or old.scenario, old.seed if seed is None else seed, now)
        entry = self.entry(name)  # it may have been dropped meanwhile
        self._leave(entry.world)
        world.bell = self._bell
        self._bell(world)
        entry.clear()
        entry.world, entry.parent = world, None
        self.begin_anew(entry)
        self.keyring.forget(name)
        self.keyring.adopt(world)
        if name == DEFAULT:
            self.default = world
        return world

    def delete(self, name: str) -> None:
        """Drop a world. Raises Missing, and Conflict for the default one."""
        entry = self.entry(name)
        if entry.world.name == DEFAULT:
            message = "The default sandbox stays. POST /_sandbox/reset begins it anew."
            raise Conflict(message, code="sandbox_protected", details=[detail("name", "sandbox_protected", message)])
        self.forget(entry.world.name)

    def forget(self, name: str) -> None:
        """Drop a world, if it is there; the next mention of its name makes it anew. The default one stays."""
        if name != DEFAULT:
            entry = self._entries.pop(name, None)
            if entry is not None:
                self._leave(entry.world)
                entry.clear()
                self.keyring.forget(name)

    def names(self) -> Iterator[str]:
        """The names of the worlds that exist."""
        return iter(list(self._entries))

    def worlds(self) -> list[Sandbox]:
        """The worlds that exist."""
        return [entry.world for entry in self._entries.values()]

    def _leave(self, world: Sandbox) -> None:
        """Let go of a world: what it still had to do is not done any more."""
        world.is_gone = True
        world.log.close()
        world.journal.clear()
        self._bell(world)

    def _make(self, name: str, scenario: str, seed: int, now: int | None) -> Sandbox:
        """A freshly seeded world; without `now` (ms) its clock is as at the server's start. Raises ScenarioError."""
        sandbox = self._empty(name, scenario, seed, now)
        self._origin.seeding.fill(sandbox, self._origin.secret)
        return self._own(sandbox)

    def _copy(self, name: str, scenario: str, seed: int, now: int | None) -> Sandbox | None:
        """The same, where one like it is kept to be copied, which takes no time. Raises ScenarioError."""
        sandbox = self._empty(name, scenario, seed, now)
        return self._own(sandbox) if self._origin.seeding.copy(sandbox, self._origin.secret) else None

    def _empty(self, name: str, scenario: str, seed: int, now: int | None) -> Sandbox:
        origin = self._origin
        clock, ids = Clock(origin.now if now is None else now), Ids(seed, origin.secret, name)
        log, journal = Log(origin.history, self._budget), Journal(origin.journal, self._for_journals)
        return Sandbox(name, seed, scenario, origin.rules, clock, ids, log, journal=journal)

    def _own(self, sandbox: Sandbox) -> Sandbox:
        """A world that has just been filled, with seeded keys of its own."""
        origin = self._origin
        mark_seeded(sandbox)
        derive_keys(sandbox, origin.secret)
        sandbox.held = sandbox.events.raised
        return sandbox

    async def _begin(self, name: str, scenario: str, seed: int, now: int | None) -> Sandbox:
        """`_make` for a request, beside those of others, who go on being served.

        A scenario that cannot be used, or not any more, is refused. Raises Missing.
        """
        try:
            copy = self._copy(name, scenario, seed, now)
            if copy is not None:
                return copy
            return await self.lane.beside(lambda: self._make(name, scenario, seed, now))
        except ScenarioError as error:
            raise Missing(str(error), code="scenario_not_found") from None

    def _enter(self, world: Sandbox, parent: str | None, *, mentioned: bool = False, ttl: int | None = None) -> Entry:
        now = wall_ms()
        expires_at = None if ttl is None else now + ttl * SECOND
        entry = self._entries[world.name] = Entry(
            world,
            parent,
            mentioned,
            now,
            now,
            expires_at,
            Inbox(self._for_inboxes),
            Snapshots(self._for_snapshots),
            self._next_incarnation(),
            world.events.raised,
            next(self._turns),
        )
        self.keyring.adopt(world)
        world.bell = self._bell
        self._bell(world)
        return entry

    def begin_anew(self, entry: Entry) -> None:
        """The events of a world are others from here on: whoever follows them is told."""
        entry.incarnation, entry.origin_events = self._next_incarnation(), entry.world.events.raised

    def _next_incarnation(self) -> str:
        self._begun += 1
        return f"{self._started:x}-{self._begun}"

    def _free_name(self, name: str | None, prefix: str) -> str:
        """A name as it was asked for, or a new one. Raises Conflict for one that is taken."""
        if name is None:
            while True:
                self._named += 1
                made = made_up(prefix, self._named)
                if made not in self._entries:
                    return made
        name = folded(name)
        if self.find(name) is not None:
            message = f"There is a sandbox {name} already. DELETE /_sandbox/sandboxes/{name} drops it."
            raise Conflict(message, code="duplicate_sandbox", details=[detail("name", "duplicate_sandbox", message)])
        return name

    def _make_room(self) -> None:
        """Past the limit the longest unused of those that a mention made goes. Raises Conflict when there is none."""
        for entry in list(self._entries.values()):  # whose time is over gives its memory back to the next one
            self._has_expired(entry)
        if len(self._entries) < MOST:
            return
        mentioned = [entry for entry in self._entries.values() if entry.mentioned]
        if not mentioned:
            message = (
                f"There are {MOST} sandboxes, the most that a server keeps. DELETE /_sandbox/sandboxes/NAME frees one, "
                "and one that is made with ttl_seconds frees itself."
            )
            raise Conflict(message, code="too_many_sandboxes", details=[detail("name", "too_many_sandboxes", message)])
        self.forget(min(mentioned, key=lambda entry: entry.turn).world.name)

    def _has_expired(self, entry: Entry) -> bool:
        """Whether a world's time is over; it is dropped then."""
        if entry.expires_at is None or entry.expires_at > wall_ms():
            return False
        self.forget(entry.world.name)
        return True
