"""Which of several mistakes is told, and that no header changes the shape of a refusal."""

import json
from typing import Any

import pytest

from ..support.make import customer_body
from ..support.refusal import refused
from ..support.requests import UNKNOWN
from ..support.wire import Door, Header

PROBLEM = "application/problem+json"
NOBODY = f"/v2/customers/{UNKNOWN}"


@pytest.mark.parametrize(
    "accept",
    [PROBLEM, "application/json", "*/*", "text/html", "application/*", "", "nonsense", "a" * 8_000],
)
def test_whatever_is_accepted_gets_json(door: Door, accept: str) -> None:
    """Nothing is ever 406."""
    headers: list[Header] = [("Accept", accept)]
    refused(door.ask("GET", NOBODY, headers=headers), 404, "not_found")
    refused(door.ask("GET", NOBODY, headers=headers, token=None), 401, "missing_credentials")
    refused(door.ask("POST", "/v2/customers", b"{", headers=headers), 400, "malformed_json")
    assert door.ask("GET", "/v2/customers?limit=1", headers=headers).status == 200


def test_request_ids_differ_and_are_the_servers_own(door: Door) -> None:
    """Successes have one too."""
    paths = ("/v2/customers", "/v2/customers", NOBODY, "/nope")
    seen = {
        door.ask("GET", path, headers=[("X-Request-Id", "mine")]).header("x-request-id")
        for path in paths
    }
    assert len(seen) == 4
    assert seen.isdisjoint({None, "mine"})


def test_of_all_mistakes_the_first_in_the_order_of_checks_is_told(
    door: Door, customer_id: str
) -> None:
    """A request that is wrong in every way is corrected step by step."""
    taken = {"document": "11222333000181", "document_type": "cnpj", "type": "company"}
    door.send("POST", "/v2/customers", customer_body(**taken))
    weak = door.send("POST", "/api-keys", {"name": "Fraca", "scopes": ["orders:read"]}).json()[
        "api_key"
    ]
    request: dict[str, Any] = {
        "method": "PATCH",
        "path": "/nothing",
        "token": None,
        "media": "text/plain",
        "body": b"{",
    }
    corrections: list[tuple[int, str, dict[str, Any]]] = [
        (404, "route_not_found", {"path": NOBODY}),
        (405, "method_not_allowed", {"method": "PUT"}),
        (401, "missing_credentials", {"token": "sk_sandbox_nobody"}),
        (401, "invalid_token", {"token": weak["private_key"]}),
        (403, "insufficient_scope", {"token": door.token}),
        (415, "unsupported_media_type", {"media": "application/json"}),
        (400, "malformed_json", {"body": b'{"document": 1}'}),
        (422, "validation_error", {"body": json.dumps(taken).encode()}),
        (404, "not_found", {"path": f"/v2/customers/{customer_id}"}),
        (409, "duplicate_document", {}),
    ]
    for status, code, correction in corrections:
        refused(door.ask(**request), status, code)
        request |= correction


def test_a_wrong_header_and_a_wrong_body_are_told_together(door: Door) -> None:
    answer = door.ask(
        "POST", "/v2/customers", b'{"name": 1}', headers=[("Idempotency-Key", "x" * 300)]
    )
    places = {entry["in"] for entry in refused(answer, 422, "validation_error")["details"]}
    assert places == {"header", "body"}
