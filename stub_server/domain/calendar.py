"""Calendar of Brasília: ends of billing periods, lead, grace and monthly value of a plan; and
banking days.

Instants are UTC epoch milliseconds. Days and months are those of Brasília, three hours behind UTC:
since 2019 the country has no daylight saving time.
"""

from calendar import monthrange
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache

from ..core.clock import DAY, EARLIEST, LATEST

BEHIND_UTC_MS = 3 * 3_600_000

_EPOCH = date(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_OUTSIDE = "The period ends outside the years 1 to 9999."
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
# for lead and grace, never for the ends of periods
_ABOUT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

# Holidays by month and day: New Year, Tiradentes, Labour Day, Independence, Our Lady of Aparecida,
# All Souls, the Republic, Black Consciousness (Zumbi), Christmas.
FIXED = ((1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (11, 20), (12, 25))
# Days from Easter: Monday and Tuesday of Carnival, Good Friday, Corpus Christi.
MOVING = (-48, -47, -2, 60)


@lru_cache(maxsize=1024)  # a renewal needs the same end several times
def add_interval(anchor_ms: int, interval: str, count: int, periods: int) -> int:
    """The end of the `periods`-th period of `count` intervals that began at the anchor, at the
    anchor's time of day.

    Day, month and time of day are those of Brasília: bought on 28 February at 22:30 there ends on
    28 March at 22:30. A month too short for the anchor's day ends on its last day, and later months
    use the anchor's day again: always calculate from the anchor, never from the last end.
    Raises OverflowError outside the years 1 to 9999, which no timestamp of the service can show.
    """
    steps = count * periods
    if interval in _DAYS:
        end = anchor_ms + steps * _DAYS[interval] * DAY
    else:
        day, time_of_day = divmod(anchor_ms - BEHIND_UTC_MS, DAY)
        try:
            then = date.fromordinal(_EPOCH_DAY + day)
            year, month = divmod(then.year * 12 + then.month - 1 + steps * _MONTHS[interval], 12)
            last = date(year, month + 1, min(then.day, monthrange(year, month + 1)[1]))
        except (ValueError, OverflowError) as cause:
            raise OverflowError(_OUTSIDE) from cause
        end = (last.toordinal() - _EPOCH_DAY) * DAY + time_of_day + BEHIND_UTC_MS
    if not EARLIEST <= end <= LATEST:
        raise OverflowError(_OUTSIDE)
    return end


def lead_ms(interval: str, count: int) -> int:
    """How long before a period's end its renewal order is made: half the period, at most
    three days.
    """
    return min(3 * DAY, _ABOUT_DAYS[interval] * count * DAY // 2)


def grace_ms(interval: str, count: int) -> int:
    """How long after a period's end a renewal may still be paid: the period, at most seven days."""
    return min(7 * DAY, _ABOUT_DAYS[interval] * count * DAY)


def monthly_cents(amount_cents: int, interval: str, count: int) -> Fraction:
    """A recurring amount per month of 30 days (a year is twelve of them), not rounded."""
    if interval in _DAYS:
        return Fraction(amount_cents * 30, _DAYS[interval] * count)
    return Fraction(amount_cents, _MONTHS[interval] * count)


def day_of(instant: int) -> int:
    """The day of an instant (ms), counted from 1 January 1970 in Brasília."""
    return (instant - BEHIND_UTC_MS) // DAY


@lru_cache(maxsize=1024)
def is_working_day(day: int) -> bool:
    """Whether banks are open on a day, counted from 1 January 1970 in Brasília."""
    found = _EPOCH + timedelta(days=day)
    return found.isoweekday() < 6 and found not in _holidays(found.year)


@lru_cache(maxsize=64)
def _holidays(year: int) -> frozenset[date]:
    found = {date(year, *day) for day in FIXED}
    easter = _easter(year)
    if year < 2024:  # Law 14.759 of 2023
        found.remove(date(year, 11, 20))
    for days in MOVING:
        found.add(easter + timedelta(days=days))
    return frozenset(found)


def _easter(year: int) -> date:
    """Easter Sunday of the Gregorian calendar, by Oudin's rule: the Sunday after the paschal moon,
    counted from 28 March.
    """
    golden = year % 19
    century = year // 100
    moon = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    if moon == 29 or (moon == 28 and golden > 10):
        moon -= 1
    sunday = (year + year // 4 + moon + 2 - century + century // 4) % 7
    return date(year, 3, 28) + timedelta(days=moon - sunday)
