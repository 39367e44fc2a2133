"""The seats of a plan: who takes one, how long it is held, and that nobody takes two."""

import pytest

from ..support.refusal import says
from .members import ask_order, buyer, order, plan_of
from .stage import Stage
from .steps import done, get_plan, refused

KINDS = ["recurring", "one_time"]


def plan(stage: Stage, kind: str, seats: int) -> dict[str, object]:
    """A plan of some kind with so many seats."""
    return plan_of(stage, billing_type=kind, max_subscribers=seats)


@pytest.mark.parametrize("kind", KINDS)
def test_an_open_order_holds_a_seat_as_long_as_it_can_be_paid(stage: Stage, kind: str) -> None:
    """Expired, failed or canceled it gives the seat back."""
    small = plan(stage, kind, 1)
    for verb in ("expire", "fail", "cancel"):
        held = order(stage, small, buyer())
        sold_out = ask_order(stage, small, buyer())
        refused(sold_out, 409, "plan_sold_out")
        assert says(sold_out.json()["message"], "max_subscribers")
        stage.drive("orders", held["id"], verb)
    last = order(stage, small, buyer())
    stage.go_to(last["last_transaction"]["expires_at"])
    order(stage, small, buyer())


@pytest.mark.parametrize("kind", KINDS)
def test_money_back_gives_the_seat_back(stage: Stage, kind: str) -> None:
    """All of it: who got a part keeps the seat."""
    small = plan(stage, kind, 1)
    held = order(stage, small, buyer())
    stage.drive("orders", held["id"], "pay")
    stage.drive("orders", held["id"], "refund", amount=1)
    assert 1 == get_plan(stage.api, small)["subscribers_count"]
    refused(ask_order(stage, small, buyer()), 409, "plan_sold_out")
    stage.drive("orders", held["id"], "refund")
    assert 0 == get_plan(stage.api, small)["subscribers_count"]
    order(stage, small, buyer())


def test_fewer_seats_than_are_taken_sell_no_more_and_more_do(stage: Stage) -> None:
    room = plan(stage, "recurring", 3)
    for _ in range(2):
        order(stage, room, buyer())
    for seats, status in ((1, 409), (2, 409), (None, 201), (3, 409)):
        done(stage.api.put(f"/v2/plans/{room['id']}", json={"max_subscribers": seats}))
        assert status == ask_order(stage, room, buyer()).status_code, seats


# -- what a plan that is paid once has not


def test_trial_days_of_a_one_time_plan_are_stored_0_and_warned_of(stage: Stage) -> None:
    project = plan_of(stage)["projectId"]
    body = {"projectId": project, "name": "Avulso", "amount": 10, "billing_type": "one_time", "trial_period_days": 7}
    response = stage.api.post("/v2/plans", json=body)
    made = response.json()["plan"]
    assert (201, 0, "trial_ignored") == (
        response.status_code,
        made["trial_period_days"],
        response.headers["x-sandbox-warnings"],
    )
    response = stage.api.put(f"/v2/plans/{made['id']}", json={"trial_period_days": 3})
    assert (200, 0, "trial_ignored") == (
        response.status_code,
        response.json()["plan"]["trial_period_days"],
        response.headers["x-sandbox-warnings"],
    )
