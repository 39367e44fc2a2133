"""Simulated receivers: which addresses have one, and how it answers."""

import pytest

from stub_server.core.clock import DAY, HOUR
from stub_server.core.record import Body, Record, Row
from stub_server.domain import receivers


def row(ident: str, public: Body, hidden: Body | None = None) -> Row:
    """A record of an id."""
    return Row("", Record(ident, 0, 1, b"", b""), public, hidden or {})


def webhook(behaviour: str, ident: str = "w", failures: int = 0) -> Row:
    """A webhook whose receiver behaves so until the sixtieth day."""
    kept = {"behaviour": behaviour, "gone": DAY, "until": 60 * DAY}
    public = {"url": "https://example.com/", "consecutive_failures": failures}
    return row(ident, public, {"receiver": kept})


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


def test_a_flaky_receiver_is_never_disabled_and_comes_back() -> None:
    """It is down until soon after its world has begun; its third failure in a row
    does not happen.
    """

    def status(number: int, count: int, failures: int, at: int) -> int | None:
        log = row(str(number), {"attempt_count": count, "max_attempts": 10})
        return receivers.answer(webhook("flaky", failures=failures), log, at).status

    first = row("x", {"attempt_count": 0})
    down = [receivers.answer(webhook("flaky", str(n)), first, 60 * DAY) for n in range(50)]
    assert {502, 503, None} == {answer.status for answer in down}
    assert {502, 503} <= receivers.BODIES.keys()
    after_all = [status(n, 3, 0, 60 * DAY + 3 * HOUR + n * HOUR) for n in range(500)]
    assert 0.8 < after_all.count(200) / 500 < 0.97
    rejected = [n for n in range(500) if status(n, 3, 0, 63 * DAY) == 500]
    assert rejected
    assert {500} == {status(n, 9, 1, 63 * DAY) for n in rejected}
    assert {200} == {status(n, 9, 2, 63 * DAY) for n in rejected}


def test_a_receiver_that_is_gone_says_so_from_then_on() -> None:
    second = row("x", {"attempt_count": 1})
    answers = [receivers.answer(webhook("gone"), second, at).status for at in (DAY - 1, DAY)]
    assert [200, 410] == answers
