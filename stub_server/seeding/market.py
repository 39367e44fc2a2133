"""Where seeded purchases happen: the merchant, what is for sale since when, and what has been told of it."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from ..contract.document import Lifecycle
from ..domain.orders import Seller
from ..kernel.record import NOTHING_BESIDE, Beside, Body
from ..kernel.timers import Later
from .draw import Weighted


class Told(NamedTuple):
    """An event of the seeded past, with the record as it was then; `beside` is what stands next to it."""

    at: int
    type: str
    table: str
    public: Body
    hidden: Body
    beside: Beside
    project: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan for sale, at a share of all sales, between `opens` and `closes` (ms).

    `stopped` is when its project was suspended or archived, and `archived` which of the two; None while it is active.
    """

    project: Body
    plan: Body
    share: float
    opens: int
    closes: int
    stopped: int | None
    archived: bool
    bumps: tuple[tuple[str, float], ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Market:
    """`since` is the ms from which on events are told. `due` and `told` collect what purchases leave behind."""

    now: int
    since: int
    seller: Seller
    blank: Body
    orders: Lifecycle
    banks: Weighted[tuple[str, str]]
    due: list[Later] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def bank_of(self, document: str) -> tuple[str, str]:
        """Where the holder of a document has his account: ISPB and name, the same for every payment."""
        share = crc32(document.encode()) / 2**32
        return self.banks.items[bisect(self.banks.cumulative, share * self.banks.total)]

    def tell(
        self,
        at: int,
        type_: str,
        table: str,
        public: Body,
        hidden: Body,
        beside: Beside = NOTHING_BESIDE,
        project: str | None = None,
    ) -> None:
        """Remember an event, if it is recent enough for somebody to have listened."""
        if at >= self.since:
            self.told.append(Told(at, type_, table, public, hidden, beside, project))

    def later(self, at: int, job: str, subject: str) -> None:
        """Leave a job to the clock."""
        self.due.append((at, job, subject))
