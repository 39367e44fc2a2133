"""Overlays that take events, scopes and states out of the contract, or call them otherwise: a server that still works.

Where one goes only half the way, the start stops with file, path and reason.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.contract.source import ContractError
from stub_server.data.files import ScenarioError
from stub_server.settings import Settings

from ..conftest import Serve
from ..support.contract import document
from ..support.live import NO_TLS
from ..support.make import customer_body, make_order, make_plan
from ..support.overlays import LIFE, NO_ANALYTICS, NO_PAID, SETTLED, UNEMITTED, copied, overlay, removed, updated

pytestmark = pytest.mark.check

EVENTS = list(document().events)
CUSTOMER = removed(
    "$['x-webhooks']['customer.created']",
    "$.components.schemas.Customer['x-events'].created",
    "$.paths..['x-emits'][?@ == 'customer.created']",
)
PAYMENT = SETTLED.replace("order.settled", "payment.settled")
SUBSCRIPTION = "$.components.schemas.Subscription['x-lifecycle']"
HELD = updated(f"{LIFE}.states", "[held]") + updated(
    f"{LIFE}.moves", "[{ from: pending, to: held, by: [clock] }, { from: held, to: paid, by: [clock] }]"
)
LISTENING = """\
merchant: { name: Academia Viva, city: São Paulo }
months: 2
customers: 20
orders: 40
projects: 1
webhooks:
  - { key: erp, behaviour: healthy, days_old: 60, name: ERP, url: "https://hooks.example.com/erp", events: ["*"] }
"""
At = Callable[..., httpx2.Client]


@pytest.fixture
def at(serve: Serve, tmp_path: Path) -> Iterator[At]:
    """`at(actions, scenario=…)`: a client with every right, at a server with an overlay of these actions."""
    with ExitStack() as stack:

        def client(actions: str, scenario: str = "empty") -> httpx2.Client:
            server = serve(overlays=(overlay(tmp_path, actions),), scenario=scenario)
            api = stack.enter_context(httpx2.Client(base_url=server.url, timeout=60, verify=NO_TLS))
            api.headers["Authorization"] = f"Bearer {api.get('/_sandbox/credentials').json()['jwt']}"
            return api

        yield client


def paid(api: httpx2.Client) -> httpx2.Response:
    """The answer to the payment of a new order for a new plan."""
    order = make_order(api, make_plan(api))
    return api.post(f"/_sandbox/orders/{order['id']}/pay")


def told(api: httpx2.Client) -> list[str]:
    """The types of the events so far, oldest first."""
    found = api.get("/_sandbox/events", params={"limit": "100"})
    assert found.status_code == 200, found.text
    return [event["type"] for event in found.json()["events"]][::-1]


def hooked(api: httpx2.Client, events: list[str], url: str) -> httpx2.Response:
    """The answer to the creation of a webhook for these events."""
    return api.post("/v2/webhooks", json={"name": "ERP", "url": url, "events": events})


# -- events


def test_an_order_is_paid_where_payment_is_no_event(at: At) -> None:
    api = at(NO_PAID)
    answer = paid(api)
    assert 200 == answer.status_code, answer.text
    assert "paid" == answer.json()["order"]["status"]
    assert ["order.created", "subscription.created"] == [
        name for name in told(api) if name.startswith(("order.", "subscription."))
    ]


def test_a_removed_event_is_offered_nowhere(at: At, sink: str) -> None:
    api = at(NO_PAID)
    assert [name for name in EVENTS if name != "order.paid"] == [
        event["type"] for event in api.get("/v2/webhooks/events").json()["events"]
    ]
    assert 422 == hooked(api, ["order.paid"], f"{sink}/removed").status_code
    hook = hooked(api, ["order.*"], f"{sink}/family")
    assert 201 == hook.status_code, hook.text
    ident = hook.json()["webhook"]["id"]
    assert 422 == api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.paid"}).status_code
    assert 200 == api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.created"}).status_code
    assert 422 == api.get("/_sandbox/events", params={"type": "order.paid"}).status_code


def test_the_past_tells_nothing_of_a_removed_event(at: At, tmp_path: Path) -> None:
    scenario = tmp_path / "listening.yaml"
    scenario.write_text(LISTENING, encoding="utf-8")
    api = at(NO_PAID, str(scenario))
    types: set[str] = set()
    for page in range(1, 4):
        found = api.get("/_sandbox/events", params={"limit": "100", "page": str(page)})
        assert found.status_code == 200, found.text
        types |= {event["type"] for event in found.json()["events"]}
    assert "order.created" in types
    assert "order.paid" not in types
    assert api.get("/v2/orders", params={"status": "paid"}).json()["pagination"]["total"] > 0


def test_a_customer_is_created_where_that_is_no_event(at: At) -> None:
    api = at(CUSTOMER)
    made = api.post("/v2/customers", json=customer_body())
    assert 201 == made.status_code, made.text
    ident = made.json()["customer"]["id"]
    assert 200 == api.put(f"/v2/customers/{ident}", json={"name": "Marina Prado"}).status_code
    assert ["customer.updated"] == told(api)


@pytest.mark.parametrize(("actions", "name"), [(SETTLED, "order.settled"), (PAYMENT, "payment.settled")])
def test_a_renamed_event_is_raised_delivered_and_tried_under_its_new_name(
    at: At, sink: str, actions: str, name: str
) -> None:
    api = at(actions)
    hook = hooked(api, [name], f"{sink}/{name}")
    assert 201 == hook.status_code, hook.text
    answer = paid(api)
    assert 200 == answer.status_code, answer.text
    assert name in told(api)
    assert "order.paid" not in told(api)
    logs = api.get("/v2/webhooks/logs").json()["logs"]
    assert [name] == [log["event_type"] for log in logs]
    ident = hook.json()["webhook"]["id"]
    tried = api.post(f"/v2/webhooks/{ident}/test", json={"event_type": name})
    assert 200 == tried.status_code, tried.text
    payload: dict[str, Any] = json.loads(tried.json()["log"]["request_body"])
    assert name == payload["type"]
    assert answer.json()["order"]["id"] == payload["data"]["order"]["id"]


def test_an_added_event_can_be_listened_to_and_tried(at: At, sink: str) -> None:
    """Nothing raises it: its sample is of the latest order."""
    api = at(copied("$['x-webhooks'] order.seen", "$['x-webhooks']['order.paid']"))
    hook = hooked(api, ["order.seen"], f"{sink}/seen")
    assert 201 == hook.status_code, hook.text
    order = make_order(api, make_plan(api))
    ident = hook.json()["webhook"]["id"]
    tried = api.post(f"/v2/webhooks/{ident}/test", json={"event_type": "order.seen"})
    assert 200 == tried.status_code, tried.text
    body = json.loads(tried.json()["log"]["request_body"])
    assert ("order.seen", order["id"]) == (body["type"], body["data"]["order"]["id"])


def test_a_removed_move_is_refused_and_nothing_else_breaks(at: At) -> None:
    api = at(removed(f"{LIFE}.moves[?@.to == 'canceled']"))
    order = make_order(api, make_plan(api))
    refusal = api.post(f"/_sandbox/orders/{order['id']}/cancel")
    assert (409, "invalid_state_transition") == (refusal.status_code, refusal.json()["code"])
    assert "pending" == api.get(f"/v2/orders/{order['id']}").json()["status"]
    assert 200 == api.post(f"/_sandbox/orders/{order['id']}/pay").status_code


def test_a_state_may_be_added(at: At) -> None:
    """In one place: lists filter by it, statistics count it, and answers, events and controls may show it."""
    api = at(HELD)
    order = paid(api)
    assert 200 == order.status_code
    assert [] == api.get("/v2/orders", params={"status": "held"}).json()["orders"]
    stats = api.get(f"/v2/projects/{order.json()['projectId']}/stats").json()["data"]["stats"]
    assert (1, 1, 0) == tuple(stats["orders"][name] for name in ("total", "paid", "held"))
    for contract in ("/openapi.json", "/_sandbox/openapi.json"):
        assert "held" in api.get(contract).json()["components"]["schemas"]["Order"]["properties"]["status"]["enum"]
    moved = api.get("/openapi.json").json()["components"]["schemas"]["OrderEvent"]["properties"]["data"]
    assert "held" in moved["properties"]["previous_status"]["oneOf"][0]["enum"]


def test_a_control_of_an_overlay_is_allowed_where_its_move_begins(at: At) -> None:
    api = at(updated(f"{LIFE}.moves", "[{ from: paid, to: expired, control: void, by: [clock] }]"))
    assert ["refund", "dispute", "void"] == paid(api).json()["allowed"]


# -- scopes


def test_an_operation_whose_scope_is_gone_asks_for_none(at: At) -> None:
    api = at(NO_ANALYTICS)
    scopes = [scope["name"] for scope in document().scopes if scope["name"] != "analytics:read"]
    listed = api.get("/api-keys/scopes").json()["scopes"]
    assert scopes == [scope["name"] for scope in listed]
    asked = {"name": "Painel", "scopes": ["analytics:read"]}
    assert 422 == api.post("/api-keys", json=asked).status_code
    key = api.post("/api-keys", json=asked | {"scopes": ["orders:read"]})
    assert 201 == key.status_code, key.text
    private = key.json()["api_key"]["private_key"]
    assert 200 == api.get("/v2/analytics", headers={"Authorization": f"Bearer {private}"}).status_code
    main = next(key for key in api.get("/api-keys").json()["api_keys"] if key["name"] == "Loja principal")
    assert [scope["name"] for scope in listed if scope["assignable"]] == main["scopes"]
    wanted = {"scopes": ["analytics:*"]}
    assert 422 == api.post("/_sandbox/tokens", json=wanted).status_code


# -- what goes only half the way


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (
            removed("$['x-webhooks']['order.paid']", UNEMITTED),
            f"{LIFE}.moves[2]: order.paid is no event of this contract",
        ),
        (
            removed("$['x-scopes'][?@.name == 'analytics:read']"),
            "$.paths['/v2/analytics'].get['x-scopes']: analytics:read is no scope of this contract",
        ),
        (
            removed(
                "$.components.schemas.Subscription.properties.status.enum[?@ == 'past_due']",
                f"{SUBSCRIPTION}.states[?@ == 'past_due']",
                f"{SUBSCRIPTION}.sets.*[?@ == 'past_due']",
                f"{SUBSCRIPTION}.moves[?@.from == 'past_due' || @.to == 'past_due']",
            ),
            f"{SUBSCRIPTION}.states: the rules of the server need the state past_due",
        ),
    ],
)
def test_half_a_removal_stops_the_start_with_file_path_and_reason(tmp_path: Path, actions: str, reason: str) -> None:
    file = overlay(tmp_path, actions)
    with pytest.raises(ContractError) as caught:
        create_app(Settings(overlays=(file,), scenario="empty"))
    place, _, told = str(caught.value).partition(": ")
    assert told.startswith(reason)
    assert re.fullmatch(re.escape(str(file)) + r"(:[0-9]+)?", place)


@pytest.mark.parametrize(
    ("actions", "place", "name"),
    [(NO_PAID, "webhooks[0]", "order.paid"), (NO_ANALYTICS, "keys[3]", "analytics:read")],
)
def test_a_scenario_that_names_what_is_gone_stops_the_start(
    tmp_path: Path, actions: str, place: str, name: str
) -> None:
    """With its file, the key in it and the reason."""
    with pytest.raises(ScenarioError) as caught:
        create_app(Settings(overlays=(overlay(tmp_path, actions),)))
    message = str(caught.value)
    assert "default.yaml" in message
    assert place in message
    assert f"'{name}' is not one of" in message
