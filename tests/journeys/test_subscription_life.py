"""The states of a subscription: every move by each of its triggers. What is refused is held to the model."""

from collections.abc import Iterator

import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.files import exported, lines
from .members import at, days, move
from .roads import AUTOPAY, LATE, ROADS, renewed_late_by_clock
from .stage import DAY, Stage, staged
from .steps import refused

LIFE = document().lifecycles["Subscription"]


@pytest.fixture
def prompt(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay a minute after ordering."""
    with staged(serve(autopay=AUTOPAY), "stage", sink) as made:
        yield made


@pytest.fixture
def tardy(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay 27 hours after ordering: too late for a daily plan, and within
    its grace.
    """
    with staged(serve(autopay=LATE), "stage", sink) as made:
        yield made


MOVES = [(m.from_, m.to, m.events[0], by) for m in LIFE.moves for by in m.by]


def test_every_trigger_of_every_move_has_a_road() -> None:
    assert set(MOVES) == set(ROADS)


@pytest.mark.parametrize(("from_", "to", "event", "by"), MOVES)
@pytest.mark.matrix
def test_every_move_of_a_subscription_happens_and_is_told_once(
    stage: Stage, request: pytest.FixtureRequest, from_: str, to: str, event: str, by: str
) -> None:
    (move,) = [m for m in LIFE.moves if (m.from_, m.to, m.events[0]) == (from_, to, event)]
    road = ROADS[from_, to, event, by]
    if road is renewed_late_by_clock:
        stage = request.getfixturevalue("tardy")
    elif by == "clock" and (from_ == "new" or event == "subscription.renewed"):
        stage = request.getfixturevalue("prompt")
    ident = road(stage)
    told = stage.events(ident)
    assert to == stage.get_subscription(ident)["status"]
    assert [1] * len(move.events) == [told.count(type_) for type_ in move.events], told
    first = told.index(move.events[0])
    assert list(move.events) == told[first : first + len(move.events)]


def test_a_trial_is_longer_by_the_time_of_a_suspension(stage: Stage) -> None:
    before = stage.subscription("trialing")
    move(stage, before, "suspend")
    stage.advance(10 * DAY)
    move(stage, before, "activate")
    stage.advance(1)
    after = stage.get_subscription(before["id"])
    assert "trialing" == after["status"]
    for name in ("trial_end", "current_period_end", "next_billing_at"):
        assert days(10) == at(after[name]) - at(before[name]), name


def test_a_job_of_a_subscription_has_one_timer_however_often_it_is_set(stage: Stage) -> None:
    """Each suspension left all timers and set new ones: a few requests filled the memory, and every
    copy of the sandbox held up everybody.
    """
    subscription = stage.subscription("active")

    def timers() -> list[str]:
        own = [body for kind, body in lines(exported(stage.control)) if kind == "timer"]
        return sorted(timer["job"] for timer in own if timer["subject"] == subscription["id"])

    before = timers()
    for _ in range(3):
        move(stage, subscription, "suspend")
        stage.advance(1)
        move(stage, subscription, "activate")
        stage.advance(1)
    assert before == timers()
    assert ["subscription.end", "subscription.renew"] == before


def test_a_subscription_that_is_canceled_cannot_be_canceled_or_resumed_again(stage: Stage) -> None:
    ident = stage.subscription("canceled")["id"]
    stage.drive("subscriptions", ident, "cancel", at_period_end=True)
    after = stage.get_subscription(ident)
    assert ("canceled", False) == (after["status"], after["cancel_at_period_end"])
    refusal = stage.control.post(f"/subscriptions/{ident}/resume")
    refused(refusal, 409, "invalid_state_transition")
    assert "path" == refusal.json()["details"][0]["in"]


def test_what_has_ended_is_canceled_neither_now_nor_later(stage: Stage) -> None:
    path = f"/subscriptions/{stage.subscription('expired')['id']}/cancel"
    answers = [stage.control.post(path, json={"at_period_end": later}) for later in (False, True)]
    for answer in answers:
        refused(answer, 409, "invalid_state_transition")
    assert 1 == len({answer.json()["message"] for answer in answers})
