"""Columns over time, as numbers that a template draws as SVG; a table beside it says the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT, GAP = 1000.0, 64.0, 0.2  # of the picture, and the part of a column that is left free


class Piece(NamedTuple):
    """A part of a column: what it counts, and where it stands."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Row(NamedTuple):
    """One column in the table: its name, and a number for each kind."""

    label: str
    counts: tuple[int, ...]


class Chart(NamedTuple):
    """A picture of columns. Each kind is the name of a colour, too."""

    kinds: tuple[str, ...]
    rows: list[Row]
    pieces: list[Piece]

    @property
    def total(self) -> int:
        """Everything that was counted."""
        return sum(sum(row.counts) for row in self.rows)


def columns(kinds: Sequence[str], rows: list[Row]) -> Chart:
    """Columns of stacked pieces, the first kind at the bottom."""
    highest = max((sum(row.counts) for row in rows), default=0) or 1
    wide = WIDTH / max(1, len(rows))
    pieces = []
    for place, row in enumerate(rows):
        base = HEIGHT
        for kind, count in zip(kinds, row.counts, strict=True):
            if count:
                high = max(2.0, count / highest * (HEIGHT - 4))
                base -= high
                pieces.append(Piece(kind, place * wide + wide * GAP / 2, base, wide * (1 - GAP), high))
    return Chart(tuple(kinds), rows, pieces)
