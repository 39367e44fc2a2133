"""Every kind of refusal is explained, and the nearest request that the explanation names succeeds as it is pasted."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from stub_server.explain.repairs import REPAIRS, WIDEST

from ..conftest import Serve
from ..support import forge
from ..support.contract import document
from ..support.estate import ELSEWHERE, Estate, client
from ..support.explained import (
    ANOTHER_WOULD_DO,
    BEFORE_A_SANDBOX,
    explanation,
    nearest_succeeds,
    needs_another,
    pasted,
)
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, make_order, make_project
from ..support.refusal import says
from ..support.requests import JSON, OPERATIONS, UNKNOWN, ask, body_of
from .hooks import clients
from .steps import done
from .test_every_conflict import CAUSES, NO_ROOM, Answer

Provoke = Callable[[Estate], Answer]
ORDER = OPERATIONS["createPixOrder"]
CUSTOMERS = "/v2/customers"


def with_token(shop: Estate, token: str | None) -> Answer:
    with client(shop.live, shop.sandbox, token) as stranger:
        return ask(stranger, OPERATIONS["createCustomer"], shop.ids)


def late(shop: Estate) -> str:
    return forge.signed(shop.live.settings, sandbox=shop.sandbox, merchant_id=shop.merchant_id, exp=1_700_000_000)


def with_inactive_key(shop: Estate) -> Answer:
    key = shop.key()
    done(shop.api.put(f"/api-keys/{key['id']}", json={"is_active": False}))
    return with_token(shop, key["private_key"])


def with_scopes(shop: Estate, operation: str, *scopes: str, **options: Json) -> Answer:
    with shop.with_scopes(*scopes) as short:
        return ask(short, OPERATIONS[operation], shop.ids, **options)


def with_key(shop: Estate, operation: str, **changes: object) -> Answer:
    with shop.with_key(**changes) as key:
        return ask(key, OPERATIONS[operation], shop.ids)


def of_another_project(shop: Estate) -> Answer:
    return with_key(shop, "getProject", allowed_projects=[make_project(shop.api)["id"]])


def other_body(shop: Estate) -> Answer:
    headers = {"Idempotency-Key": '"checkout-7"'}
    created(shop.api.post(CUSTOMERS, json=body_of(OPERATIONS["createCustomer"], {}), headers=headers))
    return shop.api.post(CUSTOMERS, json=body_of(OPERATIONS["createCustomer"], {}), headers=headers)


def simulated(code: str) -> Provoke:
    return lambda shop: shop.api.get("/v2/plans", headers={"X-Sandbox-Simulate": code})


def failing(shop: Estate) -> Answer:
    """A rule that fails this shop's requests alone."""
    match = {"header": {"X-Shop": shop.merchant_id}}
    made = created(shop.control.post("/faults", json={"match": match, "then": {"status": 503}}))["fault"]
    try:
        return shop.api.get("/v2/plans", headers={"X-Shop": shop.merchant_id})
    finally:
        assert 204 == shop.control.delete(f"/faults/{made['id']}").status_code


def pending(shop: Estate) -> str:
    """An open order of the shop."""
    plan = done(shop.api.get(f"/v2/plans/{shop.ids['planId']}"))["plan"]
    return str(make_order(shop.api, plan)["id"])


PROVOKED: dict[str, Provoke] = {
    "missing_credentials": lambda shop: with_token(shop, None),
    "invalid_token": lambda shop: with_token(shop, "eyJhbGciOiJIUzI1NiJ9.e30."),
    "token_expired": lambda shop: with_token(shop, late(shop)),
    "api_key_inactive": with_inactive_key,
    "insufficient_scope": lambda shop: with_scopes(shop, "createPixOrder", "orders:read"),
    "jwt_required": lambda shop: with_key(shop, "listApiKeys"),
    "scope_escalation": lambda shop: with_scopes(
        shop, "createApiKey", "api_keys:write", json={"name": "Chave", "scopes": ["orders:read"]}
    ),
    "ip_not_allowed": lambda shop: with_key(shop, "listPlans", allowed_ips=[ELSEWHERE]),
    "project_not_allowed": of_another_project,
    "host_not_allowed": lambda shop: shop.api.get("/v2/plans", headers={"Host": "evil.example.com"}),
    "delivery_not_allowed": lambda shop: shop.api.get("/v2/plans", headers={"webhook-id": "evt_1"}),
    "malformed_request": lambda shop: shop.api.get("/v2/plans", headers={"Prefer": "code=418"}),
    "malformed_json": lambda shop: shop.api.post(
        CUSTOMERS,
        content=b"{'name': 'Ana', 'email': 'ana@example.com', 'document': '34712695846',}",
        headers={"Content-Type": JSON},
    ),
    "unsupported_media_type": lambda shop: shop.api.post(
        CUSTOMERS,
        content=b"name=Ana&email=ana%40example.com&document=21844730654",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    ),
    "validation_error": lambda shop: shop.api.post(
        CUSTOMERS, json={"nome": "Ana", "email": "ana", "document": "93541134700", "type": "person"}
    ),
    "route_not_found": lambda shop: shop.api.get("/v2/custommers"),
    "method_not_allowed": lambda shop: shop.api.delete(CUSTOMERS),
    "not_found": lambda shop: shop.api.get(f"/v2/orders/{UNKNOWN}"),
    "reference_not_found": lambda shop: ask(shop.api, ORDER, shop.ids | {"planId": UNKNOWN}),
    "merchant_not_found": lambda shop: ask(shop.api, OPERATIONS["getMerchantByPublicKey"]),
    "step_not_kept": lambda shop: shop.api.get("/v2/plans", headers={"X-Sandbox-As-Of": "99999"}),
    "idempotency_key_reused": other_body,
    "idempotency_in_progress": lambda shop: ask(
        shop.api,
        OPERATIONS["sendTestWebhook"],
        shop.ids,
        headers={"Idempotency-Key": "k", "X-Sandbox-Simulate": "idempotency_in_progress"},
    ),
    "simulated_fault": failing,
    **{code: simulated(code) for code in ("rate_limited", "request_timeout", "too_many_connections")},
}
ELSEWHERE_TESTED = {"sandbox_not_found"}
RULES = document().schema("ErrorCode")["x-rules"]
LISTED = [code for code, rule in RULES.items() if rule.get("has_nearest", True)]


def test_the_table_has_every_code_that_an_operation_may_answer() -> None:
    """And every listed kind is provoked here, or with the conflicts."""
    documented = {c for o in OPERATIONS.values() for r in o.responses.values() for c in r.codes}
    assert documented <= RULES.keys()
    assert REPAIRS.keys() <= set(LISTED)
    assert PROVOKED.keys() | CAUSES.keys() - {NO_ROOM} | ELSEWHERE_TESTED == set(LISTED)


@pytest.mark.parametrize("code", list(PROVOKED))
@pytest.mark.matrix
def test_the_nearest_request_of_every_kind_succeeds_as_pasted(shop: Estate, tmp_path: Path, code: str) -> None:
    refusal = PROVOKED[code](shop)
    assert code == refusal.json()["code"], refusal.text
    place = "default" if code in BEFORE_A_SANDBOX else shop.sandbox
    with httpx2.Client(base_url=f"{shop.live.url}/s/{place}/_sandbox", verify=NO_TLS) as control:
        found = explanation(control, refusal)
    assert found["summary"].startswith(refusal.json()["message"])
    if code in ANOTHER_WOULD_DO:
        needs_another(found)
    else:
        nearest_succeeds(refusal, found, tmp_path)


@pytest.mark.parametrize("operation", [each.id for each in OPERATIONS.values() if each.body_required])
def test_an_empty_body_has_a_nearest_request(shop: Estate, operation: str) -> None:
    """Every member that is required is missing, whatever kind of schema it has."""
    refusal = ask(shop.api, OPERATIONS[operation], shop.ids, json={})
    assert "validation_error" == refusal.json()["code"]
    assert explanation(shop.control, refusal)["nearest"] is not None


def test_a_refusal_of_a_control_is_explained_by_its_rule_alone(shop: Estate) -> None:
    path = f"/orders/{pending(shop)}/refund"
    found = explanation(shop.control, shop.control.post(path))
    assert ("rule", "order_not_refundable", None) == (found["kind"], found["rule"]["name"], found["nearest"])
    found = explanation(shop.control, shop.control.post(path, json={"amount": "many"}))
    assert ("contract", None, None) == (found["kind"], found["contract"], found["nearest"])


@pytest.mark.parametrize(("path", "header"), [("/v2/plans", {"X-Sandbox": "?"}), ("/s/-/v2/plans", {})])
def test_an_unknown_sandbox_is_replaced_by_one_that_exists(
    live: Live, tmp_path: Path, path: str, header: dict[str, str]
) -> None:
    """The default sandbox refuses it, and explains it."""
    with httpx2.Client(base_url=f"{live.url}/s/default/_sandbox", verify=NO_TLS) as control:
        refusal = httpx2.get(f"{live.url}{path}", headers=header, verify=NO_TLS)
        assert "sandbox_not_found" == refusal.json()["code"]
        found = explanation(control, refusal)
    assert "reference" == found["kind"]
    assert [200] == pasted(found["nearest"]["curl"], tmp_path)


@pytest.mark.promise("explained-where-it-was-sent")
def test_a_request_is_explained_in_the_world_that_holds_it(shop: Estate, live: Live) -> None:
    """A path that looks like another world's prefix is none: nothing of that world is shown."""
    held = f"/s/{shop.sandbox}"
    with httpx2.Client(base_url=f"{live.url}/s/stranger", verify=NO_TLS, timeout=60) as stranger:
        assert 200 == stranger.get("/_sandbox/credentials").status_code
        refusal = stranger.get(f"{held}/v2/custommers")
        assert "route_not_found" == refusal.json()["code"]
        with httpx2.Client(base_url=f"{live.url}/s/stranger/_sandbox", verify=NO_TLS, timeout=60) as control:
            found = explanation(control, refusal)
    assert None is found["nearest"], found


def test_what_was_refused_before_a_world_was_chosen_is_explained_in_the_default_one(shop: Estate, live: Live) -> None:
    """It holds the refusal: the world that the path names may be another's."""
    path = f"/s/{shop.sandbox}/v2/plans"
    refusal = httpx2.get(f"{live.url}{path}", headers={"Host": "evil.example.com"}, verify=NO_TLS)
    with httpx2.Client(base_url=f"{live.url}/s/default/_sandbox", verify=NO_TLS, timeout=60) as control:
        nearest = explanation(control, refusal)["nearest"]
    assert shop.sandbox not in nearest["curl"]
    (change,) = [change for change in nearest["changes"] if change["where"] == "path"]
    assert (path, f"{live.url}/v2/plans") == (change["from"], change["to"])


# -- what an explanation says


@pytest.mark.parametrize(
    ("settings", "summary"), [({"journal": 0}, "validation_error"), ({}, "is not an e-mail address")]
)
def test_of_a_body_that_the_journal_has_not_kept_nothing_is_claimed(
    serve: Serve, tmp_path: Path, settings: Json, summary: str
) -> None:
    with clients(serve(**settings)) as (api, control):
        secret = api.headers["authorization"].removeprefix("Bearer ")
        hidden = secret.replace("_", "%5F").replace(".", "%2E")
        refusal = api.post(CUSTOMERS, json=customer_body() | {"email": "ana", "metadata": {"note": hidden}})
        assert 422 == refusal.status_code
        found = explanation(control, refusal)
        assert "contract" == found["kind"]
        assert says(found["summary"], summary)
        first, *_ = found["nearest"]["changes"]
        assert ("body", None) == (first["where"], first["from"])
        assert "contract's example" in first["why"]
        assert [201] == pasted(found["nearest"]["curl"], tmp_path)


def test_a_violation_names_its_place_in_the_contract_and_every_change(shop: Estate) -> None:
    found = explanation(shop.control, PROVOKED["validation_error"](shop))
    assert ("contract", None, None) == (found["kind"], found["rule"], found["state"])
    assert found["contract"]["pointer"].startswith("#/components/schemas/CustomerCreate")
    changes = {change["where"]: (change["from"], change["to"]) for change in found["nearest"]["changes"]}
    assert ("ana", "ana@example.com") == changes["body.email"]
    assert ("93541134700", "93541134780") == changes["body.document"]
    assert ("Ana", None) == changes["body.nome"]
    assert ("person", "individual") == changes["body.type"]
    assert all(change["why"] for change in found["nearest"]["changes"])


def test_a_status_that_is_no_text_is_replaced_by_one(shop: Estate) -> None:
    refused = shop.api.put(f"/v2/plans/{shop.ids['planId']}", json={"status": {"active": True}})
    found = explanation(shop.control, refused)
    changes = {change["where"]: change["to"] for change in found["nearest"]["changes"]}
    assert changes["body.status"] in ("active", "inactive")


def test_a_state_names_the_moves_and_the_calls_that_lead_there_in_order(shop: Estate) -> None:
    project = make_project(shop.api, status="draft")
    found = explanation(shop.control, shop.api.post(f"/v2/projects/{project['id']}/suspend"))
    assert ("rule", "invalid_state_transition") == (found["kind"], found["rule"]["name"])
    state = found["state"]
    assert ("Project", project["id"], "status", "draft") == tuple(state[n] for n in ("resource", "id", "field", "is"))
    assert ["active"] == state["needed"]
    assert any(move.startswith("active (activateProject") for move in state["moves"])
    (before,) = found["nearest"]["changes"]
    assert ("before", f"POST /v2/projects/{project['id']}/activate") == (before["where"], before["to"])
    first, second = found["nearest"]["curl"].split(" &&\n")
    assert f"/v2/projects/{project['id']}/activate" in first
    assert f"/v2/projects/{project['id']}/suspend" in second


def test_a_lacking_scope_names_where_the_contract_asks_for_it(shop: Estate) -> None:
    found = explanation(shop.control, PROVOKED["insufficient_scope"](shop))
    assert "auth" == found["kind"]
    assert {"pointer": "#/paths/~1v2~1orders~1pix/post/x-scopes", "excerpt": '["orders:write"]'} == found["contract"]
    assert "header.Authorization" in [change["where"] for change in found["nearest"]["changes"]]


def test_a_reference_is_replaced_by_a_record_that_fits(shop: Estate) -> None:
    found = explanation(shop.control, PROVOKED["reference_not_found"](shop))
    assert "reference" == found["kind"]
    (change,) = found["nearest"]["changes"]
    assert ("body.planId", UNKNOWN, shop.ids["planId"]) == (change["where"], change["from"], change["to"])


@pytest.mark.parametrize("code", ["simulated_fault", "rate_limited"])
def test_a_fault_is_the_same_request_again(shop: Estate, code: str) -> None:
    found = explanation(shop.control, PROVOKED[code](shop))
    assert ("fault", None, None) == (found["kind"], found["contract"], found["state"])
    assert all(change["where"].startswith("header.") for change in found["nearest"]["changes"])


def test_a_refusal_under_a_fault_that_only_waits_keeps_its_kind(shop: Estate) -> None:
    refusal = shop.api.get(f"/v2/orders/{UNKNOWN}", headers={"X-Sandbox-Delay": "1"})
    assert "delay" == refusal.headers["x-sandbox-simulated"]
    assert "reference" == explanation(shop.control, refusal)["kind"]


# -- what it leaves alone


@pytest.mark.promise("explanation-changes-nothing")
def test_an_explanation_changes_nothing_in_its_world(shop: Estate) -> None:
    """Not the step, the events, the deliveries, the journal, a key's use, or the ids that come next."""
    shop.api.get("/v2/plans")
    refusal = ask(shop.api, ORDER, shop.ids | {"planId": UNKNOWN})
    world = shop.live.app.sandboxes.find(shop.sandbox)
    assert world is not None
    store = world.stores[shop.merchant_id]

    def standing() -> tuple[object, ...]:
        kept = {name: dict(table.rows) for name, table in store.tables.items()}
        return world.log.number, world.events.raised, world.ids.position, world.timers.last, kept, dict(store.usage)

    before, names = standing(), [world.name for world in shop.live.app.sandboxes.sandboxes()]
    assert explanation(shop.control, refusal)["nearest"] is not None
    assert before == standing()
    assert names == [world.name for world in shop.live.app.sandboxes.sandboxes()]


def test_a_key_that_was_only_tried_is_known_to_nobody(shop: Estate) -> None:
    keyring = shop.live.app.sandboxes.keyring
    before = len(keyring)
    refusal = shop.api.post("/api-keys", json={"name": "", "scopes": ["orders:read"]})
    assert explanation(shop.control, refusal)["nearest"] is not None
    assert before == len(keyring)


def test_a_test_delivery_that_was_only_tried_reaches_nobody(shop: Estate) -> None:
    """The nearest of a test send is proved, and its receiver hears nothing of it."""
    world = shop.live.app.sandboxes.find(shop.sandbox)
    assert world is not None
    before = world.events.raised
    path = f"/v2/webhooks/{shop.ids['webhookId']}/test"
    refusal = shop.api.post(path, headers={"X-Sandbox-Simulate": "rate_limited"})
    assert explanation(shop.control, refusal)["nearest"] is not None
    assert before == world.events.raised


# -- where there is nothing to explain


def test_a_request_that_was_accepted_has_no_explanation(shop: Estate) -> None:
    answer = shop.api.get("/v2/plans")
    shown = done(shop.control.get(f"/requests/{answer.headers['x-request-id']}"))["request"]
    assert shown["explanation"] is None


def test_a_body_that_was_too_large_is_explained_without_a_nearest_request(shop: Estate) -> None:
    refusal = shop.api.post(CUSTOMERS, content=b" " * 1_048_577, headers={"Content-Type": JSON})
    found = explanation(shop.control, refusal)
    assert ("contract", None) == (found["kind"], found["nearest"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v2/subscriptions/11111111-1111-4111-8111-111111111111"),
        ("DELETE", "/v2/invoices/1"),
        ("POST", "/v2/orders/11111111-1111-4111-8111-111111111111/refund"),
        ("POST", "/v2/customers/11111111-1111-4111-8111-111111111111/delete"),
        ("GET", "/v2/payments"),
    ],
)
def test_a_path_that_is_like_none_is_not_taken_for_another_resource(shop: Estate, method: str, path: str) -> None:
    """Somebody who pasted what stood here deleted a plan."""
    found = explanation(shop.control, shop.api.request(method, path))
    assert ("contract", None) == (found["kind"], found["nearest"])


@pytest.mark.parametrize("path", sorted({view.path for view in OPERATIONS.values()}))
@pytest.mark.matrix
def test_a_method_that_a_path_lacks_is_not_taken_for_another(shop: Estate, path: str) -> None:
    """Somebody who pasted what stood here archived a project by a GET. The methods are listed instead."""
    has = {view.method for view in OPERATIONS.values() if view.path == path}
    filled = path.format(**shop.ids | {"publicKey": "pk"})
    for method in {"GET", "PUT", "POST", "DELETE", "PATCH"} - has:
        refusal = shop.api.request(method, filled, json={"reason": "x"})
        assert 405 == refusal.status_code
        found = explanation(shop.control, refusal)
        assert (None, "Operation", method) == (found["nearest"], found["state"]["resource"], found["state"]["is"])
        assert sorted(has) == found["state"]["needed"] == [move.split()[0] for move in found["state"]["moves"]]


@pytest.mark.parametrize(
    ("operation", "sent"),
    [
        ("updateApiKey", {}),
        ("updateApiKey", b"{is_active"),
        ("updateApiKey", {"is_active": "talvez"}),
        ("updateApiKey", {"expires_at": "amanha"}),
        ("updateWebhook", {}),
        ("updateWebhook", {"is_active": [1]}),
        ("updatePlan", {"status": "ativo?"}),
        ("updateProduct", {"status": 7}),
        ("updateProjectStatus", {}),
        ("updateProjectStatus", {"status": "pausado"}),
        ("updateProjectStatus", b"status=active"),
    ],
)
def test_a_repaired_value_ends_nothing(shop: Estate, tmp_path: Path, operation: str, sent: object) -> None:
    """Whatever is repaired from an example or a guess: what was on stays on."""
    view = OPERATIONS[operation]
    ids = shop.ids | {"apiKeyId": shop.key()["id"]}
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    path = view.path.format(**ids)
    refusal = shop.api.request(view.method, path, content=content, headers={"Content-Type": JSON})
    assert refusal.status_code in (400, 422), refusal.text
    nearest = explanation(shop.control, refusal)["nearest"]
    assert nearest is not None
    pasted(nearest["curl"], tmp_path)
    listed = done(shop.api.get(path.removesuffix("/status").rpartition("/")[0]))
    (records,) = (value for value in (listed.get("data") or listed).values() if isinstance(value, list))
    (record,) = (record for record in records if record["id"] in path)
    assert record.get("status", "active") == "active"
    assert record.get("is_active", True) is True


def test_an_end_that_the_request_names_is_kept(shop: Estate) -> None:
    key = shop.key()
    refusal = shop.api.put(f"/api-keys/{key['id']}", json={"is_active": "false"})
    (change,) = explanation(shop.control, refusal)["nearest"]["changes"]
    assert ("false", False) == (change["from"], change["to"])


@pytest.mark.parametrize("slip", ["active", "activat"])
def test_a_slip_of_one_action_is_not_taken_for_another(shop: Estate, slip: str) -> None:
    """An active project cannot be activated; archiving it is not what was nearly written."""
    refusal = shop.api.post(f"/v2/projects/{shop.ids['projectId']}/{slip}")
    assert "archive" not in str(explanation(shop.control, refusal)["nearest"])


@pytest.mark.promise("explanations")
def test_a_wide_body_is_explained_without_a_nearest_request(shop: Estate) -> None:
    """Mending it would hold up everybody else."""
    body = {"name": "", "metadata": {f"k{number}": "v" for number in range(WIDEST + 1)}}
    found = explanation(shop.control, shop.api.post(CUSTOMERS, json=body))
    assert ("contract", None) == (found["kind"], found["nearest"])


@pytest.mark.parametrize("path", ["/v2/plans/{planId}", "/v2/projects/{projectId}"])
def test_what_uses_a_record_is_not_ended_to_delete_it(shop: Estate, path: str) -> None:
    pending(shop)
    needs_another(explanation(shop.control, shop.api.delete(path.format(**shop.ids))))
