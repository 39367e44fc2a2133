"""Draws many valid CPFs a second: check digits from tables of partial sums instead of digit loops.

The 9th digit of a CPF is the fiscal region of the state that issued it (Receita Federal); the eight before it are
drawn with replacement, as real ones repeat digits.
"""

from __future__ import annotations

import random


class CpfMaker:
    """Draws CPFs of a fiscal region. Building one costs two tables of ten thousand sums."""

    __slots__ = ("_first", "_high", "_low", "_text")

    def __init__(self) -> None:
        quads = [(n // 1000, n // 100 % 10, n // 10 % 10, n % 10) for n in range(10_000)]
        # The first check digit weighs the digits 10, 9, … 2; the second 11, 10, … 2, which is the same plus each digit.
        self._high = [(10 * a + 9 * b + 8 * c + 7 * d, a + b + c + d) for a, b, c, d in quads]
        self._low = [(6 * a + 5 * b + 4 * c + 3 * d, a + b + c + d) for a, b, c, d in quads]
        self._first = [0, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1]
        self._text = [f"{n:04d}" for n in range(10_000)]

    def draw(self, rng: random.Random, region: int) -> str:
        """Eleven digits, unmasked."""
        high, low = int(rng.random() * 10_000), int(rng.random() * 10_000)
        if high == low == 1111 * region:
            return self.draw(rng, region)  # eleven equal digits pass the checksum, but are not a CPF
        high_sum, high_plain = self._high[high]
        low_sum, low_plain = self._low[low]
        weighed = high_sum + low_sum + 2 * region
        first = self._first[weighed % 11]
        second = self._first[(weighed + high_plain + low_plain + region + 2 * first) % 11]
        return f"{self._text[high]}{self._text[low]}{region}{first}{second}"
