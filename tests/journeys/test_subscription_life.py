"""The states of a subscription: every move by each of its triggers. What is refused is held to the model."""

from collections.abc import Iterator

import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.make import Json
from .members import at, bill_of, billed, days, member, move, plan_of
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


@pytest.mark.parametrize("body", [None, {"at_period_end": True}], ids=str)
def test_what_is_canceled_may_be_canceled_again_and_what_has_expired_may_not(
    stage: Stage, body: Json | None
) -> None:
    """Nothing changes either way, now or at the end of the period."""
    for state, status in (("canceled", 200), ("expired", 409)):
        held = stage.subscription(state)
        answer = stage.control.post(f"/subscriptions/{held['id']}/cancel", json=body)
        assert status == answer.status_code
        assert held == stage.get_subscription(held["id"])
    refused(answer, 409, "invalid_state_transition")
    assert "expired → canceled" == answer.json()["details"][0]["message"]


def test_what_is_to_end_is_resumed_once(stage: Stage) -> None:
    held = stage.subscription("active")
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    resumed = stage.drive("subscriptions", held["id"], "resume")["subscription"]
    assert held | {"updatedAt": resumed["updatedAt"]} == resumed
    answer = stage.control.post(f"/subscriptions/{held['id']}/resume")
    assert 409 == answer.status_code
    (detail,) = answer.json()["details"]
    assert ("cancel_at_period_end", "path") == (detail["field"], detail["in"])


def test_what_is_to_come_is_later_by_the_time_of_a_suspension(stage: Stage) -> None:
    """Nothing is due meanwhile, and the open order can be paid so much longer."""
    before = member(stage, plan_of(stage))
    bill = billed(stage, before)
    move(stage, before, "suspend")
    stage.advance(10 * DAY)
    assert bill == bill_of(stage, before)
    move(stage, before, "activate")
    stage.advance(1)
    after, moved = stage.get_subscription(before["id"]), bill_of(stage, before)
    for name in ("current_period_end", "next_billing_at"):
        assert days(10) == at(after[name]) - at(before[name]), name
    ends = moved["last_transaction"]["expires_at"]
    assert days(10) == at(ends) - at(bill["last_transaction"]["expires_at"])
    stage.go_to(ends)
    assert ("expired", "expired") == (
        bill_of(stage, before)["status"],
        stage.get_subscription(before["id"])["status"],
    )


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


def test_the_refund_of_an_early_renewal_takes_its_period_back(stage: Stage) -> None:
    """The refund of one whose period has begun ends the subscription."""
    before = stage.subscription("active")
    early = stage.drive("subscriptions", before["id"], "renew")
    assert (0, 1) == (before["cycle"], early["subscription"]["cycle"])
    stage.drive("orders", early["order"]["id"], "refund")
    after = stage.get_subscription(before["id"])
    for name in ("status", "cycle", "current_period_start", "current_period_end"):
        assert before[name] == after[name], name
    another = stage.drive("subscriptions", before["id"], "renew")["order"]
    stage.go_to(before["current_period_end"])
    assert "active" == stage.get_subscription(before["id"])["status"]
    stage.drive("orders", another["id"], "refund")
    assert "canceled" == stage.get_subscription(before["id"])["status"]
