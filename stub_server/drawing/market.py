"""Offers: plans for sale, and between which times."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernel.record import Body


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan for sale, at a share of all sales, between `opens` and `closes` (ms).

    `stopped` is when its project is suspended or archived; None while it stays active.
    """

    project: Body
    plan: Body
    share: float
    opens: int
    closes: int
    stopped: int | None
    bumps: tuple[tuple[str, float], ...]
    sources: tuple[str, ...]
