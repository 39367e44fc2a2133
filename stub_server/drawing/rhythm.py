"""Random times: when Brazilians buy, how long until they pay or ask for a refund, and office hours.

All times are epoch milliseconds in UTC; the daily and weekly shape follows Brasília time, which has been UTC-3 without
daylight saving since 2019.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from itertools import accumulate

from ..domain.holidays import is_working_day

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
BRT_MS = -3 * HOUR_MS
GROWTH_A_YEAR = 0.5

# Hours 0 to 23 in Brasília: quiet nights, lunch from 12 to 14, evenings from 19 to 22.
DAY = (
    2.2, 1.2, 0.7, 0.5, 0.5, 0.8, 1.6, 2.8, 4.0, 4.8, 5.2, 5.8,
    8.0, 7.6, 5.4, 5.0, 5.0, 5.2, 6.0, 8.2, 9.0, 8.8, 6.4, 4.0,
)  # fmt: skip
BUSIEST = max(DAY)
# Monday to Sunday; the epoch began on a Thursday.
WEEK = (1.06, 1.08, 1.05, 1.03, 0.96, 0.72, 0.76)
EPOCH_WEEKDAY = 3
WEEK_HOURS = tuple(day * hour for day in WEEK for hour in DAY)

# Delay of a payment: ten seconds at least; the rest is log-normal with its median at 2 min 30 s.
FASTEST_MS = 10_000
MEDIAN_MS = 150_000
SIGMA = 1.85
PIX_LIFETIME_MS = DAY_MS

# Consumer law gives seven days to regret an online purchase.
REFUND_FIRST_MS = DAY_MS
REFUND_LAST_MS = 7 * DAY_MS


class Rhythm:
    """The hours of a period, weighted by how much Brazilians buy in them: mild growth, quiet weekends, lunch and
    evening peaks. A share between 0 and 1 stands for an instant between start and end.
    """

    __slots__ = ("_befores", "_end", "_inner", "_lengths", "_starts", "_total", "_weights", "start")

    def __init__(self, start_ms: int, end_ms: int) -> None:
        if end_ms <= start_ms:
            raise ValueError("the end must come after the start")
        self.start, self._end = start_ms, end_ms
        self._starts, self._lengths, self._weights = _hours(start_ms, end_ms)
        sums = list(accumulate(self._weights))
        self._total, self._inner = sums[-1], sums[:-1]
        self._befores = [0.0, *self._inner]

    def at(self, share: float) -> int:
        """The instant before which `share` of the period's purchases are made."""
        drawn = share * self._total
        hour = bisect(self._inner, drawn)
        into = int((drawn - self._befores[hour]) / self._weights[hour] * self._lengths[hour])
        # Rounding may give the hour's end.
        return self._starts[hour] + min(max(into, 0), self._lengths[hour] - 1)

    def share(self, at_ms: int) -> float:
        """The share of the period's purchases that are made before an instant."""
        if not self.start <= at_ms < self._end:
            return 0.0 if at_ms < self.start else 1.0
        hour = bisect(self._starts, at_ms) - 1
        done = (at_ms - self._starts[hour]) / self._lengths[hour] * self._weights[hour]
        return (self._befores[hour] + done) / self._total


def _hours(start_ms: int, end_ms: int) -> tuple[list[int], list[int], list[float]]:
    """The hours of a period, the first and last cut to it: their starts, lengths and weights."""
    first = (start_ms + BRT_MS) // HOUR_MS
    edges = [start_ms, *range((first + 1) * HOUR_MS - BRT_MS, end_ms, HOUR_MS), end_ms]
    starts = edges[:-1]
    lengths = [after - before for before, after in zip(starts, edges[1:], strict=True)]
    begin = (first + 24 * EPOCH_WEEKDAY) % len(WEEK_HOURS)
    a_day = GROWTH_A_YEAR / YEAR_MS
    weights = [
        WEEK_HOURS[(begin + hour) % len(WEEK_HOURS)] * (1 + a_day * (at - start_ms)) * length / HOUR_MS
        for hour, (at, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    return starts, lengths, weights


def pay_delay_ms(rng: random.Random, *, below_ms: int = PIX_LIFETIME_MS) -> int:
    """How long a buyer takes to pay: median 2.5 minutes, 95 % within the hour, always less than `below_ms`."""
    if below_ms <= FASTEST_MS:
        raise ValueError("below_ms must be more than ten seconds")
    for _ in range(64):
        delay = FASTEST_MS + int((MEDIAN_MS - FASTEST_MS) * math.exp(SIGMA * rng.normalvariate(0, 1)))
        if delay < below_ms:
            return delay
    return FASTEST_MS + int((below_ms - FASTEST_MS) * rng.random())


def refund_delay_ms(rng: random.Random) -> int:
    """From payment to refund: one to seven days, most of them early."""
    luck = rng.random()
    return REFUND_FIRST_MS + int((REFUND_LAST_MS - REFUND_FIRST_MS) * luck * luck)


def moment(rng: random.Random, at_ms: int, sway_ms: int) -> int:
    """An instant at most `sway_ms` from another, mostly at an hour in which people buy."""
    near = at_ms
    for _ in range(32):
        near = at_ms + int((2 * rng.random() - 1) * sway_ms)
        if rng.random() * BUSIEST < DAY[(near + BRT_MS) % DAY_MS // HOUR_MS]:
            break
    return near


def bank_morning(rng: random.Random, at_ms: int) -> int:
    """When a bank slip that was paid at an instant clears: on the morning of the next working day, in Brasília."""
    return (
        _working_day((at_ms + BRT_MS) // DAY_MS + 1) * DAY_MS - BRT_MS + 6 * HOUR_MS + int(rng.random() * 4 * HOUR_MS)
    )


def office_hour(rng: random.Random, at_ms: int) -> int:
    """A random instant between 9:00 and 18:00 in Brasília, on the day of an instant or the next working day."""
    day = _working_day((at_ms + BRT_MS) // DAY_MS)
    return day * DAY_MS - BRT_MS + 9 * HOUR_MS + int(rng.random() * 9 * HOUR_MS)


def office_hour_before(rng: random.Random, at_ms: int) -> int:
    """As `office_hour`, on the last working day before the day of an instant."""
    day = (at_ms + BRT_MS) // DAY_MS - 1
    while not is_working_day(day):
        day -= 1
    return day * DAY_MS - BRT_MS + 9 * HOUR_MS + int(rng.random() * 9 * HOUR_MS)


def _working_day(day: int) -> int:
    """A day since the epoch or, when banks are closed on it, the next one on which they are open."""
    while not is_working_day(day):
        day += 1
    return day
