"""Claims about the billing calendar."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_server.core.clock import DAY as DAY_MS
from stub_server.domain import calendar

from ..support.banking import is_banking_day

INTERVALS = st.sampled_from(["day", "week", "month", "year"])
COUNTS = st.integers(1, 36)
INSTANTS = st.datetimes(datetime(1900, 1, 1), datetime(2400, 1, 1)).map(
    lambda moment: (moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
)


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
        ("2026-12-15T00:00:00.001Z", "month", 1, 1, "2027-01-15T00:00:00.001Z"),
        ("2028-02-29T12:00:00.000Z", "year", 1, 1, "2029-02-28T12:00:00.000Z"),
        ("2028-02-29T12:00:00.000Z", "year", 1, 4, "2032-02-29T12:00:00.000Z"),
        ("2028-02-28T12:00:00.000Z", "day", 1, 2, "2028-03-01T12:00:00.000Z"),
        ("2026-12-28T12:00:00.000Z", "week", 2, 1, "2027-01-11T12:00:00.000Z"),
        ("1969-12-31T23:59:59.999Z", "month", 1, 2, "1970-02-28T23:59:59.999Z"),
        ("2027-03-31T03:00:00.000Z", "month", 1, -1, "2027-02-28T03:00:00.000Z"),
        ("2027-03-31T00:00:00.000Z", "month", 1, 0, "2027-03-31T00:00:00.000Z"),
        # On 28 February at 22:30 in São Paulo: a month later there, though UTC says 1 March and 29
        # March.
        ("2027-03-01T01:30:00.000Z", "month", 1, 1, "2027-03-29T01:30:00.000Z"),
        ("2027-03-01T02:59:59.999Z", "month", 1, 1, "2027-03-29T02:59:59.999Z"),
        ("2027-03-01T03:00:00.000Z", "month", 1, 1, "2027-04-01T03:00:00.000Z"),
        ("2027-02-01T01:00:00.000Z", "month", 1, 1, "2027-03-01T01:00:00.000Z"),
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


def test_the_last_month_that_can_be_shown_is_reached() -> None:
    assert calendar.add_interval(ms("9999-11-30T00:00:00Z"), "month", 1, 1) == ms(
        "9999-12-30T00:00:00Z"
    )


@pytest.mark.parametrize(
    ("interval", "count", "lead_days", "grace_days"),
    [
        ("day", 1, 0.5, 1),
        ("day", 5, 2.5, 5),
        ("day", 7, 3, 7),
        ("week", 1, 3, 7),
        ("month", 1, 3, 7),
        ("year", 1, 3, 7),
    ],
)
def test_lead_is_half_a_period_up_to_three_days_and_grace_a_period_up_to_seven(
    interval: str, count: int, lead_days: float, grace_days: float
) -> None:
    assert calendar.lead_ms(interval, count) == lead_days * DAY_MS
    assert calendar.grace_ms(interval, count) == grace_days * DAY_MS


@given(INSTANTS, INTERVALS, COUNTS)
def test_a_renewal_is_made_within_its_own_period(anchor: int, interval: str, count: int) -> None:
    end = calendar.add_interval(anchor, interval, count, 1)
    assert anchor < end - calendar.lead_ms(interval, count) < end


@pytest.mark.parametrize(
    ("amount", "interval", "count", "monthly"),
    [
        (4990, "month", 1, 4990),
        (100, "day", 1, 3000),
        (100, "day", 30, 100),
        (700, "week", 1, 3000),
        (12000, "year", 1, 1000),
        (49700, "year", 1, Fraction(49700, 12)),
        (13473, "month", 3, 4491),
        (1, "month", 2, Fraction(1, 2)),
        (3, "month", 2, Fraction(3, 2)),
        (18, "year", 1, Fraction(3, 2)),
        (1000, "week", 3, Fraction(10000, 7)),
    ],
)
def test_monthly_worth_is_of_30_days_and_not_rounded(
    amount: int, interval: str, count: int, monthly: int | Fraction
) -> None:
    assert calendar.monthly_cents(amount, interval, count) == monthly


def test_banks_are_open_on_the_days_of_their_own_calendar() -> None:
    """From the year of the newest holiday to the end of the century."""
    first, last = date(2024, 1, 1), date(2099, 12, 31)
    since_1970 = (first - date(1970, 1, 1)).days
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    assert [] == [
        day
        for number, day in enumerate(days, since_1970)
        if calendar.is_working_day(number) != is_banking_day(day)
    ]
