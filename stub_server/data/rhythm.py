"""Random times: when Brazilians buy, how long until they pay or ask for a refund, and office hours.

All times are epoch milliseconds in UTC; the daily and weekly shape follows Brasília time, which has
been UTC-3 without daylight saving since 2019.
"""

import math
from random import Random

from ..core.clock import DAY, HOUR
from ..domain.calendar import BEHIND_UTC_MS, day_of, is_working_day
from .tables import table

YEAR = 365 * DAY
GROWTH_A_YEAR = 0.5

EPOCH_WEEKDAY = 3  # the epoch began on a Thursday, the week on Monday

# Delay of a payment: ten seconds at least; the rest is log-normal with its median at 2 min 30 s.
FASTEST = 10_000
MEDIAN = 150_000
SIGMA = 1.85


class Rhythm:
    """A period in which Brazilians buy: mild growth, quiet weekends, lunch and evening peaks."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start, self.end = start_ms, end_ms
        highest = max(table("habits")["hours"]) * max(table("habits")["week"])
        self._most = highest * self._growth(end_ms)

    def instant(self, rng: Random, low_ms: int, high_ms: int) -> int:
        """A likely instant between two."""
        while True:
            at = low_ms + int((high_ms - low_ms) * rng.random())
            if rng.random() * self._most < _demand(at) * self._growth(at):
                return at

    def _growth(self, at_ms: int) -> float:
        return 1 + GROWTH_A_YEAR * max(0, at_ms - self.start) / YEAR


def _demand(at_ms: int) -> float:
    """How much is bought in an hour of the week, in Brasília."""
    day, hour = divmod((at_ms - BEHIND_UTC_MS) // HOUR, 24)
    share: float = (
        table("habits")["hours"][hour] * table("habits")["week"][(day + EPOCH_WEEKDAY) % 7]
    )
    return share


def pay_delay(rng: Random, below: int) -> int:
    """Ms until a buyer pays: median 2.5 minutes, 95 % within the hour, always less than `below`
    (over ten seconds).
    """
    while True:
        delay = FASTEST + int((MEDIAN - FASTEST) * math.exp(SIGMA * rng.normalvariate(0, 1)))
        if delay < below:
            return delay


def moment(rng: Random, at_ms: int, sway_ms: int) -> int:
    """An instant at most `sway_ms` from another, mostly at an hour in which people buy."""
    hours, near = table("habits")["hours"], at_ms
    for _ in range(32):
        near = at_ms + int((2 * rng.random() - 1) * sway_ms)
        if rng.random() * max(hours) < hours[(near - BEHIND_UTC_MS) % DAY // HOUR]:
            break
    return near


def bank_morning(rng: Random, at_ms: int) -> int:
    """When a bank slip that was paid at an instant clears: on the morning of the next working day,
    in Brasília.
    """
    return _on_working_day(rng, day_of(at_ms) + 1, 6, 4)


def office_hour(rng: Random, at_ms: int) -> int:
    """A random instant between 9:00 and 18:00 in Brasília, on the day of an instant or the next
    working day.
    """
    return _on_working_day(rng, day_of(at_ms), 9, 9)


def refund_hour(rng: Random, paid_ms: int) -> int:
    """When a payment is refunded: in office hours, one to seven days later, as consumer law gives
    to regret it.

    Most of them early. Never are all banks closed on five days in a row.
    """
    day = day_of(paid_ms)
    open_days = [after for after in range(day + 2, day + 7) if is_working_day(after)]
    return _on_working_day(rng, open_days[int(len(open_days) * rng.random() ** 2)], 9, 9)


def _on_working_day(rng: Random, day: int, first_hour: int, hours: int) -> int:
    """In these hours of a day since the epoch or, when banks are closed on it, of the next one."""
    while not is_working_day(day):
        day += 1
    return day * DAY + BEHIND_UTC_MS + first_hour * HOUR + int(rng.random() * hours * HOUR)
