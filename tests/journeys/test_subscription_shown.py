"""What a subscription shows: customer and plan as they are now."""

from ..support.make import done
from .members import bill_of, member, plan_of
from .stage import DAY, Stage

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
