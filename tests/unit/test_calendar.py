"""Claims about the billing calendar."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from stub_server.domain import calendar

from ..support.banking import is_banking_day


def ms(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        milliseconds=1
    )


@pytest.mark.parametrize(
    ("anchor", "interval", "count", "periods", "end"),
    [
        ("2027-01-31T10:20:30.456Z", "month", 1, 1, "2027-02-28T10:20:30.456Z"),
        ("2028-01-31T10:20:30.456Z", "month", 1, 1, "2028-02-29T10:20:30.456Z"),
        ("2027-01-31T10:20:30.456Z", "month", 1, 2, "2027-03-31T10:20:30.456Z"),
        ("2027-01-31T00:00:00.000Z", "month", 3, 1, "2027-05-01T00:00:00.000Z"),
        ("2026-11-30T23:59:59.999Z", "month", 1, 3, "2027-02-28T23:59:59.999Z"),
        ("2028-02-29T12:00:00.000Z", "year", 1, 1, "2029-02-28T12:00:00.000Z"),
        ("2028-02-29T12:00:00.000Z", "year", 1, 4, "2032-02-29T12:00:00.000Z"),
        ("2026-12-28T12:00:00.000Z", "week", 2, 1, "2027-01-11T12:00:00.000Z"),
        ("2026-12-28T12:00:00.000Z", "day", 3, 2, "2027-01-03T12:00:00.000Z"),
        ("1969-12-31T23:59:59.999Z", "month", 1, 2, "1970-02-28T23:59:59.999Z"),
        # On 28 February at 22:30 in São Paulo: a month later there, though UTC says 1 March and 29
        # March.
        ("2027-03-01T01:30:00.000Z", "month", 1, 1, "2027-03-29T01:30:00.000Z"),
        ("2027-03-01T03:00:00.000Z", "month", 1, 1, "2027-04-01T03:00:00.000Z"),
        ("2028-03-01T01:00:00.000Z", "year", 1, 1, "2029-03-01T01:00:00.000Z"),
    ],
)
def test_period_ends_clamp_to_the_month_and_keep_anchor_day_and_time(
    anchor: str, interval: str, count: int, periods: int, end: str
) -> None:
    assert calendar.add_interval(ms(anchor), interval, count, periods) == ms(end)


@pytest.mark.parametrize(
    ("interval", "count"), [("year", 36), ("month", 36), ("week", 36), ("day", 36)]
)
def test_a_period_beyond_the_year_9999_is_an_overflow(interval: str, count: int) -> None:
    with pytest.raises(OverflowError, match="9999"):
        calendar.add_interval(ms("9999-12-31T00:00:00Z"), interval, count, 1)


@pytest.mark.parametrize(
    ("interval", "count", "cents"),
    [
        ("day", 3, 1_000),
        ("week", 1, Fraction(3_000, 7)),
        ("month", 2, 50),
        ("year", 1, Fraction(25, 3)),
    ],
)
def test_an_amount_per_month_is_that_of_thirty_days_or_a_twelfth_of_a_year(
    interval: str, count: int, cents: Fraction
) -> None:
    assert calendar.monthly_cents(100, interval, count) == cents


def test_banks_are_open_on_the_days_of_their_own_calendar() -> None:
    """From the year of the newest holiday to the end of the century."""
    first = date(2024, 1, 1)
    last = date(2099, 12, 31)
    since_1970 = (first - date(1970, 1, 1)).days
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    assert [] == [
        day
        for number, day in enumerate(days, since_1970)
        if calendar.is_working_day(number) != is_banking_day(day)
    ]
