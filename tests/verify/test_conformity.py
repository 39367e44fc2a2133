"""Conformity: the sandbox departs in nothing, and each departure is named with its class
and its place.
"""

from copy import deepcopy

import pytest

from stub_server.contract.document import Document
from stub_server.tools.verify.conformity import Conformity
from stub_server.tools.verify.exchange import Exchange
from stub_server.tools.verify.findings import Finding
from stub_server.tools.verify.showing import Showing

from ..support.contract import document
from .exchanges import HEADERS, example, exchange

CUSTOMERS, CUSTOMER = "/v2/customers", "/v2/customers/7"


@pytest.fixture(scope="module")
def conformity() -> Conformity:
    return Conformity(document())


def found(conformity: Conformity, exchange: Exchange) -> list[Finding]:
    request, showing = exchange.request, Showing(document())
    operation = document().routed(request.path)[0].get(request.method)
    findings = conformity.findings(exchange, operation)
    return [showing.finding(each, exchange, operation, "accepts") for each in findings]


def kinds(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(each.kind, each.pointer) for each in findings]


ERROR = "#/components/schemas/Error"
DEPARTURES: dict[str, tuple[Exchange, list[tuple[str, str]]]] = {
    "no answer": (exchange("GET", CUSTOMERS, 0, b""), [("transport", "#/paths/~1v2~1customers/get")]),
    "a defect": (exchange("GET", CUSTOMERS, 500, b"<html>"), [("server-error", "#/paths/~1v2~1customers/get")]),
    "an unknown path": (exchange("GET", "/v2/coupons", 200, {}), [("undocumented-operation", "#/paths")]),
    "no such route": (
        exchange("GET", CUSTOMER, 404, {"detail": "Not Found"}),
        [("missing-operation", "#/paths/~1v2~1customers~1{customerId}/get")],
    ),
    "another success": (
        exchange("GET", CUSTOMERS, 202, {}), [("undocumented-status", "#/paths/~1v2~1customers/get/responses")]
    ),
    "another code": (
        exchange("GET", CUSTOMER, 404, example("NotFound") | {"code": "customer_gone"}),
        [("error-code", "#/components/responses/NotFound/x-codes")],
    ),
    "another shape of refusals": (
        exchange("GET", CUSTOMERS, 422, {"detail": []}),
        [("schema", f"{ERROR}/required"), ("undocumented-field", f"{ERROR}/properties/detail")],
    ),
    "another media type": (
        exchange("GET", CUSTOMERS, 200, b"<p>", HEADERS | {"Content-Type": "text/html; charset=utf-8"}),
        [("schema", "#/paths/~1v2~1customers/get/responses/200/content")],
    ),
    "deep": (
        exchange("GET", CUSTOMERS, 200, b"[" * 900 + b"]" * 900),
        [("schema", "#/paths/~1v2~1customers/get/responses/200/content/application~1json/schema")],
    ),
    "no request id": (
        exchange("GET", CUSTOMERS, 200, example("CustomerPage"), {"Content-Type": "application/json"}),
        [("missing-header", "#/paths/~1v2~1customers/get/responses/200/headers/X-Request-Id")],
    ),
    "no such route, in other words": (
        exchange("GET", "/v2/projects/7/stats", 404, {"error": True, "code": "ROUTE_NOT_FOUND"}),
        [("missing-operation", "#/paths/~1v2~1projects~1{projectId}~1stats/get")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPARTURES)
def test_a_departure_is_named_with_its_class_and_place(conformity: Conformity, name: str) -> None:
    seen, expected = DEPARTURES[name]
    assert expected == kinds(found(conformity, seen))


def test_members_of_records_are_found_once_each_whatever_else_is_wrong(
    conformity: Conformity,
) -> None:
    page = example("CustomerPage")
    first, second = page["customers"][:2]
    for customer in page["customers"]:
        customer["nickname"] = "Lena"
    first["name"], second["createdAt"] = 12, "yesterday"
    page["pagination"]["next"] = 2
    del second["email"]
    seen = found(conformity, exchange("GET", CUSTOMERS, 200, page))
    records = "#/components/schemas/Customer/properties"
    assert sorted(kinds(seen)) == [
        ("schema", f"{records}/createdAt/format"),
        ("schema", f"{records}/email"),
        ("schema", f"{records}/name/type"),
        ("undocumented-field", f"{records}/nickname"),
        ("undocumented-field", "#/components/schemas/Pagination/properties/next"),
    ]
    assert any("customers[].nickname" in each.title for each in seen)


def test_a_member_that_a_part_of_allof_requires_is_named() -> None:
    raw = deepcopy(document().raw)
    schemas = raw["components"]["schemas"]
    schemas["Customer"]["allOf"] = [{"required": ["nickname"]}]
    conformity = Conformity(Document(raw))
    seen = found(conformity, exchange("GET", CUSTOMERS, 200, example("CustomerPage")))
    assert ["listCustomers answers 200 without customers[].nickname."] == [
        each.title for each in seen
    ]


def test_a_command_names_a_body_that_is_too_long_to_be_shown(conformity: Conformity) -> None:
    sent = b'{"name": "%b"}' % (b"x" * 5_000)
    (seen,) = found(conformity, exchange("POST", CUSTOMERS, 418, {}, sent=sent))
    assert "--data-raw BODY" in seen.request.curl
