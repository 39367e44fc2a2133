"""Generations: of all sandboxes that ever have one name, each has credentials of its own.

Tokens, seeded keys, the control key and pay links are made from a sandbox's name and generation. A
new generation ends all of them at once.
"""

from hashlib import sha256
from secrets import token_hex

from ...settings import Settings

_BYTES = 8  # of a generation


class Generations:
    """Draws the generations of one server's sandboxes.

    On a public server they are random. On a plain one each follows from the seed, the name and the
    one before, so that tests are repeatable; the first one of a name is empty.
    """

    def __init__(self, settings: Settings) -> None:
        self._is_public, self._seed = settings.is_public, settings.seed
        self._next: dict[str, str] = {}  # by the names of deleted sandboxes

    def first(self, name: str) -> str:
        """The generation of a new sandbox."""
        if self._is_public:
            return token_hex(_BYTES)
        return self._next.get(name, "")

    def after(self, name: str, generation: str) -> str:
        """The generation that follows another one."""
        if self._is_public:
            return token_hex(_BYTES)
        return sha256(f"{self._seed}/{name}/{generation}".encode()).hexdigest()[: 2 * _BYTES]

    def delete(self, name: str, generation: str) -> None:
        """The sandbox is deleted: the next one of its name has another generation."""
        self._next[name] = self.after(name, generation)

    def take_back(self, name: str, generation: str) -> None:
        """The sandbox was never used: the next one of its name has this generation again."""
        self._next[name] = generation
