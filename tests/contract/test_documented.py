"""What the source document shows is exact: four operations in full, the methods of 21 more, and
their field lists.
"""

from typing import Any

import pytest

from stub_server.contract.document import JSON

from ..support.contract import document

API = document()
OPERATIONS = API.operations

STRING, INTEGER, NUMBER, BOOLEAN = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
)
UUID = {"type": "string", "format": "uuid"}
INSTANT = {"type": "string", "format": "date-time"}
EMAIL = {"type": "string", "format": "email"}
URL = {"type": "string", "format": "uri"}
MAP = {"type": "object"}
STRINGS = {"type": "array"}

API_KEY = {
    "id": UUID, "public_key": STRING, "name": STRING, "description": STRING, "scopes": STRINGS, "expires_at": INSTANT,
    "is_active": BOOLEAN, "allowed_ips": STRINGS, "allowed_projects": STRING, "metadata": MAP, "usage_count": INTEGER,
    "last_used_at": INSTANT, "created_at": INSTANT, "private_key": STRING,
}  # fmt: skip
ORDER = {
    "id": UUID, "code": STRING, "status": STRING, "paymentMethod": STRING, "totalAmount": NUMBER, "customer": MAP,
    "items": STRINGS, "last_transaction": MAP, "createdAt": INSTANT, "updatedAt": INSTANT,
}  # fmt: skip
ITEM = {"description": STRING, "quantity": NUMBER, "amount": NUMBER}
ORDER_CUSTOMER = {
    "name": STRING, "email": EMAIL, "document": STRING, "document_type": STRING, "type": STRING, "phones": MAP,
    "address": MAP,
}  # fmt: skip
ADDRESS = dict.fromkeys(("line_1", "line_2", "zip_code", "city", "state", "country"), STRING)
PHONE = dict.fromkeys(("country_code", "area_code", "number"), STRING)
CUSTOMER_UPDATE = {
    "type": STRING, "name": STRING, "email": EMAIL, "document": STRING, "document_type": STRING, "phones": MAP,
    "address": MAP,
    "metadata": MAP,
}  # fmt: skip
CUSTOMER = {"id": UUID, **CUSTOMER_UPDATE, "createdAt": INSTANT, "updatedAt": INSTANT}
PROJECT_UPDATE = {
    "name": STRING, "description": STRING, "long_description": STRING, "logo_url": URL, "cover_image": URL,
    "website_url": URL,
    "status": STRING, "visibility": STRING, "business_settings": MAP, "marketing_settings": MAP,
    "content_settings": MAP,
    "notification_settings": MAP, "metadata": MAP,
}  # fmt: skip
PROJECT = {
    "id": UUID, "name": STRING, "description": STRING, "status": STRING, "type": STRING, "visibility": STRING,
    "plans_count": INTEGER, "orders_count": INTEGER, "total_revenue": NUMBER, "total_subscribers": INTEGER,
    "active_subscribers": INTEGER, "creatorId": UUID, "metadata": MAP, "createdAt": INSTANT,
}  # fmt: skip
KEY_CREATE = {
    "name": STRING, "description": STRING, "scopes": STRINGS, "expires_at": INSTANT, "allowed_ips": STRINGS,
    "allowed_projects": STRINGS, "metadata": MAP,
}  # fmt: skip
PIX_CREATE = {
    "projectId": UUID, "planId": UUID, "paymentMethod": STRING, "totalAmount": NUMBER, "items": STRINGS,
    "customer": MAP,
    "metadata": MAP, "success_url": URL, "cancel_url": URL,
}  # fmt: skip

DOCUMENTED: dict[str, tuple[str, str, int, dict[str, Any], dict[str, Any]]] = {
    "createApiKey": ("POST", "/api-keys", 201, KEY_CREATE, {"error": BOOLEAN, "message": STRING, "api_key": API_KEY,
    "warning": STRING}),
    "createPixOrder": ("POST", "/v2/orders/pix", 201, PIX_CREATE, ORDER),
    "updateProject": ("PUT", "/v2/projects/{projectId}", 200, PROJECT_UPDATE, {"error": BOOLEAN,
    "data": {"project": PROJECT}, "message": STRING}),
    "updateCustomer": ("PUT", "/v2/customers/{customerId}", 200, CUSTOMER_UPDATE, {"error": BOOLEAN, "message": STRING,
    "customer": CUSTOMER}),
}  # fmt: skip


def agrees(schema: Any, fields: dict[str, Any], where: str) -> None:
    """A schema has exactly these fields, each of the type and format that the source
    document shows, and others only where `x-basis` leaves them out.
    """
    schema = API.resolve(schema)
    basis = schema.get("x-basis", schema["properties"])
    assert [name for name in schema["properties"] if name in basis] == list(fields), where
    for name, shown in fields.items():
        member = API.resolve(schema["properties"][name])
        if not isinstance(shown.get("type"), str):
            agrees(member, shown, f"{where}.{name}")
            continue
        assert member["type"] == shown["type"], f"{where}.{name}"
        if "format" in shown:
            assert member["format"] == shown["format"], f"{where}.{name}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_operation_is_exactly_as_shown(name: str) -> None:
    method, path, status, request, answer = DOCUMENTED[name]
    operation = OPERATIONS[name]
    assert (operation.method, operation.path) == (method, path)
    assert [s for s in operation.responses if s < 300] == [status]
    agrees(operation.body, request, f"{name} request")
    agrees(operation.responses[status].media[JSON], answer, f"{name} answer")
    assert operation.is_documented


def test_the_other_45_are_not_said_to_be_documented() -> None:
    for name, operation in OPERATIONS.items():
        if name not in DOCUMENTED:
            assert {operation.basis[part] for part in ("path", "request", "response")} == {
                "assumed"
            }, name


METHODS = {
    "getApiInfo": "GET", "listAvailableScopes": "GET", "getMerchantByPublicKey": "GET", "listApiKeys": "GET",
    "createApiKey": "POST", "updateApiKey": "PUT", "deleteApiKey": "DELETE", "listCustomers": "GET",
    "createCustomer": "POST",
    "getCustomer": "GET", "updateCustomer": "PUT", "listOrders": "GET", "createOrder": "POST", "createPixOrder": "POST",
    "getOrder": "GET", "listProjects": "GET", "createProject": "POST", "getProject": "GET", "updateProject": "PUT",
    "deleteProject": "DELETE", "updateProjectStatus": "PATCH", "getProjectStats": "GET", "activateProject": "POST",
    "suspendProject": "POST", "archiveProject": "POST",
}  # fmt: skip


def test_the_methods_of_25_operations_are_documented_and_those_of_24_assumed() -> None:
    assert {
        n: o.method for n, o in OPERATIONS.items() if o.basis["method"] == "documented"
    } == METHODS
    assert len(OPERATIONS) - len(METHODS) == 24


@pytest.mark.parametrize("name", ["OrderItemInput", "OrderItem"])
def test_an_order_item_has_three_fields(name: str) -> None:
    agrees(API.schema(name), ITEM, name)


@pytest.mark.parametrize("name", ["OrderCustomerInput", "OrderCustomer"])
def test_an_order_customer_has_flat_maps(name: str) -> None:
    agrees(API.schema(name), ORDER_CUSTOMER, name)
    for member in ("phones", "address"):
        schema = API.resolve(API.schema(name)["properties"][member])
        assert API.resolve(schema["additionalProperties"])["type"] == "string"


def test_the_secret_of_a_key_is_in_the_answer_of_its_creation_alone() -> None:
    for name, operation in OPERATIONS.items():
        for status, response in operation.responses.items():
            if JSON in response.media:
                shown = "private_key" in reachable(response.media[JSON])
                assert shown is (name == "createApiKey" and status == 201), f"{name} {status}"


def reachable(schema: Any) -> set[str]:
    """Every property name that an answer of this schema can show."""
    schema = API.resolve(schema)
    names = set(schema.get("properties", ()))
    for member in schema.get("properties", {}).values():
        names |= reachable(member)
    return names | (reachable(schema["items"]) if "items" in schema else set())


@pytest.mark.parametrize(
    ("schema", "member", "value"),
    [
        ("Project", "status", "active"), ("Project", "type", "membership"), ("Project", "visibility", "public"),
        ("Customer", "type", "individual"), ("Customer", "document_type", "cpf"), ("PixOrderCreate", "paymentMethod",
        "pix"),
    ],
)  # fmt: skip
def test_every_value_that_was_seen_is_allowed(schema: str, member: str, value: str) -> None:
    assert value in API.resolve(API.schema(schema)["properties"][member])["enum"]


def test_the_basis_of_documented_fields_is_documented() -> None:
    for name, fields in (
        ("ApiKeyWithSecret", API_KEY), ("ApiKeyCreate", KEY_CREATE), ("Order", ORDER), ("PixOrderCreate", PIX_CREATE),
        ("OrderItem", ITEM), ("OrderCustomer", ORDER_CUSTOMER), ("Customer", CUSTOMER), ("CustomerUpdate",
        CUSTOMER_UPDATE),
        ("Project", PROJECT), ("ProjectUpdate", PROJECT_UPDATE), ("Address", ADDRESS), ("Phone", PHONE),
    ):  # fmt: skip
        assert API.schema(name)["x-basis"] == dict.fromkeys(fields, "documented"), name
