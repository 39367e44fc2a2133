"""The examples of refusals in the contracts say what the server says when it is asked for the same."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import httpx2
import pytest

from stub_server.sandboxes import sandboxes

from ..conftest import Serve
from ..engine.test_refusals import CONTROLS, FILE
from ..support.contract import document
from ..support.estate import Estate, client, webhook_body
from ..support.live import Live
from ..support.make import Json, created, order_body
from ..support.receiver import receiving
from ..support.requests import JSON, OPERATIONS, UNKNOWN, ask
from ..support.watched import own_shop
from .steps import archive, done
from .test_every_conflict import CAUSES, DECLARED
from .test_explain import PROVOKED, with_token

EXAMPLES: dict[str, Any] = {
    name: example["value"]
    for entry in ("openapi.yaml", "sandbox.yaml")
    for name, example in document(entry).raw["components"]["examples"].items()
    if isinstance(example["value"], dict) and example["value"].get("error") is True
}


def of_a_suspended_project(shop: Estate) -> httpx2.Response:
    done(shop.api.post(f"/v2/projects/{shop.ids['projectId']}/suspend"))
    return shop.control.post(f"/subscriptions/{shop.ids['subscriptionId']}/renew")


def out_of_the_archive(shop: Estate) -> httpx2.Response:
    archive(shop.api, shop.ids["projectId"])
    return ask(shop.api, OPERATIONS["activateProject"], shop.ids)


def broken_off(shop: Estate) -> httpx2.Response:
    file = shop.control.get("/export").content
    return shop.control.post("/import", content=file[: len(file) // 2], headers=FILE)


def while_the_first_runs(shop: Estate) -> httpx2.Response:
    view, headers = OPERATIONS["sendTestWebhook"], {"Idempotency-Key": "slow"}
    with receiving() as slow:
        slow.hold = threading.Event()
        ids = {"webhookId": created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url)))["webhook"]["id"]}
        thread = threading.Thread(target=lambda: ask(shop.api, view, ids, headers=headers))
        thread.start()
        assert slow.arrived.wait(10)
        with client(shop.live, shop.sandbox, str(shop.api.headers["authorization"])[7:]) as second:
            refusal = ask(second, view, ids, headers=headers)
        slow.hold.set()
        thread.join(10)
    return refusal


def of_a_full_server(shop: Estate) -> httpx2.Response:
    most = len(shop.live.app.sandboxes.sandboxes())
    with patch.object(sandboxes, "MOST", most):
        return shop.control.post("/sandboxes", json={"name": "one-more"})


def told(shop: Estate, operation: str, **body: Any) -> httpx2.Response:
    view = OPERATIONS[operation]
    return shop.api.request(view.method, view.at_ids(shop.ids), json=body)


def unpayable(body: Json) -> Json:
    body["customer"]["document"], body["items"][0]["quantity"] = "11144477736", 0
    return body


OWN: dict[str, Callable[[Estate], httpx2.Response]] = {
    "AdminKeyRequired": lambda shop: shop.control.post("/reset", headers={"Origin": "https://elsewhere.example"}),
    "ApiKeyExpired": lambda shop: with_token(shop, shop.key(expires_at="2026-01-01T00:00:00Z")["private_key"]),
    "FaultConflict": lambda shop: shop.control.post("/faults", json={"then": {"webhook_drop": True, "status": 503}}),
    "IdempotencyInProgress": while_the_first_runs,
    "InvalidStateTransition": out_of_the_archive,
    "PayloadTooLarge": lambda shop: shop.api.post(
        "/v2/customers", content=b" " * 1_048_577, headers={"Content-Type": JSON}
    ),
    "PlanInUse": lambda shop: CAUSES["plan_in_use"](shop, "deletePlan"),
    "WebhookLimit": lambda shop: CAUSES["webhook_limit"](shop, "createWebhook"),
    "InvalidGracePeriod": lambda shop: told(shop, "regenerateWebhookSigningKey", grace_period_seconds=-1),
    "InvalidIdempotencyKey": lambda shop: ask(
        shop.api, OPERATIONS["retryWebhook"], shop.ids, headers={"Idempotency-Key": "cart 1"}
    ),
    "InvalidName": lambda shop: shop.api.post("/v2/projects", json={"name": 5}),
    "InvalidOrder": lambda shop: shop.api.post(
        "/v2/orders/pix", json=unpayable(order_body(shop.ids["projectId"], shop.ids["planId"]))
    ),
    "InvalidPage": lambda shop: shop.api.get("/v2/customers", params={"limit": 500}),
    "InvalidPlan": lambda shop: shop.api.post(
        "/v2/plans", json={"projectId": shop.ids["projectId"], "name": "Mensal", "amount": "49,90"}
    ),
    "InvalidRange": lambda shop: shop.api.get(
        f"/v2/projects/{shop.ids['projectId']}/stats", params={"from": "yesterday"}
    ),
    "InvalidReason": lambda shop: told(shop, "suspendProject", reason=5),
    "InvalidStatus": lambda shop: told(shop, "updateProjectStatus", status="closed"),
    "InvalidTestEvent": lambda shop: told(shop, "sendTestWebhook", event_type="order.payed"),
    "InvalidWebhook": lambda shop: shop.api.post(
        "/v2/webhooks", json={"url": "shop.example/hooks", "events": ["order.payed"]}
    ),
    "ProjectSuspended": of_a_suspended_project,
    "ReferenceNotFound": lambda shop: ask(shop.api, OPERATIONS["createPlan"], shop.ids | {"projectId": UNKNOWN}),
    "TooManySandboxes": of_a_full_server,
    "UnusableFile": broken_off,
    "ValidationError": lambda shop: shop.api.post(
        "/v2/customers",
        json={
            "name": "Ana", "email": "ana@example.com", "document": "93541134700",
            "phones": {"mobile_phone": {"country_code": "55", "number": "987654321"}},
        },
    ),
}  # fmt: skip


def conflict(code: str) -> Callable[[Estate], httpx2.Response]:
    operation = next(name for name, declared in DECLARED if declared == code)
    return lambda shop: CAUSES[code](shop, operation)


@pytest.fixture(scope="module")
def live(serve: Serve) -> Live:
    """A server on which no sandbox was made by being mentioned: those would make room for others."""
    return serve()


@pytest.fixture
def shop(live: Live, sink: str) -> Iterator[Estate]:
    """A merchant in a sandbox of its own."""
    with own_shop(live, sink) as made:
        yield made


@pytest.mark.check
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.matrix
def test_an_example_names_the_fields_and_codes_that_are_sent(shop: Estate, name: str) -> None:
    example = EXAMPLES[name]
    status, code = example["status"], example["code"]
    answer = (OWN.get(name) or CONTROLS.get((status, code)) or PROVOKED.get(code) or conflict(code))(shop)
    sent = answer.json()
    assert (status, code) == (answer.status_code, sent["code"])
    assert _places(sent) == _places(example)


def _places(refusal: Any) -> list[tuple[str, str, str]]:
    """Which fields are refused, and with which codes."""
    return [(entry["field"], entry["in"], entry["code"]) for entry in refusal["details"]]
