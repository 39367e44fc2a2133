"""What a list finds by more than one record or entry.

Each filter, range and sort order is held to a reading of all records in `tests/lists`.
"""

import httpx2

from ..support.make import done, make_order, make_plan
from .members import member
from .stage import Stage


def test_of_several_entries_of_metadata_all_are_there(api: httpx2.Client) -> None:
    order = make_order(api, make_plan(api), metadata={"cart": "a:1", "shop": "sul"})
    for entries, found in (
        (["shop:sul", "cart:a:1"], [order["id"]]),
        (["shop:sul", "cart:b"], []),
        (["shop:sul", "cart:a"], []),
    ):
        page = done(api.get("/v2/orders", params={"metadata": entries}))
        assert found == [each["id"] for each in page["orders"]], entries


def test_a_subscription_is_found_by_the_name_that_its_customer_has_now(stage: Stage) -> None:
    buyer = {"name": "Zuleica Prates", "email": "zu@example.com", "document": "52998224725"}
    held = member(stage, make_plan(stage.api), buyer)
    done(stage.api.put(f"/v2/customers/{held['customerId']}", json={"name": "Zuleide Prates"}))
    for text, found in (("zuleica", []), ("ZULEIDE", [held["id"]])):
        page = done(stage.api.get("/v2/subscriptions", params={"search": text}))
        assert found == [each["id"] for each in page["subscriptions"]], text


def test_the_contract_has_the_catalogues_of_the_source(api: httpx2.Client) -> None:
    schemas = done(api.get("/openapi.json"))["components"]["schemas"]
    assert {"ScopeCatalog", "WebhookEventCatalog"} <= schemas.keys()
