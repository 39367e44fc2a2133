"""The same for tests that await, under asyncio and trio."""

import httpx2
import pytest

from stub_server.testing import AsyncSandbox, asgi

pytestmark = [pytest.mark.check, pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_methods_are_awaited(async_sandbox: AsyncSandbox) -> None:
    inbox = await async_sandbox.inbox(["order.paid"])
    order = await async_sandbox.order()
    async with async_sandbox.snapshot():
        await async_sandbox.pay(order)
        assert order["id"] == (await inbox.wait_for("order.paid"))["data"]["order"]["id"]
        assert order["id"] == (await async_sandbox.subscription(order))["orderId"]
    async with async_sandbox.fault("outage"):
        assert 503 == (await async_sandbox.api.get("/v2/plans")).status_code
    assert "pending" == (await async_sandbox.api.get(f"/v2/orders/{order['id']}")).json()["status"]
    await async_sandbox.verify("createPixOrder", status=201)


async def test_a_server_needs_no_port() -> None:
    async with asgi(scenario="empty", now="2027-01-01") as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:4600") as client:
            token = (await client.get("/_sandbox/credentials")).json()["jwt"]
            listed = await client.get("/v2/customers", headers={"Authorization": f"Bearer {token}"})
            assert ([], 200) == (listed.json()["customers"], listed.status_code)
