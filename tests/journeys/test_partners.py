"""Keys of partners: one that is restricted to projects sees the customers of these and
nobody else's.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest

from ..support.make import (
    Json,
    created,
    done,
    fresh_cpf,
    make_customer,
    make_order,
    make_plan,
    make_project,
    order_body,
)
from .stage import Stage
from .steps import refused, restricted_key

SCOPES = (
    *("customers:read", "customers:write", "orders:read", "orders:write"),
    *("subscriptions:read", "webhooks:read", "webhooks:write"),
)
Partner = Callable[[str], httpx2.Client]
HIDDEN = {"name": "Helena Prado", "email": "helena.prado@example.com"}
SAID = {"name": "H. P.", "email": "hp@example.org"}


@pytest.fixture
def partner(stage: Stage) -> Iterator[Partner]:
    """`partner(project_id)`: the API with a new key that is restricted to the project."""
    with ExitStack() as stack:
        yield lambda project_id: stack.enter_context(restricted_key(stage.api, project_id, *SCOPES))


def listed(api: httpx2.Client, **query: str) -> list[str]:
    """The ids of the customers that a caller is shown, whose number the pagination must give."""
    page = done(api.get("/v2/customers", params=query | {"limit": "100"}))
    ids = [customer["id"] for customer in page["customers"]]
    assert len(ids) == page["pagination"]["total"]
    return ids


def customer_of(api: httpx2.Client, document: str) -> str:
    """The id of the customer with a document."""
    (ident,) = listed(api, document=document)
    return ident


def bought(api: httpx2.Client, plan: Json, document: str, **said: str) -> Json:
    """An order of somebody for a plan."""
    return make_order(api, plan, customer=SAID | said | {"document": document})


@pytest.mark.promise("key-sees-its-projects")
@pytest.mark.parametrize("by", ["jwt", "another key", "itself"])
def test_it_sees_who_has_an_order_in_its_project_whoever_placed_it(
    stage: Stage, partner: Partner, by: str
) -> None:
    mine = make_plan(stage.api)
    others = make_plan(stage.api)
    key = partner(mine["projectId"])
    neighbour = partner(others["projectId"])
    buyers = {"jwt": stage.api, "another key": partner(mine["projectId"]), "itself": key}
    documents = [fresh_cpf(), fresh_cpf()]
    bought(buyers[by], mine, documents[0])
    bought(stage.api, others, documents[1])
    seen, hidden = (customer_of(stage.api, document) for document in documents)
    assert [seen] == listed(key)
    assert [hidden] == listed(neighbour)
    assert [] == listed(key, document=documents[1])
    assert SAID["name"] == done(key.get(f"/v2/customers/{seen}"))["customer"]["name"]
    assert (
        "Outra"
        == done(key.put(f"/v2/customers/{seen}", json={"name": "Outra"}))["customer"]["name"]
    )
    refused(key.get(f"/v2/customers/{hidden}"), 404, "not_found")
    refused(key.put(f"/v2/customers/{hidden}", json={"name": "Outra"}), 404, "not_found")
    assert SAID["name"] == done(stage.api.get(f"/v2/customers/{hidden}"))["customer"]["name"]


def test_it_sees_whom_a_key_with_the_same_projects_created(stage: Stage, partner: Partner) -> None:
    project, other = (make_project(stage.api)["id"] for _ in range(2))
    key = partner(project)
    same = partner(project)
    neighbour = partner(other)
    made = make_customer(key)["id"]
    own = make_customer(stage.api)["id"]
    assert [made] == listed(key) == listed(same)
    assert [] == listed(neighbour)
    refused(neighbour.get(f"/v2/customers/{made}"), 404, "not_found")
    refused(key.get(f"/v2/customers/{own}"), 404, "not_found")
    assert {made, own} <= {*listed(stage.api)}


@pytest.mark.parametrize("method", ["pix", "credit_card"])
def test_by_an_order_it_learns_nothing_of_a_customer_it_does_not_see(
    stage: Stage, partner: Partner, method: str
) -> None:
    """Not from the customer, the order, its subscription, the next bill, nor what webhooks deliver
    of them.
    """
    plan = make_plan(stage.api, payment_methods=[method])
    key = partner(plan["projectId"])
    known = make_customer(stage.api, **HIDDEN)
    webhook = {"url": stage.sink, "events": ["*"], "projectId": plan["projectId"]}
    created(key.post("/v2/webhooks", json=webhook))
    body = order_body(
        plan["projectId"], plan["id"], customer=SAID | {"document": known["document"]}
    )
    order = created(key.post("/v2/orders", json=body | {"paymentMethod": method}))
    if method == "pix":
        stage.drive("orders", order["id"], "pay")
    assert known["id"] == done(stage.control.get(f"/orders/{order['id']}"))["customerId"]
    done(stage.api.put(f"/v2/customers/{known['id']}", json={"address": {"city": "Ouro Preto"}}))
    stage.go_to(done(stage.api.get("/v2/subscriptions"))["subscriptions"][0]["current_period_end"])
    stage.drain()

    assert [] == listed(key)
    refused(key.get(f"/v2/customers/{known['id']}"), 404, "not_found")
    orders = done(key.get("/v2/orders"))["orders"]
    assert 2 == len(orders)
    assert 2 * [order["customer"]] == [each["customer"] for each in orders]
    (held,) = done(key.get("/v2/subscriptions"))["subscriptions"]
    assert SAID == {name: held["customer"][name] for name in SAID}
    logs = done(key.get("/v2/webhooks/logs", params={"limit": 100}))["logs"]
    assert {"order.created", "subscription.created", "subscription.renewal_due"} <= {
        log["event_type"] for log in logs
    }
    texts = [key.get(f"/v2/webhooks/logs/{log['id']}").text for log in logs]
    texts += [key.get(path).text for path in ("/v2/customers", "/v2/orders", "/v2/subscriptions")]
    assert not any(
        secret in text for text in texts for secret in (*HIDDEN.values(), "987654321", "Ouro Preto")
    )
