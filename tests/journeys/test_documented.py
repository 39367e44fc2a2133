"""The four operations that the source document describes: its fields, its types and its statuses, and nothing beside.

The tables here are copied from the document by hand. The contract is not asked.
"""

import re
from typing import Any
from uuid import UUID

import pytest

from ..support.estate import Estate
from ..support.make import Json, fresh_cpf

Table = dict[str, Any]


def is_uuid(value: Any) -> bool:
    return isinstance(value, str) and str(UUID(value)) == value


def is_date_time(value: Any) -> bool:
    """ISO 8601, UTC."""
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value) is not None


def is_email(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_map(value: Any) -> bool:
    """A map of strings: an object whose values are all strings."""
    return isinstance(value, dict) and all(isinstance(inner, str) for inner in value.values())


def is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(inner, str) for inner in value)


API_KEY: Table = {
    "id": is_uuid,
    "public_key": str,
    "name": str,
    "description": str,
    "scopes": is_strings,
    "expires_at": is_date_time,
    "is_active": bool,
    "allowed_ips": is_strings,
    "allowed_projects": str,
    "metadata": is_map,
    "usage_count": is_integer,
    "last_used_at": (is_date_time, None),  # a key that was just made was never used
    "created_at": is_date_time,
    "private_key": str,
}
ITEM: Table = {"description": str, "quantity": is_number, "amount": is_number}
ORDER_CUSTOMER: Table = {
    "name": str,
    "email": is_email,
    "document": str,
    "document_type": str,
    "type": str,
    "phones": is_map,
    "address": is_map,
}
ORDER: Table = {
    "id": is_uuid,
    "code": str,
    "status": str,
    "paymentMethod": str,
    "totalAmount": is_number,
    "customer": ORDER_CUSTOMER,
    "items": [ITEM],
    "last_transaction": is_map,
    "createdAt": is_date_time,
    "updatedAt": is_date_time,
}
PHONE: Table = {"country_code": str, "area_code": str, "number": str}
ADDRESS: Table = {"line_1": str, "line_2": str, "zip_code": str, "city": str, "state": str, "country": str}
CUSTOMER: Table = {
    "id": is_uuid,
    "type": str,
    "name": str,
    "email": is_email,
    "document": str,
    "document_type": str,
    "phones": {"mobile_phone": PHONE},
    "address": ADDRESS,
    "metadata": is_map,
    "createdAt": is_date_time,
    "updatedAt": is_date_time,
}
PROJECT: Table = {
    "id": is_uuid,
    "name": str,
    "description": str,
    "status": str,
    "type": str,
    "visibility": str,
    "plans_count": is_integer,
    "orders_count": is_integer,
    "total_revenue": is_number,
    "total_subscribers": is_integer,
    "active_subscribers": is_integer,
    "creatorId": is_uuid,
    "metadata": is_map,
    "createdAt": is_date_time,
}


def holds(expected: Any, value: Any, where: str = "") -> None:
    """Hold a value to a type of the tables: exactly the members of an object, each of its type."""
    if isinstance(expected, dict):
        assert set(expected) == set(value), where
        for name, inner in expected.items():
            holds(inner, value[name], f"{where}.{name}")
    elif isinstance(expected, list):
        assert value, where
        for each in value:
            holds(expected[0], each, f"{where}[]")
    elif isinstance(expected, tuple):
        assert value is None or expected[0](value), where
    elif isinstance(expected, type):
        assert isinstance(value, expected), where
    else:
        assert expected(value), f"{where}: {value!r}"


def key_request(shop: Estate) -> Json:
    return {
        "name": "Integração da loja",
        "description": "Pedidos e clientes",
        "scopes": ["orders:read", "orders:write"],
        "expires_at": "2030-01-01T00:00:00Z",
        "allowed_ips": ["203.0.113.0/24"],
        "allowed_projects": [shop.ids["projectId"]],
        "metadata": {"time": "financeiro"},
    }


def test_create_api_key(shop: Estate) -> None:
    """POST /api-keys (4.1): 201, the key with its private half, and a warning."""
    sent = key_request(shop)
    response = shop.api.post("/api-keys", json=sent)
    assert response.status_code == 201
    body = response.json()
    holds({"error": bool, "message": str, "api_key": API_KEY, "warning": str}, body)
    key = body["api_key"]
    assert body["error"] is False
    same = ("name", "description", "scopes", "allowed_ips", "metadata")
    assert {name: sent[name] for name in same} == {name: key[name] for name in same}
    assert ("2030-01-01T00:00:00.000Z", True) == (key["expires_at"], key["is_active"])


def test_allowed_projects_goes_in_as_an_array_and_comes_out_as_one_string(shop: Estate) -> None:
    """2.1: "Keep both as given"."""
    key = shop.api.post("/api-keys", json=key_request(shop)).json()["api_key"]
    assert shop.ids["projectId"] == key["allowed_projects"]
    assert "" == shop.key(allowed_projects=[])["allowed_projects"]


def test_the_private_key_is_shown_by_the_creation_alone(shop: Estate) -> None:
    """2.1: the create response is the only place."""
    key = shop.api.post("/api-keys", json=key_request(shop)).json()["api_key"]
    (listed,) = [each for each in shop.api.get("/api-keys").json()["api_keys"] if each["id"] == key["id"]]
    updated = shop.api.put(f"/api-keys/{key['id']}", json={"name": "Outra"}).json()["api_key"]
    for shown in (listed, updated):
        assert set(API_KEY) - {"private_key"} == set(shown)


def order_request(shop: Estate) -> Json:
    return {
        "projectId": shop.ids["projectId"],
        "planId": shop.ids["planId"],
        "paymentMethod": "pix",
        "totalAmount": 59.8,
        "items": [
            {"description": "Plano Mensal", "quantity": 1, "amount": 49.9},
            {"description": "Apostila", "quantity": 1.5, "amount": 6.6},
        ],
        "customer": {
            "name": "Mariana Souza Oliveira",
            "email": "mariana.oliveira@example.com",
            "document": fresh_cpf(),
            "document_type": "cpf",
            "type": "individual",
            "phones": {"mobile_phone": "+5511987654321", "recado": "vizinha"},
            "address": {"line_1": "1374, Avenida Paulista", "city": "São Paulo", "qualquer": "coisa"},
        },
        "metadata": {"campanha": "novembro"},
        "success_url": "https://loja.example.com/obrigado",
        "cancel_url": "https://loja.example.com/carrinho",
    }


def test_create_pix_order(shop: Estate) -> None:
    """POST /v2/orders/pix (4.2): 201 and an Order, without an envelope."""
    sent = order_request(shop)
    response = shop.api.post("/v2/orders/pix", json=sent)
    assert response.status_code == 201
    order = response.json()
    holds(ORDER, order)
    same = ("paymentMethod", "totalAmount", "items", "customer")
    assert {name: sent[name] for name in same} == {name: order[name] for name in same}


def project_request() -> Json:
    url = "https://clube.example.com"
    return {
        "name": "Clube de Violão",
        "description": "Aulas por assinatura",
        "long_description": "Do primeiro acorde ao repertório.",
        "logo_url": f"{url}/logo.png",
        "cover_image": f"{url}/capa.jpg",
        "website_url": url,
        "status": "active",
        "visibility": "public",
        "business_settings": {"cnpj": "11222333000181"},
        "marketing_settings": {"pixel": "123"},
        "content_settings": {"idioma": "pt-BR"},
        "notification_settings": {"email": "sim"},
        "metadata": {"origem": "site"},
    }


def test_update_project(shop: Estate) -> None:
    """PUT /v2/projects/{projectId} (4.3): 200, `data` with one key, and nothing that is only sent."""
    sent = project_request()
    response = shop.api.put(f"/v2/projects/{shop.ids['projectId']}", json=sent)
    assert response.status_code == 200
    body = response.json()
    holds({"error": bool, "data": {"project": PROJECT}, "message": str}, body)
    project = body["data"]["project"]
    same = ("name", "description", "status", "visibility", "metadata")
    assert {name: sent[name] for name in same} == {name: project[name] for name in same}
    assert (False, "membership", "active", "public") == (
        body["error"],
        project["type"],
        project["status"],
        project["visibility"],
    )


def customer_request() -> Json:
    return {
        "type": "individual",
        "name": "Mariana Souza",
        "email": "mariana.souza@example.com",
        "document": fresh_cpf(),
        "document_type": "cpf",
        "phones": {"mobile_phone": {"country_code": "55", "area_code": "11", "number": "987654321"}},
        "address": {
            "line_1": "1374, Avenida Paulista, Bela Vista",
            "line_2": "Apto 82",
            "zip_code": "01310100",
            "city": "São Paulo",
            "state": "SP",
            "country": "BR",
        },
        "metadata": {"turma": "noite"},
    }


def test_update_customer(shop: Estate) -> None:
    """PUT /v2/customers/{customerId} (4.4): 200 and the customer under its name, everything as it was sent."""
    sent = customer_request()
    response = shop.api.put(f"/v2/customers/{shop.ids['customerId']}", json=sent)
    assert response.status_code == 200
    body = response.json()
    holds({"error": bool, "message": str, "customer": CUSTOMER}, body)
    assert body["error"] is False
    assert sent == {name: body["customer"][name] for name in sent}


@pytest.mark.parametrize("member", ["id", "createdAt", "updatedAt"])
def test_what_a_customer_only_shows_is_not_taken(shop: Estate, member: str) -> None:
    """2.3: "response only"."""
    customer = shop.api.get(f"/v2/customers/{shop.ids['customerId']}").json()["customer"]
    response = shop.api.put(f"/v2/customers/{shop.ids['customerId']}", json={member: customer[member]})
    assert response.status_code == 422


@pytest.mark.parametrize("member", sorted(set(PROJECT) - set(project_request())))
def test_what_a_project_only_shows_is_not_taken(shop: Estate, member: str) -> None:
    """2.4: "response only"."""
    path = f"/v2/projects/{shop.ids['projectId']}"
    project = shop.api.get(path).json()["data"]["project"]
    assert shop.api.put(path, json={member: project[member]}).status_code == 422
