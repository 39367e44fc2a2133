"""The worlds of one server: chosen by name, made at first mention, reset to their seed."""

import re
from dataclasses import dataclass, field

from ..engine.log import Budget, Log
from ..engine.sandbox import DEFAULT, Rules, Sandbox
from ..kernel.clock import Clock
from ..kernel.ids import Ids
from ..kernel.problem import Missing
from ..seeding.own_keys import derive_keys, mark_seeded
from ..seeding.world import Seeding
from .keyring import Keyring

MOST = 1_000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?").fullmatch


@dataclass(frozen=True, slots=True)
class Origin:
    """What all worlds of a server begin with.

    `now` is ms and freezes their clocks; `history` is how many steps each keeps.
    """

    rules: Rules
    seeding: Seeding
    scenario: str
    seed: int
    now: int | None
    history: int
    secret: bytes = field(repr=False)


def folded(name: str) -> str:
    """A sandbox's name without capitals; other alphabets stay as they are, for some of their capitals fold to ours."""
    return name.lower() if name.isascii() else name


class Sandboxes:
    """All worlds by name."""

    def __init__(self, origin: Origin, *, open_names: bool) -> None:
        """`open_names`: a name that is mentioned for the first time makes its world; else it is unknown."""
        self._origin, self.scenario, self.seed, self._open = origin, origin.scenario, origin.seed, open_names
        self._budget, self.keyring = Budget(), Keyring()
        self._worlds: dict[str, Sandbox] = {DEFAULT: self._make(DEFAULT, origin.scenario, origin.seed, None)}
        self.keyring.adopt(self._worlds[DEFAULT])
        self.default = self._worlds[DEFAULT]

    def _make(self, name: str, scenario: str, seed: int, now: int | None) -> Sandbox:
        """A freshly seeded world; without `now` (ms) its clock is as at the server's start. Raises ScenarioError."""
        origin = self._origin
        clock, ids = Clock(origin.now if now is None else now), Ids(seed, origin.secret, name)
        sandbox = Sandbox(name, seed, scenario, origin.rules, clock, ids, Log(origin.history, self._budget))
        origin.seeding.fill(sandbox, origin.secret)
        mark_seeded(sandbox)
        derive_keys(sandbox, origin.secret)
        return sandbox

    def find(self, name: str) -> Sandbox | None:
        """A world that exists already."""
        return self._worlds.get(name) or self._worlds.get(folded(name))

    def choose(self, name: str) -> Sandbox:
        """The world of this name. Raises Missing for one that does not and may not exist."""
        world = self._worlds.get(name)
        if world is not None:
            return world
        name = folded(name)
        world = self._worlds.get(name)
        if world is not None:
            return world
        if _NAME(name) is None:
            raise Missing(
                "The name of a sandbox has 1 to 63 of the characters a-z, 0-9, -, _ and ., the first and the last of "
                "them a letter or a digit.",
                code="sandbox_not_found",
            )
        if not self._open or len(self._worlds) >= MOST:
            raise Missing(f"There is no sandbox {name}.", code="sandbox_not_found")
        world = self._worlds[name] = self._make(name, self.scenario, self.seed, None)
        self.keyring.adopt(world)
        return world

    def reset(self, name: str, scenario: str | None = None, seed: int | None = None, now: int | None = None) -> Sandbox:
        """Throw a world away and seed it anew; without scenario or seed with what it was seeded with last.

        `now` freezes the clock at that instant; without it the clock is as at the server's start.
        """
        old = self._worlds[name]
        world = self._make(name, scenario or old.scenario, old.seed if seed is None else seed, now)
        old.log.close()
        self._worlds[name] = world
        self.keyring.forget(name)
        self.keyring.adopt(world)
        if name == DEFAULT:
            self.default = world
        return world

    def forget(self, name: str) -> None:
        """Drop a world; the next mention of its name makes it anew. The default one stays."""
        if name != DEFAULT:
            world = self._worlds.pop(name, None)
            if world is not None:
                world.log.close()
                self.keyring.forget(name)

    def names(self) -> list[str]:
        """The worlds that exist."""
        return list(self._worlds)
