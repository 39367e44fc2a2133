"""What a subscription shows: customer and plan as they are now."""

import pytest

from .members import bill_of, member, plan_of
from .stage import DAY, Stage
from .steps import done

NOW = {
    "name": "Marina Duarte Lima",
    "email": "nova@example.org",
    "phones": {"mobile_phone": {"country_code": "55", "area_code": "21", "number": "987651234"}},
    "address": {
        "line_1": "10, Rua Nova",
        "zip_code": "22070001",
        "city": "Rio de Janeiro",
        "state": "RJ",
    },
}


@pytest.mark.parametrize("state", ["active", "canceled"])
def test_a_subscription_shows_its_customer_and_plan_as_they_are_now(
    stage: Stage, state: str
) -> None:
    """Also one that is over; nothing else of it changes, in the list as on the control surface and
    in events.
    """
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
    (event,) = done(
        stage.control.get(
            "/events", params={"resource_id": held["id"], "type": "subscription.canceled"}
        )
    )["events"]
    for told in (shown, event["data"]["subscription"]):
        assert (expected["customer"], expected["plan"]) == (told["customer"], told["plan"])


def test_a_renewal_is_addressed_to_the_customer_as_he_is_now_and_orders_keep_what_they_had(
    stage: Stage,
) -> None:
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
    assert {"id": held["planId"], "name": "Plano Antigo"} == stage.get_subscription(held["id"])[
        "plan"
    ]
