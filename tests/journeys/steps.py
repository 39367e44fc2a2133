"""The steps that journeys share: what is asked, and what is expected of a refusal."""

from typing import Any

import httpx2

from ..support.contract import component, violations
from ..support.live import NO_TLS
from ..support.make import Json, created, done, object_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def refused(response: httpx2.Response, status: int, code: str) -> dict[str, str]:
    """Hold a response to a status and an error code; answers field to code of each violation."""
    body: Json = response.json()
    assert (status, code) == (response.status_code, body.get("code")), response.text
    assert [] == [
        wrong for entry in body["details"] for wrong in violations(component("ErrorDetail"), entry)
    ]
    return {entry["field"]: entry["code"] for entry in body["details"]}


def get_plan(api: httpx2.Client, plan: Json) -> Json:
    """The plan as it is now."""
    return object_of(done(api.get(f"/v2/plans/{plan['id']}")), "plan")


def update_plan(api: httpx2.Client, plan: Json, **changes: Any) -> httpx2.Response:
    """Change a plan."""
    return api.put(f"/v2/plans/{plan['id']}", json=changes)


def make_product(api: httpx2.Client, project_id: str, **changes: Any) -> Json:
    """A new product."""
    body = {"projectId": project_id, "name": "Curso de violão"} | changes
    return object_of(created(api.post("/v2/products", json=body)), "product")


def get_product(api: httpx2.Client, product: Json) -> Json:
    """The product as it is now."""
    return object_of(done(api.get(f"/v2/products/{product['id']}")), "product")


def update_product(api: httpx2.Client, product: Json, **changes: Any) -> httpx2.Response:
    """Change a product."""
    return api.put(f"/v2/products/{product['id']}", json=changes)


def names(api: httpx2.Client, what: str, **query: str) -> list[str]:
    """The names on a page of a list of plans or products."""
    return [entry["name"] for entry in done(api.get(f"/v2/{what}", params=query))[what]]


def events_of(control: httpx2.Client, ident: str) -> list[Json]:
    """What happened to a resource, oldest first."""
    found: list[Json] = done(control.get("/events", params={"resource_id": ident}))["events"]
    return found[::-1]


def pay(control: httpx2.Client, order: Json) -> None:
    """Pay an order as a payer would."""
    done(control.post(f"/orders/{order['id']}/pay"))


def archive(api: httpx2.Client, project_id: str) -> None:
    """Archive a project."""
    done(api.post(f"/v2/projects/{project_id}/archive"))


def restricted_key(api: httpx2.Client, project_id: str, *scopes: str) -> httpx2.Client:
    """A client whose API key knows one project alone; to be closed by the caller."""
    body = {"name": "Chave", "scopes": scopes, "allowed_projects": [project_id]}
    key = created(api.post("/api-keys", json=body))["api_key"]["private_key"]
    return httpx2.Client(
        base_url=api.base_url, headers={"Authorization": f"Bearer {key}"}, verify=NO_TLS
    )
