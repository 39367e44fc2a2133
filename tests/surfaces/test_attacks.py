"""Someone else's ids and credentials: the right refusal, and no word of what exists where one may
not look.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from ..support.estate import Estate, client, token
from ..support.requests import OPERATIONS, ask, body_of, path_of, with_code

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
    return {
        name: value for name, value in ids.items() if f"{{{name}}}" in OPERATIONS[operation].path
    }


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
    """Another merchant's record and another sandbox's: byte for byte the answer of an id that
    nothing has.
    """
    nowhere = dict.fromkeys(named(operation, home.ids), NOWHERE)
    expected = told(aim(home, home.api, operation, nowhere))
    assert expected[0] == 404
    for other in (neighbour, abroad):
        assert expected == told(aim(home, home.api, operation, named(operation, other.ids)))


@pytest.mark.parametrize(
    "operation", [o.id for o in OPERATIONS.values() if o.id.startswith("list") and o.scopes]
)
def test_lists_never_mix_merchants_or_sandboxes(
    home: Estate, neighbour: Estate, abroad: Estate, operation: str
) -> None:
    texts = [
        ask(e.api, OPERATIONS[operation], e.ids, params={"limit": 100}).text
        for e in (home, neighbour, abroad)
    ]
    for text, others in zip(
        texts, ((neighbour, abroad), (home, abroad), (home, neighbour)), strict=True
    ):
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
        "a token of another sandbox with our merchant": token(
            abroad.live, abroad.sandbox, home.merchant_id
        ),
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
    answers = {
        name: told(ask(api, OPERATIONS[operation], home.ids)) for name, api in strangers.items()
    }
    assert {401} == {status for status, _, _ in answers.values()}
    assert {"invalid_token"} == {json.loads(body)["code"] for _, _, body in answers.values()}
    assert (
        answers["a key of nobody"]
        == answers["a key of another sandbox"]
        == answers["a deleted key"]
    )
    assert (
        answers["a token of another sandbox"]
        == answers["a token of another sandbox with our merchant"]
    )
