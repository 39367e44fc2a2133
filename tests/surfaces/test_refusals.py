"""One shape for every refusal, whatever form is asked for, and one order in which things are checked."""

import json
from collections.abc import Callable

import pytest

from ..support.make import customer_body, order_body
from ..support.refusal import refused
from ..support.wire import Answer, Door, Header

PROBLEM = "application/problem+json"
NOBODY = "/v2/customers/00000000-0000-4000-8000-000000000000"
Ask = Callable[[Door, list[Header]], Answer]


def conflict(door: Door, headers: list[Header]) -> Answer:
    """The same document twice."""
    body = json.dumps(customer_body(document="52998224725")).encode()
    door.ask("POST", "/v2/customers", body)
    return door.ask("POST", "/v2/customers", body, headers=headers)


def large(door: Door, headers: list[Header]) -> Answer:
    """More than a mebibyte."""
    return door.ask("POST", "/v2/customers", b" " * 1_048_577, headers=headers)


def weak(door: Door, headers: list[Header]) -> Answer:
    """An API key where a JWT is required."""
    made = door.send("POST", "/api-keys", {"name": "Fraca", "scopes": ["orders:read"]}).json()["api_key"]
    return door.ask("GET", "/v2/customers", headers=headers, token=made["private_key"])


CLASSES: dict[tuple[int, str], Ask] = {
    (400, "malformed_json"): lambda d, h: d.ask("POST", "/v2/customers", b"{", headers=h),
    (401, "missing_credentials"): lambda d, h: d.ask("GET", "/v2/customers", headers=h, token=None),
    (401, "invalid_token"): lambda d, h: d.ask("GET", "/v2/customers", headers=h, token="abc"),
    (403, "insufficient_scope"): weak,
    (404, "not_found"): lambda d, h: d.ask("GET", NOBODY, headers=h),
    (404, "route_not_found"): lambda d, h: d.ask("GET", "/nothing", headers=h),
    (404, "merchant_not_found"): lambda d, h: d.ask("GET", "/api-keys/merchant/pk_none", headers=h),
    (405, "method_not_allowed"): lambda d, h: d.ask("DELETE", "/v2/customers", headers=h),
    (409, "duplicate_document"): conflict,
    (413, "payload_too_large"): large,
    (415, "unsupported_media_type"): lambda d, h: d.ask("POST", "/v2/customers", b"x", media="text/plain", headers=h),
    (422, "validation_error"): lambda d, h: d.ask("POST", "/v2/customers", b'{"a/b~c": 1}', headers=h),
}
each_class = pytest.mark.parametrize(("status", "code"), CLASSES, ids=str)


@each_class
def test_every_refusal_has_the_one_shape(door: Door, status: int, code: str) -> None:
    refused(CLASSES[status, code](door, []), status, code)


@each_class
def test_every_refusal_has_the_one_shape_also_for_who_asks_for_another(door: Door, status: int, code: str) -> None:
    refused(CLASSES[status, code](door, [("Accept", PROBLEM)]), status, code)


@pytest.mark.parametrize(
    "accept", [PROBLEM, "application/json", "*/*", "text/html", "application/*", "", "nonsense", "a" * 8_000]
)
def test_any_other_accept_gets_json(door: Door, accept: str) -> None:
    """Nothing is ever 406."""
    refused(door.ask("GET", NOBODY, headers=[("Accept", accept)]), 404, "not_found")
    assert door.ask("GET", "/v2/customers?limit=1", headers=[("Accept", accept)]).status == 200


def test_request_ids_differ_and_stand_on_successes_too(door: Door) -> None:
    seen = [
        door.ask("GET", path).header("x-request-id") for path in ("/v2/customers", "/v2/customers", NOBODY, "/nope")
    ]
    assert None not in seen
    assert len(set(seen)) == 4


def test_a_request_id_of_the_client_is_not_taken_over(door: Door) -> None:
    answer = door.ask("GET", NOBODY, headers=[("X-Request-Id", "mine")])
    assert refused(answer, 404, "not_found")["request_id"] != "mine"


@pytest.mark.parametrize(
    "header", [("X-Long", "x" * 20_000), ("Cookie", "a=b; " * 2_000), ("X-Odd", b"\xff\xfe"), ("Range", "bytes=0-1")]
)
def test_odd_headers_are_passed_over(door: Door, header: Header) -> None:
    assert door.ask("GET", "/v2/customers?limit=1", headers=[header]).status == 200


STEPS: list[tuple[str, int, str]] = [
    ("route", 404, "route_not_found"),
    ("method", 405, "method_not_allowed"),
    ("credential", 401, "missing_credentials"),
    ("token", 401, "invalid_token"),
    ("scope", 403, "insufficient_scope"),
    ("media", 415, "unsupported_media_type"),
    ("parse", 400, "malformed_json"),
    ("schema", 422, "validation_error"),
    ("target", 404, "not_found"),
    ("conflict", 409, "duplicate_document"),
]


@pytest.mark.parametrize("first", range(len(STEPS)), ids=[step[0] for step in STEPS])
def test_of_all_faults_the_first_in_the_order_of_checks_is_told(door: Door, customer_id: str, first: int) -> None:
    """A request that is wrong from one step on, in every later way at once."""
    wrong = {step[0] for step in STEPS[first:]}
    taken = customer_body(document="11222333000181", type="company")
    door.send("POST", "/v2/customers", taken)
    weak_key = door.send("POST", "/api-keys", {"name": "Fraca", "scopes": ["orders:read"]}).json()["api_key"]
    path = "/nothing" if "route" in wrong else NOBODY if "target" in wrong else f"/v2/customers/{customer_id}"
    method = "PATCH" if "method" in wrong else "PUT"
    token: str | None = ""
    if "credential" in wrong:
        token = None
    elif "token" in wrong:
        token = "sk_sandbox_nobody"
    elif "scope" in wrong:
        token = weak_key["private_key"]
    body = b'{"document": "11222333000181", "document_type": "cnpj", "type": "company"}'
    if "parse" in wrong:
        body = b"{"
    elif "schema" in wrong:
        body = b'{"document": 1}'
    media = "text/plain" if "media" in wrong else "application/json"
    answer = door.ask(method, path, body, token=token, media=media)
    refused(answer, *STEPS[first][1:])


def test_a_wrong_query_and_a_wrong_body_are_told_together(door: Door) -> None:
    answer = door.ask("POST", "/v2/customers", b'{"name": 1}', headers=[("Idempotency-Key", "x" * 300)])
    places = {entry["in"] for entry in refused(answer, 422, "validation_error")["details"]}
    assert places == {"header", "body"}


def test_target_then_project_then_reference_then_conflict(door: Door) -> None:
    """A key that may touch one project: what it may not touch is 403 before anything inside it is looked up."""
    mine, other = (
        door.send("POST", "/v2/projects", {"name": name, "status": "active"}).json()["data"]["project"]["id"]
        for name in ("Clube da ordem", "Clube vizinho")
    )
    key = {
        "name": "Restrita",
        "scopes": ["orders:write", "projects:read", "projects:write"],
        "allowed_projects": [mine],
    }
    token = door.send("POST", "/api-keys", key).json()["api_key"]["private_key"]
    nobody = NOBODY.rpartition("/")[2]

    def order(project: str) -> Answer:
        return door.ask("POST", "/v2/orders/pix", json.dumps(order_body(project, nobody)).encode(), token=token)

    refused(door.ask("GET", f"/v2/projects/{nobody}", token=token), 404, "not_found")
    refused(door.ask("GET", f"/v2/projects/{other}", token=token), 403, "project_not_allowed")
    assert door.ask("GET", f"/v2/projects/{mine}", token=token).status == 200
    refused(order(other), 403, "project_not_allowed")
    assert order(other).header("www-authenticate") is None
    refused(order(mine), 409, "reference_not_found")
    assert door.ask("POST", f"/v2/projects/{mine}/archive", token=token).status == 200
    refused(order(mine), 409, "reference_not_found")
    refused(door.ask("POST", f"/v2/projects/{mine}/activate", token=token), 409, "invalid_state_transition")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("fortnight", ['"fortnight" is not one of day, week, month, year, null.']),
        ("mounth", ['"mounth" is not one of day, week, month, year, null. Did you mean month?']),
        (5, ["5 has the wrong type: send a string or null.", "5 is not one of day, week, month, year, null."]),
    ],
)
def test_an_enum_that_may_be_null_is_told_as_one(door: Door, sent: object, told: list[str]) -> None:
    """The contract says it as a choice, for the sake of generated clients; whoever is refused sees one list."""
    answer = door.send("POST", "/v2/plans", {"projectId": NOBODY[-36:], "name": "x", "amount": 1, "interval": sent})
    assert told == [detail["message"] for detail in refused(answer, 422, "validation_error")["details"]]
