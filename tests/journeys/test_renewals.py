"""Renewals: who pays again renews, a period that is paid early waits for the old one, and a card charges itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from ..support.banking import banking_day_from
from ..support.live import Live
from ..support.make import Json, fresh_cpf
from .members import (
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


# -- paying early


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


# -- thinking better of it


def leaving(stage: Stage, **terms: Any) -> Json:
    """A subscription that is to be canceled at the end of its period."""
    held = member(stage, plan_of(stage, **terms))
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    return stage.get_subscription(held["id"])


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
