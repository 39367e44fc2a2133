"""The event log says what each operation says it emits, in the payloads that the contract
describes.
"""

import json
from typing import Any

import jsonschema
import pytest

from ..support.contract import document
from ..support.estate import Estate
from ..support.live import Live
from ..support.make import Json, done, list_of, make_order, make_plan
from ..support.requests import LAST, OPERATIONS, ask
from .stage import Stage, staged

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
    return list_of(done(shop.control.get("/events", params={"limit": "100"} | query)), "events")


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


def test_every_event_comes_of_a_life_and_keeps_its_schema(
    shop: Estate, live: Live, sink: str
) -> None:
    """Of every operation, and of orders and subscriptions to all their ends, judged by a second
    validator.

    That each operation emits what it says and nothing else is held by the ledger of the run.
    """
    ordinary = [each.id for each in OPERATIONS.values() if each.method != "DELETE"]
    for name in [*[name for name in ordinary if name not in LAST], *LAST]:
        ask(shop.api, OPERATIONS[name], shop.ids)
    plan = make_plan(shop.api)
    done(shop.api.delete(f"/v2/plans/{plan['id']}"))
    done(shop.api.delete(f"/v2/projects/{plan['projectId']}"))
    with staged(live, "events", sink) as stage:
        live_through_everything(stage)
        for type_ in CATALOGUE:
            raised = log(shop, type=type_) + log(stage, type=type_)
            assert raised, f"nothing raised {type_}"
            assert [[]] * len(raised) == [faults(event) for event in raised], type_
    live.forget("events")


def live_through_everything(stage: Stage) -> None:
    """A merchant to whose keys, orders and subscriptions everything happens."""
    stage.key("expired")
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
