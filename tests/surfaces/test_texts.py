"""What refusals say: JSON and no Python, what to send instead, which path was meant, and where the contract is."""

import json
from typing import Any

import pytest

from stub_server.domain.lifecycle import one

from ..support.make import order_body
from ..support.refusal import refused, says
from ..support.wire import Door

NOBODY = "00000000-0000-4000-8000-000000000000"


def told(door: Door, path: str, body: Any, method: str = "POST") -> dict[str, str]:
    """What is said of each field of a body that the schema refuses."""
    answer = refused(door.send(method, path, body), 422, "validation_error")
    return {entry["field"]: entry["message"] for entry in answer["details"]}


@pytest.mark.parametrize(
    ("sent", "shown", "needed"),
    [
        (None, "null ", "string"),
        (True, "true ", "string"),
        ([1, None], "[1,null] ", "string"),
        ({"a": False}, '{"a":false} ', "string"),
        ("", '"" ', 1),
        ("a\0", '"a\\u0000" ', "U+0000"),
    ],
)
def test_a_value_is_shown_as_json(door: Door, customer_id: str, sent: object, shown: str, needed: object) -> None:
    said = told(door, f"/v2/customers/{customer_id}", {"name": sent}, "PUT")
    assert ["name"] == list(said)
    assert said["name"].startswith(shown)
    assert says(said["name"], needed)


@pytest.mark.parametrize(
    ("sent", "example"),
    [("49,90", " 49.90."), ("49.90", " 49.90."), ("R$ 49,90", " 49.90."), ("much", " 49.90."), (True, " number.")],
)
def test_an_amount_that_is_none_is_told_how_one_is_written(door: Door, sent: object, example: str) -> None:
    items = [{"description": "Plano", "quantity": 1, "amount": sent}]
    said = told(door, "/v2/orders/pix", order_body(NOBODY, NOBODY, items=items))["items[0].amount"]
    assert said.startswith(f"{json.dumps(sent)} ")
    assert said.endswith(example)
    assert says(said, "number")


def test_a_number_that_is_not_great_enough_is_told_what_it_must_be(door: Door) -> None:
    items = [{"description": "Plano", "quantity": 0, "amount": 1}]
    said = told(door, "/v2/orders/pix", order_body(NOBODY, NOBODY, items=items))
    assert ["items[0].quantity"] == list(said)
    assert says(said["items[0].quantity"], "greater than 0")


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ('{"name": "São", "amount": 49,90}', " 49.90."),
        ('{"amount": -1234567,5, "name": "a"}', " -1234567.5."),
        ('{"amount": 49, }', ""),
        ('{"amount": 49,"9": 1,}', ""),
        ('{"name": "1,2", 3}', ""),
        (",90", ""),
    ],
)
def test_a_decimal_with_a_comma_is_told_of_the_point(door: Door, body: str, hint: str) -> None:
    answer = refused(door.ask("POST", "/v2/plans", body.encode()), 400, "malformed_json")
    after = answer["message"].partition(").")[2]
    assert bool(hint) == bool(after)
    assert after.endswith(hint)


def test_a_long_value_is_shown_shortened(door: Door, customer_id: str) -> None:
    said = told(door, f"/v2/customers/{customer_id}", {"name": "x" * 900_000}, "PUT")["name"]
    assert says(said, 120)
    assert len(said) < 150


def test_what_to_send_instead_is_said(door: Door) -> None:
    """Of a web address once, although both its form and its format are wrong."""
    order = order_body("x", NOBODY, success_url="example.com", cancel_url="http:// x", totalAmount="10")
    said = told(door, "/v2/orders/pix", order)
    assert says(said["success_url"], "https")
    assert says(said["projectId"], "UUID")
    assert says(said["totalAmount"], "number", 10)
    answer = door.send("POST", "/v2/orders/pix", order)
    assert len(answer.json()["details"]) == len(said) == 4
    assert says(answer.json()["message"], 4)
    key = {"name": "Chave", "scopes": ["order:read"], "expires_at": "2027-01-01", "allowed_ips": ["casa"]}
    said = told(door, "/api-keys", key)
    assert says(said["scopes[0]"], "orders:read")
    assert says(said["expires_at"], "2026-11-20T14:32:05Z")
    assert says(said["allowed_ips[0]"], "203.0.113.7", "203.0.113.0/24")
    hook = told(door, "/v2/webhooks", {"url": "https://example.com/a", "events": ["order.pay"]})
    assert ["events[0]"] == list(hook)
    assert says(hook["events[0]"], "order.pay", "order.paid")


@pytest.mark.parametrize(
    ("body", "field", "hint"),
    [
        ({"full_name": "A"}, "full_name", "type, name, email"),
        ({"Email": "a@b.co"}, "Email", "email"),
        ({"documentType": "cpf"}, "documentType", "document_type"),
        ({"address": {"zipcode": "1"}}, "address.zipcode", "zip_code"),
    ],
)
def test_an_unknown_field_is_told_what_was_meant(
    door: Door, customer_id: str, body: dict[str, Any], field: str, hint: str
) -> None:
    """Or what there is; and how the contract is corrected."""
    said = told(door, f"/v2/customers/{customer_id}", body, "PUT")[field]
    assert says(said, hint, "--overlay")


def test_the_control_surface_says_nothing_of_overlays(door: Door) -> None:
    """Nobody corrects its contract: it is the sandbox's own."""
    said = told(door, "/_sandbox/clock/advance", {"day": 1})
    assert ["day"] == list(said)
    assert says(said["day"], "days")
    assert not says(said["day"], "--overlay")
    both = told(door, "/_sandbox/clock/advance", {"days": 1, "to": "2030-01-01T00:00:00Z"})
    assert ["body"] == list(both)


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "sent", "form"),
    [
        ("PUT", "/v2/customers/{}", {"phones": {"mobile_phone": {"country_code": "+55", "area_code": "11",
            "number": "987654321"}}}, "phones.mobile_phone.country_code", "+55", "55 (^[0-9]{1,3}$)."),
        ("POST", "/v2/webhooks", {"url": "https://a.example/b", "events": ["*"], "headers": [{"name": "Host",
            "value": "x"}]}, "headers[0].name", "Host", "X-Team."),
        ("POST", "/v2/webhooks", {"url": "https://ana:pass@a.example/b", "events": ["*"]}, "url",
         "https://ana:pass@a.example/b", "and with a port between 1 and 65535 if it names one."),
        ("POST", "/_sandbox/snapshots", {"name": "a b"}, "name", "a b",
         "(^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$)."),
        ("POST", "/_sandbox/faults", {"then": {"code": "No!"}}, "then.code", "No!", "(^[a-z][a-z0-9_]{0,63}$)."),
        ("POST", "/_sandbox/faults", {"then": {"headers": {"X-A": "\u00e9"}}}, "then.headers.X-A", "é",
         "(^[\\x20-\\x7E]*$)."),
        ("GET", "/_sandbox/requests?status=4x", None, "status", "4x", "4xx (^[1-5]([0-9][0-9]|xx)$)."),
    ],
)  # fmt: skip
def test_a_form_is_told_in_words(
    door: Door, customer_id: str, method: str, path: str, body: Any, field: str, sent: str, form: str
) -> None:
    """The contract's own; its pattern stands beside them where it can be read at all."""
    answer = refused(door.send(method, path.format(customer_id), body), 422, "validation_error")
    (detail,) = answer["details"]
    assert field == detail["field"]
    assert detail["message"].startswith(f'"{sent}" ')
    assert detail["message"].endswith(f" {form}")
    assert len(detail["message"]) > len(sent) + len(form) + 30


def test_thousands_of_unknown_fields_are_not_compared_with_the_known_ones(door: Door, customer_id: str) -> None:
    body = {f"nome{number}": "A" for number in range(900)}
    details = refused(door.send("PUT", f"/v2/customers/{customer_id}", body), 422, "validation_error")["details"]
    assert len(details) == 100
    assert sum("Did you mean" in entry["message"] for entry in details) <= 20


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("GET", "/customers", "GET /v2/customers"),
        ("GET", "/v2/customer", "GET /v2/customers"),
        ("GET", "/v2/customers/", "GET /v2/customers"),
        ("POST", "/v1/orders/pix", "POST /v2/orders/pix"),
        ("POST", "/api/v2/orders", "POST /v2/orders"),
        ("PUT", f"/v2/costumers/{NOBODY}", f"PUT /v2/customers/{NOBODY}"),
        ("DELETE", "/v2/orders/x/y", None),
        ("PATCH", "/v2/project", "GET /v2/projects"),
        ("GET", "/v2/api-keys", "GET /api-keys"),
        ("GET", "/v2/webhook/events", "GET /v2/webhooks/events"),
        ("GET", "/_sandbox/credential", "GET /_sandbox/credentials"),
        ("GET", "/credentials", "GET /_sandbox/credentials"),
        ("POST", "/_sandbox/clock/advanced", "POST /_sandbox/clock/advance"),
        ("GET", "/nothing", None),
        ("GET", "/v2/" + "x" * 5_000, None),
        ("GET", "/" + "a/" * 500, None),
        ("GET", "//", None),
        ("GET", "/v2////", None),
        ("POST", "/v2/webhooks/logs//retry", "POST /v2/webhooks/logs/{logId}/retry"),
        ("POST", "/v2/projects//activate", "POST /v2/projects/{projectId}/activate"),
        ("GET", "/v2/projects//stat", "GET /v2/projects/{projectId}/stats"),
        ("PUT", "/v2/customers/", "PUT /v2/customers/{customerId}"),
        ("GET", "/v2//customers", "GET /v2/customers"),
    ],
)
def test_an_unknown_path_is_told_which_was_meant(door: Door, method: str, path: str, meant: str | None) -> None:
    """An empty segment is an id that is missing, and which operation needs it says the method."""
    message = refused(door.ask(method, path), 404, "route_not_found")["message"]
    assert (meant is None) == ("mean" not in message)
    assert meant is None or f" {meant.replace(' ', ' /s/surfaces')}?" in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/_sandbox/requests/last", ('"last"', "requestId", "^req_[0-9a-f]+$")),
        ("DELETE", "/_sandbox/faults/all", ('"all"', "faultId", "^fault_[0-9]+$")),
        ("DELETE", "/_sandbox/snapshots/a%20b", ('"a b"', "snapshotName", "^[A-Za-z0-9]")),
        ("GET", "/_sandbox/requests/%ff%ED%A0%80", ("requestId",)),
        ("GET", "/_sandbox/requests/" + "x" * 5_000, ("x" * 79 + "…", "requestId", "^req_[0-9a-f]+$")),
    ],
)
def test_a_name_that_nothing_can_have_is_told_what_names_are_like(
    door: Door, method: str, path: str, expected: tuple[str, ...]
) -> None:
    answer = door.ask(method, path)
    assert 404 == answer.status
    message = answer.json()["message"]
    assert [] == [fact for fact in expected if fact not in message]
    assert len(message) < 300


@pytest.mark.parametrize(
    ("path", "document"),
    [("/v2/nothing", "/s/surfaces/openapi.json"), ("/_sandbox/nothing", "/s/surfaces/_sandbox/openapi.json")],
)
def test_an_unknown_path_is_told_where_the_right_contract_is(door: Door, path: str, document: str) -> None:
    message = refused(door.ask("GET", path), 404, "route_not_found")["message"]
    assert f" {document} " in message
    assert json.loads(Door(door.port, "", door.token).ask("GET", document).body)["openapi"] == "3.0.3"


def test_a_resource_is_called_by_its_name(door: Door) -> None:
    """An order, and no "A order"."""
    ident = door.ask("GET", "/_sandbox/credentials").json()["sample"]["orderId"]
    assert door.ask("POST", f"/_sandbox/orders/{ident}/cancel").status == 200
    answer = door.ask("POST", f"/_sandbox/orders/{ident}/expire")
    message = refused(answer, 409, "invalid_state_transition")["message"]
    assert message.startswith("An order ")
    assert says(message, "canceled", "expired")


@pytest.mark.parametrize(
    ("resource", "name"),
    [("Order", "An order"), ("ApiKey", "An API key"), ("Project", "A project"), ("Invoice", "An invoice")],
)
def test_every_resource_has_its_article(resource: str, name: str) -> None:
    assert name == one(resource)
