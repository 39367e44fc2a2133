"""What a search of orders does not find.

What it finds is held to a reading of all orders in `tests/lists`.
"""

import httpx2
import pytest

from ..support.make import done, make_order


@pytest.mark.parametrize(
    "search", ["joao silva", "silva 390", "silva.ofertas", "47058877", "da.silva"]
)
def test_a_search_is_one_contiguous_part(api: httpx2.Client, search: str) -> None:
    """Words apart are not found, nor what begins in one member and ends in the next."""
    buyer = {
        "name": "João da Silva",
        "email": "silva+ofertas@example.com",
        "document": "39053344705",
    }
    order = make_order(
        api, customer=buyer | {"phones": {"mobile_phone": "8877", "home_phone": "11"}}
    )
    found = done(api.get("/v2/orders", params={"search": search}))["orders"]
    assert order["id"] not in [each["id"] for each in found]
