"""Days on which Brazilian banks are closed: the national holidays, Carnival and Corpus Christi, and every weekend."""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache

# Month and day: New Year, Tiradentes, Labour Day, Independence, Our Lady of Aparecida, All Souls, the Republic, Black
# Consciousness (Zumbi), Christmas.
FIXED = ((1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (11, 20), (12, 25))
ZUMBI, ZUMBI_SINCE = (11, 20), 2024  # a national holiday by Law 14.759 of 2023
# Days from Easter: Monday and Tuesday of Carnival, Good Friday, Corpus Christi.
MOVING = (-48, -47, -2, 60)
SATURDAY = 5
_EPOCH = date(1970, 1, 1)


@lru_cache(maxsize=1024)
def is_working_day(day: int) -> bool:
    """Whether banks are open on a day, counted from 1 January 1970 in Brasília."""
    found = _EPOCH + timedelta(days=day)
    return found.weekday() < SATURDAY and found not in _holidays(found.year)


@lru_cache(maxsize=64)
def _holidays(year: int) -> frozenset[date]:
    fixed = {date(year, *day) for day in FIXED if day != ZUMBI or year >= ZUMBI_SINCE}
    return frozenset(fixed | {_easter(year) + timedelta(days=days) for days in MOVING})


def _easter(year: int) -> date:
    """Easter Sunday of the Gregorian calendar, by the rule of Meeus, Jones and Butcher."""
    century, of_century = divmod(year, 100)
    golden = year % 19
    moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - moon - of_century % 4) % 7
    month, day = divmod(moon + sunday - 7 * ((golden + 11 * moon + 22 * sunday) // 451) + 114, 31)
    return date(year, month, day + 1)
