"""Draws in advance how a purchase turns out: how its first order ends, and how its renewals are paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from .draw import Weighted

PAID, LATE, LAPSE, CANCEL, ANY = "paid", "late", "lapse", "cancel", "any"
CARD = "credit_card"
#: Shares of first orders, where a plan takes all methods: what is paid again every few weeks is left to a card.
METHODS = {"pix": 43.5, CARD: 47.5, "boleto": 9}
METHODS_FOR_LONG = {"pix": 56.5, CARD: 29.5, "boleto": 14}  # of plans that are paid once or by the year
#: How first orders end, in percent. A provider that cannot open the charge fails a PIX; nobody cancels a boleto.
OUTCOMES = {
    "pix": Weighted(
        (("paid", 34), ("expired", 50), ("canceled", 9), ("refunded", 5), ("partly", 1.5), ("failed", 0.5))
    ),
    CARD: Weighted((("paid", 75.5), ("refunded", 10.5), ("partly", 2), ("failed", 12))),
    "boleto": Weighted((("paid", 38), ("expired", 56), ("refunded", 5), ("partly", 1))),
}
#: Shares of ending periods that nobody pays any more, and that end what was canceled: by card, and by PIX and boleto.
ENDS = {CARD: (0.01, 0.03), "pix": (0.055, 0.025), "boleto": (0.055, 0.025)}
LATE_SHARE = 0.06  # of the bills that are paid by PIX or boleto
DECLINED, RECOVERED = 0.03, 0.75  # of charges of cards at first, and of each further attempt at those of steady members
FOR_EVER = 60  # periods: more than any scenario seeds
PAYING = ("paid", "refunded", "partly")
#: Why a card is refused, in percent: at the first payment, and when a member's is charged again.
REFUSALS = Weighted((("card_declined", 58), ("card_limit_exceeded", 28), ("suspected_fraud", 8), ("card_expired", 6)))
REFUSALS_OF_MEMBERS = Weighted((("card_declined", 55), ("card_limit_exceeded", 33), ("card_expired", 12)))


class Fate(NamedTuple):
    """`outcome` is how the first order ends (`partly` is a partial refund).

    `renewals` are the outcomes of the periods in order; the last one repeats. `any` is in time, late or
    declined at first, at random.
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


@lru_cache(maxsize=512)
def member(outcome: str, periods: int, end: str) -> Fate:
    """The fate of a buyer who pays for `periods` periods and then stops by `end`."""
    return Fate(outcome) if periods >= FOR_EVER else Fate(outcome, (ANY,) * periods + (end,))


def drawn(rng: Random, method: str) -> Fate:
    """A random fate of a first order by a method."""
    outcome = OUTCOMES[method].draw(rng)
    return paying(rng, outcome, method) if outcome in PAYING else Fate(outcome)


def paying(rng: Random, outcome: str, method: str) -> Fate:
    """A random fate of a buyer who pays."""
    lapsed, left = ENDS[method]
    periods = int(math.log(1 - rng.random()) / math.log(1 - lapsed - left))
    return member(outcome, min(periods, FOR_EVER), LAPSE if rng.random() * (lapsed + left) < lapsed else CANCEL)
