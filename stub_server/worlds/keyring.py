"""Which world an API key is of: found by the key alone, without looking through all worlds."""

from collections.abc import Iterable, Iterator

from ..engine.sandbox import Sandbox

MOST = 100_000


def keys_of(sandbox: Sandbox) -> Iterator[str]:
    """What the API keys of a sandbox are found by: digests of private keys, and public keys."""
    for store in sandbox.stores.values():
        for name in ("digest", "public_key"):
            yield from map(str, store.api_keys.unique[name])


class Keyring:
    """Digests of private keys, and public keys, to the names of worlds.

    The first world to name a key has it: a copy of a world does not take its parent's keys away. It only tells where to
    look: whether a key serves, its world decides. Past `most` keys the oldest are forgotten; they still serve under
    their world's prefix or header.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._worlds: dict[str, str] = {}
        self._keys: dict[str, set[str]] = {}

    def world_of(self, key: str) -> str | None:
        """The world that a key's digest or public half belongs to."""
        return self._worlds.get(key)

    def add(self, world: str, keys: Iterable[str]) -> None:
        """Keys that a world has."""
        own = self._keys.setdefault(world, set())
        for key in keys:
            if key in self._worlds:
                continue
            if len(self._worlds) >= self._most:
                oldest = next(iter(self._worlds))
                self._keys[self._worlds.pop(oldest)].discard(oldest)
            self._worlds[key] = world
            own.add(key)

    def forget(self, world: str) -> None:
        """A world has gone, and its keys with it."""
        for key in self._keys.pop(world, ()):
            del self._worlds[key]

    def __len__(self) -> int:
        return len(self._worlds)
