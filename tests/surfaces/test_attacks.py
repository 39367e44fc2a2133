"""Someone else's ids and credentials: the right refusal, and no word of what exists where one may not look."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from ..support.estate import SCOPES, Estate, client, token
from ..support.requests import OPERATIONS, UNKNOWN, ask, body_of, path_of, with_code

BY_ID = with_code(404, "not_found")
NOWHERE = "5b1d0e3c-7a42-4c8e-9f10-3e2d1c0b9a88"
VARYING = ("date", "x-request-id")


def told(response: httpx2.Response) -> tuple[int, list[tuple[str, str]], bytes]:
    """All that a client is told, without the request's own id."""
    request_id = response.headers["x-request-id"].encode()
    headers = [(name, value) for name, value in response.headers.items() if name not in VARYING]
    assert response.content.count(request_id) == (1 if response.status_code >= 400 else 0)
    return response.status_code, headers, response.content.replace(request_id, b"")


def named(operation: str, ids: dict[str, str]) -> dict[str, str]:
    """The ids that the operation's path names, of these; the body stays the caller's."""
    return {name: value for name, value in ids.items() if f"{{{name}}}" in OPERATIONS[operation].path}


def aim(home: Estate, api: httpx2.Client, operation: str, ids: dict[str, str]) -> httpx2.Response:
    """The operation's request with somebody's path and a body of one's own."""
    view = OPERATIONS[operation]
    body = None if view.id == "retryWebhook" else body_of(view, home.ids)
    options: dict[str, Any] = {} if body is None else {"json": body}
    return api.request(view.method, path_of(view, ids), **options)


@pytest.mark.promise("other-merchants-hidden")
@pytest.mark.parametrize("operation", BY_ID)
def test_what_is_elsewhere_is_told_as_what_is_nowhere(
    home: Estate, neighbour: Estate, abroad: Estate, operation: str
) -> None:
    """Another merchant's record and another sandbox's: byte for byte the answer of an id that nothing has."""
    nowhere = dict.fromkeys(named(operation, home.ids), NOWHERE)
    expected = told(aim(home, home.api, operation, nowhere))
    assert expected[0] == 404
    for other in (neighbour, abroad):
        assert expected == told(aim(home, home.api, operation, named(operation, other.ids)))


def references(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Members of bodies that name records, by operation."""
    project, plan = {"projectId": ids["projectId"]}, {"planIds": [ids["planId"]]}
    return {
        "createApiKey": {"allowed_projects": [ids["projectId"]]},
        "updateApiKey": {"allowed_projects": [ids["projectId"]]},
        "createPlan": project,
        "createOrder": project,
        "createPixOrder": {"planId": ids["planId"]},
        "createProduct": project | plan,
        "updateProduct": plan,
        "createWebhook": project,
        "updateWebhook": project,
    }


@pytest.mark.parametrize("operation", with_code(409, "reference_not_found"))
def test_a_body_that_names_what_is_elsewhere_is_told_the_same(
    home: Estate, neighbour: Estate, abroad: Estate, operation: str
) -> None:
    answers = []
    for ids in ({"projectId": NOWHERE, "planId": NOWHERE}, neighbour.ids, abroad.ids):
        body = (body_of(OPERATIONS[operation], home.ids) or {}) | {"customer": CUSTOMER} | references(ids)[operation]
        known = body if "Order" in operation else {k: v for k, v in body.items() if k != "customer"}
        answers.append(told(ask(home.api, OPERATIONS[operation], home.ids, json=known)))
    assert answers[0][0] == 409
    assert [answers[0]] * 3 == answers


CUSTOMER = {"name": "Ana", "email": "ana@example.com", "document": "34712695846"}
FILTERS = [
    (o.id, p.name)
    for o in OPERATIONS.values()
    for p in o.parameters
    if p.place == "query" and p.name in ("projectId", "planId", "customerId", "webhookId")
]


@pytest.mark.parametrize(("operation", "filter_"), FILTERS)
def test_a_list_filtered_by_what_is_elsewhere_is_empty_as_by_what_is_nowhere(
    home: Estate, neighbour: Estate, abroad: Estate, operation: str, filter_: str
) -> None:
    asked = (NOWHERE, neighbour.ids[filter_], abroad.ids[filter_])
    answers = [ask(home.api, OPERATIONS[operation], params={filter_: ident}) for ident in asked]
    assert {200} == {answer.status_code for answer in answers}
    texts = {answer.text.replace(ident, NOWHERE) for answer, ident in zip(answers, asked, strict=True)}
    assert len(texts) == 1


@pytest.mark.parametrize("operation", [o.id for o in OPERATIONS.values() if o.id.startswith("list") and o.scopes])
def test_lists_never_mix_merchants_or_sandboxes(
    home: Estate, neighbour: Estate, abroad: Estate, operation: str
) -> None:
    texts = [ask(e.api, OPERATIONS[operation], e.ids, params={"limit": 100}).text for e in (home, neighbour, abroad)]
    for text, others in zip(texts, ((neighbour, abroad), (home, abroad), (home, neighbour)), strict=True):
        for other in others:
            assert not any(ident in text for ident in other.ids.values())


# -- credentials


@pytest.fixture(scope="module")
def strangers(home: Estate, abroad: Estate) -> Iterator[dict[str, httpx2.Client]]:
    """Credentials that are none here, by what they are elsewhere."""
    deleted = home.key()
    assert home.api.delete(f"/api-keys/{deleted['id']}").status_code == 200
    values = {
        "a key of nobody": "sk_sandbox_" + "0" * 40,
        "a key of another sandbox": abroad.key()["private_key"],
        "a deleted key": deleted["private_key"],
        "a token of another sandbox": token(abroad.live, abroad.sandbox, abroad.merchant_id),
        "a token of another sandbox with our merchant": token(abroad.live, abroad.sandbox, home.merchant_id),
    }
    clients = {name: client(home.live, home.sandbox, value) for name, value in values.items()}
    yield clients
    for each in clients.values():
        each.close()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.matrix
def test_credentials_of_elsewhere_and_of_the_past_are_none(
    home: Estate, strangers: dict[str, httpx2.Client], operation: str
) -> None:
    """401; a key of another sandbox and a deleted one byte for byte as one that never was."""
    answers = {name: told(ask(api, OPERATIONS[operation], home.ids)) for name, api in strangers.items()}
    assert {401} == {status for status, _, _ in answers.values()}
    assert {"invalid_token"} == {json.loads(body)["code"] for _, _, body in answers.values()}
    assert answers["a key of nobody"] == answers["a key of another sandbox"] == answers["a deleted key"]
    assert answers["a token of another sandbox"] == answers["a token of another sandbox with our merchant"]


@pytest.mark.parametrize("operation", [name for name in BY_ID if OPERATIONS[name].scopes])
def test_whoever_is_one_scope_short_learns_nothing(home: Estate, neighbour: Estate, operation: str) -> None:
    """Own, another's and nobody's record: the same 403, before anything is looked up."""
    (needed,) = OPERATIONS[operation].scopes
    nowhere = dict.fromkeys(named(operation, home.ids), NOWHERE)
    with home.with_scopes(*(scope for scope in SCOPES if scope != needed)) as short:
        answers = [told(aim(home, short, operation, ids)) for ids in (home.ids, neighbour.ids, nowhere)]
    assert answers[0][0] == 403
    assert [answers[0]] * 3 == answers


@pytest.mark.parametrize("how", ["inactive", "expired"])
@pytest.mark.parametrize("operation", BY_ID)
@pytest.mark.matrix
def test_a_key_that_is_off_learns_nothing(
    off: dict[str, httpx2.Client], home: Estate, operation: str, how: str
) -> None:
    nowhere = dict.fromkeys(named(operation, home.ids), NOWHERE)
    answers = [told(aim(home, off[how], operation, ids)) for ids in (home.ids, nowhere)]
    assert answers[0] == answers[1]
    # API keys are no credential for managing API keys, whatever state they are in.
    assert answers[0][0] == (403 if OPERATIONS[operation].scheme == "jwt" else 401)


@pytest.fixture(scope="module")
def off(home: Estate) -> Iterator[dict[str, httpx2.Client]]:
    """A key that is switched off and one that has expired."""
    inactive, expired = home.key(), home.key(expires_at="2026-01-01T00:00:00Z")
    assert home.api.put(f"/api-keys/{inactive['id']}", json={"is_active": False}).status_code == 200
    keys = {"inactive": inactive, "expired": expired}
    clients = {how: client(home.live, home.sandbox, key["private_key"]) for how, key in keys.items()}
    yield clients
    for each in clients.values():
        each.close()


def test_a_key_stops_at_the_instant_it_is_switched_off_or_deleted(shop: Estate) -> None:
    for method, body in (("PUT", {"is_active": False}), ("DELETE", None)):
        key = shop.key()
        with client(shop.live, shop.sandbox, key["private_key"]) as api:
            assert 200 == api.get("/v2/customers").status_code
            assert 200 == shop.api.request(method, f"/api-keys/{key['id']}", json=body).status_code
            assert 401 == api.get("/v2/customers").status_code


# -- forms

FORMS: dict[str, Callable[[str], str]] = {
    "without hyphens": lambda ident: ident.replace("-", ""),
    "in braces": lambda ident: f"%7B{ident}%7D",
    "as a URN": lambda ident: f"urn:uuid:{ident}",
    "one short": lambda ident: ident[:-1],
    "one long": lambda ident: ident + "0",
    "with a space": lambda ident: ident + "%20",
    "with a NUL": lambda ident: ident + "%00",
    "with a newline": lambda ident: ident + "%0A",
    "with a dot": lambda ident: ident + ".",
    "with a parameter": lambda ident: ident + ";a=b",
    "in other digits": lambda ident: "%EF%BC%90" + ident[1:],
    "as a wildcard": lambda ident: "*",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", BY_ID)
@pytest.mark.matrix
def test_an_id_in_a_wrong_form_names_nothing_whether_it_exists_or_not(home: Estate, operation: str, form: str) -> None:
    """Even one's own: 404, and the same for the id of nothing in that form."""
    ids = ({name: FORMS[form](ident) for name, ident in named(operation, e).items()} for e in (home.ids, unknown(home)))
    own, nobody = (told(aim(home, home.api, operation, each)) for each in ids)
    assert (404, "not_found") == (own[0], json.loads(own[2])["code"])
    assert own == nobody


def unknown(home: Estate) -> dict[str, str]:
    """Ids of nothing."""
    return dict.fromkeys(home.ids, UNKNOWN)


@pytest.mark.parametrize("operation", [name for name in BY_ID if OPERATIONS[name].method == "GET"])
def test_an_id_in_capitals_is_the_same_id(home: Estate, operation: str) -> None:
    small, capitals = (
        ask(home.api, OPERATIONS[operation], {name: form(ident) for name, ident in home.ids.items()})
        for form in (str.lower, str.upper)
    )
    assert (200, small.content) == (capitals.status_code, capitals.content)


def test_nothing_that_is_refused_changes_anything(home: Estate, neighbour: Estate) -> None:
    """After every operation aimed at another merchant's records, they are what they were."""
    reads = [o for o in OPERATIONS.values() if o.method == "GET" and o.id != "getApiInfo"]
    before = [ask(neighbour.api, view, neighbour.ids).content for view in reads]
    for operation in BY_ID:
        aim(home, home.api, operation, named(operation, neighbour.ids))
    assert before == [ask(neighbour.api, view, neighbour.ids).content for view in reads]
