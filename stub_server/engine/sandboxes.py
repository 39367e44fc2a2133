"""The worlds of one server: chosen by name, made at first mention, reset to their seed."""

import re
from collections.abc import Callable

from ..kernel.problem import Missing
from .keyring import Keyring
from .sandbox import Sandbox

DEFAULT = "default"
MOST = 1_000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?").fullmatch

Seeder = Callable[[str, str, int, int | None], Sandbox]
"""(sandbox name, scenario, seed, now in ms or None for the server's) -> a freshly seeded world."""


def folded(name: str) -> str:
    """A sandbox's name without capitals; other alphabets stay as they are, for some of their capitals fold to ours."""
    return name.lower() if name.isascii() else name


class Sandboxes:
    """All worlds by name."""

    def __init__(self, seeder: Seeder, scenario: str, seed: int, *, open_names: bool) -> None:
        """`open_names`: a name that is mentioned for the first time makes its world; else it is unknown."""
        self._seed_world, self.scenario, self.seed, self._open = seeder, scenario, seed, open_names
        self.keyring = Keyring()
        self._worlds: dict[str, Sandbox] = {DEFAULT: seeder(DEFAULT, scenario, seed, None)}
        self.keyring.adopt(self._worlds[DEFAULT])
        self.default = self._worlds[DEFAULT]

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
        world = self._worlds[name] = self._seed_world(name, self.scenario, self.seed, None)
        self.keyring.adopt(world)
        return world

    def reset(self, name: str, scenario: str | None = None, seed: int | None = None, now: int | None = None) -> Sandbox:
        """Throw a world away and seed it anew; without scenario or seed with what it was seeded with last.

        `now` freezes the clock at that instant; without it the clock is as at the server's start.
        """
        old = self._worlds[name]
        world = self._seed_world(name, scenario or old.scenario, old.seed if seed is None else seed, now)
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

    def seeded_owner(self, unique: str, value: str) -> str | None:
        """The world that was seeded with an API key: everybody may know that one. Of made keys nothing is told."""
        world = self._worlds.get(self.keyring.world_of(value) or "")
        if world is None or world.store.api_keys.holder(unique, value) not in world.seeded_keys:
            return None
        return world.name

    def names(self) -> list[str]:
        """The worlds that exist."""
        return list(self._worlds)
