"""What refusals say:

JSON and no Python, what to send instead, which path was meant, and where the contract is.
"""

import json
from typing import Any

import pytest

from ..support.make import order_body
from ..support.refusal import refused
from ..support.requests import UNKNOWN
from ..support.wire import Door

CUSTOMER = "PUT /v2/customers/{}"
ORDER = "POST /v2/orders/pix"
PLAN = "POST /v2/plans"
WEBHOOK = "POST /v2/webhooks"
ADVANCE = "POST /_sandbox/clock/advance"
FAULT = "POST /_sandbox/faults"


def reads(message: str, expected: str) -> bool:
    """Whether a message is like `begins with…says…ends with`."""
    begin, *said, end = expected.split("…")
    return (
        message.startswith(begin)
        and message.endswith(end)
        and all(text in message for text in said)
    )


def item(**changes: object) -> dict[str, Any]:
    """A body of an order with one item that is like this."""
    return order_body(
        UNKNOWN, UNKNOWN, items=[{"description": "Plano", "quantity": 1, "amount": 1} | changes]
    )


def webhook(**changes: object) -> dict[str, Any]:
    """A body of a webhook."""
    return {"url": "https://a.example/b", "events": ["*"]} | changes


@pytest.mark.parametrize(
    ("request_line", "body", "said"),
    [
        # The value as JSON, and what is needed.
        (CUSTOMER, {"name": None}, {"name": "null …string…"}),
        (CUSTOMER, {"name": [1, None]}, {"name": "[1,null] …string…"}),
        (CUSTOMER, {"name": ""}, {"name": '"" … 1 …'}),
        (CUSTOMER, {"name": "a\0"}, {"name": '"a\\u0000" …U+0000…'}),
        # Amounts.
        (ORDER, item(amount="49,90"), {"items[0].amount": '"49,90" …number… 49.90.'}),
        (ORDER, item(quantity=0), {"items[0].quantity": "0 …greater than 0…"}),
        # A web address is told of once, although both its form and its format are wrong.
        (
            ORDER,
            order_body(
                "x", UNKNOWN, success_url="example.com", cancel_url="http:// x", totalAmount="10"
            ),
            {
                "projectId": "…UUID…",
                "totalAmount": "…number… 10…",
                "success_url": "…https…",
                "cancel_url": "…https…",
            },
        ),
        (
            "POST /api-keys",
            {
                "name": "Chave",
                "scopes": ["order:read"],
                "expires_at": "2027-01-01",
                "allowed_ips": ["casa"],
            },
            {
                "scopes[0]": "…orders:read…",
                "expires_at": "…2026-11-20T14:32:05Z…",
                "allowed_ips[0]": "…203.0.113.7 …203.0.113.0/24…",
            },
        ),
        # An enum that may be null is told as one list.
        (
            PLAN,
            {"projectId": UNKNOWN, "name": "x", "amount": 1, "interval": "mounth"},
            {
                "interval": (
                    '"mounth" is not one of day, week, month, year, null. Did you mean month?…'
                )
            },
        ),
        # What an unknown field was meant to be, or what there is.
        (CUSTOMER, {"full_name": "A"}, {"full_name": "…type, name, email…"}),
        (CUSTOMER, {"documentType": "cpf"}, {"documentType": "… document_type?…"}),
        (ADVANCE, {"day": 1}, {"day": "… days?…"}),
        (ADVANCE, {"days": 1, "to": "2030-01-01T00:00:00Z"}, {"body": "…"}),
        # The contract's own words of a form; its pattern stands beside them where it can be read at
        # all.
        (
            CUSTOMER,
            {
                "phones": {
                    "mobile_phone": {
                        "country_code": "+55",
                        "area_code": "11",
                        "number": "987654321",
                    }
                }
            },
            {"phones.mobile_phone.country_code": '"+55" … 55 (^[0-9]{1,3}$).'},
        ),
        (
            WEBHOOK,
            webhook(headers=[{"name": "Host", "value": "x"}]),
            {"headers[0].name": '"Host" … X-Team.'},
        ),
        (
            WEBHOOK,
            webhook(url="https://ana:pass@a.example/b"),
            {
                "url": (
                    '"https://ana:pass@a.example/b" … and with a port between 1 and 65535 if it'
                    " names one."
                )
            },
        ),
        (
            FAULT,
            {"then": {"headers": {"X-A": "é"}}},
            {"then.headers.X-A": '"é" … (^[\\x20-\\x7E]*$).'},
        ),
        (
            "GET /_sandbox/requests?status=4x",
            None,
            {"status": '"4x" … 4xx (^[1-5]([0-9][0-9]|xx)$).'},
        ),
    ],
)
def test_a_violation_says_what_was_sent_and_what_to_send(
    door: Door, customer_id: str, request_line: str, body: Any, said: dict[str, str]
) -> None:
    method, path = request_line.format(customer_id).split()
    details = refused(door.send(method, path, body), 422, "validation_error")["details"]
    assert list(said) == [detail["field"] for detail in details]
    for detail in details:
        assert reads(detail["message"], said[detail["field"]]), detail["message"]
        assert "--" not in detail["message"], "a client cannot set the server's settings"


def test_a_long_value_is_shown_shortened(door: Door, customer_id: str) -> None:
    answer = door.send("PUT", f"/v2/customers/{customer_id}", {"name": "x" * 900_000})
    (detail,) = refused(answer, 422, "validation_error")["details"]
    assert " 120 " in detail["message"]
    assert len(detail["message"]) < 150


def test_thousands_of_unknown_fields_are_not_compared_with_the_known_ones(
    door: Door, customer_id: str
) -> None:
    body = {f"nome{number}": "A" for number in range(900)}
    details = refused(
        door.send("PUT", f"/v2/customers/{customer_id}", body), 422, "validation_error"
    )["details"]
    assert len(details) == 100
    assert sum("Did you mean" in entry["message"] for entry in details) <= 20


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("GET /customers", "GET /v2/customers"),
        ("GET /v2/customers/", "GET /v2/customers"),
        ("POST /v1/orders/pix", "POST /v2/orders/pix"),
        ("POST /api/v2/orders", "POST /v2/orders"),
        (f"PUT /v2/costumers/{UNKNOWN}", f"PUT /v2/customers/{UNKNOWN}"),
        ("DELETE /v2/orders/x/y", None),
        ("GET /v2/api-keys", "GET /api-keys"),
        ("GET /_sandbox/credential", "GET /_sandbox/credentials"),
        ("GET /credentials", "GET /_sandbox/credentials"),
        ("POST /_sandbox/clock/advanced", "POST /_sandbox/clock/advance"),
        ("GET /v2/" + "x" * 5_000, None),
        ("GET /" + "a/" * 500, None),
        ("GET /v2////", None),
        ("POST /v2/webhooks/logs//retry", "POST /v2/webhooks/logs/{logId}/retry"),
        ("GET /v2/projects//stat", "GET /v2/projects/{projectId}/stats"),
        ("PUT /v2/customers/", "PUT /v2/customers/{customerId}"),
        ("GET /v2//customers", "GET /v2/customers"),
    ],
)
def test_an_unknown_path_is_told_which_was_meant(door: Door, asked: str, meant: str | None) -> None:
    """An empty segment is an id that is missing, and which operation needs it says the method."""
    method, path = asked.split()
    message = refused(door.ask(method, path), 404, "route_not_found")["message"]
    assert (meant is None) == ("mean" not in message)
    assert meant is None or f" {meant.replace(' ', ' /s/surfaces')}?" in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("GET /_sandbox/requests/last", '…"last"…requestId…^req_[0-9a-f]+$…'),
        ("DELETE /_sandbox/faults/all", '…"all"…faultId…^fault_[0-9]+$…'),
        ("DELETE /_sandbox/snapshots/a%20b", '…"a b"…snapshotName…^[A-Za-z0-9]…'),
        ("GET /_sandbox/requests/%ff%ED%A0%80", "…requestId…"),
    ],
)
def test_a_name_that_nothing_can_have_is_told_what_names_are_like(
    door: Door, asked: str, said: str
) -> None:
    method, path = asked.split()
    answer = door.ask(method, path)
    assert 404 == answer.status
    assert reads(answer.json()["message"], said)


@pytest.mark.parametrize("surface", ["", "/_sandbox"])
def test_an_unknown_path_is_told_where_the_right_contract_is(door: Door, surface: str) -> None:
    answer = door.ask("GET", f"{surface or '/v2'}/nothing")
    message = refused(answer, 404, "route_not_found")["message"]
    assert f" /s/surfaces{surface}/openapi.json " in message
    assert json.loads(door.ask("GET", f"{surface}/openapi.json").body)["openapi"] == "3.0.3"
