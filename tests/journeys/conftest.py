"""Fixtures of journeys that have webhooks in them."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from stub_server.testing import Sandbox, Server

from ..reference_run.successes import faults, noted_successes
from ..support.estate import emptied
from ..support.live import Live
from ..support.make import Json, created, object_of
from ..support.receiver import Receiver
from ..support.shared import Shared
from ..support.stores import Choice, on
from .hooks import WEBHOOKS, Hook
from .stage import Stage, staged


@pytest.fixture(autouse=True)
def successes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every success of a journey to stock Connexion's validation of responses too.

    The short run does without.
    """
    if request.config.getoption("--short"):
        yield
        return
    with noted_successes(request.node.nodeid.partition("::")[0]) as answers:
        yield
    assert [] == faults(answers)


@pytest.fixture(scope="module", autouse=True)
def store(request: pytest.FixtureRequest, shared: Shared) -> Iterator[None]:
    """Where the sandboxes of the module's servers are."""
    choice = request.config.pluginmanager.get_plugin("stores")
    assert isinstance(choice, Choice)
    with on(choice.of(request.path), lambda: shared.postgres):
        yield


@pytest.fixture
def hook(api: httpx2.Client, receiver: Receiver) -> Hook:
    """`hook(events=[…])`: a new webhook at the receiver, with its signing key."""

    def make(**changes: Any) -> Json:
        response = api.post(WEBHOOKS, json={"url": receiver.url, "events": ["*"]} | changes)
        return object_of(created(response), "webhook")

    return make


@pytest.fixture(scope="module")
def empty_stage(live: Live) -> None:
    """What the merchants of other files have left there would be billed again at every
    move of the clock.
    """
    emptied(live, "stage")


@pytest.fixture
def stage(live: Live, sink: str, empty_stage: None) -> Iterator[Stage]:
    """A new merchant in a sandbox whose clock the tests of a file move, each on from where the one
    before left it.
    """
    with staged(live, "stage", sink) as made:
        yield made


@pytest.fixture
def there(sandbox_server: Server, sandbox_name: str) -> Iterator[Sandbox]:
    """Another sandbox of the server, for the file of the test's own."""
    with sandbox_server.sandbox(f"{sandbox_name}-there") as made:
        yield made
