"""Products over HTTP: defaults, and the plans that unlock them."""

import httpx2
import pytest

from ..support.make import Maker, done, typed
from .steps import (
    UNKNOWN,
    get_product,
    make_product,
    names,
    refused,
    restricted_key,
    update_product,
)


@pytest.fixture
def project_id(make_project: Maker) -> str:
    """An active project."""
    return typed(str, make_project()["id"])


class TestCreating:
    """createProduct."""

    def test_two_members_make_a_product(self, api: httpx2.Client, project_id: str) -> None:
        """Everything but projectId and name has a default; what has no value is null, {} or []."""
        response = api.post("/v2/products", json={"projectId": project_id.upper(), "name": "Curso"})
        assert response.status_code == 201
        product = response.json()["product"]
        assert product == {
            "id": product["id"],
            "projectId": project_id,
            "name": "Curso",
            "description": None,
            "type": "other",
            "status": "active",
            "image_url": None,
            "access_url": None,
            "sku": None,
            "planIds": [],
            "metadata": {},
            "createdAt": product["createdAt"],
            "updatedAt": product["createdAt"],
        }
        assert response.headers["location"].endswith(f"/v2/products/{product['id']}")
        assert get_product(api, product) == product


class TestPlanIds:
    """The plans that unlock a product."""

    def test_each_stands_once_and_in_lower_case(
        self, api: httpx2.Client, project_id: str, make_plan: Maker
    ) -> None:
        """In the order sent."""
        first = make_plan(project_id)["id"]
        second = make_plan(project_id)["id"]
        product = make_product(api, project_id, planIds=[second.upper(), first, second])
        assert product["planIds"] == [second, first]

    def test_an_unknown_plan_is_named_by_its_place(
        self, api: httpx2.Client, project_id: str, make_plan: Maker
    ) -> None:
        """Nothing is changed."""
        known = make_plan(project_id)["id"]
        body = {"projectId": project_id, "name": "Curso", "planIds": [known, UNKNOWN]}
        missing = {"planIds[1]": "reference_not_found"}
        assert refused(api.post("/v2/products", json=body), 409, "reference_not_found") == missing
        product = make_product(api, project_id, planIds=[known])
        response = update_product(api, product, name="Outro", planIds=[known, UNKNOWN])
        assert refused(response, 409, "reference_not_found") == missing
        assert get_product(api, product) == product

    def test_an_update_replaces_them_whole(
        self, api: httpx2.Client, project_id: str, make_plan: Maker
    ) -> None:
        """An absent list stays."""
        first = make_plan(project_id)["id"]
        second = make_plan(project_id)["id"]
        product = make_product(api, project_id, planIds=[first])
        assert update_product(api, product, planIds=[second]).json()["product"]["planIds"] == [
            second
        ]
        assert update_product(api, product, name="Outro").json()["product"]["planIds"] == [second]
        assert update_product(api, product, planIds=[]).json()["product"]["planIds"] == []


def test_a_key_of_another_project_does_not_open_a_product(
    api: httpx2.Client, project_id: str, make_project: Maker, make_plan: Maker
) -> None:
    """403 for one product, filtered silently in lists, by plan as well."""
    plan = make_plan(project_id)
    other = make_product(api, project_id, planIds=[plan["id"]])
    allowed = make_project()["id"]
    own = make_product(api, allowed)
    with restricted_key(api, allowed, "products:read", "products:write") as client:
        assert get_product(client, own) == own
        answer = client.get(f"/v2/products/{other['id']}")
        assert refused(answer, 403, "project_not_allowed") == {
            "allowed_projects": "project_not_allowed"
        }
        assert [entry["id"] for entry in done(client.get("/v2/products"))["products"]] == [
            own["id"]
        ]
        assert names(client, "products", planId=plan["id"]) == []


def test_a_product_that_does_not_exist_is_named_alike_by_every_operation(
    api: httpx2.Client,
) -> None:
    path = "/v2/products/00000000-0000-4000-8000-000000000000"
    answers = api.get(path), api.put(path, json={"name": "Outro"}), api.delete(path)
    assert 1 == len({answer.json()["message"] for answer in answers})
    assert {404} == {answer.status_code for answer in answers}
