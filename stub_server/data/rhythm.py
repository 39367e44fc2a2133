"""Random times: when Brazilians buy, how long until they pay or ask for a refund, and office hours.

All times are epoch milliseconds in UTC; the daily and weekly shape follows Brasília time, which has been UTC-3 without
daylight saving since 2019.
"""

import math
from bisect import bisect
from itertools import accumulate, pairwise
from random import Random

from ..domain.calendar import is_working_day
from ..kernel.clock import DAY, HOUR

YEAR = 365 * DAY
BRASILIA = -3 * HOUR
GROWTH_A_YEAR = 0.5

# Hours 0 to 23 in Brasília: quiet nights, lunch from 12 to 14, evenings from 19 to 22.
HOURS = (
    2.2, 1.2, 0.7, 0.5, 0.5, 0.8, 1.6, 2.8, 4.0, 4.8, 5.2, 5.8,
    8.0, 7.6, 5.4, 5.0, 5.0, 5.2, 6.0, 8.2, 9.0, 8.8, 6.4, 4.0,
)  # fmt: skip
BUSIEST = max(HOURS)
# Monday to Sunday; the epoch began on a Thursday.
WEEK = (1.06, 1.08, 1.05, 1.03, 0.96, 0.72, 0.76)
EPOCH_WEEKDAY = 3
WEEK_HOURS = tuple(day * hour for day in WEEK for hour in HOURS)

# Delay of a payment: ten seconds at least; the rest is log-normal with its median at 2 min 30 s.
FASTEST = 10_000
MEDIAN = 150_000
SIGMA = 1.85


class Rhythm:
    """The hours of a period, weighted by how much Brazilians buy in them: mild growth, quiet weekends, lunch and
    evening peaks. A share between 0 and 1 stands for an instant between start and end.
    """

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start, self.end = start_ms, end_ms
        first = (start_ms + BRASILIA) // HOUR
        limits: list[int] = [start_ms, *range((first + 1) * HOUR - BRASILIA, end_ms, HOUR), end_ms]
        self._starts = limits[:-1]
        self._lengths = [after - before for before, after in pairwise(limits)]
        begin = (first + 24 * EPOCH_WEEKDAY) % len(WEEK_HOURS)
        a_day = GROWTH_A_YEAR / YEAR
        self._weights: list[float] = [
            WEEK_HOURS[(begin + hour) % len(WEEK_HOURS)] * (1 + a_day * (at - start_ms)) * length / HOUR
            for hour, (at, length) in enumerate(zip(self._starts, self._lengths, strict=True))
        ]
        self._sums = [0.0, *accumulate(self._weights)]
        self._total = self._sums.pop()

    def at(self, share: float) -> int:
        """The instant before which `share` of the period's purchases are made."""
        drawn = share * self._total
        hour = bisect(self._sums, drawn, 1) - 1
        into = int((drawn - self._sums[hour]) / self._weights[hour] * self._lengths[hour])
        # Rounding may give the hour's end.
        return self._starts[hour] + min(max(into, 0), self._lengths[hour] - 1)

    def share(self, at_ms: int) -> float:
        """The share of the period's purchases that are made before an instant."""
        if not self.start <= at_ms < self.end:
            return 0.0 if at_ms < self.start else 1.0
        hour = bisect(self._starts, at_ms) - 1
        done = (at_ms - self._starts[hour]) / self._lengths[hour] * self._weights[hour]
        return (self._sums[hour] + done) / self._total


def pay_delay(rng: Random, below: int = DAY) -> int:
    """Ms until a buyer pays: median 2.5 minutes, 95 % within the hour, always less than `below` (over ten seconds)."""
    while True:
        delay = FASTEST + int((MEDIAN - FASTEST) * math.exp(SIGMA * rng.normalvariate(0, 1)))
        if delay < below:
            return delay


def moment(rng: Random, at_ms: int, sway_ms: int) -> int:
    """An instant at most `sway_ms` from another, mostly at an hour in which people buy."""
    near = at_ms
    for _ in range(32):
        near = at_ms + int((2 * rng.random() - 1) * sway_ms)
        if rng.random() * BUSIEST < HOURS[(near + BRASILIA) % DAY // HOUR]:
            break
    return near


def bank_morning(rng: Random, at_ms: int) -> int:
    """When a bank slip that was paid at an instant clears: on the morning of the next working day, in Brasília."""
    return _on_working_day(rng, (at_ms + BRASILIA) // DAY + 1, 6, 4)


def office_hour(rng: Random, at_ms: int) -> int:
    """A random instant between 9:00 and 18:00 in Brasília, on the day of an instant or the next working day."""
    return _on_working_day(rng, (at_ms + BRASILIA) // DAY, 9, 9)


def office_hour_before(rng: Random, at_ms: int) -> int:
    """As `office_hour`, on the last working day before the day of an instant."""
    return _on_working_day(rng, (at_ms + BRASILIA) // DAY - 1, 9, 9, -1)


def refund_hour(rng: Random, paid_ms: int) -> int:
    """When a payment is refunded: in office hours, one to seven days later, as consumer law gives to regret it.

    Most of them early. Never are all banks closed on five days in a row.
    """
    day = (paid_ms + BRASILIA) // DAY
    open_days = [after for after in range(day + 2, day + 7) if is_working_day(after)]
    return _on_working_day(rng, open_days[int(len(open_days) * rng.random() ** 2)], 9, 9)


def _on_working_day(rng: Random, day: int, first_hour: int, hours: int, step: int = 1) -> int:
    """In these hours of a day since the epoch or, when banks are closed on it, of the nearest one in a direction."""
    while not is_working_day(day):
        day += step
    return day * DAY - BRASILIA + first_hour * HOUR + int(rng.random() * hours * HOUR)
