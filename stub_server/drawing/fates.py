"""Draws in advance how a purchase turns out: how its first order ends, and how its renewals are paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from .draw import Weighted

PAID, LATE, LAPSE, CANCEL, ANY = "paid", "late", "lapse", "cancel", "any"
#: Percent of ending periods that are renewed in time, renewed late, left unpaid, and canceled.
IN_TIME, LATER, LAPSED, LEFT = 88.5, 5.5, 3.5, 2.5
STOPS = (LAPSED + LEFT) / 100
LATE_SHARE = LATER / (IN_TIME + LATER)
FOR_EVER = 60  # periods: more than any scenario seeds
PAYING = ("paid", "refunded", "partly")


class Fate(NamedTuple):
    """`outcome` is how the first order ends (`partly` is a partial refund).

    `renewals` are the outcomes of the periods in order; the last one repeats. `any` is in time or late at random.
    """

    outcome: str
    renewals: Sequence[str] = (ANY,)

    def renewal(self, cycle: int) -> str:
        """How the period after this one is paid."""
        return self.renewals[min(cycle, len(self.renewals) - 1)]

    @property
    def bills(self) -> float:
        """The highest number of renewal orders."""
        last = self.renewals[-1]
        return len(self.renewals) if last == LAPSE else len(self.renewals) - 1 if last == CANCEL else math.inf


#: How first orders end, in percent. Renewals are paid far more often, so that all orders together come to
#: paid 64, expired 21, canceled 4, refunded 4, failed 2, pending 5.
OUTCOMES = Weighted((("paid", 30), ("expired", 44), ("canceled", 9), ("refunded", 9), ("failed", 6.5), ("partly", 1.5)))


@lru_cache(maxsize=512)
def member(outcome: str, periods: int, end: str) -> Fate:
    """The fate of a buyer who pays for `periods` periods and then stops by `end`."""
    return Fate(outcome) if periods >= FOR_EVER else Fate(outcome, (ANY,) * periods + (end,))


def drawn(rng: Random) -> Fate:
    """A random fate."""
    outcome = OUTCOMES.draw(rng)
    return paying(rng, outcome) if outcome in PAYING else Fate(outcome)


def paying(rng: Random, outcome: str) -> Fate:
    """A random fate of a buyer who pays."""
    periods = int(math.log(1 - rng.random()) / math.log(1 - STOPS))
    return member(outcome, min(periods, FOR_EVER), LAPSE if rng.random() * (LAPSED + LEFT) < LAPSED else CANCEL)
