"""Overlays that take events, scopes and states out of the contract, or call them otherwise: a
server that still works.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.live import NO_TLS
from ..support.make import created, done, make_order, make_plan
from ..support.overlays import NO_PAID, SETTLED, overlay, removed, updated

pytestmark = pytest.mark.check

EVENTS = list(document().events)
PAYMENT = SETTLED.replace("order.settled", "payment.settled")
At = Callable[..., httpx2.Client]


@pytest.fixture
def at(serve: Serve, tmp_path: Path) -> Iterator[At]:
    """`at(actions, scenario=…)`: a client with every right, at a server with an overlay
    of these actions.
    """
    with ExitStack() as stack:

        def client(actions: str, scenario: str = "empty") -> httpx2.Client:
            server = serve(overlays=(overlay(tmp_path, actions),), scenario=scenario)
            api = stack.enter_context(httpx2.Client(base_url=server.url, timeout=60, verify=NO_TLS))
            api.headers["Authorization"] = (
                f"Bearer {api.get('/_sandbox/credentials').json()['jwt']}"
            )
            return api

        yield client


def paid(api: httpx2.Client) -> httpx2.Response:
    """The answer to the payment of a new order for a new plan."""
    order = make_order(api, make_plan(api))
    return api.post(f"/_sandbox/orders/{order['id']}/pay")


def told(api: httpx2.Client) -> list[str]:
    """The types of the events so far, oldest first."""
    found = done(api.get("/_sandbox/events", params={"limit": "100"}))
    return [event["type"] for event in found["events"]][::-1]


def hooked(api: httpx2.Client, events: list[str], url: str) -> httpx2.Response:
    """The answer to the creation of a webhook for these events."""
    return api.post("/v2/webhooks", json={"name": "ERP", "url": url, "events": events})


# -- events


def test_a_removed_event_is_offered_nowhere(at: At, sink: str) -> None:
    api = at(NO_PAID)
    assert [name for name in EVENTS if name != "order.paid"] == [
        event["type"] for event in api.get("/v2/webhooks/events").json()["events"]
    ]
    assert 422 == hooked(api, ["order.paid"], f"{sink}/removed").status_code
    ident = created(hooked(api, ["order.*"], f"{sink}/family"))["webhook"]["id"]
    assert (
        422 == api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.paid"}).status_code
    )
    assert (
        200
        == api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.created"}).status_code
    )
    assert 422 == api.get("/_sandbox/events", params={"type": "order.paid"}).status_code


@pytest.mark.parametrize(
    ("actions", "name"), [(SETTLED, "order.settled"), (PAYMENT, "payment.settled")]
)
def test_a_renamed_event_is_raised_delivered_and_tried_under_its_new_name(
    at: At, sink: str, actions: str, name: str
) -> None:
    api = at(actions)
    ident = created(hooked(api, [name], f"{sink}/{name}"))["webhook"]["id"]
    order = done(paid(api))["order"]
    assert name in told(api)
    assert "order.paid" not in told(api)
    logs = api.get("/v2/webhooks/logs").json()["logs"]
    assert [name] == [log["event_type"] for log in logs]
    tried = done(api.post(f"/v2/webhooks/{ident}/test", json={"event_type": name}))
    payload: dict[str, Any] = json.loads(tried["log"]["request_body"])
    assert name == payload["type"]
    assert order["id"] == payload["data"]["order"]["id"]


# -- descriptions


def test_pages_do_without_a_description_and_keep_one_in_one_line(at: At) -> None:
    event = "$['x-webhooks']['customer.created'].post"
    api = at(
        removed("$.paths['/v2/products'].get.description")
        + updated(event, '{ description: "A\\n\\n# heading" }')
    )
    assert "# listProducts: List products\n" in api.get("/docs/listProducts.md").text
    assert "Event. A # heading\n" in api.get("/docs/customer.created.md").text
