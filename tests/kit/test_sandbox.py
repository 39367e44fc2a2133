"""What the kit gives a test, each as its documentation says."""

from collections.abc import Callable
from datetime import date

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from stub_server.server.protocol import Limits
from stub_server.testing import Refused, Sandbox, connected, running

from ..support.live import NO_TLS, serving

pytestmark = [pytest.mark.check, pytest.mark.sandbox(now="2026-11-20T12:00:00Z")]


def test_orders_end_in_every_way(sandbox: Sandbox) -> None:
    assert "expired" == sandbox.expire(sandbox.order())["status"]
    assert "failed" == sandbox.fail(sandbox.order())["status"]
    assert "disputed" == sandbox.dispute(sandbox.pay(sandbox.order()))["status"]
    refunded = sandbox.refund(sandbox.pay(sandbox.order()))
    assert "refunded" == refunded["status"]
    with pytest.raises(Refused, match="answered 409") as error:
        sandbox.pay(refunded)
    assert "order_not_payable" == error.value.code


def test_an_empty_sandbox_gets_what_an_order_needs(sandbox_factory: Callable[..., Sandbox]) -> None:
    sandbox = sandbox_factory(scenario="empty")
    assert "active" == sandbox.subscription(sandbox.pay(sandbox.order()))["status"]
    sandbox.order()
    assert 1 == len(sandbox.api.get("/v2/plans").json()["plans"])


@pytest.mark.sandbox(scenario="empty", now="2027-01-01", autopay=5)
def test_the_marker_says_what_it_begins_with(sandbox: Sandbox) -> None:
    assert "2027-01-01T00:00:00.000Z" == sandbox.control.get("/clock").json()["now"]
    assert 5 == sandbox.control.get("/settings").json()["autopay"]
    assert [] == sandbox.api.get("/v2/customers").json()["customers"]


def test_time_is_moved_and_asked_back(sandbox: Sandbox) -> None:
    order = sandbox.order()
    sandbox.pay(order)
    before = sandbox.subscription(order)["status"]
    with sandbox.snapshot():
        sandbox.advance(days=200)
        assert "expired" == sandbox.subscription(order)["status"]
    assert before == sandbox.subscription(order)["status"]
    sandbox.travel("2027-06-01T12:00:00-03:00")
    assert "2027-06-01T15:00:00.000Z" == sandbox.control.get("/clock").json()["now"]
    assert 404 == sandbox.as_of(0).get(f"/v2/orders/{order['id']}").status_code
    assert 200 == sandbox.as_of("2026-11-20T12:00:00Z").get(f"/v2/orders/{order['id']}").status_code


def test_a_token_has_the_scopes_that_were_asked_for(sandbox: Sandbox) -> None:
    some = sandbox.credentials(["orders:read"])
    assert (
        200
        == httpx2.get(f"{sandbox.url}/v2/orders", headers=some.headers, verify=NO_TLS).status_code
    )
    assert (
        403
        == httpx2.get(f"{sandbox.url}/v2/plans", headers=some.headers, verify=NO_TLS).status_code
    )
    monkeyed = httpx2.get(
        f"{sandbox.env['STUB_URL']}/v2/plans",
        headers={"Authorization": f"Bearer {sandbox.token}"},
        verify=NO_TLS,
    )
    assert 200 == monkeyed.status_code


def test_requests_fail_for_as_long_as_a_block(sandbox: Sandbox) -> None:
    with sandbox.fault("outage") as fault:
        assert 503 == sandbox.api.get("/v2/plans").status_code
        assert 1 == fault.hits
    assert 1 == fault.hits
    assert 200 == sandbox.api.get("/v2/plans").status_code
    sandbox.fault(match={"operationId": "listPlans"}, then={"status": 500})
    assert [200, 500] == [sandbox.api.get(path).status_code for path in ("/v2/orders", "/v2/plans")]


def test_webhooks_arrive_in_an_inbox(sandbox: Sandbox) -> None:
    inbox = sandbox.inbox(["order.*"])
    order = sandbox.order()
    sandbox.pay(order)
    assert order["id"] == inbox.wait_for("order.paid")["data"]["order"]["id"]
    assert order["id"] == inbox.wait_for("order.created")["data"]["order"]["id"]
    assert all(message["verified"] for message in inbox.messages())
    assert inbox.signing_key
    assert {"order.paid"} == {message["event_type"] for message in inbox.messages("order.paid")}
    with pytest.raises(
        AssertionError, match=r"No further order\.paid arrived in 0\.1 s, but: .*order\.created"
    ):
        inbox.wait_for("order.paid", timeout=0.1)


def test_what_was_sent_is_asserted(sandbox: Sandbox) -> None:
    sandbox.order()
    assert 1 == len(sandbox.verify("createPixOrder", status=201, body={"paymentMethod": "pix"}))
    sandbox.verify("createPixOrder", times=0, status=422)
    with pytest.raises(AssertionError, match=r"(?s)there were 0.*nearest.*req_.*totalAmount.*3"):
        sandbox.verify("createPixOrder", body={"totalAmount": 3})
    with pytest.raises(AssertionError, match="createPixOrder"):  # what was probably meant
        sandbox.verify("createPixOder", times=0)
    with pytest.raises(AssertionError, match=r"(?s)exactly.: 0.*there were 1.*req_\w+"):
        sandbox.verify("createPixOrder", times=0)
    with pytest.raises(Refused, match="operation"):
        sandbox.requests(operation="createPixOrder")
    assert ["createPixOrder"] == [
        each["operationId"] for each in sandbox.requests(operationId="createPixOrder")
    ]


@pytest.mark.parametrize("number", range(2))
def test_nothing_of_one_test_is_seen_by_another(sandbox: Sandbox, number: int) -> None:
    assert not sandbox.api.get("/v2/customers", params={"email": "cliente1@example.com"}).json()[
        "customers"
    ]
    assert 1 == len(sandbox.requests())
    sandbox.customer()


def test_a_server_with_a_key_is_opened_by_it() -> None:
    with running("--scenario", "empty", admin_key="secret") as server:
        with (
            connected(server.url, "secret") as again,
            again.sandbox(now=date(2027, 1, 1)) as sandbox,
        ):
            assert "2027-01-01T00:00:00.000Z" == sandbox.control.get("/clock").json()["now"]
        with pytest.raises(Refused, match="--sandbox-admin-key"), connected(server.url):
            pass
        # of the application, not of the sandbox
        with pytest.raises(httpx2.ConnectError, match="refused"):
            httpx2.get("http://127.0.0.1:9", verify=NO_TLS)


@pytest.mark.parametrize("text", ["<html>", "{}", "[]", "null"])
def test_a_server_that_is_no_sandbox_is_refused(text: str) -> None:
    """It answers every path."""
    every = ["GET", "POST", "DELETE"]
    other = Starlette(routes=[Route("/{path:path}", lambda request: Response(text), methods=every)])
    with (
        serving(other, Limits()) as port,
        pytest.raises(Refused, match="it is no sandbox of this version"),
        connected(f"http://127.0.0.1:{port}"),
    ):
        pytest.fail("it was taken for a sandbox")


def test_a_persona_is_somebody_in_that_state(sandbox: Sandbox) -> None:
    first = sandbox.customer(persona="past_due_br", name="Iara Menezes")
    second = sandbox.customer(persona="past_due_br", planId=sandbox.sample["planId"])
    assert ("Iara Menezes", False) == (first["name"], first["id"] == second["id"])
    for customer in (first, second):
        answer = sandbox.api.get("/v2/subscriptions", params={"customerId": customer["id"]})
        assert [each["status"] for each in answer.json()["subscriptions"]] == ["past_due"]
    with pytest.raises(Refused, match="nobody"):
        sandbox.customer(persona="nobody")


def test_a_deleted_sandbox_is_not_made_anew(sandbox: Sandbox) -> None:
    sandbox.delete()
    with pytest.raises(Refused, match="was deleted"):
        sandbox.order()
    sandbox.delete()
