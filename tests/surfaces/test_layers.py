"""The way of a request: each layer alone, before a next one that only notes what reaches it; and the whole list."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.http.monitor import Limits
from stub_server.http.routing import Application
from stub_server.settings import Settings

from ..support.live import FROZEN, NO_TLS, serving
from ..support.make import customer_body

pytestmark = pytest.mark.check
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def name_of(layer: Any) -> str:
    """The class of a layer in the list."""
    return str(getattr(layer, "func", layer).__name__)


def test_the_page_on_architecture_lists_the_layers_as_the_code_has_them(database: str) -> None:
    app = create_app(replace(FROZEN, rate_limit=(3, 60), store=database))
    app.sandboxes.persistence.close()
    listed = re.findall(r"^\| `(\w+)` \| `http/", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [*map(name_of, app.middlewares), "Dispatch"] == listed


# -- each alone


@pytest.fixture(scope="module")
def app() -> Application:
    """An application whose layers are built one by one."""
    return create_app(replace(FROZEN, rate_limit=(2, 60), scenario="empty"))


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
    "TimeTravel": travelled,
    "Idempotency": executed_once,
    "RateLimit": limited,  # last: it uses up what the others need
}


@pytest.mark.parametrize("left_out", [None, *FEATURES])
def test_a_layer_that_is_left_out_takes_its_feature_along_and_nothing_else(left_out: str | None) -> None:
    settings = replace(FROZEN, scenario="empty", rate_limit=(7, 60))
    with without(left_out or "", settings) as client:
        found = {name: has(client) for name, has in FEATURES.items()}
    assert {name: name != left_out for name in FEATURES} == found
