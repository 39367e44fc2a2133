"""What every test over HTTP starts from: a live server, a sandbox of the test's own, and clients
for it.
"""

import gc
import itertools
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, settings

from stub_server.settings import Settings
from stub_server.testing import Sandbox, Server

from .support import make
from .support.estate import Estate, emptied, estate, with_room
from .support.evidence import Evidence
from .support.live import FROZEN, Live, running, running_small
from .support.postgres import Postgres
from .support.receiver import Receiver, receiving
from .support.shared import Shared
from .support.short import sample, split
from .support.stores import STORES, Choice
from .support.watched import Watched, watching

# Files that take longest, longest first: a core that began one of them last would be alone with it
# at the end.
# And that of the collector, which takes the longer the more has been imported and made before.
LONG = (
    "verify/test_verify.py",
    "unit/test_memory.py",
    "journeys/test_certify.py",
    "verify/test_bad_targets.py",
    "kit/test_plugin.py",
    "kit/test_installed.py",
    "lists/test_lists.py",
    "contract/test_schemathesis.py",
    "surfaces/test_start.py",
    "shared/test_holders.py",
    "surfaces/test_certify_command.py",
    "journeys/test_refusals.py",
    "surfaces/test_console_try.py",
    "properties/test_model.py",
    "surfaces/test_store.py",
    "shared/test_database_away.py",
    "properties/test_scenarios.py",
    "contract/test_control_schemathesis.py",
    "journeys/test_replay.py",
    "surfaces/test_console_walk.py",
    "surfaces/test_console.py",
    "reference_run/test_reference_run.py",
    "surfaces/test_public_bind.py",
    "clients/test_init.py",
    "properties/test_believable.py",
    "verify/test_proxy.py",
    "surfaces/test_cost_by_bytes.py",
    "contract/test_followed.py",
    "surfaces/test_shutdown.py",
    "surfaces/test_wait_and_stop.py",
    "stored/test_other_contracts.py",
    "surfaces/test_guide_seen.py",
    "surfaces/test_full_disk.py",
    "properties/test_every_state.py",
    "clients/test_typescript.py",
    "operators/test_proxies.py",
    "journeys/test_rewind.py",
    "lists/test_statistics.py",
    "journeys/test_sending.py",
    "surfaces/test_operation_pages.py",
    "agents/test_guarded.py",
    "verify/test_correcting.py",
    "test_rooms.py",
    "agents/test_tools.py",
    "surfaces/test_docs_schemathesis.py",
    "operators/test_creation.py",
    "verify/test_command.py",
    "surfaces/test_front_page.py",
    "surfaces/test_deadlines.py",
    "shared/test_lost_changes.py",
    "shared/test_password.py",
    "crash/test_crash.py",
    "surfaces/test_console_webhooks.py",
    "journeys/test_inbox.py",
    "contract/test_conformity.py",
    "surfaces/test_reload.py",
    "surfaces/test_console_data.py",
    "surfaces/test_behind_a_proxy.py",
    "journeys/test_faults.py",
    "surfaces/test_docs.py",
    "surfaces/test_command.py",
    "surfaces/test_console_try_seen.py",
)
TESTS = Path(__file__).parent
# No example has to be fast: how long one takes says what else the machine does.
settings.register_profile(
    "untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
Serve = Callable[..., Live]
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the short run, and the store of journeys."""
    parser.addoption(
        "--short", action="store_true", help="the tests of `make test`: see tests/support/short.py"
    )
    parser.addoption(
        "--sample", action="store_true", help="some cases of each matrix, others with every commit"
    )
    parser.addoption("--night", action="store_true", help="what is marked `night` too")
    parser.addoption(
        "--store", choices=STORES, help="of all journeys; else see tests/support/stores.py"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: tests of receivers, leases and crashes mostly wait."""
    return (
        len(
            os.sched_getaffinity(0)
            if hasattr(os, "sched_getaffinity")
            else range(os.cpu_count() or 1)
        )
        + 2
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have the evidence ledger listen to every client, and journeys choose their stores."""
    config.pluginmanager.register(Evidence(config), "evidence")
    config.pluginmanager.register(Choice(config), "stores")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Look for no garbage while tests are collected: all of it stays.

    Afterwards seldom, as a server does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(5_000, 50, 10)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the long files come first; everything else stays in its order.

    The short run leaves most of it out.
    """
    if not config.getoption("--night"):
        names = ("night",) if config.getoption("--short") else ("night", "short")
        left = [item for item in items if any(map(item.get_closest_marker, names))]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, names))]
    if config.getoption("--short"):
        items[:], left = split(items)
        config.hook.pytest_deselected(items=left)
    if config.getoption("--sample"):
        items[:], left = sample(items)
        config.hook.pytest_deselected(items=left)
    places = {TESTS / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(LONG)))


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    """What is made once in a run."""
    with ExitStack() as stack:
        yield Shared(stack)


@pytest.fixture(scope="module")
def live(shared: Shared) -> Live:
    """The server that most tests share."""
    return shared.live


@pytest.fixture(scope="module")
def small(shared: Shared) -> Live:
    """A server whose worlds have all that those of others have, and less of it: for whole worlds in
    every request.
    """
    return shared.once("small", running_small)


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Servers with other settings, `serve(seed=7)`; equal settings give the same server
    in a module.
    """
    with ExitStack() as stack:
        known: dict[Settings, Live] = {}

        def start(**changes: Any) -> Live:
            settings = replace(FROZEN, **changes)
            if settings not in known:
                known[settings] = stack.enter_context(running(settings))
            return known[settings]

        yield start


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """A server that is looked at before and after every request."""
    with watching() as made:
        yield made


@pytest.fixture(scope="session")
def postgres(shared: Shared) -> Postgres:
    """A PostgreSQL of this process."""
    return shared.postgres


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """The address of an empty database."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def sandbox_name(live: Live) -> Iterator[str]:
    """A name that no other test has; its sandbox is deleted afterwards, as a server keeps
    only so many.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    name = f"t{worker}-{next(_numbers)}"
    yield name
    live.forget(name)


@pytest.fixture(scope="module")
def sandbox_server(live: Live) -> Iterator[Server]:
    """The server of the module as the kit has it."""
    with closing(Server(live.url, live.settings.admin_key)) as server:
        yield server


@pytest.fixture
def sandbox(sandbox_server: Server, sandbox_name: str) -> Sandbox:
    """The test's sandbox with all that the kit gives to tests: `sandbox.pay(sandbox.order())`."""
    return sandbox_server.sandbox(sandbox_name)


@pytest.fixture
def control(sandbox: Sandbox) -> httpx2.Client:
    """The control surface of the test's sandbox: `control.get("/clock")`."""
    return sandbox.control


@pytest.fixture
def credentials(control: httpx2.Client) -> make.Json:
    """What the server says a first request needs: jwt, key pair, ids of seeded records."""
    return make.done(control.get("/credentials"))


@pytest.fixture
def api(sandbox: Sandbox) -> httpx2.Client:
    """The API in the test's sandbox, with a JWT that holds every scope:

    `api.get("/v2/customers")`.
    """
    return sandbox.api


@pytest.fixture
def make_customer(api: httpx2.Client) -> make.Maker:
    """`make_customer(name=…)`: a new customer."""
    return partial(make.make_customer, api)


@pytest.fixture
def make_project(api: httpx2.Client) -> make.Maker:
    """`make_project(status="draft")`: a new project, active unless told otherwise."""
    return partial(make.make_project, api)


@pytest.fixture
def make_plan(api: httpx2.Client) -> make.Maker:
    """`make_plan(project_id, amount=…)`: a new plan, of a new project unless named."""
    return partial(make.make_plan, api)


@pytest.fixture
def make_order(api: httpx2.Client) -> make.Maker:
    """`make_order(plan, totalAmount=…)`: a new pending PIX order, of a new plan unless given."""
    return partial(make.make_order, api)


@pytest.fixture(scope="session")
def sink() -> Iterator[str]:
    """An address that answers every webhook with 200."""
    with receiving() as receiver:
        yield receiver.url


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of the test's own."""
    with receiving() as made:
        yield made


@pytest.fixture(scope="module")
def home(live: Live, sink: str, shared: Shared) -> Estate:
    """A merchant with one of everything, in a sandbox that the whole run shares: for requests that
    are refused.
    """

    def make() -> AbstractContextManager[Estate]:
        emptied(live, "town")
        return closing(estate(live, "town", sink))

    return shared.once("home", make)


@pytest.fixture(scope="module")
def neighbour(live: Live, sink: str, home: Estate, shared: Shared) -> Estate:
    """Another merchant of the same sandbox."""
    return shared.once("neighbour", lambda: closing(estate(live, "town", sink)))


@pytest.fixture(scope="module")
def abroad(live: Live, sink: str, shared: Shared) -> Estate:
    """A merchant of another sandbox."""

    def make() -> AbstractContextManager[Estate]:
        # Records of two worlds are called the same where the same was asked of both: another seed
        # tells them apart.
        emptied(live, "village", seed=7)
        return closing(estate(live, "village", sink))

    return shared.once("abroad", make)


@pytest.fixture
def shop(live: Live, sink: str) -> Iterator[Estate]:
    """A merchant of the test's own, in a sandbox that many tests share: what he does concerns
    nobody else.

    The clock is shared. A sandbox has so many merchants and no more: then the next one begins.
    """
    with closing(estate(live, with_room(live, "street"), sink)) as made:
        yield made
