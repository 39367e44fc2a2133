"""The seats of a plan whose number is changed.

Who takes one, and for how long, is held to the model.
"""

from .members import ask_order, buyer, order, plan_of
from .stage import Stage
from .steps import done


def test_fewer_seats_than_are_taken_sell_no_more_and_more_do(stage: Stage) -> None:
    room = plan_of(stage, max_subscribers=3)
    for _ in range(2):
        order(stage, room, buyer())
    for seats, status in ((1, 409), (2, 409), (None, 201), (3, 409)):
        done(stage.api.put(f"/v2/plans/{room['id']}", json={"max_subscribers": seats}))
        assert status == ask_order(stage, room, buyer()).status_code, seats
