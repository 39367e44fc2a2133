"""Renewals by boleto: due on a banking day, with a grace that ends on one; and
attempts that fail.
"""

from datetime import datetime, timedelta

import httpx2
import pytest

from ..support.make import Json, make_plan
from .members import bill_of, member, plan_of
from .stage import DAY, Stage
from .steps import done

LATE = timedelta(hours=23, minutes=59, seconds=59)
BRASILIA = timedelta(hours=3)
# New Year, a Friday, is a holiday: Monday is the next banking day. A week after New Year is a
# Friday too.
MONDAY, FRIDAY = datetime(2027, 1, 4), datetime(2027, 1, 8)


@pytest.fixture
def stage(api: httpx2.Client, control: httpx2.Client) -> Stage:
    """A sandbox of the test's own, as the tests say on which day it is."""
    return Stage(api, control, "")


def closing(day: datetime) -> str:
    """23:59:59 of a day in Brasília."""
    return f"{(day + LATE + BRASILIA).isoformat(timespec='milliseconds')}Z"


def billed_at_new_year(stage: Stage) -> Json:
    """A subscription by boleto whose period ends on New Year."""
    stage.go_to("2026-12-04T15:00:00Z")
    plan = make_plan(stage.api, interval="week", interval_count=4, payment_methods=["boleto"])
    held = member(stage, plan, method="boleto")
    assert held["current_period_end"].startswith("2027-01-01")
    stage.advance(26 * DAY)
    return held


def test_a_renewal_boleto_is_due_on_a_banking_day_and_its_grace_ends_on_one(stage: Stage) -> None:
    held = billed_at_new_year(stage)
    payment = bill_of(stage, held)["last_transaction"]
    assert (closing(MONDAY), closing(FRIDAY)) == (payment["due_at"], payment["expires_at"])
    stage.go_to(closing(FRIDAY).replace("59.000Z", "58.000Z"))
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.go_to(closing(FRIDAY))
    assert ("expired", "expired") == (
        stage.get_subscription(held["id"])["status"],
        bill_of(stage, held)["status"],
    )


@pytest.mark.parametrize("method", ["pix", "boleto", "credit_card"])
def test_an_early_attempt_that_fails_leaves_the_regular_bill(stage: Stage, method: str) -> None:
    """It is made when it is due, and a card is charged then."""
    held = member(stage, plan_of(stage), method=method)
    done(
        stage.control.patch(
            f"/customers/{held['customerId']}/behaviour", json={"payment": "fails", "times": 1}
        )
    )
    tried = stage.drive("subscriptions", held["id"], "renew")
    assert ("failed", 0) == (tried["order"]["status"], tried["subscription"]["cycle"])
    stage.go_to(held["current_period_end"])
    bill = bill_of(stage, held)
    assert tried["order"]["id"] != bill["id"]
    if method != "credit_card":
        assert "pending" == bill["status"]
        stage.drive("orders", bill["id"], "pay")
    now = stage.get_subscription(held["id"])
    assert ("paid", "active", 1) == (bill_of(stage, held)["status"], now["status"], now["cycle"])
    assert done(stage.control.get("/invariants"))["ok"]
