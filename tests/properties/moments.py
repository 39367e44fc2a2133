"""Times in ms and the arithmetic of billing periods, made again for the model so that it can disagree."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
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


def later(anchor: int, unit: str, count: int) -> int:
    """`count` units after an anchor; a month keeps the day of the anchor or ends at the month's last."""
    if unit in ("day", "week"):
        return anchor + count * DAY * (7 if unit == "week" else 1)
    start = moment(anchor)
    months = start.year * 12 + start.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    day = min(start.day, monthrange(year, month + 1)[1])
    return anchor + round((start.replace(year=year, month=month + 1, day=day) - start) / timedelta(milliseconds=1))
