"""The log of deliveries keeps so many: those that are finished make room, and open ones only for
very many more.
"""

import pytest

from ..support.make import customer_body
from .inside import Inside
from .shop import Shop, shop_in

ROWS = 6  # of the small server
MOST = 30


@pytest.fixture
def shop(inside: Inside) -> Shop:
    """A world of the test's own. Nothing is sent: the server was not started."""
    return shop_in(inside)


def customers(shop: Shop, count: int) -> None:
    """So many events for who listens to them."""
    for _ in range(count):
        assert 201 == shop.ask("POST", "/v2/customers", customer_body()).status


def by_status(shop: Shop) -> dict[str, int]:
    """How many deliveries there are."""
    table = shop.world.store.webhook_logs
    return {
        status: table.count("status", status) for status in ("pending", "canceled", "delivered")
    }


def test_open_deliveries_stay_and_finished_ones_make_room(shop: Shop) -> None:
    """What is called off goes, oldest first, before anything that is still to be sent."""
    body = {"url": "http://127.0.0.1:9/hook", "events": ["customer.created"]}
    path = f"/v2/webhooks/{shop.ask('POST', '/v2/webhooks', body).json()['webhook']['id']}"
    customers(shop, ROWS + 2)
    assert 200 == shop.ask("PUT", path, {"is_active": False}).status
    assert 200 == shop.ask("GET", "/v2/webhooks").status  # what is due is done before it
    assert by_status(shop)["canceled"] > ROWS
    shop.ask("PUT", path, {"is_active": True})
    customers(shop, 2)
    assert {"pending": 2, "canceled": ROWS - 2, "delivered": 0} == by_status(shop)
    customers(shop, ROWS)
    assert {"pending": ROWS + 2, "canceled": 0, "delivered": 0} == by_status(shop)
    assert shop.world.timers.attempts_due(shop.world.clock.now) >= ROWS + 2
