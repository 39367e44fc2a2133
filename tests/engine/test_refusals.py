"""A refused request leaves its world byte for byte as it was, whatever it was refused for."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import closing
from typing import Any
from unittest.mock import patch

import httpx2
import orjson
import pytest
from starlette.types import Message, Receive, Scope, Send

from stub_server.app import create_app
from stub_server.engine.scheduler import tick_through
from stub_server.faults import rules
from stub_server.files import package
from stub_server.files.package import MEDIA
from stub_server.http.edge import Edge
from stub_server.http.watch import Limits
from stub_server.operations.control import sandbox as control
from stub_server.worlds import entries, snapshots

from ..journeys.test_every_conflict import CAUSES, DECLARED, another_body, buyer_of_another_type
from ..support import forge
from ..support.contract import document
from ..support.estate import ELSEWHERE, SCOPES, Estate, client, estate, webhook_body
from ..support.live import FROZEN, NO_TLS, Live, serving
from ..support.make import Json, created, make_customer, make_order, make_plan, make_project
from ..support.receiver import receiving
from ..support.requests import JSON, OPERATIONS, ask, body_of, with_code
from .state import Facts, differences, state

NOTHING = "11111111-1111-4111-8111-111111111111"
OF_THE_WIRE = {
    "malformed_request",
    "request_timeout",
    "uri_too_long",
    "headers_too_large",
    "http_version_not_supported",
    "too_many_connections",
}
"""Codes that a connection is refused with: no request comes of it."""
NOT_REFUSALS = {
    "internal_error",
    "not_implemented",
    "simulated_fault",
    "sandbox_unavailable",
    "store_unavailable",
    "rate_limited",
}
"""Codes of defects, of what is not there, and of limits that this server does not set."""
IN_PUBLIC = {"admin_key_required"}
"""Codes of a server that other machines can reach."""
UNREADABLE: dict[str, tuple[int, dict[str, Any]]] = {
    "malformed_json": (400, {"content": b"{", "headers": {"Content-Type": JSON}}),
    "payload_too_large": (413, {"content": b" " * 1_048_577, "headers": {"Content-Type": JSON}}),
    "unsupported_media_type": (415, {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
}
STRANGERS = ("missing_credentials", "invalid_token", "token_expired", "api_key_inactive", "api_key_expired")
LIMITED = ("ip_not_allowed", "project_not_allowed", "jwt_required", "scope_escalation", "insufficient_scope")
ABSENT = ("reference_not_found", "merchant_not_found")
KEYS = ("idempotency_key_reused", "idempotency_in_progress")
_numbers = itertools.count(1)


class Watched:
    """The application, looked at before and after every request: `wrong` is what refusals have changed."""

    def __init__(self, app: Edge) -> None:
        self.app = app
        self.codes: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as the application would."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        world = self.app.sandboxes.find(path.split("/")[2]) if path.startswith("/s/") else None
        world = world or self.app.sandboxes.default
        tick_through(world)  # what was due before the request is not its doing
        before, number = state(world) | worlds_of(self.app), world.log.number
        sent: list[Message] = []
        scope["extensions"] = {}  # answers come in messages, which can be looked at

        async def remember(message: Message) -> None:
            sent.append(message)
            await send(message)

        await self.app(scope, receive, remember)
        if sent[0]["status"] >= 400 and scope["method"] != "HEAD":
            code = orjson.loads(b"".join(message["body"] for message in sent[1:]))["code"]
            self.codes[code] += 1
            found = changed(before, state(world) | worlds_of(self.app), scope)
            if found or number != world.log.number:
                self.wrong.append(f"{scope['method']} {path} {code}: {sorted(found)}, step {world.log.number}")


def worlds_of(app: Edge) -> Facts:
    """Which worlds there are, each with what the server knows of it; that one was asked for is counted."""
    return {
        f"world {entry.world.name}": (
            id(entry.world), entry.world.name, entry.parent, entry.mentioned, entry.created_at, entry.expires_at,
            entry.world.log.number,
        )
        for entry in app.sandboxes.entries()
    }  # fmt: skip


def changed(before: Facts, after: Facts, scope: MutableMapping[str, Any]) -> set[str]:
    """The facts that a request changed; that an API key was let in is counted, whatever comes of its request."""
    found = set(differences(before, after))
    if b"Bearer sk_" in dict(scope["headers"]).get(b"authorization", b""):
        found = {name for name in found if not name.endswith(("usage", "unrecorded usage"))}
    return found


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Watched, Live]]:
    """A server that is looked at."""
    app = create_app(FROZEN)
    watch = Watched(app)
    with serving(watch, Limits()) as port:
        yield watch, Live(app, FROZEN, port)


@pytest.fixture
def shop(watched: tuple[Watched, Live], sink: str) -> Iterator[Estate]:
    """A merchant in a world of his own; at the end no refusal may have changed it."""
    watch, live = watched
    name = f"refused-{next(_numbers)}"
    asked = {"name": name, "scenario": "empty", "seed": 42}  # what is only mentioned makes room for others
    created(httpx2.post(f"{live.url}/_sandbox/sandboxes", json=asked, timeout=60, verify=NO_TLS))
    watch.wrong.clear()
    watch.codes.clear()
    with closing(estate(live, name, sink)) as made:
        yield made
    live.app.sandboxes.forget(name)
    assert [] == watch.wrong
    assert watch.codes, "no refusal was looked at"


def refused(response: httpx2.Response, status: int, code: str) -> None:
    """The refusal was the one that was meant."""
    assert (status, code) == (response.status_code, response.json().get("code")), response.text


@pytest.mark.parametrize(("operation", "code"), [pair for pair in DECLARED if pair[1] in CAUSES])
def test_a_conflict_changes_nothing(shop: Estate, operation: str, code: str) -> None:
    cause = CAUSES[code]
    if code == "document_type_conflict" and "Order" in operation:
        cause = buyer_of_another_type
    refused(cause(shop, operation), 409, code)


def test_what_cannot_be_read_or_is_not_there_changes_nothing(shop: Estate) -> None:
    """Each operation, with every such refusal that it has."""
    for code, (status, options) in UNREADABLE.items():
        for name in with_code(status, code):
            refused(ask(shop.api, OPERATIONS[name], shop.ids, **options), status, code)
    for name in with_code(404, "not_found"):
        refused(ask(shop.api, OPERATIONS[name]), 404, "not_found")
    for name in with_code(422, "validation_error"):
        if OPERATIONS[name].body is not None:
            refused(ask(shop.api, OPERATIONS[name], shop.ids, json={"no_such": 1}), 422, "validation_error")
    for name, body in (
        ("createApiKey", {"allowed_projects": [NOTHING]}),
        ("createPlan", {"projectId": NOTHING}),
        ("createOrder", {"projectId": NOTHING}),
        ("createPixOrder", {"planId": NOTHING}),
        ("createProduct", {"projectId": NOTHING}),
        ("createWebhook", {"projectId": NOTHING}),
    ):
        whole: Json = (body_of(OPERATIONS[name], shop.ids) or {}) | body
        refused(ask(shop.api, OPERATIONS[name], shop.ids, json=whole), 409, "reference_not_found")
    refused(ask(shop.api, OPERATIONS["getMerchantByPublicKey"]), 404, "merchant_not_found")


def test_who_is_not_let_in_changes_nothing(shop: Estate) -> None:
    """Each operation that writes, asked by strangers and by those who may not."""
    writing = [operation for operation in OPERATIONS.values() if operation.method != "GET"]
    inactive, expired = shop.key(), shop.key(expires_at="2026-01-01T00:00:00Z")
    assert 200 == shop.api.put(f"/api-keys/{inactive['id']}", json={"is_active": False}).status_code
    late = forge.signed(shop.live.settings, sandbox=shop.sandbox, merchant_id=shop.merchant_id, exp=1_700_000_000)
    tokens = (None, "eyJhbGciOiJIUzI1NiJ9.e30.", late, inactive["private_key"], expired["private_key"])
    for code, token in zip(STRANGERS, tokens, strict=True):
        with client(shop.live, shop.sandbox, token) as stranger:
            for operation in (o for o in writing if o.id in with_code(401, code)):
                refused(ask(stranger, operation, shop.ids), 401, code)
    other = make_project(shop.api)["id"]
    with (
        shop.with_key(allowed_ips=[ELSEWHERE]) as far,
        shop.with_key(allowed_projects=[other]) as elsewhere,
        shop.with_key() as key,
        shop.with_scopes("api_keys:write") as clerk,
    ):
        body = {"name": "Chave", "scopes": ["orders:read"]}
        for code, api in zip(LIMITED[:4], (far, elsewhere, key, clerk), strict=True):
            for operation in (o for o in writing if o.id in with_code(403, code)):
                options = {"json": body} if code == "scope_escalation" else {}
                refused(ask(api, operation, shop.ids, **options), 403, code)
        for operation in writing:
            (needed,) = operation.scopes
            with shop.with_scopes(*(scope for scope in SCOPES if scope != needed)) as short:
                refused(ask(short, operation, shop.ids), 403, "insufficient_scope")


def test_a_key_of_another_request_changes_nothing(shop: Estate) -> None:
    """Used before with another body, or by a request that still runs."""
    for name in with_code(409, "idempotency_key_reused"):
        operation, headers = OPERATIONS[name], {"Idempotency-Key": f"key-{name}"}
        if operation.body is None or name in ("retryWebhook", "suspendProject", "archiveProject", "activateProject"):
            continue
        assert ask(shop.api, operation, shop.ids, headers=headers).status_code in (200, 201)
        other = another_body(name, shop.ids)
        refused(ask(shop.api, operation, shop.ids, headers=headers, json=other), 409, "idempotency_key_reused")
    with receiving() as slow:
        slow.hold = threading.Event()
        ids = {"webhookId": created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url)))["webhook"]["id"]}
        first: list[int] = []
        headers = {"Idempotency-Key": "slow"}
        view = OPERATIONS["sendTestWebhook"]
        thread = threading.Thread(target=lambda: first.append(ask(shop.api, view, ids, headers=headers).status_code))
        thread.start()
        assert slow.arrived.wait(10)
        with client(shop.live, shop.sandbox, str(shop.api.headers["authorization"])[7:]) as second:
            refused(ask(second, view, ids, headers=headers), 409, "idempotency_in_progress")
        slow.hold.set()
        thread.join(10)
    assert [200] == first


def _drive(shop: Estate, *verbs: str, body: Json | None = None) -> httpx2.Response:
    order = make_order(shop.api, make_plan(shop.api, billing_type="one_time"))
    for verb in verbs[:-1]:
        assert 200 == shop.control.post(f"/orders/{order['id']}/{verb}").status_code
    return shop.control.post(f"/orders/{order['id']}/{verbs[-1]}", json=body)


def _long_after(shop: Estate) -> httpx2.Response:
    order = make_order(shop.api, make_plan(shop.api, billing_type="one_time"))
    assert 200 == shop.control.post(f"/orders/{order['id']}/pay").status_code
    assert 200 == shop.control.post("/clock/advance", json={"seconds": 91 * 86_400}).status_code
    return shop.control.post(f"/orders/{order['id']}/refund")


def _taken(shop: Estate) -> httpx2.Response:
    """By a new world and by a fork, in whatever letters."""
    taken = {"name": shop.sandbox.upper()}
    refused(shop.control.post("/sandboxes", json=taken), 409, "duplicate_sandbox")
    return shop.control.post("/sandboxes/default/fork", json=taken)


def _too_many(shop: Estate) -> httpx2.Response:
    """None of those that there are was only mentioned."""
    with patch.object(entries, "MOST", len(list(shop.live.app.sandboxes.names()))):
        refused(shop.control.post("/sandboxes"), 409, "too_many_sandboxes")
        return shop.control.post(f"/sandboxes/{shop.sandbox}/fork")


def _too_many_merchants(shop: Estate) -> httpx2.Response:
    """The sandbox has as many as it keeps."""
    with patch.object(control, "MOST_MERCHANTS", 1):
        assert 201 == shop.control.post("/tokens", json={"merchant_id": shop.merchant_id}).status_code
        return shop.control.post("/tokens", json={"merchant_id": "2c1b9a5e-7a0d-4a44-9a3c-0f3f6b1f6f10"})


def _no_such_step(shop: Estate) -> httpx2.Response:
    """One that has not been yet, and one that the log has let go."""
    log = shop.live.app.sandboxes.entry(shop.sandbox).world.log
    path = f"/sandboxes/{shop.sandbox}/fork"
    refused(shop.control.post(path, json={"step": log.number + 1}), 409, "step_not_kept")
    log.forget(1)
    return shop.control.post(path, json={"step": 0})


def _already_certifying(shop: Estate) -> httpx2.Response:
    running = shop.live.app.server.certifying
    running.add(shop.sandbox)
    try:
        body = {"url": "http://127.0.0.1:9/", "signing_key": "whsec_" + "A" * 32}
        return shop.control.post("/certify", json=body)
    finally:
        running.remove(shop.sandbox)


def _too_many_rules(shop: Estate) -> httpx2.Response:
    rule = {"then": {"delay_ms": 1}, "match": {"path": "/nowhere"}}
    with patch.object(rules, "MOST", 1):
        made = shop.control.post("/faults", json=rule)
        refusal = shop.control.post("/faults", json=rule)
    shop.control.delete(f"/faults/{made.json()['fault']['id']}")
    return refusal


def _while_advancing(shop: Estate) -> httpx2.Response:
    """A receiver does not answer, and the clock stands where its delivery is."""
    with receiving() as slow:
        slow.hold = threading.Event()
        created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url, events=["customer.created"])))
        make_customer(shop.api)
        assert not shop.control.post("/clock/advance", json={"seconds": 1, "wait_seconds": 0}).json()["complete"]
        answer = shop.control.post("/clock/advance", json={"seconds": 1})
    assert shop.control.post("/webhooks/drain").json()["complete"]
    return answer


def _too_many_snapshots(shop: Estate) -> httpx2.Response:
    with patch.object(snapshots, "MOST", 1):
        made = shop.control.post("/snapshots", json={"name": "one"})
        refusal = shop.control.post("/snapshots", json={"name": "two"})
    assert 201 == made.status_code
    shop.control.delete("/snapshots/one")
    return refusal


FILE = {"Content-Type": MEDIA}


def _too_large(shop: Estate) -> httpx2.Response:
    with patch.object(package, "MOST_BYTES", 1_000):
        return shop.control.get("/export")


CONTROLS: dict[tuple[int, str], Callable[[Estate], httpx2.Response]] = {
    (404, "not_found"): lambda shop: shop.control.post(f"/orders/{NOTHING}/pay"),
    (409, "order_already_paid"): lambda shop: _drive(shop, "pay", "pay"),
    (409, "order_not_payable"): lambda shop: _drive(shop, "cancel", "pay"),
    (409, "failure_code_not_applicable"): lambda shop: _drive(shop, "fail", body={"code": "card_declined"}),
    (409, "order_not_refundable"): lambda shop: _drive(shop, "refund"),
    (409, "refund_exceeds_amount"): lambda shop: _drive(shop, "pay", "refund", body={"amount": 5000}),
    (409, "refund_window_closed"): _long_after,
    (409, "invalid_state_transition"): lambda shop: _drive(shop, "pay", "expire"),
    (409, "clock_moves_forward_only"): lambda shop: shop.control.patch("/clock", json={"to": "2026-01-01T00:00:00Z"}),
    (409, "clock_too_far"): lambda shop: shop.control.post("/clock/advance", json={"to": "8000-01-01T00:00:00Z"}),
    (404, "scenario_not_found"): lambda shop: shop.control.post("/reset", json={"scenario": "nowhere"}),
    (409, "duplicate_sandbox"): _taken,
    (409, "too_many_sandboxes"): _too_many,
    (409, "too_many_merchants"): _too_many_merchants,
    (409, "step_not_kept"): _no_such_step,
    (404, "snapshot_not_found"): lambda shop: shop.control.post("/snapshots/nothing/restore"),
    (409, "too_many_snapshots"): _too_many_snapshots,
    (409, "too_many_faults"): _too_many_rules,
    (409, "fault_conflict"): lambda shop: shop.control.post(
        "/faults", json={"then": {"delay_ms": {"min": 2, "max": 1}}}
    ),
    (409, "event_conflict"): lambda shop: shop.control.post(
        "/events", json={"type": "customer.created", "overrides": {"nothing": 1}}
    ),
    (409, "certification_running"): _already_certifying,
    (409, "sandbox_too_large"): _too_large,
    (422, "unusable_file"): lambda shop: shop.control.post("/import", content=b"no file", headers=FILE),
    (409, "sandbox_protected"): lambda shop: shop.control.delete("/sandboxes/default"),
    (422, "validation_error"): lambda shop: shop.control.post("/clock/advance", json={"seconds": -1}),
    (404, "route_not_found"): lambda shop: shop.api.post("/v2/nothing", json={}),
    (405, "method_not_allowed"): lambda shop: shop.api.patch("/v2/customers", json={}),
    (404, "sandbox_not_found"): lambda shop: httpx2.post(f"{shop.live.url}/s/-no-/v2/customers", verify=NO_TLS),
    (409, "clock_advancing"): _while_advancing,
    (403, "delivery_not_allowed"): lambda shop: shop.api.post("/v2/customers", headers={"webhook-id": "evt_1"}),
    (403, "host_not_allowed"): lambda shop: shop.api.post("/v2/customers", headers={"Host": "example.com"}),
}


@pytest.mark.parametrize(("status", "code"), CONTROLS)
def test_a_refused_control_changes_nothing(shop: Estate, status: int, code: str) -> None:
    refused(CONTROLS[status, code](shop), status, code)


def test_every_code_is_looked_at() -> None:
    """Of those that a request can be refused with on this machine."""
    codes = set(document().raw["components"]["schemas"]["ErrorCode"]["enum"])
    of_controls = {code for _, code in CONTROLS}
    looked_at = {*CAUSES, *UNREADABLE, *STRANGERS, *LIMITED, *ABSENT, *KEYS, *of_controls}
    assert codes - OF_THE_WIRE - NOT_REFUSALS - IN_PUBLIC == looked_at
