"""Every operation does what it is for, with every credential that it takes, and answers what its
contract says.
"""

import httpx2
import pytest

from ..support.contract import schemas, violations
from ..support.estate import Estate
from ..support.requests import JSON, LAST, OPERATIONS, ask

SAFE = [o.id for o in OPERATIONS.values() if o.method == "GET"]
DELETIONS = [o.id for o in OPERATIONS.values() if o.method == "DELETE"]


def holds(response: httpx2.Response, operation: str) -> None:
    """A success that the contract lists, with the body, the headers and the media type
    that it has there.
    """
    view = OPERATIONS[operation]
    successes = [status for status in view.responses if status < 300]
    assert [response.status_code] == successes, f"{operation}: {response.text}"
    documented = view.responses[response.status_code]
    assert response.headers["content-type"] == JSON
    assert (
        violations(schemas().compile(documented.media[JSON], request=False), response.json()) == []
    )
    for name, header in documented.headers.items():
        assert not header.get("required") or name in response.headers, (
            f"{operation} answered without {name}"
        )


def test_every_operation_succeeds_in_one_life_of_a_merchant(shop: Estate) -> None:
    """Reads and changes first, in the contract's order; then the moves and deletions that
    end things.
    """
    ordinary = [name for name in OPERATIONS if name not in LAST and name not in DELETIONS]
    for operation in (*ordinary, *LAST):
        holds(ask(shop.api, OPERATIONS[operation], shop.ids), operation)


def test_what_nobody_bought_can_be_deleted(shop: Estate) -> None:
    """A plan without orders, and a project without any."""
    project = ask(shop.api, OPERATIONS["createProject"]).json()["data"]["project"]
    ids = {"projectId": project["id"]}
    ids["planId"] = ask(shop.api, OPERATIONS["createPlan"], ids).json()["plan"]["id"]
    for operation in ("deletePlan", "deleteProject"):
        holds(ask(shop.api, OPERATIONS[operation], ids), operation)
        assert ask(shop.api, OPERATIONS[operation], ids).status_code == 404


@pytest.mark.parametrize("operation", [name for name in SAFE if OPERATIONS[name].scheme != "jwt"])
def test_every_read_works_with_a_private_key_of_just_its_scope(
    home: Estate, operation: str
) -> None:
    scopes = sorted(OPERATIONS[operation].scopes) or ["orders:read"]
    with home.with_key(scopes=scopes) as key:
        holds(ask(key, OPERATIONS[operation], home.ids), operation)


@pytest.mark.parametrize(
    "operation", [name for name in SAFE if OPERATIONS[name].scheme == "publicBearer"]
)
def test_a_public_key_opens_what_identifies_and_nothing_else(home: Estate, operation: str) -> None:
    public = {"Authorization": f"Bearer {home.ids['publicKey']}"}
    holds(ask(home.api, OPERATIONS[operation], home.ids, headers=public), operation)


@pytest.mark.parametrize(
    "operation", [o.id for o in OPERATIONS.values() if o.scheme != "publicBearer"]
)
def test_a_public_key_opens_no_other_operation(home: Estate, operation: str) -> None:
    public = {"Authorization": f"Bearer {home.ids['publicKey']}"}
    response = ask(home.api, OPERATIONS[operation], home.ids, headers=public)
    assert (401, "invalid_token") == (response.status_code, response.json()["code"])


@pytest.mark.parametrize("operation", [o.id for o in OPERATIONS.values() if 201 in o.responses])
def test_what_is_created_stands_where_its_location_says(shop: Estate, operation: str) -> None:
    """Every creation names the address of what it made; there is no Get for an API key, so 405
    shows it is one.
    """
    response = ask(shop.api, OPERATIONS[operation], shop.ids)
    holds(response, operation)
    path = response.headers["location"].removeprefix(f"/s/{shop.sandbox}")
    expected = 405 if operation == "createApiKey" else 200
    assert expected == shop.api.get(path).status_code
