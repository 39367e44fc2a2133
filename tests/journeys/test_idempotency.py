"""Idempotency-Key: the same request again gets the same answer and is done once, on every POST."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest

from ..support.estate import ASSIGNABLE, Estate
from ..support.live import NO_TLS
from ..support.make import Json, customer_body, done, make_customer, make_project, typed
from ..support.requests import OPERATIONS, body_of, path_of
from .stage import DAY, Stage
from .steps import refused

POSTS = [o.id for o in OPERATIONS.values() if o.method == "POST"]
PARALLEL = 20


def under(key: str) -> dict[str, str]:
    """The header."""
    return {"Idempotency-Key": key}


def events(shop: Estate) -> int:
    """How many events the merchant's sandbox has raised."""
    return typed(int, done(shop.control.get("/events"))["pagination"]["total"])


@pytest.mark.parametrize("operation", POSTS)
@pytest.mark.matrix
def test_the_same_request_again_is_answered_again_and_not_done_again(
    shop: Estate, operation: str
) -> None:
    """Byte for byte, secrets and Location included; only the request id is new."""
    view = OPERATIONS[operation]
    ids = shop.ids
    if operation == "activateProject":
        ids = ids | {"projectId": make_project(shop.api, status="draft")["id"]}
    body = body_of(view, ids)
    options: dict[str, Any] = {"headers": under("again")} | ({} if body is None else {"json": body})
    first = shop.api.request("POST", path_of(view, ids), **options)
    raised = events(shop)
    second = shop.api.request("POST", path_of(view, ids), **options)
    assert raised == events(shop)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert (None, "true") == (
        first.headers.get("idempotent-replayed"),
        second.headers.get("idempotent-replayed"),
    )
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert first.headers.get("location") == second.headers.get("location")


def test_a_body_that_means_the_same_is_the_same_body(shop: Estate) -> None:
    """Spaces and the order of members do not count."""
    body = customer_body()
    texts = (
        json.dumps(body),
        json.dumps(dict(reversed(body.items())), indent=2, ensure_ascii=False),
    )
    headers = under("canon") | {"Content-Type": "application/json"}
    first, second = (
        shop.api.post("/v2/customers", content=text.encode(), headers=headers) for text in texts
    )
    assert (201, first.content) == (second.status_code, second.content)


def fails(shop: Estate, how: str) -> tuple[httpx2.Response, Callable[[], None]]:
    """A refused request under the key `later`, and what takes the reason away."""
    body = customer_body()
    if how == "conflict":
        taken = make_customer(shop.api, document=body["document"])
        response = shop.api.post("/v2/customers", json=body, headers=under("later"))
        return response, lambda: move_away(shop, taken)
    if how == "forbidden":
        with shop.with_scopes("customers:read") as reader:
            return reader.post("/v2/customers", json=body, headers=under("later")), lambda: None
    content = {"invalid": b'{"name": "A"}', "malformed": b"{"}[how]
    headers = under("later") | {"Content-Type": "application/json"}
    return shop.api.post("/v2/customers", content=content, headers=headers), lambda: None


def move_away(shop: Estate, customer: Json) -> None:
    """Give a customer another document."""
    done(
        shop.api.put(
            f"/v2/customers/{customer['id']}", json={"document": customer_body()["document"]}
        )
    )


@pytest.mark.parametrize(
    ("how", "status"), [("conflict", 409), ("invalid", 422), ("forbidden", 403), ("malformed", 400)]
)
def test_a_refusal_is_not_remembered(shop: Estate, how: str, status: int) -> None:
    """The same key works once the reason is gone, with whatever body."""
    response, mend = fails(shop, how)
    assert status == response.status_code
    mend()
    again = shop.api.post("/v2/customers", json=customer_body(), headers=under("later"))
    assert (201, None) == (again.status_code, again.headers.get("idempotent-replayed"))


def test_a_key_belongs_to_a_merchant(shop: Estate, neighbour: Estate) -> None:
    body = customer_body()
    mine, his = (
        e.api.post("/v2/customers", json=body, headers=under("shared")) for e in (shop, neighbour)
    )
    assert (201, 201) == (mine.status_code, his.status_code)
    assert mine.json()["customer"]["id"] != his.json()["customer"]["id"]


@pytest.fixture
def callers(shop: Estate) -> Iterator[list[httpx2.Client]]:
    """Callers of one merchant with other rights each: a JWT, and keys of one project, two, another,
    all, few scopes.
    """
    own = shop.ids["projectId"]
    other = make_project(shop.api)["id"]
    rights: list[Json] = [
        {"allowed_projects": [own]},
        {"allowed_projects": [own, other]},
        {"allowed_projects": [other]},
        {},
        {"scopes": [scope for scope in ASSIGNABLE if scope != "analytics:read"]},
    ]
    with ExitStack() as stack:
        yield [shop.api, *(stack.enter_context(shop.with_key(**changes)) for changes in rights)]


@pytest.mark.promise("saved-reply-needs-rights")
@pytest.mark.parametrize("operation", POSTS)
@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.matrix
def test_a_saved_reply_never_reaches_a_caller_with_other_rights(
    shop: Estate, callers: list[httpx2.Client], operation: str, first: int
) -> None:
    """Whoever had it saved: every other is refused, and learns nothing of what it says."""
    view = OPERATIONS[operation]
    key = f"{operation}-{first}"
    body = body_of(view, shop.ids)
    path = path_of(view, shop.ids)
    options: dict[str, Any] = {"headers": under(key)} | ({} if body is None else {"json": body})
    saved = callers[first].post(path, **options)
    if not saved.is_success:
        assert saved.status_code in (403, 404, 409), saved.text
        return
    for other in [caller for number, caller in enumerate(callers) if number != first]:
        answer = other.post(path, **options)
        assert (answer.status_code, answer.json()["code"]) in REFUSED
    assert "true" == callers[first].post(path, **options).headers["idempotent-replayed"]


REFUSED = {
    (409, "idempotency_key_reused"),
    (403, "jwt_required"),
    (403, "project_not_allowed"),
    (403, "insufficient_scope"),
    (404, "not_found"),
}


def test_a_reply_is_kept_for_24_hours_of_the_sandbox_clock(stage: Stage) -> None:
    """To the last millisecond; then the request is done, and its own rules refuse it."""
    body = customer_body()
    first = stage.api.post("/v2/customers", json=body, headers=under("day"))
    stage.advance(DAY - 0.001)
    again = stage.api.post("/v2/customers", json=body, headers=under("day"))
    assert (first.content, "true") == (again.content, again.headers["idempotent-replayed"])
    stage.advance(0.001)
    refused(
        stage.api.post("/v2/customers", json=body, headers=under("day")), 409, "duplicate_document"
    )
    assert (
        stage.api.post("/v2/customers", json=customer_body(), headers=under("day")).status_code
        == 201
    )


@pytest.mark.parametrize(
    "operation",
    ["createCustomer", "createPixOrder", "createApiKey", "createProject", "createWebhook"],
)
def test_twenty_at_once_have_one_effect_and_one_answer(shop: Estate, operation: str) -> None:
    view = OPERATIONS[operation]
    body = body_of(view, shop.ids)
    path = path_of(view, shop.ids)
    raised = events(shop)

    def send(_: int) -> httpx2.Response:
        with httpx2.Client(
            base_url=shop.api.base_url, headers=shop.api.headers, timeout=60, verify=NO_TLS
        ) as own:
            return own.post(path, json=body, headers=under("twenty"))

    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(send, range(PARALLEL)))
    assert {(201, answers[0].content)} == {
        (answer.status_code, answer.content) for answer in answers
    }
    assert 1 == sum("idempotent-replayed" not in answer.headers for answer in answers)
    types = [
        event["type"]
        for event in done(shop.control.get("/events"))["events"][: events(shop) - raised]
    ]
    assert sorted(set(types)) == sorted(types)
    assert set(types) <= set(view.emits)
