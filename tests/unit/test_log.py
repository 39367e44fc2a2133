"""The log alone: steps in order, the oldest go first, and a budget that logs share."""

import pytest

from stub_server.core.clock import ClockState
from stub_server.core.record import Record
from stub_server.engine import bounded as logs
from stub_server.engine.bounded import Budget, Log
from stub_server.engine.step import Cause, Change, Saved, Step
from stub_server.engine.tables.memory import Merchant

CLOCK = ClockState(0, 0, True)
EMPTY = Step(
    number=1,
    at=0,
    cause=Cause("control", "", "test"),
    merchant=Merchant("m", "u", "Loja", "São Paulo", "2026-01-01T00:00:00.000Z"),
    events_before=0,
    timers_before=0,
    clock=CLOCK,
    clock_before=CLOCK,
    position=(0, 0),
    position_before=(0, 0),
)
RECORD = Record("a", 1, 1, b"x" * 100, b"y" * 10)
REPLY = (("m", "POST", "/v2/plans", "key"), Saved(b"", 0, 201, b"b" * 30, ()))


def filled(log: Log, count: int) -> None:
    """Append so many more steps."""
    for _ in range(count):
        log.append(EMPTY._replace(number=log.number + 1))


def numbers(log: Log) -> list[int]:
    """Which steps are kept."""
    return [step.number for step in log]


@pytest.mark.promise("steps")
def test_bytes_of_one_log_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 2 * EMPTY.size)
    budget = Budget()
    log = Log(10, budget)
    filled(log, 5)
    assert ([4, 5], 2 * EMPTY.size) == (numbers(log), budget.used)
    log.append(
        EMPTY._replace(
            number=6, changes=(Change("plans", RECORD, RECORD._replace(public=b"x" * EMPTY.size)),)
        )
    )
    assert ([], 6, 0) == (numbers(log), log.number, budget.used)


@pytest.mark.promise("steps-requests-messages-sandboxes")
def test_bytes_of_all_that_is_kept_are_bounded() -> None:
    """The largest makes room: a world that nobody uses any more does not keep the others from
    having a past.
    """
    budget = Budget(100 * EMPTY.size)
    idle, busy = Log(200, budget), Log(200, budget)
    filled(idle, 90)
    filled(busy, 40)
    assert 95 * EMPTY.size < budget.used == idle.size + busy.size <= budget.most
    assert (len(busy), 40) == (40, busy.number), "the smaller one keeps all of its steps"
    filled(busy, 60)
    assert 95 * EMPTY.size < budget.used == idle.size + busy.size <= budget.most
    assert abs(len(idle) - len(busy)) <= 6


def test_what_a_step_shows_of_itself_holds_no_secret() -> None:
    secret = RECORD._replace(hidden=b"whsec_secret")
    step = EMPTY._replace(changes=(Change("webhooks", None, secret),), saved=REPLY)
    assert "Step(number=1, at=0, cause=Cause(kind='control', id='', operation='test'))" == repr(
        step
    )
    assert "Saved(status=201, expires=0)" == repr(REPLY[1])
