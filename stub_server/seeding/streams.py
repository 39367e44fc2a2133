"""Separate streams of luck, so that a change in one table of a world does not reshuffle the others."""

from __future__ import annotations

import hashlib
from random import Random

from ..kernel.ids import BASE36, BASE62, uuid_text


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
        self._random.seed(self._base + number)
        return self._random


def uuid(rng: Random) -> str:
    """A record's id."""
    return uuid_text(rng.getrandbits(128))


def base36(rng: Random, length: int = 10) -> str:
    """Digits and capital letters: the code of an order or a subscription."""
    return _digits(rng, BASE36, length)


def base62(rng: Random, length: int) -> str:
    """Digits and letters: the invented end of a payment's name."""
    return _digits(rng, BASE62, length)


def _digits(rng: Random, alphabet: str, length: int) -> str:
    base = len(alphabet)
    bits = rng.getrandbits(length * 7)
    text = []
    for _ in range(length):
        bits, digit = divmod(bits, base)
        text.append(alphabet[digit])
    return "".join(text)
