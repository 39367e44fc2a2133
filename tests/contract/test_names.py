"""Names of events and scopes stand once: every other list of them is folded in, and
follows an overlay.
"""

from pathlib import Path

import pytest

from stub_server.contract import bundle
from stub_server.contract.document import Document
from stub_server.contract.source import ContractError, nodes, read

from ..support.contract import OPENAPI, component, document, violations
from ..support.make import typed
from ..support.overlays import NO_ANALYTICS, NO_PAID, SETTLED, corrected, overlay, removed, updated

API = document()
EVENTS = list(API.events)
SCOPES = [scope["name"] for scope in API.scopes]
RESOURCES = [
    "api_key",
    "customer",
    "plan",
    "product",
    "project",
    "order",
    "subscription",
    "webhook",
]


def enum_of(contract: Document, name: str) -> list[str]:
    """The enum of a component, or of a member of one (`Scope.name`)."""
    component, _, member = name.partition(".")
    schema = contract.schema(component)
    return typed(list, (schema["properties"][member] if member else schema)["enum"])


def test_no_file_of_the_contract_lists_events_scopes_or_states_in_an_enum() -> None:
    names = {*EVENTS, *SCOPES, *(f"{resource}.*" for resource in RESOURCES)}
    # Those of a webhook are no values of a member; a plan has an enum of the same words.
    states = [set(life.states) for name, life in API.lifecycles.items() if name != "Webhook"]
    files = sorted(OPENAPI.rglob("*.yaml"))
    assert len(files) > 50
    for file in files:
        for _, node in nodes(read(file)):
            enum = node.get("enum", ()) if isinstance(node, dict) else ()
            assert names.isdisjoint(map(str, enum)), file
            assert set(enum) not in states, file


def test_the_lists_are_made_of_the_tables_in_their_order() -> None:
    resources = sorted({name.partition(":")[0] for name in SCOPES})
    patterns = ["*", *(f"{resource}.*" for resource in RESOURCES), *EVENTS]
    expected = {
        "EventType": EVENTS,
        "TestSendEventType": EVENTS,
        "EventPattern": patterns,
        "WebhookEventType.resource": RESOURCES,
        "OrderEvent.type": [name for name in EVENTS if name.startswith("order.")],
        "WebhookTestEvent.type": ["webhook.test"],
        "Scope.name": SCOPES,
        "Scope.resource": resources,
        "Order.status": list(API.lifecycles["Order"].states),
        "ProjectStatusUpdate.status": list(API.lifecycles["Project"].states),
        "ProjectCreateStatus": ["draft", "active"],
        "AssignableScope": [scope["name"] for scope in API.scopes if scope["assignable"]],
    }
    assert expected == {name: enum_of(API, name) for name in expected}


def test_a_renamed_event_is_in_every_list_under_its_new_name(tmp_path: Path) -> None:
    contract = corrected(tmp_path, SETTLED)
    for name in ("EventType", "TestSendEventType", "EventPattern", "OrderEvent.type"):
        assert "order.settled" in enum_of(contract, name), name
        assert "order.paid" not in enum_of(contract, name), name


REPLACED = removed("$.components.schemas.EventPattern.enum") + updated(
    "$.components.schemas.EventPattern", '{ enum: ["*", order.created] }'
)


@pytest.mark.parametrize("order", [(REPLACED, NO_PAID), (NO_PAID, REPLACED), (REPLACED + NO_PAID,)])
def test_an_enum_that_an_overlay_writes_stays_as_written(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    contract = corrected(tmp_path, *order)
    assert ["*", "order.created"] == enum_of(contract, "EventPattern")
    assert "order.paid" not in enum_of(contract, "EventType")


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (
            updated("$.components.schemas.EventType", "{ x-enum-from: event_kinds }"),
            (
                r"\$\.components\.schemas\.EventType\['x-enum-from'\]: there is no list of names"
                r" 'event_kinds'"
            ),
        ),
        (updated("$['x-scopes']", '["coupons:read"]'), r"\$\['x-scopes'\]\[16\]: "),
    ],
)
def test_what_cannot_be_folded_stops_with_file_path_and_reason(
    tmp_path: Path, actions: str, reason: str
) -> None:
    with pytest.raises(ContractError, match=r"0\.yaml:[0-9]+: " + reason):
        corrected(tmp_path, actions)


def test_the_control_surface_knows_the_events_and_scopes_of_the_corrected_contract(
    tmp_path: Path,
) -> None:
    file = overlay(tmp_path, SETTLED + NO_ANALYTICS)
    api, control, *_ = bundle.contracts(OPENAPI, [file])
    assert api.schema("EventType")["enum"] == enum_of(control, "EventType")
    assert {"analytics:read", "analytics:*"}.isdisjoint(enum_of(control, "SandboxScope"))
    emits = control.operations["payOrder"].emits
    assert ("order.settled", "order.paid") == (
        emits[-1],
        document("sandbox.yaml").operations["payOrder"].emits[0],
    )


# -- the choice of payloads


def payloads(contract: Document) -> tuple[list[str], dict[str, str]]:
    """The schemas that a delivery may be of, and the one of each event, by name."""
    schema = contract.schema("WebhookPayload")
    mapping = schema["discriminator"]["mapping"]
    assert schema["discriminator"]["propertyName"] == "type"
    names = [entry["$ref"].rpartition("/")[2] for entry in schema["oneOf"]]
    return names, {event: reference.rpartition("/")[2] for event, reference in mapping.items()}


def test_a_delivery_is_of_one_schema_that_its_type_names() -> None:
    """Every example of an event fits the choice, and fits its own schema alone."""
    names, mapping = payloads(API)
    assert EVENTS == list(mapping)
    assert sorted(set(mapping.values())) == sorted(names)
    choice = component("WebhookPayload")
    for event, entry in API.events.items():
        assert violations(choice, entry["example"]) == [], event
        assert [mapping[event]] == [
            name for name in names if component(name).is_valid(entry["example"])
        ]
        other = next(name for name in EVENTS if mapping[name] != mapping[event])
        assert violations(choice, entry["example"] | {"type": other}) != []
    assert violations(choice, API.events["order.paid"]["example"] | {"type": "order.lost"}) != []
