"""Rules of deliveries alone: waits, what an attempt makes of a delivery and its webhook, and simulated receivers."""

import pytest

from stub_server.core.clock import DAY, HOUR, MINUTE, SECOND
from stub_server.core.record import Body, Record, Row
from stub_server.domain import deliveries, receivers
from stub_server.domain.deliveries import AUTOMATIC, MANUAL, SCHEDULES, STANDARD, TEST, AttemptOutcome, Timing, wait_ms

OK = AttemptOutcome(200, "", {}, 1, None, {}, "v1,x")
DOWN = OK._replace(status=503, error="http_5xx")
GONE = OK._replace(status=410, error="http_4xx")
HOOK: Body = {
    "id": "w", "url": "https://example.com/", "is_active": True, "consecutive_failures": 0,
    "disabled_at": None, "disabled_reason": None,
    "last_delivery_at": None, "last_delivery_status": None, "updatedAt": "x",
}  # fmt: skip


def row(status: str = "pending", count: int = 0) -> Row:
    """A delivery in a state."""
    public = {"status": status, "attempt_count": count, "max_attempts": 10, "delivered_at": None}
    public["next_attempt_at"] = "x" if status == "retrying" else None
    return Row(Record("l", 1, 1, b"", b""), public, {"attempts": []})


def after(status: str, outcome: AttemptOutcome, trigger: str = AUTOMATIC, count: int = 0) -> str:
    """The state of a delivery after an attempt."""
    is_open = status in ("pending", "retrying")
    public, _ = deliveries.attempted(
        row(status, count), outcome, Timing(0, 0, STANDARD), url="u", trigger=trigger, is_open=is_open
    )
    assert (public["next_attempt_at"] is not None) is (public["status"] == "retrying")
    shown: str = public["status"]
    return shown


def test_the_standard_schedule_is_that_of_standard_webhooks() -> None:
    assert [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400] == [wait // SECOND for wait in STANDARD]
    assert 75 * HOUR + 35 * MINUTE + 5 * SECOND == sum(STANDARD)
    assert [4, 1] == [len(SCHEDULES["fast"]), len(SCHEDULES["none"])]


def test_a_wait_is_a_tenth_more_or_less() -> None:
    assert [270_000, 300_000, 330_000] == [wait_ms(Timing(0, 0, STANDARD, luck), 2, DOWN) for luck in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("status", "asked", "waits"),
    [
        (503, 10 * MINUTE, 10 * MINUTE),
        (429, 10 * MINUTE, 10 * MINUTE),
        (503, SECOND, 5 * MINUTE),
        (503, 30 * DAY, DAY),
        (500, 10 * MINUTE, 5 * MINUTE),
        (503, None, 5 * MINUTE),
    ],
)
def test_a_receiver_is_left_alone_as_long_as_it_asks(status: int, asked: int | None, waits: int) -> None:
    assert waits == wait_ms(Timing(0, 0, STANDARD), 2, DOWN._replace(status=status, retry_after=asked))


@pytest.mark.parametrize(
    ("before", "outcome", "trigger", "then"),
    [
        ("pending", OK, AUTOMATIC, "delivered"),
        ("pending", DOWN, AUTOMATIC, "retrying"),
        ("retrying", GONE, AUTOMATIC, "failed"),
        ("retrying", DOWN, MANUAL, "retrying"),
        ("retrying", GONE, MANUAL, "failed"),
        ("pending", DOWN, MANUAL, "pending"),
        ("pending", DOWN, TEST, "failed"),
        ("delivered", DOWN, MANUAL, "failed"),
        ("delivered", DOWN, AUTOMATIC, "delivered"),
        ("failed", DOWN, AUTOMATIC, "failed"),
        ("failed", OK, AUTOMATIC, "delivered"),
        ("canceled", OK, AUTOMATIC, "canceled"),
        ("canceled", DOWN, MANUAL, "canceled"),
    ],
)
def test_what_an_attempt_makes_of_a_delivery(before: str, outcome: AttemptOutcome, trigger: str, then: str) -> None:
    """One that was decided by hand while an attempt was under way is delivered after all, or stays as it is."""
    assert then == after(before, outcome, trigger)


def test_the_last_attempt_of_the_schedule_fails_the_delivery() -> None:
    assert ["retrying", "failed"] == [after("retrying", DOWN, count=count) for count in (8, 9)]


def test_a_delivery_of_a_longer_schedule_ends_with_the_present_one() -> None:
    """It was opened under another flag."""
    timing = Timing(0, 0, SCHEDULES["fast"])
    public, _ = deliveries.attempted(row("retrying", 4), DOWN, timing, url="u", trigger=AUTOMATIC, is_open=True)
    assert ("failed", None) == (public["status"], public["next_attempt_at"])


def test_only_events_that_used_up_their_attempts_count_against_a_webhook() -> None:
    def failures(before: str, then: str, outcome: AttemptOutcome, trigger: str = AUTOMATIC) -> int:
        webhook = HOOK | {"consecutive_failures": 1}
        found: int = deliveries.after_delivery(webhook, (before, then), outcome, trigger, 0)["consecutive_failures"]
        return found

    assert 1 == failures("pending", "retrying", DOWN)
    assert 2 == failures("retrying", "failed", DOWN)
    assert 1 == failures("failed", "failed", DOWN)
    assert 1 == failures("canceled", "canceled", DOWN)
    assert 0 == failures("retrying", "delivered", OK)
    assert 1 == failures("retrying", "failed", DOWN, MANUAL)


@pytest.mark.parametrize(
    ("url", "reserved"),
    [
        ("https://example.com/x", True),
        ("http://HOOKS.Example.ORG:8080/", True),
        ("http://a.b.test", True),
        ("http://shop.invalid./", True),
        ("http://example/", True),
        ("http://myexample.com/", False),
        ("http://example.com.br/", False),
        ("http://test.shop/", False),
        ("http://localhost:3000/", False),
        ("http://127.0.0.1/example.com", False),
    ],
)
def test_reserved_names_are_told_from_others(url: str, *, reserved: bool) -> None:
    assert reserved is receivers.is_reserved(url)


def test_a_simulated_receiver_answers_the_same_to_the_same() -> None:
    """Healthy ones nearly always take a delivery at the first attempt, and always at the second."""
    first = [receivers.answer(HOOK, {}, {"id": str(n), "attempt_count": 0}, 0) for n in range(2_000)]
    assert first == [receivers.answer(HOOK, {}, {"id": str(n), "attempt_count": 0}, 0) for n in range(2_000)]
    assert 20 < sum(answer.error == "timeout" for answer in first) < 60
    assert {200} == {receivers.answer(HOOK, {}, {"id": str(n), "attempt_count": 1}, 0).status for n in range(2_000)}
    assert all(40 <= answer.took <= receivers.TIMEOUT_MS for answer in first)


def test_a_flaky_receiver_is_never_disabled_and_comes_back() -> None:
    """It is down until soon after its world has begun; its third failure in a row does not happen."""
    kept: Body = {"receiver": {"behaviour": "flaky", "created": 0, "gone": 0, "until": 60 * DAY}}

    def status(number: int, count: int, failures: int, at: int) -> int | None:
        log = {"id": str(number), "attempt_count": count, "max_attempts": 10}
        return receivers.answer(HOOK | {"consecutive_failures": failures}, kept, log, at).status

    assert 200 not in {status(n, 0, 0, 60 * DAY) for n in range(50)}
    after_all = [status(n, 3, 0, 60 * DAY + 3 * HOUR + n * HOUR) for n in range(500)]
    assert 0.8 < after_all.count(200) / 500 < 0.97
    rejected = [n for n in range(500) if status(n, 3, 0, 63 * DAY) == 500]
    assert rejected
    assert {500} == {status(n, 9, 1, 63 * DAY) for n in rejected}
    assert {200} == {status(n, 9, 2, 63 * DAY) for n in rejected}


def test_a_receiver_that_is_gone_says_so_from_then_on() -> None:
    kept: Body = {"receiver": {"behaviour": "gone", "created": 0, "gone": DAY, "until": 2 * DAY}}
    log = {"id": "x", "attempt_count": 1}
    assert [200, 410] == [receivers.answer(HOOK, kept, log, at).status for at in (DAY - 1, DAY)]
