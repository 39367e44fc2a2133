"""Backends that others have written: what each does wrong is said first, and what it does right is
not accused.
"""

from collections.abc import Callable
from typing import Any

import pytest

from stub_server.tools.verify.exchange import Answer, Request
from stub_server.tools.verify.findings import Divergence
from stub_server.tools.verify.outcome import of_run

from .backend import Act, Ask, is_for, json_of, rewritten, with_body, with_header, with_json
from .watched import watched

Json = dict[str, Any]
pytestmark = pytest.mark.check


def divergences(*acts: Act, only: tuple[str, ...], write: bool = True) -> list[Divergence]:
    return of_run(watched(*acts, write=write, only=only).run, (), 0).divergences


def showing(change: Callable[[Json], Json], path: str = "/v2") -> Act:
    """A backend whose successes show records otherwise."""

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        is_so = answer.status < 300 and request.path.startswith(path)
        return rewritten(answer, change) if is_so else answer

    return act


async def without_codes(request: Request, ask: Ask) -> Answer:
    """Refusals have a sentence alone; that of an unknown path is another one."""
    answer = await ask(request)
    if answer.status != 404:
        return answer
    is_path = json_of(answer)["code"] == "route_not_found"
    said = b"Cannot GET " + request.path.encode() if is_path else b"There is no such record"
    return with_body(answer, said)


def test_a_record_that_is_not_there_is_no_operation_that_is_not_there() -> None:
    found = divergences(without_codes, only=("getCustomer",), write=False)
    assert "missing-operation" not in [each.kind for each in found]

    async def elsewhere(request: Request, ask: Ask) -> Answer:
        if request.path == "/api-keys/scopes":
            return Answer(404, body=b"Cannot GET /api-keys/scopes")
        return await without_codes(request, ask)

    found = divergences(elsewhere, only=("getApiInfo", "listAvailableScopes"), write=False)
    assert ["missing-operation"] == [each.kind for each in found]


def test_a_cent_that_is_cut_off_is_named() -> None:
    def cut(it: Json) -> Json:
        return (
            it | {"amount": int(it["amount"] * 100) / 100}
            if type(it.get("amount")) is float
            else it
        )

    found = divergences(showing(cut), only=("createPlan", "getPlan"))
    assert ["not-persisted"] == [each.kind for each in found]
    assert {"createPlan", "updatePlan"} == {*found[0].operations}


def test_what_is_around_a_record_is_no_matter_of_what_it_keeps() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        found = json_of(answer)
        if request.path.startswith("/v2/products") and "product" in found:
            lost = {"product": found["product"] | {"description": None}}
            return rewritten(answer, lambda it: {"data": lost} if "product" in it else it)
        return answer

    found = divergences(act, only=("createProduct", "getProduct", "updateProduct"))
    lost = [each for each in found if each.kind == "not-persisted"]
    assert ["sent and not stored: createProduct description; updateProduct description"] == [
        each.title for each in lost
    ]


def test_a_secret_that_a_list_shows_is_named_first() -> None:
    def leaks(it: Json) -> Json:
        return it | {"private_key": "sk_live_1"} if "public_key" in it else it

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        is_list = is_for(request, "GET", "/api-keys") and answer.status == 200
        return rewritten(answer, leaks) if is_list else answer

    found = divergences(act, without_codes, only=("listApiKeys", "getCustomer"))
    assert ("leaked-secret", "documented") == (found[0].kind, found[0].basis)
    assert ["listApiKeys"] == found[0].operations


def test_an_update_that_loses_what_it_does_not_have_is_named() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        body = json_of(request)
        if is_for(request, "PUT", "/v2/customers/{customerId}") and isinstance(body, dict):
            request = with_json(request, {"metadata": {}} | body) if body else request
        return await ask(request)

    found = divergences(act, only=("updateCustomer",))
    assert [("not-persisted", ["updateCustomer"])] == [(it.kind, it.operations) for it in found]


def test_keys_that_open_nothing_are_one_divergence_and_its_command_names_another_key() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        sent = dict(request.headers).get("authorization", "")
        is_key = sent.startswith("Bearer sk_")
        return await ask(with_header(request, "authorization", "Bearer x") if is_key else request)

    found = divergences(act, only=("Customers",))
    assert ["api-key"] == [each.kind for each in found]
    assert "$OTHER_KEY" in found[0].shown.request.curl


def test_an_idempotency_key_that_is_too_long_is_tried() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        key = dict(request.headers).get("idempotency-key", "")
        return await ask(with_header(request, "idempotency-key", key[:255] or None))

    found = divergences(act, only=("createPlan",))
    assert [("laxer", ["createPlan"])] == [(each.kind, each.operations) for each in found]


def test_what_a_backend_accepts_that_it_should_refuse_is_not_accused_again_where_it_is_listed() -> (
    None
):
    loose: set[str] = set()

    async def act(request: Request, ask: Ask) -> Answer:
        answer, body = await ask(request), json_of(request)
        if is_for(request, "POST", "/v2/projects") and answer.status == 422:
            name = body.get("name") if isinstance(body, dict) else None
            if isinstance(name, str) and "visibility" in body:
                answer = await ask(with_json(request, body | {"visibility": "public"}))
                if answer.status == 201:
                    loose.add(json_of(answer)["data"]["project"]["id"])

        def odd(it: Json) -> Json:
            return it | {"visibility": "verify-unknown"} if it.get("id") in loose else it

        return rewritten(answer, odd) if answer.status < 300 else answer

    found = divergences(act, only=("createProject", "listProjects"))
    assert loose
    assert {"laxer"} == {each.kind for each in found}
