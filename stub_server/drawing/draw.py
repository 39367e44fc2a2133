"""Random streams and draws from lists, by `random()` alone: its stream is the same on every Python and machine."""

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
    """A list to draw from in proportion to weights; `sums` are those of the weights up to each item."""

    def __init__(self, pairs: Iterable[tuple[Item, float]]) -> None:
        pairs = [*pairs]
        self.items = [item for item, _ in pairs]
        self.sums = [*accumulate(weight for _, weight in pairs)]

    def draw(self, rng: Random) -> Item:
        """One item."""
        return self.items[bisect(self.sums, rng.random() * self.sums[-1], 0, len(self.sums) - 1)]


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
