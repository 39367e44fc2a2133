"""Records made over HTTP, believable and different from each other; and what answers have."""

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2

from stub_server.domain.cpf import cpf_with_check_digits

T = TypeVar("T")
Json = dict[str, Any]
HELD = {"held": True, "wait_seconds": 0}  # sends what is held back, and waits for nothing
Maker = Callable[..., Json]

_serial = itertools.count(1)


def fresh_cpf() -> str:
    """A valid CPF that no other call has given."""
    return cpf_with_check_digits(f"{600_000_000 + next(_serial) * 7:09d}")


def customer_body(**changes: Any) -> Json:
    """What createCustomer accepts."""
    document = changes.pop("document", None) or fresh_cpf()
    body = {
        "name": "Marina Duarte",
        "email": f"marina.{document[:9]}@example.com",
        "document": document,
        "phones": {
            "mobile_phone": {"country_code": "55", "area_code": "11", "number": "987654321"}
        },
        "address": {
            "line_1": "1374, Avenida Paulista, Bela Vista",
            "zip_code": "01310100",
            "city": "São Paulo",
            "state": "SP",
            "country": "BR",
        },
    }
    return body | changes


def order_body(project_id: str, plan_id: str, **changes: Any) -> Json:
    """What createPixOrder accepts."""
    body = {
        "projectId": project_id,
        "planId": plan_id,
        "paymentMethod": "pix",
        "totalAmount": 49.9,
        "items": [{"description": "Plano Mensal", "quantity": 1, "amount": 49.9}],
        "customer": {
            "name": "Marina Duarte",
            "email": "marina.duarte@example.com",
            "document": "34712695846",
            "document_type": "cpf",
            "type": "individual",
            "phones": {"mobile_phone": "5511987654321"},
            "address": {
                "line_1": "1374, Avenida Paulista, Bela Vista",
                "city": "São Paulo",
                "state": "SP",
            },
        },
    }
    return body | changes


def card_body(plan: Json, **changes: Any) -> Json:
    """What createOrder accepts for a plan, paid by card."""
    return order_body(plan["projectId"], plan["id"], paymentMethod="credit_card", **changes)


def typed(kind: type[T], value: object) -> T:
    """A value out of JSON, which must be of this type."""
    assert isinstance(value, kind), value
    return value


def object_of(body: Json, name: str) -> Json:
    """The object that a body has under a name."""
    return typed(dict, body[name])


def list_of(body: Json, name: str) -> list[Json]:
    """The list that a body has under a name."""
    return typed(list, body[name])


def done(response: httpx2.Response, status: int = 200) -> Json:
    """The body of an answer of this status; any other fails the test with what the server said."""
    assert response.status_code == status, (
        f"{response.request.method} {response.request.url}: {response.text}"
    )
    return typed(dict, response.json())


def created(response: httpx2.Response) -> Json:
    """The body of a 201."""
    return done(response, 201)


def make_customer(api: httpx2.Client, **changes: Any) -> Json:
    """A new customer."""
    return object_of(created(api.post("/v2/customers", json=customer_body(**changes))), "customer")


def make_project(api: httpx2.Client, **changes: Any) -> Json:
    """A new project, active unless told otherwise."""
    body = {"name": f"Clube {next(_serial)}", "status": "active"} | changes
    return object_of(created(api.post("/v2/projects", json=body))["data"], "project")


def make_plan(api: httpx2.Client, project_id: str | None = None, **changes: Any) -> Json:
    """A new plan of a project, a new one unless named."""
    project_id = project_id or make_project(api)["id"]
    body = {"projectId": project_id, "name": f"Plano {next(_serial)}", "amount": 49.9} | changes
    return object_of(created(api.post("/v2/plans", json=body)), "plan")


def make_order(api: httpx2.Client, plan: Json | None = None, **changes: Any) -> Json:
    """A new PIX order for a plan, a new one unless given."""
    plan = plan or make_plan(api)
    return created(
        api.post("/v2/orders/pix", json=order_body(plan["projectId"], plan["id"], **changes))
    )
