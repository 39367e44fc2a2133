"""A suspended project stops the clock of its subscriptions; afterwards all that lay ahead comes so much later."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from ..support.live import Live
from .members import at, bill_of, billed, broken, days, member, move, plan_of
from .stage import DAY, Stage


@pytest.fixture(autouse=True)
def lawful(live: Live, stage: Stage) -> Iterator[None]:
    """What every world promises holds after each journey, also for merchants who were not seeded."""
    yield
    sandbox = live.app.sandboxes.find("stage")
    assert sandbox is not None
    assert [] == broken(sandbox)


@pytest.mark.parametrize(
    ("state", "moved"),
    [
        ("trialing", ["trial_end", "current_period_end", "next_billing_at"]),
        ("active", ["current_period_end", "next_billing_at"]),
        ("past_due", ["current_period_end", "next_billing_at"]),
    ],
)
@pytest.mark.parametrize("action", ["activate", "archive"])
def test_all_that_lay_ahead_comes_later_by_the_time_in_between(
    stage: Stage, state: str, moved: list[str], action: str
) -> None:
    """The state is that from before, and only the project tells of it. An archive lets go of who is past due."""
    held = member(stage, plan_of(stage, trial_period_days=5 if state == "trialing" else 0))
    if state == "past_due":
        stage.go_to(held["current_period_end"])
    stage.advance(DAY)
    before, told = stage.get_subscription(held["id"]), stage.events(held["id"])
    move(stage, held, "suspend")
    stage.advance(100 * DAY + 1)
    move(stage, held, action)
    now = stage.get_subscription(held["id"])
    if (state, action) == ("past_due", "archive"):
        assert "canceled" == now["status"]
        return
    assert state == now["status"]
    gone = {"next_billing_at"} if action == "archive" else set()
    for name in before.keys() - gone - {"updatedAt", "cancel_at_period_end", "canceled_at", "cancel_at"}:
        later = at(before[name]) + timedelta(days=100, seconds=1) if name in moved else None
        assert (before[name] if later is None else later) == (now[name] if later is None else at(now[name])), name
    ended = {"archive": "project.archived", "activate": "project.activated"}[action]
    assert ["project.created", "project.suspended", ended] == stage.events(held["projectId"])
    assert told == stage.events(held["id"])


def test_an_open_bill_waits_with_its_subscription(stage: Stage) -> None:
    """It can be paid although its end has passed, and gets the moved one."""
    held, paid = member(stage, plan_of(stage), method="boleto"), member(stage, plan_of(stage))
    move(stage, paid, "suspend")
    move(stage, paid, "activate")
    bills = [billed(stage, held), bill_of(stage, paid)]
    for each in (held, paid):
        move(stage, each, "suspend")
    stage.advance(30 * DAY)
    assert ["pending", "pending"] == [stage.get_order(bill["id"])["status"] for bill in bills]
    stage.drive("orders", bills[1]["id"], "pay", paid_at=stage.now())
    now = stage.get_subscription(paid["id"])
    assert at(paid["current_period_end"]) + days(7) == at(now["current_period_end"])
    for each in (held, paid):
        move(stage, each, "activate")
    bill = bill_of(stage, held)
    assert ("pending", stage.now()) == (bill["status"], bill["updatedAt"])
    end = at(held["current_period_end"]) + days(30)
    for name, day in (("due_at", end), ("expires_at", end + days(7))):
        closes = at(bill["last_transaction"][name])
        assert timedelta(0) <= closes - day < days(6), name
        assert (2, 59, 59) == (closes.hour, closes.minute, closes.second)  # three hours behind in Brasília
    now = stage.get_subscription(paid["id"])
    assert at(paid["current_period_end"]) + days(37) == at(now["current_period_end"])
    stage.go_to(bill["last_transaction"]["expires_at"])
    assert ("expired", "expired") == (
        stage.get_order(bill["id"])["status"],
        stage.get_subscription(held["id"])["status"],
    )
