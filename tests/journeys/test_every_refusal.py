"""Every operation refuses what its contract says: strangers, the unreadable, the wrong. It changes nothing then."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from ..support import forge
from ..support.estate import ELSEWHERE, SCOPES, Estate, client, estate, token
from ..support.requests import JSON, NOBODY, OPERATIONS, ask, body_of, with_code
from ..support.watched import Watched, own_shop
from .steps import refused

Clients = dict[str, httpx2.Client]
KINDS = ("missing_credentials", "invalid_token", "token_expired", "api_key_inactive", "api_key_expired")
REALM = 'Bearer realm="membership-sandbox"'
WITH_BODY = with_code(415, "unsupported_media_type")


@pytest.fixture(scope="module")
def home(watched: Watched, sink: str) -> Iterator[Estate]:
    """A merchant with one of everything."""
    with own_shop(watched.live, sink) as made:
        yield made


@pytest.fixture(scope="module")
def neighbour(home: Estate, sink: str) -> Iterator[Estate]:
    """Another merchant of the same sandbox."""
    with closing(estate(home.live, home.sandbox, sink)) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_changed(watched: Watched) -> Iterator[None]:
    """By whatever is refused."""
    watched.wrong.clear()
    yield
    assert [] == watched.wrong


@pytest.fixture(scope="module")
def strangers(home: Estate) -> Iterator[Clients]:
    """A client for each reason not to be let in."""
    inactive = home.key()
    assert home.api.put(f"/api-keys/{inactive['id']}", json={"is_active": False}).status_code == 200
    expired = home.key(expires_at="2026-01-01T00:00:00Z")
    late = forge.signed(home.live.settings, sandbox=home.sandbox, merchant_id=home.merchant_id, exp=1_700_000_000)
    tokens = (None, "eyJhbGciOiJIUzI1NiJ9.e30.", late, inactive["private_key"], expired["private_key"])
    clients = {kind: client(home.live, home.sandbox, value) for kind, value in zip(KINDS, tokens, strict=True)}
    yield clients
    for each in clients.values():
        each.close()


@pytest.mark.parametrize(("operation", "code"), [(o, code) for code in KINDS for o in with_code(401, code)])
def test_no_operation_answers_a_stranger(home: Estate, strangers: Clients, operation: str, code: str) -> None:
    response = ask(strangers[code], OPERATIONS[operation], home.ids)
    refused(response, 401, code)
    assert response.headers["www-authenticate"].startswith(REALM)


@pytest.mark.parametrize("operation", with_code(403, "insufficient_scope"))
def test_every_scope_but_the_one_is_one_short(home: Estate, operation: str) -> None:
    (needed,) = OPERATIONS[operation].scopes
    with home.with_scopes(*(scope for scope in SCOPES if scope != needed)) as short:
        response = ask(short, OPERATIONS[operation], home.ids)
    assert list(refused(response, 403, "insufficient_scope")) == ["scope"]
    assert [("header", needed)] == [(each["in"], each["message"]) for each in response.json()["details"]]
    assert f'{REALM}, error="insufficient_scope", scope="{needed}"' == response.headers["www-authenticate"]


def test_every_operation_with_scopes_refuses_a_credential_without_them() -> None:
    assert with_code(403, "insufficient_scope") == [o.id for o in OPERATIONS.values() if o.scopes]


@pytest.fixture(scope="module")
def far(home: Estate) -> Iterator[httpx2.Client]:
    """A key that may be used from another address alone."""
    with home.with_key(allowed_ips=[ELSEWHERE, "2001:db8::/32"]) as limited:
        yield limited


@pytest.mark.parametrize("operation", with_code(403, "ip_not_allowed"))
def test_a_key_of_other_addresses_is_refused_from_here(home: Estate, far: httpx2.Client, operation: str) -> None:
    refused(ask(far, OPERATIONS[operation], home.ids), 403, "ip_not_allowed")


@pytest.mark.parametrize("operation", with_code(403, "jwt_required"))
def test_api_keys_do_not_manage_api_keys(home: Estate, operation: str) -> None:
    with home.with_key() as key:
        response = ask(key, OPERATIONS[operation], home.ids)
    refused(response, 403, "jwt_required")
    assert "www-authenticate" not in response.headers  # no other scope and no other key would help


@pytest.mark.parametrize("operation", with_code(403, "scope_escalation"))
def test_nobody_gives_away_what_he_does_not_hold(home: Estate, operation: str) -> None:
    body = {"name": "Chave", "scopes": ["orders:read"]}
    with home.with_scopes("api_keys:write") as clerk:
        refused(ask(clerk, OPERATIONS[operation], home.ids, json=body), 403, "scope_escalation")


@pytest.fixture(scope="module")
def elsewhere(home: Estate) -> Iterator[httpx2.Client]:
    """A key that is restricted to another project of the same merchant."""
    other = home.api.post("/v2/projects", json={"name": "Outro projeto"}).json()["data"]["project"]
    with home.with_key(allowed_projects=[other["id"]]) as limited:
        yield limited


@pytest.mark.parametrize("operation", with_code(403, "project_not_allowed"))
def test_a_restricted_key_stays_in_its_projects(home: Estate, elsewhere: httpx2.Client, operation: str) -> None:
    refused(ask(elsewhere, OPERATIONS[operation], home.ids), 403, "project_not_allowed")


@pytest.mark.parametrize("operation", with_code(400, "malformed_json"))
@pytest.mark.parametrize("content", [b"{", b'{"a": NaN}', b"\xff", b"[" * 40 + b"]" * 40])
def test_what_is_no_json_is_400(home: Estate, operation: str, content: bytes) -> None:
    response = ask(home.api, OPERATIONS[operation], home.ids, content=content, headers={"Content-Type": JSON})
    refused(response, 400, "malformed_json")


@pytest.mark.parametrize("operation", with_code(413, "payload_too_large"))
def test_more_than_a_mebibyte_is_413(home: Estate, operation: str) -> None:
    response = ask(home.api, OPERATIONS[operation], home.ids, content=b" " * 1_048_577, headers={"Content-Type": JSON})
    refused(response, 413, "payload_too_large")


@pytest.mark.parametrize("operation", WITH_BODY)
@pytest.mark.parametrize(
    "media", ["text/plain", "application/xml", "application/jsonp", "application/json; charset=latin1"]
)
def test_another_media_type_is_415(home: Estate, operation: str, media: str) -> None:
    response = ask(home.api, OPERATIONS[operation], home.ids, content=b"{}", headers={"Content-Type": media})
    refused(response, 415, "unsupported_media_type")


def test_every_operation_with_a_body_refuses_bodies() -> None:
    expected = [o.id for o in OPERATIONS.values() if o.body is not None]
    for status, code in ((400, "malformed_json"), (413, "payload_too_large"), (415, "unsupported_media_type")):
        assert with_code(status, code) == expected


def invalid(operation: str) -> dict[str, Any]:
    """What makes a request one that the operation's schemas refuse: one member, parameter or header."""
    view = OPERATIONS[operation]
    if view.body is not None:
        return {"json": {"no_such_member": 1}}
    queries = {p.name: p for p in view.parameters if p.place == "query"}
    if "page" in queries:
        return {"params": {"page": "0"}}
    if queries:
        return {"params": {"from": "yesterday"}}
    return {"headers": {"Idempotency-Key": "k" * 256}}


@pytest.mark.parametrize("operation", with_code(422, "validation_error"))
def test_what_the_schema_refuses_is_422_with_its_field(home: Estate, operation: str) -> None:
    options = invalid(operation)
    fields = refused(ask(home.api, OPERATIONS[operation], home.ids, **options), 422, "validation_error")
    ((_, sent),) = options.items()
    assert set(fields) >= set(sent)


@pytest.mark.parametrize("operation", with_code(404, "not_found"))
def test_what_does_not_exist_is_404(home: Estate, operation: str) -> None:
    refused(ask(home.api, OPERATIONS[operation]), 404, "not_found")


@pytest.mark.parametrize("operation", with_code(404, "not_found"))
def test_what_is_another_merchants_is_404(home: Estate, neighbour: Estate, operation: str) -> None:
    refused(ask(home.api, OPERATIONS[operation], neighbour.ids), 404, "not_found")


def test_every_operation_with_an_id_in_its_path_knows_404() -> None:
    by_id = [o.id for o in OPERATIONS.values() if "Id}" in o.path]
    assert with_code(404, "not_found") == by_id


NOTHING = "11111111-1111-4111-8111-111111111111"
REFERENCES: dict[str, tuple[str, dict[str, Any]]] = {
    "createApiKey": ("allowed_projects[0]", {"allowed_projects": [NOTHING]}),
    "updateApiKey": ("allowed_projects[0]", {"allowed_projects": [NOTHING]}),
    "createPlan": ("projectId", {"projectId": NOTHING}),
    "createOrder": ("projectId", {"projectId": NOTHING}),
    "createPixOrder": ("planId", {"planId": NOTHING}),
    "createProduct": ("projectId", {"projectId": NOTHING}),
    "updateProduct": ("planIds[0]", {"planIds": [NOTHING]}),
    "createWebhook": ("projectId", {"projectId": NOTHING}),
    "updateWebhook": ("projectId", {"projectId": NOTHING}),
}


def test_every_operation_whose_body_refers_to_a_record_is_tried() -> None:
    assert set(REFERENCES) == set(with_code(409, "reference_not_found"))
    assert [] == with_code(404, "reference_not_found")


@pytest.mark.parametrize("operation", REFERENCES)
def test_a_body_that_names_nothing_is_refused_with_the_field(home: Estate, operation: str) -> None:
    """With 409: 404 is the target in the path alone. The message names the kind of record."""
    field, change = REFERENCES[operation]
    body = (body_of(OPERATIONS[operation], home.ids) or {}) | change
    answer = ask(home.api, OPERATIONS[operation], home.ids, json=body)
    assert list(refused(answer, 409, "reference_not_found")) == [field]
    kind = "plan" if field.startswith("plan") else "project"
    assert kind in answer.json()["message"].split()


@pytest.mark.parametrize("why", ["unknown", "inactive", "expired", "deleted"])
def test_a_public_key_that_does_not_work_names_no_merchant(home: Estate, why: str) -> None:
    key = home.key(expires_at="2026-01-01T00:00:00Z" if why == "expired" else None)
    if why == "inactive":
        assert home.api.put(f"/api-keys/{key['id']}", json={"is_active": False}).status_code == 200
    if why == "deleted":
        assert home.api.delete(f"/api-keys/{key['id']}").status_code == 200
    ids = NOBODY if why == "unknown" else {"publicKey": key["public_key"]}
    refused(ask(home.api, OPERATIONS["getMerchantByPublicKey"], ids), 404, "merchant_not_found")


def test_a_token_of_nothing_is_let_in_where_no_scope_is_asked_for(home: Estate) -> None:
    with client(home.live, home.sandbox, token(home.live, home.sandbox, home.merchant_id, ())) as nothing:
        for operation in OPERATIONS.values():
            expected = 200 if not operation.scopes else 403
            assert expected == ask(nothing, operation, home.ids).status_code, operation.id
