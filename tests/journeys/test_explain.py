"""What an explanation says beyond the table of refusals, what it leaves alone, and where
it claims nothing.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest

from stub_server.domain.brcode import encode
from stub_server.server import server
from stub_server.server.explain import attempt
from stub_server.server.explain.explaining import Explainer
from stub_server.server.layers.validation import WIDEST

from ..conftest import Serve
from ..support.estate import Estate
from ..support.explained import explanation, nearest_succeeds, pasted
from ..support.live import NO_TLS, Live
from ..support.make import Json, customer_body, done, make_project, order_body
from ..support.refusal import says
from ..support.refusals.credentials import one_scope_short
from ..support.requests import JSON, OPERATIONS, UNKNOWN
from .hooks import clients

ORDER = OPERATIONS["createPixOrder"]
CUSTOMERS = "/v2/customers"
EXAMPLE = "No body is known that can be mended. This is the contract's example."


def changes(found: Json) -> dict[str, Any]:
    """What the nearest request has instead, by place."""
    assert all(change["why"] for change in found["nearest"]["changes"])
    return {change["where"]: change["to"] for change in found["nearest"]["changes"]}


# -- what it says


def test_a_taken_value_is_told_whose_it_is(shop: Estate) -> None:
    """In the words of the refusal."""
    plan = {"projectId": shop.ids["projectId"], "name": "Anual", "amount": 1}
    assert shop.api.post("/v2/plans", json=plan).status_code == 201
    refusal = shop.api.post("/v2/plans", json=plan)
    (change,) = explanation(shop.control, refusal)["nearest"]["changes"]
    assert ("body.name", "Another plan of this project has this name.") == (
        change["where"],
        change["why"],
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        (
            "POST",
            CUSTOMERS,
            {"nome": "Ana", "email": "ana", "document": "93541134700", "type": "person"},
            {
                "body.email": "ana@example.com",
                "body.document": "93541134780",
                "body.nome": None,
                "body.type": "individual",
            },
        ),
        ("PUT", "/v2/plans/{planId}", {"status": {"active": True}}, {"body.status": "active"}),
        ("PUT", "/api-keys/{apiKeyId}", {"is_active": "false"}, {"body.is_active": False}),
        (
            "POST",
            "/v2/plans",
            {"projectId": UNKNOWN, "name": "Anual", "amount": 1},
            {"body.projectId": "{projectId}"},
        ),
        (
            "POST",
            "/v2/webhooks",
            {"url": "https://receiver.example/many", "events": ["order.payd"] * 51},
            {"body.events": ["*"]},
        ),
        (
            "POST",
            CUSTOMERS,
            {"name": "Ana", "email": "ana@example.com", "document": "52998224725", "": 1},
            {"body.": None},
        ),
    ],
)
def test_the_nearest_request_says_what_it_changes(
    shop: Estate, tmp_path: Path, method: str, path: str, body: Json, expected: Json
) -> None:
    refusal = shop.api.request(method, path.format(**shop.ids), json=body)
    found = explanation(shop.control, refusal)
    wanted = {
        name: to.format(**shop.ids) if isinstance(to, str) else to for name, to in expected.items()
    }
    assert wanted.items() <= changes(found).items()
    nearest_succeeds(refusal, found, tmp_path)


def test_in_place_of_a_broken_body_is_an_example_that_says_so(shop: Estate) -> None:
    headers = {"content-type": "application/json"}
    refusal = shop.api.post(CUSTOMERS, content=b"{'name': 'Ana'}", headers=headers)
    (change,) = explanation(shop.control, refusal)["nearest"]["changes"]
    assert ("body", "{'name': 'Ana'}", EXAMPLE) == (change["where"], change["from"], change["why"])


def test_a_state_names_the_moves_and_the_calls_that_lead_there_in_order(shop: Estate) -> None:
    path = f"/v2/projects/{make_project(shop.api, status='draft')['id']}"
    found = explanation(shop.control, shop.api.post(f"{path}/suspend"))
    state = found["state"]
    assert ("Project", "status", "draft", ["active"]) == tuple(
        state[n] for n in ("resource", "field", "is", "needed")
    )
    assert state["id"] in path
    assert any(move.startswith("active (activateProject") for move in state["moves"])
    assert {"before": f"POST {path}/activate"} == changes(found)
    first, second = found["nearest"]["curl"].split(" &&\n")
    assert f"{path}/activate" in first
    assert f"{path}/suspend" in second


def test_a_lacking_scope_names_where_the_contract_asks_for_it(shop: Estate) -> None:
    found = explanation(shop.control, one_scope_short(shop, ORDER))
    assert {
        "pointer": "#/paths/~1v2~1orders~1pix/post/x-scopes",
        "excerpt": '["orders:write"]',
    } == found["contract"]
    assert "header.Authorization" in changes(found)


def test_the_record_of_the_path_is_not_taken_for_an_expired_key(shop: Estate) -> None:
    expired = shop.key(expires_at="2026-01-01T00:00:00Z")["private_key"]
    headers = {"Authorization": f"Bearer {expired}"}
    refusal = shop.api.get(f"{CUSTOMERS}/{shop.ids['customerId']}", headers=headers)
    assert "api_key_expired" == refusal.json()["code"]
    assert explanation(shop.control, refusal)["state"] is None


def test_a_violation_names_its_place_in_the_contract(shop: Estate) -> None:
    found = explanation(shop.control, shop.api.post(CUSTOMERS, json={"nome": "Ana"}))
    assert found["contract"]["pointer"].startswith("#/components/schemas/CustomerCreate")


def test_a_refusal_under_a_fault_that_only_waits_keeps_its_kind(shop: Estate) -> None:
    refusal = shop.api.get(f"/v2/orders/{UNKNOWN}", headers={"X-Sandbox-Delay": "1"})
    assert "delay" == refusal.headers["x-sandbox-simulated"]
    assert "reference" == explanation(shop.control, refusal)["kind"]


@pytest.mark.parametrize(
    ("settings", "summary"),
    [({"journal": 0}, "validation_error"), ({}, "is not an e-mail address")],
)
def test_of_a_body_that_the_journal_has_not_kept_nothing_is_claimed(
    serve: Serve, tmp_path: Path, settings: Json, summary: str
) -> None:
    with clients(serve(**settings)) as (api, control):
        secret = api.headers["authorization"].removeprefix("Bearer ")
        hidden = secret.replace("_", "%5F").replace(".", "%2E")
        refusal = api.post(
            CUSTOMERS, json=customer_body() | {"email": "ana", "metadata": {"note": hidden}}
        )
        found = explanation(control, refusal)
        assert says(found["summary"], summary)
        (body,) = (each for each in found["nearest"]["changes"] if each["where"] == "body")
        assert body["from"] is None
        assert EXAMPLE == body["why"]
        assert [201] == pasted(found["nearest"]["curl"], tmp_path)


# -- in which sandbox


@pytest.mark.promise("explained-where-it-was-sent")
def test_a_request_is_explained_in_the_sandbox_that_holds_it(shop: Estate, live: Live) -> None:
    """A path that looks like another sandbox's prefix is none: nothing of that sandbox is shown."""
    with httpx2.Client(base_url=f"{live.url}/s/stranger", verify=NO_TLS, timeout=60) as stranger:
        assert 200 == stranger.get("/_sandbox/credentials").status_code
        refusal = stranger.get(f"/s/{shop.sandbox}/v2/custommers")
        shown = done(stranger.get(f"/_sandbox/requests/{refusal.headers['x-request-id']}"))[
            "request"
        ]
    assert "route_not_found" == shown["code"]
    assert shown["explanation"]["nearest"] is None


def test_what_was_refused_before_a_sandbox_was_chosen_is_explained_in_the_default_one(
    shop: Estate, live: Live
) -> None:
    """It holds the refusal. No request is proposed: the sandbox that was meant may be another's."""
    path = f"/s/{shop.sandbox}/v2/plans"
    refusal = httpx2.get(f"{live.url}{path}", headers={"Host": "evil.example.com"}, verify=NO_TLS)
    own = f"{live.url}/s/default/_sandbox"
    with httpx2.Client(base_url=own, verify=NO_TLS, timeout=60) as control:
        assert explanation(control, refusal)["nearest"] is None


# -- what it leaves alone


@pytest.mark.promise("explanation-changes-nothing")
@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (ORDER.path, {"planId": UNKNOWN}, {}),
        ("/api-keys", {"name": "", "scopes": ["orders:read"]}, {}),
        ("/v2/webhooks/{webhookId}/test", {}, {"X-Sandbox-Simulate": "rate_limited"}),
    ],
)
def test_an_explanation_changes_nothing_in_its_sandbox(
    shop: Estate, path: str, body: Json, headers: dict[str, str]
) -> None:
    """Not the step, the events, the deliveries, a key's use, the keys that are known, or the ids
    that come next.
    """
    refusal = shop.api.post(path.format(**shop.ids), json=body, headers=headers)
    sandboxes = shop.live.app.sandboxes
    sandbox = sandboxes.entry(shop.sandbox).sandbox
    store = sandbox.stores[shop.merchant_id]

    def standing() -> list[object]:
        kept = {name: dict(table.rows) for name, table in store.tables.items()}
        names = [each.name for each in sandboxes.sandboxes()]
        positions = [
            sandbox.log.number,
            sandbox.events.raised,
            sandbox.ids.position,
            sandbox.timers.last,
        ]
        return [*positions, kept, dict(store.usage), len(sandboxes.entry(shop.sandbox).keys), names]

    before = standing()
    assert explanation(shop.control, refusal)["nearest"] is not None
    assert before == standing()


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
def test_a_repaired_value_ends_nothing(
    shop: Estate, tmp_path: Path, operation: str, sent: object
) -> None:
    """Whatever is repaired from an example or a guess: what was on stays on."""
    path = OPERATIONS[operation].path.format(**shop.ids)
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    refusal = shop.api.request(
        OPERATIONS[operation].method, path, content=content, headers={"Content-Type": JSON}
    )
    pasted(explanation(shop.control, refusal)["nearest"]["curl"], tmp_path)
    listed = done(shop.api.get(path.removesuffix("/status").rpartition("/")[0]))
    (records,) = (
        value for value in (listed.get("data") or listed).values() if isinstance(value, list)
    )
    (record,) = (record for record in records if record["id"] in path)
    assert record.get("status", "active") == "active"
    assert record.get("is_active", True) is True


# -- where it claims nothing


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"/v2/subscriptions/{UNKNOWN}"),
        ("DELETE", "/v2/invoices/1"),
        ("POST", f"/v2/orders/{UNKNOWN}/refund"),
        ("POST", f"/v2/customers/{UNKNOWN}/delete"),
        ("GET", "/v2/payments"),
        ("POST", "/v2/projects/{projectId}/active"),
        ("POST", "/v2/projects/{projectId}/activat"),
    ],
)
def test_a_path_that_is_like_none_is_not_taken_for_another(
    shop: Estate, method: str, path: str
) -> None:
    """Somebody who pasted what stood here deleted a plan, or archived a project."""
    found = explanation(shop.control, shop.api.request(method, path.format(**shop.ids)))
    assert ("contract", None) == (found["kind"], found["nearest"])


def test_a_method_that_a_path_lacks_is_not_taken_for_another(shop: Estate) -> None:
    """Somebody who pasted what stood here archived a project by a GET.

    The methods are listed instead.
    """
    for path in {view.path for view in OPERATIONS.values()}:
        has = sorted(view.method for view in OPERATIONS.values() if view.path == path)
        for method in {"GET", "PUT", "POST", "DELETE", "PATCH"}.difference(has):
            refusal = shop.api.request(method, path.format(**shop.ids), json={"reason": "x"})
            found = explanation(shop.control, refusal)
            state = found["state"]
            assert (None, "Operation", method) == (found["nearest"], state["resource"], state["is"])
            assert has == state["needed"] == [move.split()[0] for move in state["moves"]]


@pytest.mark.promise("explanations")
@pytest.mark.parametrize(
    "wide", [{f"k{number}": "v" for number in range(WIDEST + 1)}, [[[[]]]] * (WIDEST // 4)]
)
def test_a_wide_body_is_explained_without_a_nearest_request(shop: Estate, wide: Json) -> None:
    """Mending it, or naming all that is wrong, would hold up everybody else."""
    answer = shop.api.post(CUSTOMERS, json={"name": "", "metadata": wide})
    found = explanation(shop.control, answer)
    assert ("contract", None, 1) == (found["kind"], found["nearest"], len(answer.json()["details"]))


@pytest.mark.promise("explanations")
def test_what_makes_many_jobs_due_is_explained_without_a_nearest_request(
    shop: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each subscription of a project resumes when that is activated, and a project may have any
    number of them.
    """
    done(
        shop.api.patch(f"/v2/projects/{shop.ids['projectId']}/status", json={"status": "suspended"})
    )
    body = order_body(shop.ids["projectId"], shop.ids["planId"])
    refusal = shop.api.post("/v2/orders", json=body)
    assert explanation(shop.control, refusal)["nearest"] is not None
    monkeypatch.setattr(attempt, "MOST_JOBS", 1)
    refusal = shop.api.post("/v2/orders", json=body)
    assert explanation(shop.control, refusal)["nearest"] is None


@pytest.mark.promise("waiting-requests")
def test_explanations_that_wait_are_limited(shop: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is made at a time: 300 of one sandbox kept those of all others waiting for 11 s."""
    ended = Event()
    explained = Explainer.explain_now

    async def waiting(self: Explainer, *arguments: Any) -> Any:
        while not ended.is_set():
            await asyncio.sleep(0)
        return await explained(self, *arguments)

    monkeypatch.setattr(server, "OF_SANDBOX", 2)
    monkeypatch.setattr(Explainer, "explain_now", waiting)
    wrong = shop.api.post("/v2/plans", json={}).headers["x-request-id"]
    with ThreadPoolExecutor(3) as readers:
        asked = [readers.submit(shop.control.get, f"/requests/{wrong}") for _ in range(3)]
        try:
            first = next(as_completed(asked, timeout=20)).result()
        finally:
            ended.set()
    assert 429 == first.status_code
    assert [200, 200, 429] == sorted(each.result().status_code for each in asked)


@pytest.mark.promise("waiting-requests")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/invariants", None),
        ("GET", "/requests", None),
        ("GET", "/steps", None),
        ("GET", "/timers", None),
        ("POST", "/requests/verify", {}),
        ("POST", "/rewind", {"to_step": 0}),
        ("POST", "/snapshots", {"name": "mine"}),
    ],
)
def test_long_work_is_among_what_waits(
    shop: Estate, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Json | None
) -> None:
    """Whoever left at once kept their place in line: 400 snapshots kept one of another sandbox
    waiting for 57 s, 400 checks took 580 MB, and images that strangers ask for waited as well.
    """
    monkeypatch.setattr(server, "OF_SANDBOX", 0)
    assert 429 == shop.control.request(method, path, json=body).status_code


@pytest.mark.promise("waiting-requests")
def test_images_of_one_sandbox_keep_those_of_another_waiting_for_one(shop: Estate) -> None:
    """Strangers may ask for them: those that six sandboxes could wait for took 5 s for all."""
    order = list[str]()
    statuses = list[int]()

    async def draw(client: httpx2.AsyncClient, name: str, number: int) -> None:
        code = encode(number + 1, "a" * 32, "Academia", "Recife")
        path = f"/s/{name}/_sandbox/qr.png"
        statuses.append((await client.get(path, params={"code": code})).status_code)
        order.append(name)

    async def flood() -> None:
        limits = httpx2.Limits(max_connections=100)
        url = shop.live.url
        async with httpx2.AsyncClient(
            base_url=url, verify=NO_TLS, timeout=60, limits=limits
        ) as client:
            many = [asyncio.create_task(draw(client, shop.sandbox, each)) for each in range(40)]
            while len(order) < 30 - server.FOR_ANYBODY:  # those that are refused come first
                await asyncio.sleep(0)
            await draw(client, "default", 1_000)
            await asyncio.gather(*many)

    asyncio.run(flood())
    drawn = [name for name, status in zip(order, statuses, strict=True) if status == 200]
    assert 429 in statuses
    assert drawn.index("default") < len(drawn) - 5
