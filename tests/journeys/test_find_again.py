"""How a client finds what it knows a part of: a cart's order, a customer, a day's
payments, one subscription.
"""

import httpx2

from ..support.make import Json, fresh_cpf, make_customer, make_order, make_plan
from .members import member, order
from .stage import Stage
from .steps import done, refused


def test_metadata_finds_the_order_of_a_cart(api: httpx2.Client) -> None:
    plan = make_plan(api, max_subscribers=None)
    first = make_order(api, plan, metadata={"cart": "a:1", "shop": "sul"})
    make_order(api, plan, metadata={"cart": "b", "shop": "sul"}, customer=_buyer(api))

    def found(*entries: str) -> list[str]:
        page = done(api.get("/v2/orders", params=[("metadata", entry) for entry in entries]))
        return [each["id"] for each in page["orders"]]

    assert [first["id"]] == found("cart:a:1") == found("shop:sul", "cart:a:1")
    assert 2 == len(found("shop:sul"))
    assert [] == found("cart:a") == found("cart:a:1", "cart:b")
    refused(api.get("/v2/orders", params={"metadata": "cart"}), 422, "validation_error")
    customer = make_customer(api, metadata={"crm": "77"})
    page = done(api.get("/v2/customers", params={"metadata": "crm:77"}))
    assert [customer["id"]] == [each["id"] for each in page["customers"]]


def _buyer(api: httpx2.Client) -> Json:
    made = make_customer(api)
    return {name: made[name] for name in ("name", "email", "document")}


def test_a_search_finds_customers_and_their_subscriptions(stage: Stage) -> None:
    plan = make_plan(stage.api)
    held = member(
        stage,
        plan,
        {"name": "Zuleica Prates", "email": "zu.prates@example.com", "document": "52998224725"},
    )
    for text in ("ZULEICA", "zu.prates", "529.982.247-25", "98224"):
        customers = done(stage.api.get("/v2/customers", params={"search": text}))["customers"]
        assert [held["customerId"]] == [each["id"] for each in customers], text
        found = done(stage.api.get("/v2/subscriptions", params={"search": text}))["subscriptions"]
        assert [held["id"]] == [each["id"] for each in found], text
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"name": "Zuleide Prates"}))
    assert not done(stage.api.get("/v2/subscriptions", params={"search": "zuleica"}))[
        "subscriptions"
    ]
    (only,) = done(stage.api.get("/v2/subscriptions", params={"id": held["id"].upper()}))[
        "subscriptions"
    ]
    assert held["id"] == only["id"]
    both = {"id": held["id"], "search": "nobody at all"}
    assert [] == done(stage.api.get("/v2/subscriptions", params=both))["subscriptions"]


def test_orders_are_found_by_the_instant_of_payment(stage: Stage) -> None:
    plan = make_plan(stage.api, billing_type="one_time")
    paid, waiting = (order(stage, plan, who) for who in (_someone(1), _someone(2)))
    stage.advance(3600)
    stage.drive("orders", paid["id"], "pay")
    at = stage.now()
    stage.advance(3600)
    stage.drive("orders", paid["id"], "refund")

    def ids(**query: str) -> list[str]:
        found = done(stage.api.get("/v2/orders", params={"planId": plan["id"], **query}))["orders"]
        return [each["id"] for each in found]

    assert [paid["id"]] == ids(paid_since=at) == ids(paid_since=at, paid_until=stage.now())
    assert [] == ids(paid_until=at)
    assert {paid["id"], waiting["id"]} == set(ids())


def _someone(number: int) -> Json:
    return {"name": f"Cliente {number}", "email": f"c{number}@example.com", "document": fresh_cpf()}


def test_an_empty_range_is_warned_of(api: httpx2.Client) -> None:
    since, until = "2026-05-02T00:00:00Z", "2026-05-01T00:00:00Z"
    for path, names in (
        ("/v2/orders", ("created_since", "created_until")),
        ("/v2/orders", ("paid_since", "paid_until")),
        ("/v2/subscriptions", ("next_billing_since", "next_billing_until")),
        ("/v2/analytics", ("from", "to")),
    ):
        answer = api.get(path, params=dict(zip(names, (since, until), strict=True)))
        assert (200, "empty_range") == (
            answer.status_code,
            answer.headers.get("X-Sandbox-Warnings"),
        ), path
        turned = api.get(path, params=dict(zip(names, (until, since), strict=True)))
        assert "X-Sandbox-Warnings" not in turned.headers


def test_what_has_no_next_billing_is_last_in_both_directions(api: httpx2.Client) -> None:
    for sort in ("next_billing_at", "-next_billing_at"):
        first = done(api.get("/v2/subscriptions", params={"sort": sort, "limit": 1}))
        assert first["subscriptions"][0]["next_billing_at"] is not None, sort
        pages = first["pagination"]["total"]
        last = done(api.get("/v2/subscriptions", params={"sort": sort, "limit": 1, "page": pages}))
        assert last["subscriptions"][0]["next_billing_at"] is None, sort


def test_the_contract_has_the_catalogues_of_the_source(api: httpx2.Client) -> None:
    schemas = done(api.get("/openapi.json"))["components"]["schemas"]
    assert {"ScopeCatalog", "WebhookEventCatalog"} <= schemas.keys()
