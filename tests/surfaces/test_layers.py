"""The way of a request: each layer alone, before a next one that only notes what reaches it; and the whole list."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from connexion.middleware import ConnexionMiddleware

from stub_server.app import create_app
from stub_server.core.problem import BadRequest, Refusal
from stub_server.domain.callers import Caller
from stub_server.engine.draft import Draft
from stub_server.engine.fault_rules import Effect
from stub_server.engine.journal import Trace
from stub_server.engine.step import Cause
from stub_server.server.connection import Limits
from stub_server.server.layers.answers import Answer, Dropped
from stub_server.server.layers.context import request_of
from stub_server.server.layers.endpoint import Endpoint
from stub_server.server.layers.fault_injection import Injection
from stub_server.server.layers.routing import Application, Routing
from stub_server.server.layers.validation import Arguments
from stub_server.server.layers.way import (
    ARGUMENTS,
    CALLER,
    ENDPOINT,
    FAULTS,
    HOLDER,
    LIMITS,
    REQUEST,
    TARGET,
    TRACE,
    VALUES,
    Holder,
)
from stub_server.server.reply import Streamed
from stub_server.server.target import Target
from stub_server.server.tokens import ISSUER
from stub_server.settings import Settings

from ..support.live import FROZEN, NO_TLS, serving
from ..support.make import customer_body

pytestmark = pytest.mark.check
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
HOST = {"host": "127.0.0.1:4600"}


def name_of(layer: Any) -> str:
    """The class of a layer in the list."""
    return str(getattr(layer, "func", layer).__name__)


def test_the_page_on_architecture_lists_the_layers_as_the_code_has_them(database: str) -> None:
    app = create_app(replace(FROZEN, rate_limit=(3, 60), store=database))
    app.sandboxes.persistence.close()
    listed = re.findall(r"^\| `(\w+)` \| `server/layers/", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [*map(name_of, app.middlewares), "Dispatch"] == listed


# -- each alone


@pytest.fixture(scope="module")
def app() -> Application:
    """An application whose layers are built one by one."""
    return create_app(replace(FROZEN, rate_limit=(2, 60), scenario="empty"))


class Endpoints(Routing):
    """The operations that Routing knows, by base path and id."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self.known: dict[tuple[str, str], Endpoint] = {}

    def add(self, method: str, path: str, endpoint: Endpoint) -> None:
        super().add(method, path, endpoint)
        self.known[endpoint.base, endpoint.operation.id] = endpoint


NOTHING = Answer(204, [])


@dataclass
class Asked:
    """What a layer made of a request: its answer, and what it handed on."""

    answer: Answer
    handed: dict[str, Any]

    @property
    def target(self) -> Target:
        """The sandbox of the request."""
        found: Target = self.handed[TARGET]
        return found

    @property
    def trace(self) -> Trace:
        """What the journal will have of it."""
        found: Trace = self.handed[TRACE]
        return found


def begin(scope: Any, target: Target) -> None:
    """Hand on the sandbox of a request, and its trace."""
    scope[TARGET], scope[TRACE] = target, target.begin(scope[REQUEST])


class Alone:
    """One layer, and the requests that it passed on."""

    def __init__(self, app: Application, name: str, then: Callable[[Any], Answer] | None = None) -> None:
        """`then` is what the next layer does with the scope."""
        self.app, self.passed, self.sent = app, list[Any](), list[dict[str, Any]]()

        async def following(scope: Any, receive: Any, send: Any) -> Answer:
            self.passed.append(scope)
            return NOTHING if then is None else then(scope)

        layers = [layer for layer in app.middlewares if name_of(layer) == name]
        assert layers or name == "Dispatch"
        innermost = app.app if name == "Dispatch" else following
        self._stack = ConnexionMiddleware(innermost, middlewares=[self._outermost, *layers])
        self._stack.apis = app.apis
        self._endpoints = Endpoints(following)
        for api in app.apis:
            self._endpoints.add_api(api.specification, base_path=api.base_path, **api.kwargs)

    def _outermost(self, app: Any) -> Any:
        """A layer that keeps what is returned, which Connexion does not."""

        async def keep(scope: Any, receive: Any, send: Any) -> None:
            self._answer: Answer = await app(scope, receive, send)

        return keep

    def ask(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, operation: str = "", **known: Any
    ) -> Asked:
        """Have a request reach the layer, as the layers before it leave it; `known` is what they have handed on."""
        body, begun = known.pop("body", b""), known.pop("begun", True)
        sent = [(name.encode(), value.encode()) for name, value in (HOST | (headers or {})).items()]
        path, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "headers": sent, "extensions": {},
        }  # fmt: skip
        scope[REQUEST] = replace(request_of(scope), is_hop=known.pop("is_hop", False))
        sandboxes = self.app.sandboxes
        if begun:
            begin(scope, known.pop("target", None) or Target(sandboxes, sandboxes.default, path))
        merchant = sandboxes.default.store.merchant
        scope[CALLER] = Caller("jwt", merchant.user_id, merchant.id, frozenset("*"))
        if operation:
            scope[ENDPOINT], scope[VALUES] = self._endpoints.known["", operation], ()
        scope[ARGUMENTS] = Arguments((), known.pop("named", {}))
        scope |= known

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)

        asyncio.run(self._stack(scope, receive, send))
        return Asked(self._answer, scope)

    def refused(self, *asked: Any, **known: Any) -> str:
        """The code of a request that is refused and not passed on."""
        before = len(self.passed)
        with pytest.raises(Refusal) as caught:
            self.ask(*asked, **known)
        assert before == len(self.passed)
        return caught.value.code


def test_request_context_sends_what_the_layers_return(app: Application) -> None:
    def answer(scope: Any) -> Answer:
        path = scope[REQUEST].path
        begin(scope, Target(app.sandboxes, app.sandboxes.default, path))
        if path == "/refused":
            raise BadRequest("No.", code="malformed_request")
        return Answer(200, [(b"content-length", b"2")], b"{}")

    layer = Alone(app, "RequestContext", answer)
    asked = layer.ask("GET", "/here", begun=False)
    start, body = layer.sent
    assert (200, b"{}") == (start["status"], body["body"])
    layer.sent.clear()
    layer.ask("GET", "/refused", begun=False)
    assert (400, True) == (layer.sent[0]["status"], b"malformed_request" in layer.sent[1]["body"])
    assert {b"x-request-id", b"vary"} <= {name for name, _ in layer.sent[0]["headers"]}
    assert TRACE not in asked.handed, "an idle connection keeps the scope of its last request"


def test_request_context_ends_a_stream_that_it_cannot_send(app: Application) -> None:
    """The sandbox has lost what the request saw, while it was answered."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"{}"

    chunks = pieces()

    def answer(scope: Any) -> Answer:
        begin(scope, Target(app.sandboxes, app.sandboxes.default, "/here"))
        return Streamed(chunks, b"application/json")

    world = app.sandboxes.default
    world.status.is_undone = True
    try:
        Alone(app, "RequestContext", answer).ask("GET", "/here", begun=False)
    finally:
        world.status.is_undone = False
    with pytest.raises(StopAsyncIteration):
        asyncio.run(anext_of(chunks))


async def anext_of(chunks: AsyncGenerator[bytes, None]) -> bytes:
    """The next piece."""
    return await anext(chunks)


def test_host_policy_refuses_other_names_and_deliveries(app: Application) -> None:
    layer = Alone(app, "HostPolicy")
    assert "host_not_allowed" == layer.refused("GET", "/v2/plans", headers={"host": "evil.example"})
    assert "delivery_not_allowed" == layer.refused("POST", "/v2/plans", headers={"webhook-id": "evt_1"})
    layer.ask("GET", "/_sandbox/health", headers={"host": "evil.example"})
    layer.ask("GET", "/v2/plans")
    assert 2 == len(layer.passed)


def test_sandbox_selection_takes_the_prefix_and_begins_the_trace(app: Application) -> None:
    layer = Alone(app, "SandboxSelection")
    asked = layer.ask("GET", "/s/default/v2/plans", begun=False)
    assert ("/s/default", "/v2/plans", "/v2/plans") == (asked.target.prefix, asked.target.path, asked.trace.path)
    assert "sandbox_not_found" == layer.refused("GET", "/s/nobody/_sandbox/clock", begun=False)
    assert (307, 1) == (layer.ask("GET", "/s/default", begun=False).answer.status, len(layer.passed))
    pending = layer.ask("POST", "/s/fresh/v2/plans", begun=False).target.pending
    assert pending is not None
    assert app.sandboxes.find("fresh") is None


def test_sandbox_selection_brings_the_sandbox_up_to_date() -> None:
    app = create_app(FROZEN)
    world, layer = app.sandboxes.default, Alone(app, "SandboxSelection")
    draft = Draft(world, world.store, Cause("control", "", "setting a timer"))
    draft.at(world.clock.now, "order.expire", draft.ids.uuid())
    draft.record()
    number = world.log.number
    asked = layer.ask("GET", "/v2/plans", begun=False)
    assert number < world.log.number == asked.trace.before
    world.status.is_broken = True
    assert "sandbox_unavailable" == layer.refused("GET", "/v2/plans", begun=False)
    layer.ask("POST", "/_sandbox/reset", begun=False)


def test_forwarding_passes_on_what_is_held_here(database: str) -> None:
    app = create_app(replace(FROZEN, scenario="empty", store=database))
    layer = Alone(app, "Forwarding")
    layer.ask("GET", "/v2/plans")
    assert 1 == len(layer.passed)
    assert "malformed_request" == layer.refused("GET", "/v2/plans", headers={"x-sandbox-hop": "x"})
    elsewhere = {HOLDER: Holder("http://127.0.0.1:1", "team")}
    assert "store_unavailable" == layer.refused("GET", "/v2/plans", **elsewhere)
    assert "store_unavailable" == layer.refused("GET", "/v2/plans", is_hop=True, **elsewhere)
    app.sandboxes.persistence.close()


def test_access_policy_answers_preflights_and_guards_the_controls(app: Application) -> None:
    layer = Alone(app, "AccessPolicy")
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "GET"}
    assert 204 == layer.ask("OPTIONS", "/v2/plans", headers=asked).answer.status
    assert not layer.passed
    assert "admin_key_required" == layer.refused("GET", "/_sandbox/clock", headers={"origin": "https://evil.example"})
    layer.ask("GET", "/v2/plans", headers={"origin": "https://evil.example"})
    assert 1 == len(layer.passed)


def test_rate_limit_counts_requests_to_the_api(app: Application) -> None:
    layer = Alone(app, "RateLimit")
    said = [dict(layer.ask("GET", "/v2/plans").handed[LIMITS])[b"ratelimit"] for _ in range(2)]
    assert [b'"default";r=1;t=60', b'"default";r=0;t=60'] == said
    assert "rate_limited" == layer.refused("GET", "/v2/plans")
    assert LIMITS not in layer.ask("GET", "/_sandbox/clock").handed


def test_pages_answer_what_is_no_operation(app: Application) -> None:
    layer = Alone(app, "Pages")
    page = layer.ask("GET", "/openapi.json")
    assert (200, False, 0) == (page.answer.status, page.trace.is_kept, len(layer.passed))
    assert "method_not_allowed" == layer.refused("POST", "/openapi.json")
    layer.ask("GET", "/v2/plans")
    assert 1 == len(layer.passed)


def test_routing_finds_the_operation(app: Application) -> None:
    layer = Alone(app, "Routing")
    asked = layer.ask("GET", "/v2/plans/some-id")
    assert (("some-id",), "getPlan") == (asked.handed[VALUES], asked.trace.operation)
    assert "route_not_found" == layer.refused("GET", "/v2/planes")
    assert "method_not_allowed" == layer.refused("DELETE", "/v2/plans")
    assert [(b"allow", b"GET, HEAD, OPTIONS, POST")] == layer.ask("OPTIONS", "/v2/plans").answer.headers


def test_fault_injection_refuses_on_demand(app: Application) -> None:
    layer = Alone(app, "FaultInjection")
    asked = {"x-sandbox-simulate": "rate_limited"}
    assert "rate_limited" == layer.refused("GET", "/v2/plans", headers=asked, operation="listPlans")
    assert FAULTS not in layer.ask("GET", "/v2/plans", operation="listPlans").handed


def test_security_turns_the_credential_into_a_caller(app: Application) -> None:
    layer = Alone(app, "Security")
    assert "missing_credentials" == layer.refused("GET", "/v2/plans", operation="listPlans")
    world = app.sandboxes.default
    token = {"authorization": f"Bearer {app.server.ready_token(world)}"}
    caller = layer.ask("GET", "/v2/plans", headers=token, operation="listPlans").handed[CALLER]
    assert (world.store.merchant.id, ISSUER) == (caller.merchant_id, caller.claims["iss"])


def test_validation_passes_on_checked_arguments(app: Application) -> None:
    layer = Alone(app, "Validation")
    asked = layer.ask("GET", "/v2/plans?limit=3", operation="listPlans")
    assert 3 == asked.handed[ARGUMENTS].named["query"]["limit"]
    assert "validation_error" == layer.refused("GET", "/v2/plans?limit=x", operation="listPlans")
    json = {"content-type": "application/json"}
    assert "malformed_json" == layer.refused("POST", "/v2/plans", operation="createPlan", headers=json, body=b"{")


def test_dispatch_records_change_and_answer(app: Application) -> None:
    before = app.sandboxes.default.log.number
    layer = Alone(app, "Dispatch")
    asked = layer.ask("POST", "/v2/customers", operation="createCustomer", named={"body": customer_body()})
    assert (201, before + 1) == (asked.answer.status, app.sandboxes.default.log.number)


def test_dispatch_applies_faults_of_valid_bodies(app: Application) -> None:
    """A rule that reads the body acts once it has been validated, and before anything is done."""
    before, layer = app.sandboxes.default.log.number, Alone(app, "Dispatch")

    def injection(then: dict[str, Any]) -> dict[str, Any]:
        asked = Alone(app, "FaultInjection").ask(
            "GET", "/v2/customers", operation="createCustomer", headers={"x-sandbox-delay": "0"}
        )
        faults: Injection = asked.handed[FAULTS]
        faults.of_body = lambda body: [Effect("rule", then)]
        return {FAULTS: faults}

    asked: dict[str, Any] = {"operation": "createCustomer", "named": {"body": customer_body()}}
    refusing = injection({"status": 503, "code": "simulated_fault"})
    assert "simulated_fault" == layer.refused("POST", "/v2/customers", **refusing, **asked)
    dropping = injection({"drop_connection": "before"})
    assert isinstance(layer.ask("POST", "/v2/customers", **dropping, **asked).answer, Dropped)
    assert before == app.sandboxes.default.log.number


def test_dispatch_creates_the_pending_sandbox(app: Application) -> None:
    target = Alone(app, "SandboxSelection").ask("POST", "/s/brand-new/v2/plans", begun=False).target
    pending = target.pending
    Alone(app, "Dispatch").ask("GET", "/v2/customers", operation="listCustomers", target=target, named=LISTED)
    assert (None, pending) == (target.pending, app.sandboxes.find("brand-new"))


def test_dispatch_answers_as_the_sandbox_was(app: Application) -> None:
    layer = Alone(app, "Dispatch")
    listing: dict[str, Any] = {"operation": "listCustomers", "named": LISTED}
    past = layer.ask("GET", "/v2/customers", headers={"x-sandbox-as-of": "0"}, **listing)
    assert past.target.sandbox is not app.sandboxes.default
    refused = layer.refused("POST", "/v2/customers", headers={"x-sandbox-as-of": "0"}, **listing)
    assert "malformed_request" == refused
    assert layer.ask("GET", "/v2/customers", **listing).target.sandbox is app.sandboxes.default


def test_dispatch_answers_a_repeated_key_with_what_is_saved(app: Application) -> None:
    layer = Alone(app, "Dispatch")
    asked: dict[str, Any] = {"headers": {"idempotency-key": "one"}, "operation": "createCustomer"}
    asked["named"] = {"body": customer_body()}
    first = layer.ask("POST", "/v2/customers", **asked).answer
    number = app.sandboxes.default.log.number
    again = layer.ask("POST", "/v2/customers", **asked).answer
    assert (201, 201, first.body, number) == (first.status, again.status, again.body, app.sandboxes.default.log.number)
    assert (b"idempotent-replayed", b"true") in again.headers


LISTED = {"query": {"page": 1, "limit": 20}}


# -- one left out


@contextmanager
def without(name: str, settings: Settings = FROZEN) -> Iterator[httpx2.Client]:
    """A client of a server that lacks a layer."""
    app = create_app(settings)
    app.middlewares = [layer for layer in app.middlewares if name_of(layer) != name]
    token = app.server.ready_token(app.sandboxes.default)
    with (
        serving(app, Limits()) as port,
        httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS
        ) as client,
    ):
        yield client


def limited(client: httpx2.Client) -> bool:
    """Whether a third request is refused."""
    return 429 in [client.get("/v2/plans").status_code for _ in range(3)]


def injected(client: httpx2.Client) -> bool:
    """Whether a header makes a request fail."""
    return 503 == client.get("/v2/plans", headers={"X-Sandbox-Simulate": "sandbox_unavailable"}).status_code


def travelled(client: httpx2.Client) -> bool:
    """Whether a new customer is missing from the past."""
    made = client.post("/v2/customers", json=customer_body()).json()["customer"]["id"]
    return 404 == client.get(f"/v2/customers/{made}", headers={"X-Sandbox-As-Of": "0"}).status_code


def executed_once(client: httpx2.Client) -> bool:
    """Whether a request that is repeated with its key gets the first answer."""
    body = customer_body()
    answers = [client.post("/v2/customers", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    return [201, 201] == [answer.status_code for answer in answers]


FEATURES: dict[str, Callable[[httpx2.Client], bool]] = {
    "FaultInjection": injected,
    "the past": travelled,
    "keys": executed_once,
    "RateLimit": limited,  # last: it uses up what the others need
}


@pytest.mark.parametrize("left_out", [None, "FaultInjection", "RateLimit"])
def test_a_layer_that_is_left_out_takes_its_feature_along_and_nothing_else(left_out: str | None) -> None:
    settings = replace(FROZEN, scenario="empty", rate_limit=(7, 60))
    with without(left_out or "", settings) as client:
        found = {name: has(client) for name, has in FEATURES.items()}
    assert {name: name != left_out for name in FEATURES} == found
