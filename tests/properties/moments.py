"""Times in ms and the arithmetic of billing periods, made again for the model so that it
can disagree.
"""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BRASILIA = -3 * HOUR  # and no daylight saving since 2019
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at: int) -> datetime:
    """A time in ms as a date-time."""
    return _EPOCH + timedelta(milliseconds=at)


def iso(at: int) -> str:
    """A time in ms as the API writes it."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def parse(text: str) -> int:
    """A time as the API writes it, in ms."""
    return round((datetime.fromisoformat(text) - _EPOCH) / timedelta(milliseconds=1))


def later(anchor: int, unit: str, count: int, zone: int = BRASILIA) -> int:
    """`count` units after an anchor; months keep the day that the anchor has in Brazil, or end at
    their last.
    """
    if unit in ("day", "week"):
        return anchor + count * DAY * (7 if unit == "week" else 1)
    start = moment(anchor + zone)
    months = start.year * 12 + start.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    day = min(start.day, monthrange(year, month + 1)[1])
    return anchor + round(
        (start.replace(year=year, month=month + 1, day=day) - start) / timedelta(milliseconds=1)
    )


def last_evening(now: int) -> int:
    """The next half past ten in the evening, in São Paulo, of a month's last day: in UTC the month
    is over.
    """
    first = moment(now + BRASILIA).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for months in (1, 2):
        year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
        midnight = first.replace(year=year, month=month + 1)
        evening = round((midnight - _EPOCH) / timedelta(milliseconds=1)) - BRASILIA - 90 * MINUTE
        if evening > now:
            return evening
    raise AssertionError("one of two months' ends is ahead")
