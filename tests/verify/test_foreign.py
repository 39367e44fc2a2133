"""Backends that others have written: what each does wrong is said first, and what it does right is
not accused.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

from stub_server.tools.verify.exchange import Answer, Request
from stub_server.tools.verify.findings import Divergence
from stub_server.tools.verify.forms import FORMS, rendered
from stub_server.tools.verify.outcome import of_run

from ..support.contract import document
from .backend import (
    Act,
    Ask,
    as_owner,
    is_for,
    json_of,
    own,
    rewritten,
    with_body,
    with_header,
    with_json,
    without_query,
)
from .watched import watched

Json = dict[str, Any]
_OF_JSON = (("content-type", "application/json"),)
pytestmark = pytest.mark.check


def divergences(*acts: Act, only: tuple[str, ...], write: bool = True) -> list[Divergence]:
    return of_run(watched(*acts, write=write, only=only).run, (), 0).divergences


def kinds_of(found: list[Divergence]) -> list[str]:
    return [each.kind for each in found]


def named(found: list[Divergence]) -> list[tuple[str, list[str]]]:
    """Classes and operations."""
    return [(each.kind, each.operations) for each in found]


def showing(change: Callable[[Json], Json], path: str = "/v2") -> Act:
    """A backend whose successes show records otherwise."""

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        is_so = answer.status < 300 and request.path.startswith(path)
        return rewritten(answer, change) if is_so else answer

    return act


def answering(operation: str, change: Callable[[Request, Answer], Answer]) -> Act:
    """A backend that gives other answers of an operation."""

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        return change(request, answer) if is_for(request, operation) else answer

    return act


def taking(operation: str, change: Callable[[Json], Json]) -> Act:
    """A backend that takes another body for what is sent to an operation."""

    async def act(request: Request, ask: Ask) -> Answer:
        body = json_of(request)
        is_sent = is_for(request, operation) and isinstance(body, dict)
        if is_sent and body:  # what is no JSON is passed on
            request = with_json(request, change(body))
        return await ask(request)

    return act


def without(body: Json, name: str) -> Json:
    """A body without a member."""
    return {each: value for each, value in body.items() if each != name}


def opening(code: str, operation: str, *credentials: str) -> Act:
    """A backend that opens an operation where it should refuse with a code: to all credentials, or
    to some.
    """

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        sent = dict(request.headers).get("authorization")
        is_asked = is_for(request, operation) and json_of(answer).get("code") == code
        is_open = is_asked and (not credentials or sent in credentials)
        return await ask(await as_owner(request, ask)) if is_open else answer

    return act


def refused(status: int, message: str, **more: Any) -> Answer:
    """A refusal in the backend's own words."""
    said = {"error": True, "message": message, "code": "no"} | more
    return Answer(status, _OF_JSON, orjson.dumps(said))


def refusing(operation: str, is_wrong: Callable[[Json], bool], *details: str) -> Act:
    """A backend that refuses some bodies of an operation."""

    async def act(request: Request, ask: Ask) -> Answer:
        body = json_of(request)
        is_sent = is_for(request, operation) and isinstance(body, dict)
        if is_sent and is_wrong(body):
            return refused(422, "Invalid.", details=details)
        return await ask(request)

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
    assert "missing-operation" not in kinds_of(found)

    async def elsewhere(request: Request, ask: Ask) -> Answer:
        if request.path == "/api-keys/scopes":
            return Answer(404, body=b"Cannot GET /api-keys/scopes")
        return await without_codes(request, ask)

    found = divergences(elsewhere, only=("getApiInfo", "listAvailableScopes"), write=False)
    assert ["missing-operation"] == kinds_of(found)


def test_a_cent_that_is_cut_off_is_named() -> None:
    def cut(it: Json) -> Json:
        return (
            it | {"amount": int(it["amount"] * 100) / 100}
            if type(it.get("amount")) is float
            else it
        )

    found = divergences(showing(cut), only=("createPlan", "getPlan"))
    assert ["not-persisted"] == kinds_of(found)
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

    act = answering("listApiKeys", lambda _, answer: rewritten(answer, leaks))
    found = divergences(act, without_codes, only=("listApiKeys", "getCustomer"))
    assert ("leaked-secret", ["listApiKeys"]) == (found[0].kind, found[0].operations)


def test_what_a_list_shows_otherwise_than_the_creation_has_answered_is_certain() -> None:
    def dated(it: Json) -> Json:
        is_open = it.get("expires_at", "") is None
        return it | {"expires_at": "1970-01-01T00:00:00.000Z"} if is_open else it

    act = answering("listApiKeys", lambda _, answer: rewritten(answer, dated))
    found = divergences(act, only=("createApiKey", "listApiKeys"))
    assert [("contradiction", ["listApiKeys"])] == named(found)


async def stale(request: Request, ask: Ask) -> Answer:
    if request.method == "POST":  # an update leaves the lists as they were
        KEPT.clear()
    if not is_for(request, "listCustomers"):
        return await ask(request)
    return KEPT.setdefault(request.query, await ask(request))


KEPT = dict[str, Answer]()
WITHOUT = answering(
    "updateProjectStatus",
    lambda _, it: rewritten(it, lambda each: each | {"metadata": {}} if "type" in each else each),
)
MADE = answering("createApiKey", lambda _, it: it._replace(status=200) if it.status == 201 else it)


@pytest.mark.parametrize(
    ("act", "operation", "kind"),
    [
        (
            taking("updateProject", lambda it: it | {"description": "Pais &amp; filhos"}),
            "updateProject",
            "not-persisted",
        ),
        (WITHOUT, "updateProjectStatus", "not-persisted"),
        (MADE, "createApiKey", "wrong-status"),
        (stale, "updateCustomer", "not-persisted"),
    ],
)
def test_what_departs_from_the_source_is_certain(act: Act, operation: str, kind: str) -> None:
    found = divergences(act, only=(operation,))[0]
    assert ("documented", kind, [operation]) == (found.basis, found.kind, found.operations)


def test_a_change_that_is_dated_before_its_record_is_certain() -> None:
    def local(it: Json) -> Json:
        return it | {"updatedAt": "2020-01-01T00:00:00.000Z"} if "updatedAt" in it else it

    found = divergences(showing(local, "/v2/plans"), only=("Plans",))
    assert "contradiction" == found[0].kind


def test_a_method_that_the_contract_lacks_is_tried_of_unknown_records_if_a_run_may_write() -> None:
    async def patched(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        return answer._replace(status=200) if request.method == "PATCH" else answer

    only = ("getApiInfo",)
    assert ["undocumented-operation"] == kinds_of(divergences(patched, only=only))
    assert [] == divergences(patched, only=only, write=False)


def test_a_secret_that_is_shown_in_another_place_is_no_leak() -> None:
    def moved(_: Request, answer: Answer) -> Answer:
        body = json_of(answer) | {"signing_key": "whsec_1"}
        return with_body(answer, orjson.dumps(body)) if answer.status == 200 else answer

    operation = "regenerateWebhookSigningKey"
    found = divergences(answering(operation, moved), only=(operation,))
    assert ["undocumented-field"] == kinds_of(found)


def test_keys_that_open_nothing_are_one_divergence_and_its_command_names_another_key() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        sent = dict(request.headers).get("authorization", "")
        is_key = sent.startswith("Bearer sk_")
        return await ask(with_header(request, "authorization", "Bearer x") if is_key else request)

    found = divergences(act, only=("Customers",))
    assert ["api-key"] == kinds_of(found)
    assert "$OTHER_KEY" in found[0].shown.request.curl


def test_an_idempotency_key_that_is_too_long_is_tried() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        key = dict(request.headers).get("idempotency-key", "")
        return await ask(with_header(request, "idempotency-key", key[:255] or None))

    found = divergences(act, only=("createPlan",))
    assert [("laxer", ["createPlan"])] == named(found)


def test_what_a_backend_accepts_that_it_should_refuse_is_not_accused_again_where_it_is_listed() -> (
    None
):
    loose: set[str] = set()

    async def act(request: Request, ask: Ask) -> Answer:
        answer, body = await ask(request), json_of(request)
        if is_for(request, "createProject") and answer.status == 422:
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
    assert {"laxer"} == {*kinds_of(found)}


def test_what_is_hidden_from_a_key_of_another_project_is_one_other_status() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if json_of(answer).get("code") != "project_not_allowed":
            return answer
        hidden = {"message": "There is no such record.", "code": "not_found", "status": 404}
        return rewritten(answer, lambda it: it | hidden if "code" in it else it)._replace(
            status=404
        )

    found = divergences(act, only=("getPlan", "updatePlan", "deletePlan"))
    assert "answered 404, not 403: getPlan; updatePlan; deletePlan" in [it.title for it in found]
    assert "auth" not in kinds_of(found)


def test_an_entry_that_is_kept_once_is_no_loss() -> None:
    def once(body: Json) -> Json:
        several = body.get("allowed_ips")
        if not isinstance(several, list) or len(several) > 100:
            return body
        return body | {"allowed_ips": [*dict.fromkeys(several)]}

    acts = taking("createApiKey", once), taking("updateApiKey", once)
    assert divergences(*acts, only=("createApiKey", "updateApiKey")) == []


def test_a_member_of_answers_that_an_update_writes_is_named_by_itself() -> None:
    def shown(request: Request, answer: Answer) -> Answer:
        sent = json_of(request)
        if answer.status != 200 or "creatorId" not in sent:
            return answer
        written = {"creatorId": sent["creatorId"]}
        return rewritten(answer, lambda it: it | written if "creatorId" in it else it)

    def known(body: Json) -> Json:
        return {name: value for name, value in body.items() if name != "creatorId"}

    acts = answering("updateProject", shown), taking("updateProject", known)
    (found,) = divergences(*acts, only=("updateProject",))
    assert ("read-only", "documented") == (found.kind, found.basis)
    assert found.title.startswith("updateProject · creatorId, which only answers have")


def in_another_zone(body: Json) -> Json:
    ends = body.get("expires_at")
    return body | {"expires_at": str(ends).replace("-03:00", "Z")} if ends else body


def not_emptied(body: Json) -> Json:
    return {name: value for name, value in body.items() if name != "description" or value}


@pytest.mark.parametrize(
    ("operation", "change", "member"),
    [
        ("createApiKey", in_another_zone, "expires_at"),
        ("updateProject", not_emptied, "description"),
        ("createCustomer", lambda body: body | {"metadata": {}}, "metadata"),
    ],
)
def test_what_is_stored_otherwise_is_named(
    operation: str, change: Callable[[Json], Json], member: str
) -> None:
    (lost,) = divergences(taking(operation, change), only=(operation,))
    assert ("not-persisted", "documented") == (lost.kind, lost.basis)
    assert {member} == {each.place for each in lost.findings}


def test_a_deleted_record_that_can_be_updated_is_not_deleted() -> None:
    kept: dict[str, Json] = {}

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, "getProject") and answer.status == 200:
            kept[request.path] = json_of(answer)
        is_gone = answer.status == 404 and request.path in kept
        if is_gone and is_for(request, "updateProject"):
            return with_body(answer._replace(status=200), orjson.dumps(kept[request.path]))
        return answer

    found = divergences(act, only=("updateProject", "deleteProject", "getProject"))
    assert [("not-deleted", ["updateProject"])] == named(found)


def test_a_deleted_record_that_is_listed_is_told_once() -> None:
    gone: list[Json] = []

    async def act(request: Request, ask: Ask) -> Answer:
        read = await ask(await as_owner(own("GET", request.path), ask))
        answer = await ask(request)
        if is_for(request, "deleteProduct") and answer.status == 200:
            gone.append(json_of(read)["product"])
        if not is_for(request, "listProducts") or answer.status != 200:
            return answer
        shown = json_of(answer)
        shown["products"] += [it for it in gone if it["projectId"] in request.query]
        return with_body(answer, orjson.dumps(shown))

    found = divergences(act, only=("Products",))
    assert ("not-deleted", ["deleteProduct"]) in named(found)
    assert "stricter" not in kinds_of(found)


def test_records_that_could_only_be_archived_are_counted() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        is_delete = is_for(request, "deleteProject")
        return await ask(request._replace(method="PUT") if is_delete else request)

    report = of_run(watched(act, write=True, only=("getProject",)).run, (), 0)
    assert any(note.endswith("stay behind archived.") for note in report.notes)


def test_a_member_that_a_creation_demands_is_learned_and_what_it_blocks_is_checked() -> None:
    def priced(it: Json) -> Json:
        return it | {"price": 49.9} if "trial_period_days" in it and "id" in it else it

    acts = (
        refusing("createPlan", lambda it: "price" not in it, "price is required"),
        taking("createPlan", lambda it: without(it, "price")),
        taking("updatePlan", lambda it: without(it, "metadata")),
        showing(priced, "/v2/plans"),
        opening("project_not_allowed", "createPlan"),
    )
    found = divergences(*acts, only=("createPlan", "updatePlan"))
    said = "demands price, which the contract does not: verify sent 49.9 from then on"
    assert f"createPlan · {said}" in [each.title for each in found]
    assert ("not-persisted", ["updatePlan"]) in named(found)
    assert ("scope", ["createPlan"]) in named(found)


def test_an_optional_member_that_a_creation_demands_is_sent_and_what_it_makes_is_checked() -> None:
    def loses(body: Json) -> Json:
        if isinstance(body.get("customer"), dict):
            body["customer"].pop("phones", None)
        return body

    name = "createPixOrder"
    demands = refusing(name, lambda it: "paymentMethod" not in it, "paymentMethod is required")
    run = watched(demands, taking(name, loses), write=True, charges=True, only=(name,)).run
    found = of_run(run, (), 0).divergences
    said = 'demands paymentMethod, which the contract does not: verify sent "pix" from then on'
    assert f"{name} · {said}" in [each.title for each in found]
    assert ("not-persisted", [name]) == named(found)[0]


def test_a_member_that_the_request_has_in_the_contract_is_not_demanded() -> None:
    def shown(it: Json) -> Json:
        return it | {"logo_url": "https://example.com/a.png"} if "creatorId" in it else it

    refuses = refusing("createProject", lambda it: it.get("logo_url", "") is None, "logo_url: null")
    kinds = kinds_of(divergences(refuses, showing(shown), only=("createProject",)))
    assert "stricter" in kinds
    assert "demanded" not in kinds


def test_what_there_is_is_listed_if_nothing_can_be_made() -> None:
    async def ignores(request: Request, ask: Ask) -> Answer:
        return await ask(without_query(request, "status"))

    def refuses(_: Request, answer: Answer) -> Answer:
        return refused(422, "No.") if answer.status == 201 else answer

    acts = ignores, answering("createPlan", refuses)
    report = of_run(watched(*acts, write=True, only=("Plans",)).run, (), 0)
    kinds = kinds_of(report.divergences)
    assert "filter" in kinds
    assert "refused-creation" in kinds
    reasons = {(it["operationId"], it["status"]): it["reason"] for it in report.coverage.unreached}
    said = "needs createPlan, which refuses the record: see refused-creation"
    assert said == reasons["updatePlan", 200]


def test_figures_of_what_the_run_has_not_made_must_not_contradict_each_other() -> None:
    def more(it: Json) -> Json:
        return it | {"plans_count": it["plans_count"] + 1} if "creatorId" in it else it

    found = divergences(showing(more, "/v2/projects"), only=("listProjects", "getProjectStats"))
    assert ("contradiction", ["getProjectStats"]) in named(found)


@pytest.mark.parametrize(
    ("code", "operation"),
    [
        ("api_key_expired", "createApiKey"),
        ("ip_not_allowed", "createApiKey"),
        ("insufficient_scope", "updateApiKey"),
        ("api_key_inactive", "updateApiKey"),
        ("invalid_token", "deleteApiKey"),
    ],
)
def test_a_key_that_may_not_be_used_opens_nothing(code: str, operation: str) -> None:
    found = divergences(opening(code, "listProjects"), only=(operation,))
    assert [("auth", [operation])] == named(found)


OTHER = "of another merchant"


@pytest.mark.parametrize(
    ("operation", "found"),
    [("getCustomer", ["auth"]), ("deletePlan", ["auth"]), ("listLogsForWebhook", [])],
)
def test_what_another_merchant_can_do_to_a_record_is_named(
    operation: str, found: list[str]
) -> None:
    """An empty list shows nothing."""

    def emptied(it: Json) -> Json:
        return it | {"logs": []} if "logs" in it else it

    acts = (
        opening("invalid_token", operation, f"Bearer {OTHER}"),
        showing(emptied, "/v2/webhooks"),
    )
    only = (document().operations[operation].tag,)
    run = watched(*acts, write=operation == "deletePlan", only=only, other=OTHER).run
    shown = of_run(run, (), 0).divergences
    assert [(kind, [operation]) for kind in found] == named(shown)


def test_what_another_merchant_does_though_he_is_refused_is_named() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        if is_for(request, "deletePlan"):
            await ask(await as_owner(request, ask))
        return await ask(request)

    run = watched(act, write=True, only=("getPlan",), other=OTHER).run
    assert "auth" in kinds_of(of_run(run, (), 0).divergences)


def test_a_list_below_a_record_with_entries_of_another_one_is_a_contradiction() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        is_below = is_for(request, "listLogsForWebhook")
        return await ask(request._replace(path="/v2/webhooks/logs") if is_below else request)

    found = divergences(act, only=("Webhooks",), write=False)
    assert ("contradiction", ["listLogsForWebhook"]) in named(found)


def test_a_record_that_a_later_one_changes_is_named() -> None:
    names: dict[str, str] = {}

    def renamed(it: Json) -> Json:
        return it | {"name": names[it["email"]]} if it.get("email") in names else it

    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if is_for(request, "createOrder") and answer.status == 201:
            customer = json_of(request)["customer"]
            names[customer["email"]] = customer["name"]
        return rewritten(answer, renamed) if is_for(request, "getOrder") else answer

    run = watched(act, write=True, only=("createOrder",), charges=True).run
    (found,) = of_run(run, (), 0).divergences
    assert ("not-persisted", "createOrder") == (found.kind, found.shown.operation)


def test_a_listed_value_that_the_backend_lacks_is_replaced_by_one_that_its_records_have() -> None:
    paid = ["order.paid"]

    def event(_: Request, answer: Answer) -> Answer:
        return rewritten(answer, lambda it: it | {"events": paid} if "events" in it else it)

    refuses = refusing("createWebhook", lambda it: it.get("events", paid) != paid, "events")
    found = divergences(refuses, answering("listWebhooks", event), only=("getWebhook",))
    assert "refused-creation" not in kinds_of(found)


def test_what_a_list_refuses_is_not_in_a_wrong_order_too() -> None:
    def refuses(request: Request, answer: Answer) -> Answer:
        return refused(400, "No such order.") if "sort=amount" in request.query else answer

    found = divergences(answering("listPlans", refuses), only=("listPlans",))
    assert "sort" not in kinds_of(found)


def test_a_move_says_which_side_allows_it() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if not is_for(request, "suspendProject") or answer.status != 409:
            return answer
        return await ask(await as_owner(own("GET", request.path.rpartition("/")[0]), ask))

    found = divergences(act, only=("suspendProject",))
    (moves,) = [each for each in found if each.kind == "lifecycle"]
    assert "(200)" in moves.title


def test_a_move_is_tried_from_a_state_that_it_leaves() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        if not is_for(request, "activateProject"):
            return await ask(request)
        read = await ask(await as_owner(own("GET", request.path.rpartition("/")[0]), ask))
        if "active" == json_of(read).get("data", {}).get("project", {}).get("status"):
            return refused(409, "It is active.")
        answer = await ask(request)
        return await ask(with_json(request, {})) if answer.status == 422 else answer

    begins = taking("createProject", lambda it: {"status": "active"} | it)
    kinds = kinds_of(divergences(act, begins, only=("activateProject",)))
    assert "laxer" in kinds
    assert "wrong-status" not in kinds


def test_few_records_that_cannot_be_deleted_stay_behind_in_a_lax_backend() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        answer, body = await ask(request), json_of(request)
        if answer.status != 422 or not isinstance(body, dict) or "/customers" not in request.path:
            return answer
        return await ask(with_json(request, {"name": "Ana", **_known(body)}))

    def _known(body: Json) -> Json:
        return {name: body[name] for name in ("email", "document") if body.get(name)}

    report = of_run(watched(act, write=True, only=("Customers",)).run, (), 0)
    assert len(report.left_behind) <= 10


def test_who_may_not_make_keys_is_not_accused_of_it() -> None:
    def forbids(_: Request, answer: Answer) -> Answer:
        said = refused(403, "Ask an owner.", code="insufficient_scope")
        return answer if answer.status in (400, 401) else said

    act = answering("createApiKey", forbids)
    found = divergences(act, only=("createApiKey", "listAvailableScopes"))
    assert "scope" not in kinds_of(found)


def test_a_credential_that_is_echoed_escaped_or_encoded_is_shown_to_nobody() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        if dict(request.headers).get("authorization") != f"Bearer {other}":
            return await ask(request)
        echoed = {"seen": other.replace("/", "%2F"), "again": other}
        return Answer(418, _OF_JSON, orjson.dumps(echoed).replace(b"/", b"\\/"))

    other = "of/another/merchant"
    seen = watched(act, write=True, only=("getCustomer", "listCustomers"), other=other)
    text = rendered(FORMS["text"], report=of_run(seen.run, (), 0))
    assert "answered 418" in text
    assert other not in unquote(text).replace("\\/", "/")


def test_a_state_that_is_shown_otherwise_is_no_move() -> None:
    def delivered(it: Json) -> Json:
        return it | {"status": "delivered"} if "event_type" in it and "status" in it else it

    act, only = showing(delivered, "/v2/webhooks"), ("sendTestWebhook",)
    found = of_run(watched(act, write=True, charges=True, only=only).run, (), 0).divergences
    assert "default" in kinds_of(found)
    assert "lifecycle" not in kinds_of(found)


def test_a_body_that_is_refused_in_any_state_is_not_told_of_one() -> None:
    (example, *_) = document().examples(document().operations["updatePlan"].raw["requestBody"])
    refuses = refusing("updatePlan", lambda it: bool(it) and it.keys() <= example.keys())
    found = divergences(refuses, only=("updatePlan",))
    assert "stricter" in kinds_of(found)
    assert [] == [each.title for each in found if " while " in each.title]


def test_pages_of_the_usual_size_that_overlap_are_named() -> None:
    async def act(request: Request, ask: Ask) -> Answer:
        is_second = is_for(request, "listProducts") and request.query == "page=2"
        return await ask(request._replace(query="page=1") if is_second else request)

    (found,) = divergences(act, only=("listProducts",), write=False)
    assert ("paging", ["listProducts"]) == (found.kind, found.operations)
