"""A suspended project stops the clock of its subscriptions; when it is active again, all goes on from then."""

from collections.abc import Iterator

import pytest

from ..support.live import Live
from .members import at, bill_of, billed, broken, days, member, move, plan_of
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


@pytest.mark.parametrize("method", ["pix", "boleto"])
def test_a_period_that_ended_meanwhile_is_past_due_and_billed_at_once(stage: Stage, method: str) -> None:
    """Payable until then and the grace; once paid, the new period starts with the activation."""
    held = member(stage, plan_of(stage), method=method)
    move(stage, held, "suspend")
    stage.advance(100 * DAY + 1)
    move(stage, held, "activate")
    activated = stage.now()
    now, bill = stage.get_subscription(held["id"]), bill_of(stage, held)
    assert ("past_due", "pending", activated) == (now["status"], bill["status"], bill["createdAt"])
    assert at(activated) + days(7) == at(bill["last_transaction"]["expires_at"])
    assert ["subscription.past_due", "subscription.renewal_due"] == stage.events(held["id"])[-2:]
    stage.advance(6 * DAY)
    stage.drive("orders", bill["id"], "pay")
    now = stage.get_subscription(held["id"])
    assert ("active", 1, activated) == (now["status"], now["cycle"], now["current_period_start"])
    assert at(activated) + days(7) == at(now["current_period_end"]) == at(now["next_billing_at"])
    stage.advance(DAY)
    assert "past_due" == stage.get_subscription(held["id"])["status"]


def test_a_bill_that_nobody_pays_after_the_standstill_ends_with_the_grace(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    move(stage, held, "activate")
    stage.advance(7 * DAY - 0.001)
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.advance(0.001)
    assert ("expired", "expired") == (stage.get_subscription(held["id"])["status"], bill_of(stage, held)["status"])


def test_a_card_is_charged_when_the_project_is_active_again(stage: Stage) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    move(stage, held, "activate")
    now = stage.get_subscription(held["id"])
    assert ("active", 1, stage.now()) == (now["status"], now["cycle"], now["current_period_start"])
    assert "paid" == bill_of(stage, held)["status"]


def test_a_grace_that_was_cut_short_begins_anew(stage: Stage) -> None:
    """The bill from before is canceled for the new one: nobody can pay two."""
    held = member(stage, plan_of(stage))
    stage.go_to(held["current_period_end"])
    old = bill_of(stage, held)
    stage.advance(DAY)
    move(stage, held, "suspend")
    stage.advance(DAY)
    move(stage, held, "activate")
    bill = bill_of(stage, held)
    assert ("canceled", "pending") == (stage.get_order(old["id"])["status"], bill["status"])
    assert at(stage.now()) + days(7) == at(bill["last_transaction"]["expires_at"])
    activated = stage.now()
    stage.advance(6 * DAY)  # past the old grace
    stage.drive("orders", bill["id"], "pay")
    assert activated == stage.get_subscription(held["id"])["current_period_start"]


def test_a_period_that_is_not_over_goes_on(stage: Stage) -> None:
    """What fell due meanwhile is billed at once, payable to the end of the ordinary grace."""
    held = member(stage, plan_of(stage))
    move(stage, held, "suspend")
    stage.advance(6 * DAY)
    assert held["orderId"] == stage.get_subscription(held["id"])["lastOrderId"]
    move(stage, held, "activate")
    now, bill = stage.get_subscription(held["id"]), bill_of(stage, held)
    assert ("active", held["current_period_end"]) == (now["status"], now["current_period_end"])
    assert ("pending", stage.now()) == (bill["status"], bill["createdAt"])
    assert at(held["current_period_end"]) + days(7) == at(bill["last_transaction"]["expires_at"])


def test_a_period_that_was_paid_early_begins_when_the_project_goes_on(stage: Stage) -> None:
    """The start waits with the rest, and then catches up."""
    held = member(stage, plan_of(stage))
    for _ in range(2):
        stage.drive("subscriptions", held["id"], "renew")
    move(stage, held, "suspend")
    stage.advance(15 * DAY)
    assert held["current_period_start"] == stage.get_subscription(held["id"])["current_period_start"]
    move(stage, held, "activate")
    now = stage.get_subscription(held["id"])
    assert at(held["current_period_start"]) + days(14) == at(now["current_period_start"])
    assert at(held["current_period_start"]) + days(21) == at(now["current_period_end"])


@pytest.mark.parametrize(("wait", "state"), [(6, "active"), (20, "past_due")])
def test_a_trial_that_ended_meanwhile_is_followed_by_its_paid_period(stage: Stage, wait: int, state: str) -> None:
    """On its own grid: where that is over too, the next one is billed."""
    held = member(stage, plan_of(stage, trial_period_days=5))
    move(stage, held, "suspend")
    stage.advance(wait * DAY)
    move(stage, held, "activate")
    now = stage.get_subscription(held["id"])
    assert (state, held["trial_end"]) == (now["status"], now["current_period_start"])
    assert at(held["trial_end"]) + days(7) == at(now["current_period_end"])


def test_one_that_was_to_end_with_its_period_ends_when_the_project_goes_on(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    assert "active" == stage.get_subscription(held["id"])["status"]
    move(stage, held, "activate")
    now = stage.get_subscription(held["id"])
    assert ("canceled", stage.now()) == (now["status"], now["ended_at"])


def test_to_archive_a_suspended_project_ends_what_is_over(stage: Stage) -> None:
    """Who still has a paid period keeps it."""
    plan = plan_of(stage)
    over, late = member(stage, plan), member(stage, plan)
    stage.drive("subscriptions", over["id"], "renew")
    stage.go_to(late["current_period_end"])
    fresh = member(stage, plan)
    move(stage, over, "suspend")
    stage.advance(7 * DAY - 60)
    move(stage, over, "archive")
    states = [stage.get_subscription(each["id"])["status"] for each in (over, late, fresh)]
    assert ["active", "canceled", "active"] == states
    stage.advance(60)
    assert ["canceled"] * 3 == [stage.get_subscription(each["id"])["status"] for each in (over, late, fresh)]


def test_an_archive_after_a_standstill_ends_periods_that_ended_in_it(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    move(stage, held, "archive")
    assert "canceled" == stage.get_subscription(held["id"])["status"]


def test_an_open_bill_stays_payable_in_a_suspended_project(stage: Stage) -> None:
    """Until its own end; the period is extended from the old end."""
    held = member(stage, plan_of(stage))
    bill = billed(stage, held)
    move(stage, held, "suspend")
    stage.drive("orders", bill["id"], "pay")
    now = stage.get_subscription(held["id"])
    assert at(held["current_period_end"]) + days(7) == at(now["current_period_end"])


def test_an_open_bill_ends_in_its_time_though_the_project_stands_still(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    bill = billed(stage, held)
    move(stage, held, "suspend")
    stage.advance(30 * DAY)
    assert ("expired", "active") == (
        stage.get_order(bill["id"])["status"],
        stage.get_subscription(held["id"])["status"],
    )


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
