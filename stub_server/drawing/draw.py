"""Draws from weighted lists with `random()` only, whose stream is the same on every Python and machine."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Weighted(Generic[Item]):
    """A list to draw from in proportion to weights.

    `cumulative` ends one item early, so a bisect with any number below `total` stays inside `items`.
    """

    __slots__ = ("cumulative", "items", "total")

    def __init__(self, pairs: Iterable[tuple[Item, float]]) -> None:
        kept = [(item, weight) for item, weight in pairs if weight > 0]
        if not kept:
            raise ValueError("nothing to draw from")
        sums = list(accumulate(weight for _, weight in kept))
        self.items: list[Item] = [item for item, _ in kept]
        self.total: float = sums[-1]
        self.cumulative: list[float] = sums[:-1]

    def draw(self, rng: random.Random) -> Item:
        return self.items[bisect(self.cumulative, rng.random() * self.total)]


def pick(rng: random.Random, items: Sequence[Item]) -> Item:
    """One item, all equally likely."""
    return items[int(rng.random() * len(items))]


def sample(rng: random.Random, items: Sequence[Item], count: int) -> list[Item]:
    """`count` different items (all of them if there are fewer), in the order of `items`."""
    left = min(count, len(items))
    chosen: list[Item] = []
    for position, item in enumerate(items):
        if rng.random() * (len(items) - position) < left:
            chosen.append(item)
            left -= 1
    return chosen
