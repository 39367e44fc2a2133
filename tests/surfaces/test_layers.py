"""The way of a request: each layer alone, before a next one that only notes what reaches it; and
the whole list.
"""

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
from stub_server.server.connection import Limits
from stub_server.server.layers.context import request_of
from stub_server.server.layers.endpoint import Endpoint
from stub_server.server.layers.routing import Application, Routing
from stub_server.server.layers.validation import Arguments
from stub_server.server.layers.way import (
    ARGUMENTS,
    CALLER,
    ENDPOINT,
    HOLDER,
    REQUEST,
    TARGET,
    TRACE,
    VALUES,
    Holder,
)
from stub_server.server.reply import Answer, Streamed
from stub_server.server.work import Target
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
    listed = re.findall(r"^\d+\. `(\w+)` ", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
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


def begin(scope: Any, target: Target) -> None:
    """Hand on the sandbox of a request, and its trace."""
    scope[TARGET], scope[TRACE] = target, target.begin(scope[REQUEST])


class Alone:
    """One layer, and the requests that it passed on."""

    def __init__(
        self, app: Application, name: str, then: Callable[[Any], Answer] | None = None
    ) -> None:
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
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        operation: str = "",
        **known: Any,
    ) -> Asked:
        """Have a request reach the layer, as the layers before it leave it; `known` is what they
        have handed on.
        """
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


EVIL = {"host": "evil.example"}
STRANGE = {"origin": "https://evil.example"}
SIMULATED = {"operation": "listPlans", "headers": {"x-sandbox-simulate": "rate_limited"}}
PAST = {"operation": "listPlans", "headers": {"x-sandbox-as-of": "0"}}
LISTED = {"query": {"page": 1, "limit": 20}}
PLAIN: tuple[str, str, dict[str, Any]] = (
    "GET",
    "/v2/plans",
    {"operation": "listPlans", "named": LISTED},
)
REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "HostPolicy": ("GET", "/v2/plans", {"headers": EVIL}, "host_not_allowed"),
    "SandboxSelection": ("GET", "/s/nobody/_sandbox/clock", {"begun": False}, "sandbox_not_found"),
    "Forwarding": (
        "GET",
        "/v2/plans",
        {HOLDER: Holder("http://127.0.0.1:1", "team")},
        "store_unavailable",
    ),
    "AccessPolicy": ("GET", "/_sandbox/clock", {"headers": STRANGE}, "admin_key_required"),
    "Pages": ("POST", "/openapi.json", {}, "method_not_allowed"),
    "Routing": ("GET", "/v2/planes", {}, "route_not_found"),
    "FaultInjection": ("GET", "/v2/plans", SIMULATED, "rate_limited"),
    "RateLimit": ("GET", "/v2/plans", {}, "rate_limited"),
    "Security": ("GET", "/v2/plans", {"operation": "listPlans"}, "missing_credentials"),
    "Validation": ("GET", "/v2/plans?limit=x", {"operation": "listPlans"}, "validation_error"),
    "Dispatch": ("POST", "/v2/plans", PAST, "malformed_request"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_alone_refuses_what_it_is_about_and_passes_on_the_rest(
    app: Application, name: str, database: str
) -> None:
    """What each does in full stands in the tests of its subject."""
    if name == "Forwarding":
        app = create_app(replace(FROZEN, scenario="empty", store=database))
    layer, (method, path, known, code) = Alone(app, name), REFUSED[name]
    token = f"Bearer {app.server.ready_token(app.sandboxes.default)}"
    headers = {"authorization": token} if name == "Security" else {}
    for _ in range(2):  # as many as the limit of requests allows
        passed = layer.ask(*PLAIN[:2], headers=headers, **PLAIN[2])
    assert name == "Dispatch" or (2, NOTHING) == (len(layer.passed), passed.answer)
    assert code == layer.refused(method, path, **known)
    if name == "Forwarding":
        app.sandboxes.persistence.close()


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
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {token}"},
            verify=NO_TLS,
        ) as client,
    ):
        yield client


def limited(client: httpx2.Client) -> bool:
    """Whether a third request is refused."""
    return 429 in [client.get("/v2/plans").status_code for _ in range(3)]


def injected(client: httpx2.Client) -> bool:
    """Whether a header makes a request fail."""
    return (
        503
        == client.get(
            "/v2/plans", headers={"X-Sandbox-Simulate": "sandbox_unavailable"}
        ).status_code
    )


def travelled(client: httpx2.Client) -> bool:
    """Whether a new customer is missing from the past."""
    made = client.post("/v2/customers", json=customer_body()).json()["customer"]["id"]
    return 404 == client.get(f"/v2/customers/{made}", headers={"X-Sandbox-As-Of": "0"}).status_code


def executed_once(client: httpx2.Client) -> bool:
    """Whether a request that is repeated with its key gets the first answer."""
    body = customer_body()
    answers = [
        client.post("/v2/customers", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    return [201, 201] == [answer.status_code for answer in answers]


FEATURES: dict[str, Callable[[httpx2.Client], bool]] = {
    "FaultInjection": injected,
    "the past": travelled,
    "keys": executed_once,
    "RateLimit": limited,  # last: it uses up what the others need
}


@pytest.mark.parametrize("left_out", [None, "FaultInjection", "RateLimit"])
def test_a_layer_that_is_left_out_takes_its_feature_along_and_nothing_else(
    left_out: str | None,
) -> None:
    settings = replace(FROZEN, scenario="empty", rate_limit=(7, 60))
    with without(left_out or "", settings) as client:
        found = {name: has(client) for name, has in FEATURES.items()}
    assert {name: name != left_out for name in FEATURES} == found
