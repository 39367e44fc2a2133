"""The event log says what each operation says it emits, in the payloads that the contract
describes.
"""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from ..support.contract import document
from ..support.estate import Estate
from ..support.live import Live
from ..support.make import Json, card_body, created, make_order, make_plan, make_project, order_body
from ..support.requests import OPERATIONS, ask
from .stage import Stage, staged
from .steps import done

CATALOGUE = document().events
BESIDE = ("type", "timestamp", "id", "api_version", "environment", "merchant_id", "data")


def translated(node: Any) -> Any:
    """An OpenAPI 3.0 schema as a JSON Schema: `nullable` is its only word that draft 4 lacks."""
    if isinstance(node, list):
        return [translated(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: translated(value) for key, value in node.items() if key != "nullable"}
    if node.get("nullable") is True and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


SCHEMAS = {"components": {"schemas": translated(document().raw["components"]["schemas"])}}


def witness(type_: str) -> jsonschema.Draft4Validator:
    """A validator of an event's payload that is not the server's own."""
    schema = {**SCHEMAS, "allOf": [translated(CATALOGUE[type_]["schema"])]}
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def faults(payload: Json) -> list[str]:
    """What the witness finds wrong with a payload."""
    return [
        f"{list(e.absolute_path)}: {e.message[:200]}"
        for e in witness(payload["type"]).iter_errors(payload)
    ]


def log(shop: Estate | Stage, **query: str) -> list[Json]:
    """Events, newest first."""
    found: list[Json] = done(shop.control.get("/events", params={"limit": "100"} | query))["events"]
    return found


@pytest.mark.parametrize("type_", CATALOGUE)
def test_the_witness_sees_what_is_wrong(type_: str) -> None:
    """It takes the contract's own example, and refuses it with a member more or less, or with
    another type in it.
    """
    example = CATALOGUE[type_]["example"]
    key = CATALOGUE[type_]["payload_key"]
    inner = example["data"][key]
    assert faults(example) == []
    first = next(iter(inner))
    for broken in (
        inner | {"extra": 1},
        {k: v for k, v in inner.items() if k != first},
        inner | {first: 1},
    ):
        assert faults(example | {"data": example["data"] | {key: broken}})
    assert faults(example | {"extra": 1})


def test_a_read_is_no_event(shop: Estate) -> None:
    before = log(shop)
    for operation in OPERATIONS.values():
        if operation.method == "GET":
            assert ask(shop.api, operation, shop.ids).status_code == 200
    assert before == log(shop)


def fail(shop: Estate, operation: str) -> None:
    """An order whose buyer's e-mail address has it fail."""
    buyer = {"name": "Ana", "email": "fail_immediately@example.com", "document": "98765432100"}
    body = order_body(shop.ids["projectId"], shop.ids["planId"], customer=buyer)
    created(shop.api.post(OPERATIONS[operation].path, json=body))


def renew_by_card(shop: Estate, operation: str) -> None:
    """A subscriber whose bill is open orders once more, by card."""
    plan = make_plan(shop.api, interval="day", payment_methods=["credit_card", "pix"])
    order = make_order(shop.api, plan)
    done(shop.control.post(f"/orders/{order['id']}/pay"))
    done(shop.control.post("/clock/advance", json={"seconds": 13 * 3600}))
    created(shop.api.post("/v2/orders", json=card_body(plan, customer=order["customer"])))


def buy_by_card(shop: Estate, operation: str) -> None:
    """A card pays its first order at once."""
    created(
        shop.api.post(
            "/v2/orders", json=card_body(make_plan(shop.api, payment_methods=["credit_card"]))
        )
    )


def paid_order(shop: Estate, plan: Json) -> str:
    """The id of an order that opened a subscription."""
    ident: str = make_order(shop.api, plan)["id"]
    done(shop.control.post(f"/orders/{ident}/pay"))
    return ident


def expire_key(shop: Estate, operation: str) -> None:
    """A key whose end has passed when it is made or changed."""
    ended = {"expires_at": "2026-01-01T00:00:00Z"}
    if operation == "createApiKey":
        shop.key(**ended)
    else:
        done(shop.api.put(f"/api-keys/{shop.key()['id']}", json=ended))


def close(shop: Estate, operation: str) -> None:
    """The archive, for a project with a pending order and a subscription that is past due."""
    plan = make_plan(shop.api)
    make_order(shop.api, plan)
    let_go = paid_order(shop, make_plan(shop.api, plan["projectId"], interval="day"))
    done(shop.control.post("/clock/advance", json={"seconds": 36 * 3600}))
    assert done(shop.control.get(f"/orders/{let_go}"))["order"]["status"] == "paid"
    path = f"/v2/projects/{plan['projectId']}"
    if operation == "archiveProject":
        done(shop.api.post(f"{path}/archive"))
    elif operation == "updateProject":
        done(shop.api.put(path, json={"status": "archived", "description": "Fim"}))
    else:
        done(shop.api.patch(f"{path}/status", json={"status": "archived"}))


def turn(shop: Estate, operation: str) -> None:
    """Draft, active and suspended, through an operation that takes any status."""
    path = f"/v2/projects/{make_project(shop.api, status='draft')['id']}"
    for status in ("active", "suspended"):
        if operation == "updateProject":
            done(shop.api.put(path, json={"status": status}))
        else:
            done(shop.api.patch(f"{path}/status", json={"status": status}))


def once(shop: Estate, operation: str) -> None:
    """The operation's ordinary request."""
    ids = shop.ids
    if operation in ("deletePlan", "deleteProject"):
        plan = make_plan(shop.api)
        ids = ids | {"planId": plan["id"], "projectId": plan["projectId"]}
    if operation == "activateProject":
        ids = ids | {"projectId": make_project(shop.api, status="draft")["id"]}
    assert ask(shop.api, OPERATIONS[operation], ids).is_success


STEPS: dict[str, tuple[Callable[[Estate, str], None], ...]] = {
    "createOrder": (once, fail, buy_by_card, renew_by_card),
    "createPixOrder": (once, fail),
    "updateProject": (once, turn, close),
    "updateProjectStatus": (turn, close),
    "archiveProject": (close,),
    "createApiKey": (once, expire_key),
    "updateApiKey": (once, expire_key),
}


@pytest.mark.parametrize("operation", [o.id for o in OPERATIONS.values() if o.emits])
def test_everything_that_an_operation_emits_is_in_the_log_and_keeps_its_schema(
    shop: Estate, operation: str
) -> None:
    """All of `x-emits`, judged by a second validator.

    That nothing else is emitted is held by the ledger of the run.
    """
    before = {event["id"] for event in log(shop)}
    for step in STEPS.get(operation, (once,)):
        step(shop, operation)
    fresh = [event for event in log(shop) if event["id"] not in before]
    assert set(OPERATIONS[operation].emits) <= {event["type"] for event in fresh}
    assert {event["id"]: [] for event in fresh} == {event["id"]: faults(event) for event in fresh}


def test_every_event_that_no_operation_raises_comes_of_a_life_and_keeps_its_schema(
    live: Live, sink: str
) -> None:
    """Orders and subscriptions to all their ends. The events of operations are raised above."""
    with staged(live, "events", sink) as stage:
        live_through_everything(stage)
        by_operations = {type_ for operation in OPERATIONS.values() for type_ in operation.emits}
        for type_ in [type_ for type_ in CATALOGUE if type_ not in by_operations]:
            raised = log(stage, type=type_)
            assert raised, f"nothing raised {type_}"
            assert [[]] * len(raised) == [faults(event) for event in raised], type_
    live.forget("events")


def live_through_everything(stage: Stage) -> None:
    """A merchant to whose orders and subscriptions everything happens."""
    for state in ("failed", "expired", "canceled", "refunded"):
        stage.order(state)
    stage.drive("orders", stage.order("disputed")["id"], "dispute/resolve", outcome="won")
    stage.drive("orders", stage.order("paid")["id"], "refund", amount=1)
    for state in ("trialing", "active", "past_due", "expired", "canceled"):
        held = stage.subscription(state)
        if state == "active":
            stage.drive("subscriptions", held["id"], "renew")


def test_an_event_shows_the_record_as_the_api_does(shop: Estate) -> None:
    """The resource under its singular key, byte for byte what a read answers; what it hides stands
    beside it.
    """
    order = make_order(shop.api, metadata={"origem": "teste"})
    event = log(shop, resource_id=order["id"])[0]
    assert list(BESIDE) == list(event)
    assert ("order.created", "v2", "sandbox", shop.merchant_id) == (
        event["type"],
        event["api_version"],
        event["environment"],
        event["merchant_id"],
    )
    assert order == event["data"]["order"] == done(shop.api.get(f"/v2/orders/{order['id']}"))
    assert json.dumps(order) == json.dumps(event["data"]["order"])
    assert {"origem": "teste"} == event["data"]["metadata"]
    assert event["data"]["previous_status"] is None


def test_no_payload_holds_a_secret(shop: Estate) -> None:
    """The private half of a key and the signing key of a webhook are shown once, by the operation
    that made them.
    """
    private = shop.key()["private_key"]
    webhook = done(shop.api.post(f"/v2/webhooks/{shop.ids['webhookId']}/regenerate-key"))["webhook"]
    text = json.dumps(log(shop))
    assert private not in text
    assert webhook["signing_key"] not in text
