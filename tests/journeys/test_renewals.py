"""Cards: how first orders and renewals are charged.

When renewals are billed and paid is held to the model.
"""

from collections.abc import Iterator

import pytest

from ..support.live import Live
from ..support.make import Json, fresh_cpf
from .members import (
    at,
    broken,
    buyer,
    days,
    member,
    order,
    plan_of,
)
from .stage import DAY, Stage
from .steps import done


@pytest.fixture(autouse=True)
def lawful(live: Live, stage: Stage) -> Iterator[None]:
    """What every world promises holds after each journey, also for merchants who were
    not seeded.
    """
    yield
    sandbox = live.app.sandboxes.find("stage")
    assert sandbox is not None
    assert [] == broken(sandbox)


def decline(stage: Stage, held: Json) -> None:
    """Have the card of a subscriber declined from now on."""
    address = f"fail_immediately.{fresh_cpf()}@example.com"
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"email": address}))


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
    new = order(
        stage, plan_of(stage), buyer(f"{magic or 'm'}.{document}@example.com"), "credit_card"
    )
    assert (status, told) == (new["status"], stage.events(new["id"])[: len(told)])
    opened = done(stage.api.get("/v2/subscriptions", params={"orderId": new["id"]}))[
        "subscriptions"
    ]
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
    """After 1, 3 and 5 days, by an order each time, until the grace is over; renewal_due and
    past_due come once.
    """
    held = member(stage, plan_of(stage, **terms), method="credit_card")
    decline(stage, held)
    end = at(held["current_period_end"])
    stage.go_to(held["current_period_end"])
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.advance(8 * DAY)
    found = done(
        stage.api.get("/v2/orders", params={"subscriptionId": held["id"], "sort": "createdAt"})
    )["orders"]
    assert [end + days(wait) for wait in attempts] == [at(each["createdAt"]) for each in found[1:]]
    for each in found[1:]:
        assert ("failed", ["order.created", "order.payment_failed"]) == (
            each["status"],
            stage.events(each["id"]),
        )
    told = [
        "subscription.created",
        "subscription.renewal_due",
        "subscription.past_due",
        "subscription.expired",
    ]
    assert told == stage.events(held["id"])
