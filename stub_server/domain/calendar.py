"""Billing calendar: period ends, lead, grace and monthly value of a plan. Instants are UTC epoch milliseconds.

Days and months are those of Brasília, three hours behind UTC: since 2019 the country has no daylight saving time.
"""

from calendar import isleap
from datetime import date
from fractions import Fraction
from functools import lru_cache

DAY_MS = 86_400_000
BEHIND_UTC_MS = 3 * 3_600_000
LONGEST_LEAD_MS = 3 * DAY_MS
LONGEST_GRACE_MS = 7 * DAY_MS

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_MS, _END_MS = -(_EPOCH_DAY - 1) * DAY_MS, (date.max.toordinal() + 1 - _EPOCH_DAY) * DAY_MS
_OUTSIDE = "The period ends outside the years 1 to 9999."
_DAYS = {"day": 1, "week": 7}
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = {"month": 1, "year": 12}
_ABOUT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@lru_cache(maxsize=1024)  # a renewal needs the same end several times
def add_interval(anchor_ms: int, interval: str, count: int, periods: int) -> int:
    """The end of the `periods`-th period of `count` intervals that began at the anchor, at the anchor's time of day.

    Day, month and time of day are those of Brasília: bought on 28 February at 22:30 there ends on 28 March at 22:30.
    A month too short for the anchor's day ends on its last day, and later months use the anchor's day again:
    always calculate from the anchor, never from the last end. `interval`: day | week | month | year, else ValueError.
    Raises OverflowError outside the years 1 to 9999, which no timestamp of the service can show.
    """
    _known(interval)
    steps = count * periods
    try:
        if interval in _DAYS:
            end = anchor_ms + steps * _DAYS[interval] * DAY_MS
        else:
            day, time_of_day = divmod(anchor_ms - BEHIND_UTC_MS, DAY_MS)
            month, nth = _month_of(day)
            before, length = _month(month + steps * _MONTHS[interval])
            end = (before + min(nth, length)) * DAY_MS + time_of_day + BEHIND_UTC_MS
    except (ValueError, OverflowError) as cause:
        raise OverflowError(_OUTSIDE) from cause
    if not _FIRST_MS <= end < _END_MS:
        raise OverflowError(_OUTSIDE)
    return end


def interval_ms(interval: str, count: int) -> int:
    """About how long a period is: a month counts 30 days, a year 365. For lead and grace, never for period ends."""
    _known(interval)
    return _ABOUT_DAYS[interval] * count * DAY_MS


@lru_cache(maxsize=256)
def lead_ms(interval: str, count: int) -> int:
    """How long before a period's end its renewal order is made: half the period, at most three days."""
    return min(LONGEST_LEAD_MS, interval_ms(interval, count) // 2)


@lru_cache(maxsize=256)
def grace_ms(interval: str, count: int) -> int:
    """How long after a period's end a renewal may still be paid: the period, at most seven days."""
    return min(LONGEST_GRACE_MS, interval_ms(interval, count))


def monthly_cents(amount_cents: int, interval: str, count: int) -> Fraction:
    """A recurring amount per month of 30 days (a year is twelve of them), not rounded."""
    _known(interval)
    if interval in _DAYS:
        return Fraction(amount_cents * 30, _DAYS[interval] * count)
    return Fraction(amount_cents, _MONTHS[interval] * count)


def _known(interval: str) -> None:
    if interval not in _ABOUT_DAYS:
        raise ValueError(f"{interval!r} is no billing interval.")


@lru_cache(maxsize=4096)
def _month_of(day: int) -> tuple[int, int]:
    """The month of a day since 1970, counted from the year 0, and which day of it that is."""
    then = date.fromordinal(_EPOCH_DAY + day)
    return then.year * 12 + then.month - 1, then.day


@lru_cache(maxsize=1024)
def _month(number: int) -> tuple[int, int]:
    """The day since 1970 that comes before a month, and how many days the month has."""
    year, month = divmod(number, 12)
    length = 29 if month == 1 and isleap(year) else _MONTH_DAYS[month]
    return date(year, month + 1, 1).toordinal() - _EPOCH_DAY - 1, length
