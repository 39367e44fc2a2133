"""Renewals: who pays again renews, a period that is paid early waits for the old one, and a card charges itself."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest

from ..support.banking import banking_day_from
from ..support.live import Live
from ..support.make import Json, fresh_cpf, make_order
from .members import (
    METHODS,
    at,
    bill_of,
    billed,
    broken,
    buyer,
    days,
    member,
    move,
    order,
    pay_again,
    plan_of,
    subscriptions_of,
)
from .stage import DAY, Stage
from .steps import done, refused


@pytest.fixture(autouse=True)
def lawful(live: Live, stage: Stage) -> Iterator[None]:
    """What every world promises holds after each journey, also for merchants who were not seeded."""
    yield
    sandbox = live.app.sandboxes.find("stage")
    assert sandbox is not None
    assert [] == broken(sandbox)


def decline(stage: Stage, held: Json) -> None:
    """Have the card of a subscriber declined from now on."""
    address = f"fail_immediately.{fresh_cpf()}@example.com"
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": address}))


# -- paying again


def test_whoever_pays_again_renews_the_subscription_he_has(stage: Stage) -> None:
    """From the old end, one cycle on, and without a second subscription."""
    held = member(stage, plan_of(stage))
    stage.advance(DAY)
    again = pay_again(stage, held)
    (now,) = subscriptions_of(stage, held)
    assert ("active", 1, again["id"]) == (now["status"], now["cycle"], now["lastOrderId"])
    assert at(held["current_period_end"]) + days(7) == at(now["current_period_end"]) == at(now["next_billing_at"])
    assert held["current_period_start"] == now["current_period_start"]
    assert held["id"] == done(stage.control.get(f"/orders/{again['id']}"))["subscriptionId"]
    assert ["subscription.created", "subscription.renewed"] == stage.events(held["id"])


def test_paying_again_cancels_the_open_bill(stage: Stage) -> None:
    """In the same step: nobody can pay the same period twice."""
    held = member(stage, plan_of(stage))
    bill = billed(stage, held)
    pay_again(stage, held)
    assert "canceled" == stage.get_order(bill["id"])["status"]
    refused(stage.control.post(f"/orders/{bill['id']}/pay"), 409, "order_not_payable")
    assert 1 == stage.get_subscription(held["id"])["cycle"]


@pytest.mark.parametrize(("verb", "status"), [("fail", "failed"), ("expire", "expired"), ("cancel", "canceled")])
def test_a_bill_that_came_to_nothing_is_made_up_for_by_another_order(stage: Stage, verb: str, status: str) -> None:
    """No second bill is made by itself: past due at the end, active again by paying once more."""
    held = member(stage, plan_of(stage))
    bill = billed(stage, held)
    stage.drive("orders", bill["id"], verb)
    stage.go_to(held["current_period_end"])
    assert ("past_due", bill["id"]) == (stage.get_subscription(held["id"])["status"], bill_of(stage, held)["id"])
    stage.advance(DAY)
    pay_again(stage, held)
    (now,) = subscriptions_of(stage, held)
    assert ("active", held["current_period_end"]) == (now["status"], now["current_period_start"])
    assert at(held["current_period_end"]) + days(7) == at(now["current_period_end"])
    assert status == stage.get_order(bill["id"])["status"]


def test_what_is_paid_in_a_trial_follows_the_first_paid_period(stage: Stage) -> None:
    held = member(stage, plan_of(stage, trial_period_days=5))
    pay_again(stage, held)
    (now,) = subscriptions_of(stage, held)
    assert ("trialing", 1) == (now["status"], now["cycle"])
    assert held["trial_end"] == now["current_period_end"]
    assert at(held["trial_end"]) + days(14) == at(now["next_billing_at"])
    stage.go_to(held["trial_end"])
    now = stage.get_subscription(held["id"])
    assert ("active", held["trial_end"]) == (now["status"], now["current_period_start"])
    assert at(held["trial_end"]) + days(14) == at(now["current_period_end"])


def test_an_order_of_somebody_else_or_for_another_plan_opens_its_own(stage: Stage) -> None:
    plan = plan_of(stage)
    held = member(stage, plan)
    member(stage, plan)
    other = plan_of(stage)
    who = stage.get_order(held["orderId"])["customer"]
    second = member(stage, other, who)
    assert {held["id"], second["id"]} == {each["id"] for each in subscriptions_of(stage, held)}
    assert held == stage.get_subscription(held["id"])


def test_two_orders_that_were_open_at_once_make_one_subscription(stage: Stage) -> None:
    plan, who = plan_of(stage), buyer()
    both = [order(stage, plan, who) for _ in range(2)]
    for each in both:
        stage.drive("orders", each["id"], "pay")
    (held,) = subscriptions_of(stage, stage.subscription_of(both[0]["id"]))
    assert (1, both[1]["id"]) == (held["cycle"], held["lastOrderId"])


# -- paying early


def test_the_start_follows_when_the_old_end_has_passed(stage: Stage) -> None:
    """Two renewals in advance: the running period stays the running one, at each end the next one begins."""
    held = member(stage, plan_of(stage))
    start, end = at(held["current_period_start"]), at(held["current_period_end"])
    for _ in range(2):
        stage.drive("subscriptions", held["id"], "renew")
    for passed in range(3):
        now = stage.get_subscription(held["id"])
        assert start + days(7 * passed) == at(now["current_period_start"])
        assert end + days(14) == at(now["current_period_end"]) == at(now["next_billing_at"])
        told = stage.events(held["id"])
        stage.advance(7 * DAY - 0.001)
        assert at(now["current_period_start"]) == at(stage.get_subscription(held["id"])["current_period_start"])
        stage.advance(0.001)
    assert ["subscription.renewal_due", "subscription.past_due"] == stage.events(held["id"])[len(told) :]


# -- bills


@pytest.mark.parametrize(("interval", "length"), [("day", 1), ("week", 7)])
@pytest.mark.parametrize("method", ["pix", "boleto"])
def test_pix_and_boleto_are_billed_before_the_end(stage: Stage, method: str, interval: str, length: int) -> None:
    """Three days, or half a short period; payable until the grace is over."""
    held = member(stage, plan_of(stage, interval=interval), method=method)
    end, lead = at(held["current_period_end"]), days(min(3, length / 2))
    stage.advance(length * DAY)
    bill = bill_of(stage, held)
    grace = end + days(length)
    assert (method, end - lead, grace if method == "pix" else banking_day_from(grace)) == (
        bill["paymentMethod"],
        at(bill["createdAt"]),
        at(bill["last_transaction"]["expires_at"]),
    )


def test_a_card_is_charged_by_itself_at_the_end_of_the_period(stage: Stage) -> None:
    """Not a millisecond earlier; billed, paid and renewed at one instant, without being past due."""
    held = member(stage, plan_of(stage), method="credit_card")
    stage.advance(7 * DAY - 0.001)
    assert held["orderId"] == stage.get_subscription(held["id"])["lastOrderId"]
    stage.advance(0.001)
    now, charge = stage.get_subscription(held["id"]), bill_of(stage, held)
    end = held["current_period_end"]
    assert ("active", 1, end) == (now["status"], now["cycle"], now["current_period_start"])
    assert at(end) + days(7) == at(now["current_period_end"])
    assert ("credit_card", "paid", end, end) == (
        charge["paymentMethod"],
        charge["status"],
        charge["createdAt"],
        charge["last_transaction"]["paid_at"],
    )
    assert ["order.created", "order.paid"] == stage.events(charge["id"])
    told = ["subscription.created", "subscription.renewal_due", "subscription.renewed"]
    assert told == stage.events(held["id"])
    stage.advance(70 * DAY)
    assert ("active", 11) == tuple(stage.get_subscription(held["id"])[name] for name in ("status", "cycle"))


@pytest.mark.parametrize(
    ("magic", "status"),
    [("fail_immediately", "failed"), ("fill_never", "expired"), ("expire_immediately", "expired")],
)
def test_a_card_whose_owner_has_a_failing_address_is_not_charged(stage: Stage, magic: str, status: str) -> None:
    """Past due at the end, and over when the grace is."""
    held = member(stage, plan_of(stage), method="credit_card")
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": f"{magic}@example.com"}))
    stage.go_to(held["current_period_end"])
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.advance(7 * DAY)
    assert ("expired", status) == (stage.get_subscription(held["id"])["status"], bill_of(stage, held)["status"])


@pytest.mark.parametrize("magic", ["succeed_immediately", "succeed_with_delay"])
def test_a_card_whose_owner_has_a_paying_address_is_charged_at_once(stage: Stage, magic: str) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": f"{magic}@example.com"}))
    stage.go_to(held["current_period_end"])
    assert ("active", "paid") == (stage.get_subscription(held["id"])["status"], bill_of(stage, held)["status"])


@pytest.mark.parametrize(
    ("magic", "status", "told", "later"),
    [
        (None, "paid", ["order.created", "order.paid"], "paid"),
        ("succeed_immediately", "paid", ["order.created", "order.paid"], "paid"),
        ("refund_after_payment", "paid", ["order.created", "order.paid"], "refunded"),
        ("fail_immediately", "failed", ["order.created", "order.payment_failed"], "failed"),
        ("succeed_with_delay", "pending", ["order.created"], "paid"),
        ("fill_never", "pending", ["order.created"], "pending"),
        ("expire_immediately", "pending", ["order.created"], "expired"),
        ("expire_with_delay", "pending", ["order.created"], "expired"),
    ],
)
def test_a_first_order_by_card_is_paid_or_failed_in_its_answer(
    stage: Stage, magic: str | None, status: str, told: list[str], later: str
) -> None:
    """Unless a magic value delays or expires it; the subscription is there with the answer."""
    document = fresh_cpf()
    new = order(stage, plan_of(stage), buyer(f"{magic or 'm'}.{document}@example.com"), "credit_card")
    assert (status, told) == (new["status"], stage.events(new["id"])[: len(told)])
    opened = done(stage.api.get("/v2/subscriptions", params={"orderId": new["id"]}))["subscriptions"]
    assert ([("active", "credit_card")] if status == "paid" else []) == [
        (held["status"], held["paymentMethod"]) for held in opened
    ]
    stage.advance(180)
    assert later == stage.get_order(new["id"])["status"]


def test_the_method_follows_the_last_paid_order(stage: Stage) -> None:
    """Paid by card once, renewed by card; paid by PIX, billed by PIX."""
    held = member(stage, plan_of(stage))
    pay_again(stage, held, method="credit_card")
    assert "credit_card" == stage.get_subscription(held["id"])["paymentMethod"]
    stage.advance(14 * DAY)
    charge = bill_of(stage, held)
    assert ("credit_card", "paid") == (charge["paymentMethod"], charge["status"])
    pay_again(stage, held)
    assert "pix" == stage.get_subscription(held["id"])["paymentMethod"]
    stage.advance(12 * DAY)
    bill = bill_of(stage, held)
    assert ("pix", "pending") == (bill["paymentMethod"], bill["status"])


@pytest.mark.parametrize(
    ("terms", "attempts"),
    [
        ({"interval": "week"}, [0, 1, 3, 5]),
        ({"interval": "month"}, [0, 1, 3, 5]),
        ({"interval": "day", "interval_count": 4}, [0, 1, 3]),
        ({"interval": "day"}, [0]),
    ],
)
def test_a_declined_card_is_charged_again(stage: Stage, terms: Json, attempts: list[int]) -> None:
    """After 1, 3 and 5 days, by an order each time, until the grace is over; renewal_due and past_due come once."""
    held = member(stage, plan_of(stage, **terms), method="credit_card")
    decline(stage, held)
    end = at(held["current_period_end"])
    stage.go_to(held["current_period_end"])
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.advance(8 * DAY)
    found = done(stage.api.get("/v2/orders", params={"subscriptionId": held["id"], "sort": "createdAt"}))["orders"]
    assert [end + days(wait) for wait in attempts] == [at(each["createdAt"]) for each in found[1:]]
    for each in found[1:]:
        assert ("failed", ["order.created", "order.payment_failed"]) == (each["status"], stage.events(each["id"]))
    told = ["subscription.created", "subscription.renewal_due", "subscription.past_due", "subscription.expired"]
    assert told == stage.events(held["id"])


def test_a_card_that_pays_at_the_second_attempt_renews_from_the_old_end(stage: Stage) -> None:
    held = member(stage, plan_of(stage), method="credit_card")
    decline(stage, held)
    stage.go_to(held["current_period_end"])
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": f"m.{fresh_cpf()}@example.com"}))
    stage.advance(DAY)
    now, charge = stage.get_subscription(held["id"]), bill_of(stage, held)
    assert ("active", 1, held["current_period_end"]) == (now["status"], now["cycle"], now["current_period_start"])
    assert ["order.created", "order.paid"] == stage.events(charge["id"])
    stage.advance(5 * DAY)
    assert charge["id"] == stage.get_subscription(held["id"])["lastOrderId"]


def test_a_card_whose_order_can_still_be_paid_is_not_charged_again(stage: Stage) -> None:
    """Once that order fails by hand, the next attempt follows."""
    held = member(stage, plan_of(stage), method="credit_card")
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": f"fill_never.{fresh_cpf()}@example.com"}))
    stage.go_to(held["current_period_end"])
    bill = bill_of(stage, held)
    stage.advance(2 * DAY)
    assert bill == bill_of(stage, held)
    stage.drive("orders", bill["id"], "fail")
    stage.advance(DAY)
    assert bill["id"] != stage.get_subscription(held["id"])["lastOrderId"]


def test_activated_names_the_state_before(stage: Stage) -> None:
    """Only the end of a trial activates; what begins active says so in `created`."""
    events = {}
    for trial in (0, 5):
        held = member(stage, plan_of(stage, trial_period_days=trial))
        stage.advance(5 * DAY)
        page = done(stage.control.get("/events", params={"resource_id": held["id"]}))["events"]
        events[trial] = [(each["type"], each["data"]) for each in reversed(page)]
    (created_,) = [data for name, data in events[0] if name in ("subscription.created", "subscription.activated")]
    assert ("active", None) == (created_["subscription"]["status"], created_["previous_status"])
    assert ["trialing"] == [data["previous_status"] for name, data in events[5] if name == "subscription.activated"]


# -- thinking better of it


def leaving(stage: Stage, **terms: Any) -> Json:
    """A subscription that is to be canceled at the end of its period."""
    held = member(stage, plan_of(stage, **terms))
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    return stage.get_subscription(held["id"])


@pytest.mark.parametrize("trial", [0, 5])
def test_cancel_at_is_the_end_of_what_is_paid(stage: Stage, trial: int) -> None:
    """Of the paid period also while a trial runs before it; once it has ended, that is when it was."""
    held = leaving(stage, trial_period_days=trial)
    assert at(held["createdAt"]) + days(trial + 7) == at(held["cancel_at"])
    stage.go_to(held["cancel_at"])
    now = stage.get_subscription(held["id"])
    assert ("canceled", held["cancel_at"], held["cancel_at"]) == (now["status"], now["ended_at"], now["cancel_at"])


def test_what_is_not_to_be_canceled_has_no_cancel_at(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    assert held["cancel_at"] is None
    stage.go_to(held["current_period_end"])
    assert stage.get_subscription(held["id"])["cancel_at"] is None
    stage.drive("subscriptions", held["id"], "expire")
    assert stage.get_subscription(held["id"])["cancel_at"] is None


@pytest.mark.parametrize("again", ["order", "card", "renew"])
def test_a_paid_order_takes_the_cancellation_back(stage: Stage, again: str) -> None:
    """In the step that renews: one event, and the next bill comes in its time."""
    held = leaving(stage)
    if again == "renew":
        stage.drive("subscriptions", held["id"], "renew")
    else:
        pay_again(stage, held, **({"method": "credit_card"} if again == "card" else {}))
    now = stage.get_subscription(held["id"])
    end = now["current_period_end"]
    assert at(held["current_period_end"]) + days(7) == at(end)
    assert (False, None, None, end) == tuple(
        now[name] for name in ("cancel_at_period_end", "canceled_at", "cancel_at", "next_billing_at")
    )
    assert ["subscription.created", "subscription.renewed"] == stage.events(held["id"])
    stage.go_to(end)
    assert "subscription.renewal_due" in stage.events(held["id"])


@pytest.mark.parametrize("due", [False, True])
def test_a_resumed_subscription_is_billed_in_its_time(stage: Stage, due: bool) -> None:
    """At once if its lead has begun; resuming itself raises nothing."""
    held = leaving(stage)
    if due:
        stage.advance(5 * DAY)
    shown = stage.drive("subscriptions", held["id"], "resume")["subscription"]
    end = held["current_period_end"]
    assert (False, None, None, end) == tuple(
        shown[name] for name in ("cancel_at_period_end", "canceled_at", "cancel_at", "next_billing_at")
    )
    told = ["subscription.created", "subscription.renewal_due"]
    assert told[: 1 + due] == stage.events(held["id"])
    assert due == (bill_of(stage, held)["status"] == "pending")
    stage.advance(5 * DAY)
    assert told == stage.events(held["id"])[:2]


def test_only_what_is_to_be_canceled_can_be_resumed(stage: Stage) -> None:
    """And nothing of an archived project."""
    held = member(stage, plan_of(stage))
    refused(stage.control.post(f"/subscriptions/{held['id']}/resume"), 409, "invalid_state_transition")
    stage.drive("subscriptions", held["id"], "cancel")
    refused(stage.control.post(f"/subscriptions/{held['id']}/resume"), 409, "invalid_state_transition")
    over = leaving(stage)
    stage.go_to(over["cancel_at"])
    refused(stage.control.post(f"/subscriptions/{over['id']}/resume"), 409, "invalid_state_transition")
    last = leaving(stage)
    move(stage, last, "archive")
    refused(stage.control.post(f"/subscriptions/{last['id']}/resume"), 409, "project_archived")
    refused(stage.control.post(f"/subscriptions/{last['id']}/renew"), 409, "project_archived")
    assert stage.get_subscription(last["id"])["cancel_at_period_end"]


# -- no bill of the dead


@pytest.mark.parametrize("later", [False, True])
def test_to_cancel_a_subscription_cancels_its_open_bill_at_once(stage: Stage, later: bool) -> None:
    """Also when it runs to the end of its period: nothing will be renewed."""
    held = member(stage, plan_of(stage))
    bill = billed(stage, held)
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=later)
    assert ("canceled", stage.now()) == tuple(stage.get_order(bill["id"])[name] for name in ("status", "updatedAt"))
    now = stage.get_subscription(held["id"])
    assert ("active" if later else "canceled", None) == (now["status"], now["next_billing_at"])
    stage.advance(30 * DAY)
    after = stage.get_subscription(held["id"])
    assert ("canceled", bill["id"]) == (after["status"], after["lastOrderId"])
    assert (held["current_period_end"] if later else now["ended_at"]) == after["ended_at"]


def test_one_that_is_past_due_has_no_period_to_run_out(stage: Stage) -> None:
    """To cancel it for the end of its period cancels it now."""
    held = member(stage, plan_of(stage))
    stage.go_to(held["current_period_end"])
    bill = bill_of(stage, held)
    shown = stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)["subscription"]
    assert ("canceled", stage.now(), False) == (shown["status"], shown["ended_at"], shown["cancel_at_period_end"])
    assert "canceled" == stage.get_order(bill["id"])["status"]


def test_to_expire_a_subscription_cancels_its_open_bill(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    stage.go_to(held["current_period_end"])
    shown = stage.drive("subscriptions", held["id"], "expire")
    assert ("expired", "canceled") == (shown["subscription"]["status"], shown["order"]["status"])


def test_an_archived_project_lets_go_of_who_is_past_due(stage: Stage) -> None:
    """And cancels the bill; who has paid stays to the end of the period."""
    plan = plan_of(stage)
    late = member(stage, plan)
    stage.go_to(late["current_period_end"])
    paid = member(stage, plan)
    bill = bill_of(stage, late)
    move(stage, late, "archive")
    now = stage.get_subscription(late["id"])
    assert ("canceled", stage.now(), "canceled") == (
        now["status"],
        now["ended_at"],
        stage.get_order(bill["id"])["status"],
    )
    assert ("active", True) == tuple(stage.get_subscription(paid["id"])[n] for n in ("status", "cancel_at_period_end"))
    stage.go_to(paid["current_period_end"])
    assert "canceled" == stage.get_subscription(paid["id"])["status"]


# -- money back


def renewed_twice(stage: Stage) -> tuple[Json, list[str]]:
    """A subscription with a running period and two paid ones after it, and the three orders."""
    held = member(stage, plan_of(stage))
    orders = [held["orderId"]]
    for _ in range(2):
        orders.append(stage.drive("subscriptions", held["id"], "renew")["order"]["id"])
    return stage.get_subscription(held["id"]), orders


def test_money_back_for_the_running_period_cancels_the_subscription(stage: Stage) -> None:
    """The first order while its period runs, the renewal when its own does; the open bill goes with it."""
    held, orders = renewed_twice(stage)
    stage.advance(19 * DAY)  # the third period, with the next one billed
    bill = bill_of(stage, held)
    assert "pending" == bill["status"]
    stage.drive("orders", orders[2], "refund")
    assert ("canceled", "canceled") == (
        stage.get_subscription(held["id"])["status"],
        stage.get_order(bill["id"])["status"],
    )


@pytest.mark.parametrize("which", [1, 2])
def test_money_back_for_a_later_period_takes_that_period_off(stage: Stage, which: int) -> None:
    """The subscription goes on, one period less far; nothing is told of it."""
    held, orders = renewed_twice(stage)
    told = stage.events(held["id"])
    stage.drive("orders", orders[which], "refund")
    now = stage.get_subscription(held["id"])
    end = at(held["current_period_end"]) - days(7)
    assert ("active", 1, held["current_period_start"]) == (now["status"], now["cycle"], now["current_period_start"])
    assert end == at(now["current_period_end"]) == at(now["next_billing_at"])
    assert told == stage.events(held["id"])
    stage.advance(14 * DAY)
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    assert end - days(3) == at(bill_of(stage, held)["createdAt"])


def test_what_is_due_already_when_a_period_is_taken_off_is_billed_at_once(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    again = pay_again(stage, held)
    stage.advance(5 * DAY)
    assert again["id"] == stage.get_subscription(held["id"])["lastOrderId"]
    stage.drive("orders", again["id"], "refund")
    bill = bill_of(stage, held)
    assert ("pending", stage.now()) == (bill["status"], bill["createdAt"])
    assert at(held["current_period_end"]) + days(7) == at(bill["last_transaction"]["expires_at"])


def test_an_address_that_takes_its_money_back_does_so_once(stage: Stage) -> None:
    """The bill that follows the refund was paid and refunded too, and so on every minute."""
    held = member(stage, plan_of(stage))
    email = f"refund_after_payment.{held['code'].lower()}@example.com"
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": email}))
    stage.advance(4 * DAY)  # the first bill
    stage.advance(60)
    assert ["paid", "refunded", "pending"] == [one["status"] for one in bills_of(stage, held)]
    stage.advance(DAY)
    bills = bills_of(stage, held)
    assert ["paid", "refunded", "pending"] == [one["status"] for one in bills]
    stage.drive("orders", bills[2]["id"], "pay")
    stage.advance(7 * DAY)  # the bill of the period after it is again one of the address's
    assert ["paid", "refunded", "paid", "refunded", "pending"] == [one["status"] for one in bills_of(stage, held)]
    assert ("active", 1) == itemgetter("status", "cycle")(stage.get_subscription(held["id"]))


def bills_of(stage: Stage, held: Json) -> list[Json]:
    """The orders of a subscription, oldest first."""
    query = {"subscriptionId": held["id"], "sort": "createdAt", "limit": 100}
    found: list[Json] = done(stage.api.get("/v2/orders", params=query))["orders"]
    return found


def test_money_back_for_a_period_that_is_over_changes_nothing(stage: Stage) -> None:
    held, orders = renewed_twice(stage)
    stage.advance(8 * DAY)
    before = stage.get_subscription(held["id"])
    stage.drive("orders", orders[0], "refund")
    assert before == stage.get_subscription(held["id"])
    stage.go_to(held["current_period_end"])
    late = stage.get_subscription(held["id"])
    stage.drive("orders", orders[2], "refund")
    assert ("past_due", late) == (late["status"], stage.get_subscription(held["id"]))


def test_part_of_the_money_back_changes_no_subscription(stage: Stage) -> None:
    held, orders = renewed_twice(stage)
    for ident in orders:
        shown = stage.drive("orders", ident, "refund", amount=1)["order"]
        assert "partially_refunded" == shown["last_transaction"]["status"]
    assert held == stage.get_subscription(held["id"])


def test_a_trial_without_its_first_payment_is_over_and_one_without_a_later_one_is_not(stage: Stage) -> None:
    plan = plan_of(stage, trial_period_days=5)
    held = member(stage, plan)
    again = pay_again(stage, held)
    stage.drive("orders", again["id"], "refund")
    assert held | {"updatedAt": "", "lastOrderId": ""} == stage.get_subscription(held["id"]) | {
        "updatedAt": "",
        "lastOrderId": "",
    }
    stage.drive("orders", held["orderId"], "refund")
    assert "canceled" == stage.get_subscription(held["id"])["status"]


@pytest.mark.parametrize("method", METHODS)
def test_a_renewal_of_every_method_is_paid_by_hand_before_its_end(stage: Stage, method: str) -> None:
    held = member(stage, plan_of(stage), method=method)
    shown = stage.drive("subscriptions", held["id"], "renew")
    assert (method, "paid") == (shown["order"]["paymentMethod"], shown["order"]["status"])
    assert at(held["current_period_end"]) + days(7) == at(shown["subscription"]["current_period_end"])


def test_a_one_time_order_renews_nothing(stage: Stage) -> None:
    plan = plan_of(stage, billing_type="one_time")
    first = make_order(stage.api, plan)
    stage.drive("orders", first["id"], "pay")
    assert None is done(stage.control.get(f"/orders/{first['id']}"))["subscriptionId"]
