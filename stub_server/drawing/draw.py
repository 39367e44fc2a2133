"""Random streams and draws from lists. Only `random()` is used: its stream is the same on every Python and machine."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

Item = TypeVar("Item")


def stream(seed: int, *names: str) -> Random:
    """The random stream of this name. Each subject has its own, so a change to one does not affect the others."""
    return Random("/".join((str(seed), *names)))


class Weighted(Generic[Item]):
    """A list to draw from in proportion to weights; `total` is their sum."""

    __slots__ = ("_sums", "items", "total")

    def __init__(self, pairs: Iterable[tuple[Item, float]]) -> None:
        kept = [(item, weight) for item, weight in pairs if weight > 0]
        self.items: list[Item] = [item for item, _ in kept]
        self._sums: list[float] = list(accumulate(weight for _, weight in kept))
        self.total = self._sums.pop()  # so a bisect with any number below it finds an item

    def draw(self, rng: Random) -> Item:
        """One item."""
        return self.items[bisect(self._sums, rng.random() * self.total)]


def pick(rng: Random, items: Sequence[Item]) -> Item:
    """One item, all equally likely."""
    return items[int(rng.random() * len(items))]


def sample(rng: Random, items: Sequence[Item], count: int) -> list[Item]:
    """`count` different items (all of them if there are fewer), in the order of `items`."""
    left = min(count, len(items))
    chosen: list[Item] = []
    for position, item in enumerate(items):
        if rng.random() * (len(items) - position) < left:
            chosen.append(item)
            left -= 1
    return chosen
