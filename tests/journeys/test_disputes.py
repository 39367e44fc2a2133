"""Disputes of paid orders: what they hold up, and until when. How they end is held to the model."""

import pytest

from ..support.make import Json, done, make_plan
from .members import buyer, order
from .stage import DAY, Stage
from .steps import refused


def dispute(stage: Stage, ident: str, **body: object) -> Json:
    """Open one; answers what the control shows."""
    return stage.drive("orders", ident, "dispute", **body)


@pytest.mark.parametrize(("method", "window"), [("pix", 80), ("credit_card", 120)])
def test_a_payment_can_be_disputed_for_so_many_days(stage: Stage, method: str, window: int) -> None:
    """The last instant counts; later it is refused, and the control is offered no more."""
    plan = make_plan(stage.api, billing_type="one_time", payment_methods=["pix", "credit_card"])
    first, second = (order(stage, plan, buyer(), method)["id"] for _ in range(2))
    if method == "pix":
        for ident in (first, second):
            stage.drive("orders", ident, "pay")
    stage.advance(window * DAY)
    dispute(stage, first)
    stage.advance(0.001)
    refused(stage.control.post(f"/orders/{second}/dispute"), 409, "dispute_window_closed")
    assert ["refund"] == done(stage.control.get(f"/orders/{second}"))["allowed"]
