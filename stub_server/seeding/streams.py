"""Separate streams of luck, so that a change in one table of a world does not reshuffle the others."""

from __future__ import annotations

import hashlib
from random import Random

from ..kernel.ids import BASE62, code_text, uuid_text


def stream(seed: int, *names: str) -> Random:
    """The stream of this name; on every machine and every Python the same."""
    return Random("/".join((str(seed), *names)))


class Numbered:
    """A stream for each number: what happens under one number does not depend on how many others there are."""

    __slots__ = ("_base", "_random")

    def __init__(self, seed: int, *names: str) -> None:
        digest = hashlib.sha256("/".join((str(seed), *names)).encode()).digest()
        self._base = int.from_bytes(digest[:16], "big")
        self._random = Random()

    def at(self, number: int) -> Random:
        """The stream of this number; it is the same object for every number, so only one is used at a time."""
        # What Random.seed does with a whole number, without asking first what it was given.
        super(Random, self._random).seed(self._base + number)
        return self._random


def uuid(rng: Random) -> str:
    """A record's id."""
    return uuid_text(rng.getrandbits(128))


# Two characters at a time halve the work of inventing a million codes.
_PAIRS62 = tuple(a + b for a in BASE62 for b in BASE62)
_HALF = (1 << 48) - 1


def base36(rng: Random) -> str:
    """Ten digits and capital letters: the code of an order or a subscription."""
    return code_text(rng.getrandbits(96))


def base62(rng: Random) -> str:
    """Eleven digits and letters: the invented end of a payment's name."""
    bits, pairs = rng.getrandbits(96), _PAIRS62
    last, first = bits >> 48, bits & _HALF
    return (
        f"{pairs[first % 3844]}{pairs[first // 3844 % 3844]}{pairs[first // 14776336 % 3844]}"
        f"{pairs[last % 3844]}{pairs[last // 3844 % 3844]}{BASE62[last // 14776336 % 62]}"
    )
