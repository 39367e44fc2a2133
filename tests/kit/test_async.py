"""The same for tests that await, under asyncio and trio."""

import pytest

from stub_server.testing import AsyncSandbox

pytestmark = [pytest.mark.check, pytest.mark.anyio, pytest.mark.sandbox(now="2026-11-20T12:00:00Z")]


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
