"""The day on which a boleto is due, by the rules of the banks and apart from the server's
own calculation.
"""

from datetime import UTC, date, datetime, timedelta, timezone

BRASILIA = timezone(timedelta(hours=-3))
HOLIDAYS = ("01-01", "04-21", "05-01", "09-07", "10-12", "11-02", "11-15", "11-20", "12-25")
# The paschal full moon by the golden number, 1900 to 2199; Easter is the Sunday after it.
MOONS = (
    "04-14", "04-03", "03-23", "04-11", "03-31", "04-18", "04-08", "03-28", "04-16", "04-05",
    "03-25", "04-13", "04-02", "03-22", "04-10", "03-30", "04-17", "04-07", "03-27",
)  # fmt: skip
CARNIVAL, TUESDAY, GOOD_FRIDAY, CORPUS_CHRISTI = -48, -47, -2, 60


def easter(year: int) -> date:
    """Easter Sunday."""
    moon = date.fromisoformat(f"{year}-{MOONS[year % 19]}")
    return moon + timedelta(days=7 - (moon.weekday() + 1) % 7)


def is_banking_day(day: date) -> bool:
    """Monday to Friday, without national holidays and those that move with Easter."""
    moving = (CARNIVAL, TUESDAY, GOOD_FRIDAY, CORPUS_CHRISTI)
    closed = f"{day:%m-%d}" in HOLIDAYS or (day - easter(day.year)).days in moving
    return day.weekday() < 5 and not closed


def boleto_due(created: datetime) -> datetime:
    """The last second of the third banking day in Brasília after a boleto's creation."""
    day = created.astimezone(BRASILIA).date()
    left = 3
    while left:
        day += timedelta(days=1)
        left -= is_banking_day(day)
    return _last_second(day)


def banking_day_from(instant: datetime) -> datetime:
    """The last second of the first banking day in Brasília that is not before the day of
    an instant.
    """
    day = instant.astimezone(BRASILIA).date()
    while not is_banking_day(day):
        day += timedelta(days=1)
    return _last_second(day)


def _last_second(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=BRASILIA).astimezone(UTC)
