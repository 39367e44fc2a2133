"""Settings that change what the HTTP surface takes: lenient credentials, unknown fields,
check digits.
"""

import httpx2
import pytest

from ..conftest import Serve
from ..support import forge
from ..support.live import NO_TLS
from ..support.make import customer_body
from ..support.refusal import fields, refused
from ..support.wire import Door
from .conftest import door_to


@pytest.mark.check
@pytest.mark.parametrize(
    "token",
    ["abc", "anything at all", "eyJ.x.y", "sk_sandbox_unknown", "pk_sandbox_unknown", "\xff"],
)
def test_lenient_takes_any_bearer_as_the_seeded_merchant(serve: Serve, token: str) -> None:
    door = Door(serve(auth="lenient", scenario="empty").port, "/s/surfaces", token)
    assert door.ask("GET", "/v2/customers?limit=1").status == 200
    assert (
        door.send("POST", "/api-keys", {"name": "Chave", "scopes": ["orders:read"]}).status == 201
    )


def test_lenient_holds_a_good_credential_to_what_it_may(serve: Serve) -> None:
    server = serve(auth="lenient", scenario="empty")
    token = forge.signed(server.settings, scope="orders:read")
    refused(
        Door(server.port, "/s/surfaces", token).ask("GET", "/v2/customers"),
        403,
        "insufficient_scope",
    )


def test_unknown_fields_can_be_ignored(serve: Serve) -> None:
    """They are dropped at every depth, and what is known is checked as ever."""
    door = door_to(serve(unknown_fields="ignore", scenario="empty"))
    address = {"city": "Recife", "planet": "Terra"}
    body = customer_body(extra={"deep": [1]}, address=address, id="mine", createdAt="never")
    answer = door.send("POST", "/v2/customers", body)
    assert answer.status == 201, answer.body
    made = answer.json()["customer"]
    assert {"extra", "planet"}.isdisjoint(made)
    assert made["id"] != "mine"
    assert made["address"]["city"] == "Recife"
    assert "planet" not in made["address"]
    wrong = door.send("POST", "/v2/customers", customer_body(extra=1, email="no"))
    assert fields(refused(wrong, 422, "validation_error")) == {"email": "format"}


def test_a_base_url_of_ones_own_is_shown(serve: Serve) -> None:
    server = serve(
        base_url="https://sandbox.example/", admin_key="a-long-admin-key", scenario="empty"
    )
    headers = {"X-Sandbox-Admin-Key": "a-long-admin-key"}
    shown = httpx2.get(f"{server.url}/_sandbox/credentials", headers=headers, verify=NO_TLS).json()[
        "base_url"
    ]
    assert shown == "https://sandbox.example"


@pytest.mark.check
def test_unknown_query_parameters_can_be_refused(serve: Serve) -> None:
    """All of them at once, with what the operation takes; what is known is read as ever."""
    door = door_to(serve(unknown_query="reject", scenario="empty"))
    assert door.ask("GET", "/v2/customers?limit=1&name=a").status == 200
    body = refused(
        door.ask("GET", "/v2/customers?limit=1&colour=red&size=2&colour=blue"),
        422,
        "validation_error",
    )
    assert fields(body) == {"colour": "unknown_parameter", "size": "unknown_parameter"}
    assert {entry["in"] for entry in body["details"]} == {"query"}
    hints = {entry["field"]: entry["message"] for entry in body["details"]}
    assert "Did you mean" not in hints["colour"]
    one = refused(
        door.ask("GET", "/v2/analytics?form=2026-01-01T00:00:00Z"), 422, "validation_error"
    )
    assert (
        one["message"]
        == "form: There is no such query parameter here. Did you mean from? This operation takes"
        " from, projectId, to."
    )
    writes = door.ask("POST", "/v2/customers?dry=1", b"{}")
    assert fields(refused(writes, 422, "validation_error")) == {"dry": "unknown_parameter"}
    assert door.ask("GET", "/_sandbox/clock?x=1").status == 200
    both = door.ask("GET", "/v2/customers?limit=1&limit=2&" + "&".join(f"p{n}" for n in range(500)))
    told = refused(both, 422, "validation_error")["details"]
    assert len(told) == 100
    assert told[0] == {
        "field": "limit",
        "in": "query",
        "code": "duplicate",
        "message": "Send it once.",
    }
