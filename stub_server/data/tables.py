"""The tables of `fixtures/catalogue/`: places, names, projects, prices and habits where Faker has
none or bad ones.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import accumulate
from random import Random
from typing import Any

from ..contract.source import fixture
from ..core.record import Body
from ..core.text import without_accents


@cache
def table(name: str) -> Body:
    """One table. Nobody may change it."""
    found: Body = fixture(f"catalogue/{name}.yaml")
    return found


class Shares:
    """Elements to draw by their shares, which are added up once.

    Faker adds them up at every draw.
    """

    def __init__(self, shares: Mapping[Any, float]) -> None:
        self.of = shares
        self._elements, self._sums = [*shares], [*accumulate(shares.values())]

    def draw(self, random: Random, count: int = 1) -> list[Any]:
        """Draw so many elements, each by its share."""
        return random.choices(self._elements, cum_weights=self._sums, k=count)


@cache
def shares(name: str, *path: str) -> Shares:
    """The elements of a table with their shares."""
    found: Any = table(name)
    for step in path:
        found = found[step]
    return Shares(found)


def pick(random: Random, *path: str) -> Any:
    """One element of a table, by the shares."""
    return shares(*path).draw(random)[0]


@lru_cache(maxsize=4096)  # people share few names
def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = without_accents(text.lower())
    return "".join(letter for letter in plain if letter.isascii() and letter.isalnum())
