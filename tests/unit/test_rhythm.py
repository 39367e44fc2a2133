"""Seeded time: when orders are placed, paid and refunded, and when people work."""

import random
import statistics
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from stub_server.data.rhythm import Rhythm, moment, office_hour, office_hour_before, pay_delay, refund_hour
from stub_server.domain.calendar import is_working_day
from stub_server.kernel.clock import DAY, HOUR

from ..support.banking import is_banking_day

END = int(datetime(2026, 11, 20, 14, 32, tzinfo=UTC).timestamp() * 1000)
START = END - 364 * DAY
BRASILIA = timezone(timedelta(hours=-3))
EPOCH_DAY = date(1970, 1, 1).toordinal()


def purchase_times(rng: random.Random, start: int, end: int, count: int) -> list[int]:
    """Instants in [start, end), sorted, in the rhythm of the period."""
    rhythm = Rhythm(start, end)
    return sorted(rhythm.instant(rng, start, end) for _ in range(count))


@pytest.fixture(scope="module")
def year() -> list[datetime]:
    times = purchase_times(random.Random(4), START, END, 60_000)
    return [datetime.fromtimestamp(at / 1000, BRASILIA) for at in times]


@pytest.mark.parametrize("length", [1, 999, HOUR, HOUR + 1, 3 * DAY, 365 * DAY])
def test_times_are_sorted_and_inside_the_period(length: int) -> None:
    times = purchase_times(random.Random(1), START, START + length, 500)
    assert len(times) == 500
    assert times == sorted(times)
    assert all(START <= at < START + length for at in times)


def test_lunch_and_evening_in_brasilia_are_the_peaks(year: list[datetime]) -> None:
    hours = Counter(at.hour for at in year)
    peaks = {hour for hour, _ in hours.most_common(5)}
    assert peaks == {12, 13, 19, 20, 21}
    assert hours[3] < hours[20] / 8


def test_weekends_dip(year: list[datetime]) -> None:
    days = Counter(at.weekday() for at in year)
    assert max(days[5], days[6]) < 0.85 * min(days[day] for day in range(5))


def test_sales_grow_mildly_over_a_year(year: list[datetime]) -> None:
    quarter = len(year) // 4
    span = year[-1] - year[0]
    first = sum(at < year[0] + span / 4 for at in year)
    last = sum(at > year[-1] - span / 4 for at in year)
    assert 1.2 < last / first < 1.6
    assert first < quarter < last


def test_half_pay_within_minutes_and_nearly_all_within_the_hour() -> None:
    rng = random.Random(2)
    delays = [pay_delay(rng) for _ in range(40_000)]
    assert 120_000 < statistics.median(delays) < 180_000
    assert 0.945 < sum(delay < HOUR for delay in delays) / len(delays) < 0.975
    assert min(delays) >= 10_000
    assert max(delays) < DAY


def test_payment_comes_before_a_short_expiry() -> None:
    rng = random.Random(2)
    assert all(10_000 <= pay_delay(rng, below=11_000) < 11_000 for _ in range(2_000))


def test_refunds_come_one_to_seven_days_later_in_office_hours() -> None:
    rng = random.Random(3)
    for hour in range(24 * 400):  # on every holiday of a year
        paid = START + hour * HOUR
        back = refund_hour(rng, paid)
        assert DAY < back - paid < 7 * DAY
        there = datetime.fromtimestamp(back / 1000, BRASILIA)
        assert 9 <= there.hour < 18
        assert is_working_day(there.toordinal() - EPOCH_DAY)


def test_a_moment_is_near_and_at_a_likely_hour() -> None:
    rng = random.Random(5)
    at = START + 3 * HOUR
    near = [moment(rng, at, 8 * HOUR) for _ in range(4_000)]
    assert all(abs(found - at) <= 8 * HOUR for found in near)
    hours = Counter(datetime.fromtimestamp(found / 1000, BRASILIA).hour for found in near)
    assert hours[12] > 5 * hours[5]
    assert len({found % 1000 for found in near}) > 900


def test_office_hours_are_nine_to_six_on_working_days() -> None:
    rng = random.Random(6)
    for day in range(60):
        at = START + day * DAY
        found = datetime.fromtimestamp(office_hour(rng, at) / 1000, BRASILIA)
        asked = datetime.fromtimestamp(at / 1000, BRASILIA)
        assert 9 <= found.hour < 18
        assert is_working_day(found.toordinal() - EPOCH_DAY)
        skipped = range(asked.toordinal() - EPOCH_DAY, found.toordinal() - EPOCH_DAY)
        assert not any(map(is_working_day, skipped))
        before = datetime.fromtimestamp(office_hour_before(rng, at) / 1000, BRASILIA)
        assert 9 <= before.hour < 18
        between = range(before.toordinal() - EPOCH_DAY, asked.toordinal() - EPOCH_DAY)
        assert [day for day in between if is_working_day(day)] == [between[0]]


@pytest.mark.parametrize(
    ("day", "is_open"),
    [
        ("2026-02-13", True), ("2026-02-16", False), ("2026-02-17", False), ("2026-02-18", True),  # Carnival
        ("2026-04-02", True), ("2026-04-03", False), ("2026-04-06", True),  # Good Friday
        ("2025-06-19", False), ("2026-06-04", False), ("2026-06-05", True),  # Corpus Christi
        ("2023-11-20", True), ("2024-11-20", False), ("2026-11-20", False),  # Zumbi, since 2024
        ("2026-09-07", False), ("2026-10-12", False), ("2026-11-02", False), ("2026-12-25", False),
        ("2027-01-01", False), ("2027-01-02", False), ("2027-01-03", False), ("2027-01-04", True),
    ],
)  # fmt: skip
def test_banks_are_closed_on_weekends_and_holidays(day: str, is_open: bool) -> None:
    assert is_open == is_working_day(date.fromisoformat(day).toordinal() - EPOCH_DAY)


def test_easter_moves_the_holidays_of_every_year_as_the_full_moon_does() -> None:
    days = map(date.fromordinal, range(date(2024, 1, 1).toordinal(), date(2200, 1, 1).toordinal()))
    assert [] == [day for day in days if is_banking_day(day) != is_working_day(day.toordinal() - EPOCH_DAY)]


def test_one_seed_gives_the_same_times() -> None:
    one, two = (purchase_times(random.Random(8), START, END, 1_000) for _ in range(2))
    assert one == two
    assert one != purchase_times(random.Random(9), START, END, 1_000)
