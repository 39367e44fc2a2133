"""What a subscription shows: customer and plan as they are now, and the calendar of Brasília."""

from datetime import timedelta, timezone

import pytest

from ..support.make import make_plan
from .members import at, bill_of, buyer, member, order, plan_of
from .stage import DAY, Stage
from .steps import done

SAO_PAULO = timezone(timedelta(hours=-3))
NOW = {
    "name": "Marina Duarte Lima",
    "email": "nova@example.org",
    "phones": {"mobile_phone": {"country_code": "55", "area_code": "21", "number": "987651234"}},
    "address": {"line_1": "10, Rua Nova", "zip_code": "22070001", "city": "Rio de Janeiro", "state": "RJ"},
}


@pytest.mark.parametrize("state", ["active", "canceled"])
def test_a_subscription_shows_its_customer_and_plan_as_they_are_now(stage: Stage, state: str) -> None:
    """Also one that is over; nothing else of it changes, in the list as on the control surface and in events."""
    held = member(stage, plan_of(stage))
    if state == "canceled":
        stage.drive("subscriptions", held["id"], "cancel")
    before = stage.get_subscription(held["id"])
    stage.advance(60)
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json=NOW))
    done(stage.api.put(f"/v2/plans/{held['planId']}", json={"name": "Plano Novo"}))
    expected = before | {
        "customer": {"id": held["customerId"], "name": NOW["name"], "email": NOW["email"]},
        "plan": {"id": held["planId"], "name": "Plano Novo"},
    }
    assert expected == stage.get_subscription(held["id"])
    if state == "canceled":
        assert expected == stage.drive("subscriptions", held["id"], "cancel")["subscription"]
        return
    shown = stage.drive("subscriptions", held["id"], "cancel")["subscription"]
    (event,) = done(stage.control.get("/events", params={"resource_id": held["id"], "type": "subscription.canceled"}))[
        "events"
    ]
    for told in (shown, event["data"]["subscription"]):
        assert (expected["customer"], expected["plan"]) == (told["customer"], told["plan"])


def test_a_renewal_is_addressed_to_the_customer_as_he_is_now_and_orders_keep_what_they_had(stage: Stage) -> None:
    held = member(stage, plan_of(stage))
    first = stage.get_order(held["orderId"])
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json=NOW))
    stage.advance(5 * DAY)
    bill = bill_of(stage, held)
    document = first["customer"]["document"]
    assert {
        "name": NOW["name"],
        "email": NOW["email"],
        "document": document,
        "document_type": "cpf",
        "type": "individual",
        "phones": {"mobile_phone": "+5521987651234"},
        "address": NOW["address"],
    } == bill["customer"]
    assert first == stage.get_order(held["orderId"])
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"name": "Outra"}))
    assert bill == stage.get_order(bill["id"])


def test_a_subscription_of_a_deleted_plan_shows_it_as_it_was(stage: Stage) -> None:
    held = member(stage, plan_of(stage, name="Plano Antigo"))
    stage.drive("subscriptions", held["id"], "cancel")
    done(stage.api.delete(f"/v2/plans/{held['planId']}"))
    assert {"id": held["planId"], "name": "Plano Antigo"} == stage.get_subscription(held["id"])["plan"]


# -- the calendar


@pytest.mark.parametrize(
    ("bought", "interval", "ends"),
    [
        ("02-28T22:30", "month", "03-28T22:30"),
        ("02-28T20:30", "month", "03-28T20:30"),
        ("03-31T21:00", "month", "04-30T21:00"),
        ("03-31T20:59", "month", "04-30T20:59"),
        ("02-28T22:30", "week", "03-07T22:30"),
    ],
)
def test_a_period_ends_on_the_same_day_and_hour_of_brasilia(
    stage: Stage, bought: str, interval: str, ends: str
) -> None:
    """Where UTC says another date already, the calendar of the buyer counts."""
    year = at(stage.now()).year + 1
    while year % 4 == 0:  # February is to have 28 days
        year += 1
    plan, who = make_plan(stage.api, interval=interval), buyer()
    stage.go_to(at(f"{year}-{bought}:00-03:00").isoformat())
    first = order(stage, plan, who)
    stage.drive("orders", first["id"], "pay")
    held = stage.subscription_of(first["id"])
    end = at(held["current_period_end"]).astimezone(SAO_PAULO)
    assert f"{year}-{ends}" == end.isoformat()[:16]


# -- keys whose end has passed
