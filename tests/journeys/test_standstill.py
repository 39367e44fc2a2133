"""A suspended project stops the clock of its subscriptions; afterwards all that lay ahead comes so much later."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from ..support.live import Live
from ..support.make import fresh_cpf
from .members import at, bill_of, billed, broken, buyer, days, member, move, order, plan_of
from .stage import DAY, Stage
from .steps import done, refused


@pytest.fixture(autouse=True)
def lawful(live: Live, stage: Stage) -> Iterator[None]:
    """What every world promises holds after each journey, also for merchants who were not seeded."""
    yield
    sandbox = live.app.sandboxes.find("stage")
    assert sandbox is not None
    assert [] == broken(sandbox)


@pytest.mark.parametrize("state", ["trialing", "active", "past_due"])
def test_nothing_is_due_while_the_project_stands_still(stage: Stage, state: str) -> None:
    """Trial, due, past due and grace wait; no bill is made and nothing is told."""
    held = member(stage, plan_of(stage, trial_period_days=5 if state == "trialing" else 0))
    if state == "past_due":
        stage.go_to(held["current_period_end"])
    before, told = stage.get_subscription(held["id"]), stage.events(held["id"])
    move(stage, held, "suspend")
    stage.advance(100 * DAY)
    assert (state, before, told) == (before["status"], stage.get_subscription(held["id"]), stage.events(held["id"]))


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


def test_the_next_periods_are_counted_from_the_moved_end(stage: Stage) -> None:
    """A month from the 18th that was moved to the 28th ends on the 28th of the next."""
    held = member(stage, plan_of(stage, interval="month"))
    move(stage, held, "suspend")
    stage.advance(10 * DAY)
    move(stage, held, "activate")
    moved = at(held["current_period_end"]) + days(10)
    for _ in range(2):
        stage.drive("subscriptions", held["id"], "renew")
    now = at(stage.get_subscription(held["id"])["current_period_end"])
    later = moved.replace(year=moved.year + (moved.month > 10), month=(moved.month + 1) % 12 + 1)
    assert later == now


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


def test_a_first_order_expires_as_usual(stage: Stage) -> None:
    """And one that is paid meanwhile opens a subscription whose time stands still from its own start."""
    plan = plan_of(stage)
    waiting_, paid = order(stage, plan, buyer()), order(stage, plan, buyer())
    move(stage, {"projectId": plan["projectId"]}, "suspend")
    stage.advance(3600)
    stage.drive("orders", paid["id"], "pay")
    held = stage.subscription_of(paid["id"])
    stage.advance(30 * DAY)
    assert "expired" == stage.get_order(waiting_["id"])["status"]
    move(stage, held, "activate")
    now = stage.get_subscription(held["id"])
    assert at(held["current_period_end"]) + days(30) == at(now["current_period_end"])


def test_a_declined_card_is_charged_again_at_the_moved_days(stage: Stage) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    end = at(held["current_period_end"])
    address = f"fail_immediately.{fresh_cpf()}@example.com"
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": address}))
    stage.go_to(held["current_period_end"])
    stage.advance(2 * DAY)  # two orders have failed
    move(stage, held, "suspend")
    stage.advance(2 * DAY)  # the old third day falls on the moved first one
    move(stage, held, "activate")
    stage.advance(10 * DAY)
    found = done(stage.api.get("/v2/orders", params={"subscriptionId": held["id"], "sort": "createdAt"}))["orders"]
    assert [end + days(wait) for wait in (0, 1, 5, 7)] == [at(each["createdAt"]) for each in found[1:]]
    assert end + days(9) == at(stage.get_subscription(held["id"])["ended_at"])


def test_periods_that_were_paid_early_begin_later_too(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    for _ in range(2):
        stage.drive("subscriptions", held["id"], "renew")
    move(stage, held, "suspend")
    stage.advance(15 * DAY)
    move(stage, held, "activate")
    start = at(held["current_period_start"])
    for wait, begins in ((6.9, 0), (0.1, 22), (7, 29)):
        stage.advance(wait * DAY)
        now = stage.get_subscription(held["id"])
        assert (start + days(begins), start + days(36)) == (
            at(now["current_period_start"]),
            at(now["current_period_end"]),
        )


def test_a_cancellation_for_the_end_waits_for_the_moved_end(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    move(stage, held, "activate")
    assert "active" == stage.get_subscription(held["id"])["status"]
    stage.advance(30 * DAY)
    now = stage.get_subscription(held["id"])
    assert ("canceled", at(held["current_period_end"]) + days(30)) == (now["status"], at(now["ended_at"]))


def test_nothing_is_renewed_by_hand_in_a_suspended_project(stage: Stage) -> None:
    """Other ways to end it stay open, and so does the way back."""
    held = member(stage, plan_of(stage))
    move(stage, held, "suspend")
    before = stage.get_subscription(held["id"])
    fields = refused(stage.control.post(f"/subscriptions/{held['id']}/renew"), 409, "project_not_active")
    assert (["projectId"], before) == (list(fields), stage.get_subscription(held["id"]))
    move(stage, held, "activate")
    assert 1 == stage.drive("subscriptions", held["id"], "renew")["subscription"]["cycle"]


def test_other_projects_do_not_notice(stage: Stage) -> None:
    held, other = member(stage, plan_of(stage)), member(stage, plan_of(stage))
    move(stage, held, "suspend")
    stage.advance(7 * DAY)
    assert ("active", "past_due") == tuple(stage.get_subscription(each["id"])["status"] for each in (held, other))
    assert "suspended" == done(stage.api.get(f"/v2/projects/{held['projectId']}"))["data"]["project"]["status"]
