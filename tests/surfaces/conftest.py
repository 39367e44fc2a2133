"""One sandbox for all the tests here that change nothing, or nothing that another
test would see.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import httpx2
import pytest

from stub_server.testing import Sandbox

from ..support.browser import Page, browsing
from ..support.console import Console
from ..support.live import NO_TLS, Live
from ..support.make import Json, done, make_customer, typed
from ..support.processes import Process
from ..support.shared import Shared
from ..support.wire import Door


def door_to(server: Live | Process, sandbox: str = "surfaces") -> Door:
    """A door with the token that the server itself hands out."""
    url = f"{server.url}/s/{sandbox}/_sandbox/credentials"
    jwt = done(httpx2.get(url, timeout=30, verify=NO_TLS))["jwt"]
    return Door(server.port, f"/s/{sandbox}", jwt)


@pytest.fixture(scope="session")
def door(shared: Shared) -> Door:
    """The shared server's sandbox `surfaces`."""
    return door_to(shared.live)


@pytest.fixture(scope="session")
def customer_id(door: Door) -> str:
    """A customer to read and change."""
    headers = {"Authorization": f"Bearer {door.token}"}
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{door.port}{door.prefix}", headers=headers, verify=NO_TLS
    ) as client:
        return typed(str, make_customer(client)["id"])


Visit = Callable[..., Console]


@pytest.fixture
def visit() -> Iterator[Visit]:
    """`visit(url, sandbox)`: a browser of the test's own."""
    with ExitStack() as stack:
        yield lambda *place: stack.enter_context(closing(Console(*place)))


@pytest.fixture
def console(visit: Visit, live: Live, sandbox_name: str, credentials: Json) -> Console:
    """A browser in the test's sandbox."""
    return visit(live.url, sandbox_name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """A real browser, which listens to what goes wrong."""
    with browsing() as page:
        page.listen()
        yield page


@pytest.fixture
def base(live: Live, sandbox_name: str, credentials: Json) -> str:
    """The address of the test's sandbox, for a real browser."""
    return f"{live.url}/s/{sandbox_name}"


@pytest.fixture
def to(live: Live, sandbox: Sandbox) -> list[str]:
    """The flags by which a command finds the test's sandbox."""
    return ["--server", live.url, "--sandbox", sandbox.name]
