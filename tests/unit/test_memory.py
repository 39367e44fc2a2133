"""A world that is no more gives its memory back at once: no cycle keeps it until a
collector comes by.
"""

import asyncio
import gc
import socket
import struct
import weakref
from collections.abc import Iterator

import httpx2
import pytest

from stub_server import create_app
from stub_server.data.keys import own_pair
from stub_server.server.protocol import HttpProtocol
from stub_server.server.sandboxes.making import Beginning
from stub_server.storage.package import MEDIA

from ..conftest import Serve
from ..engine.inside import Inside
from ..support.live import FROZEN, NO_TLS
from ..support.short import some
from ..support.wire import answer_on, connect

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.fixture(scope="module", autouse=True)
def what_was_before() -> Iterator[None]:
    """Out of the collector's sight: to walk through it for every test takes longer
    than the test.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Whatever goes, goes by its last reference; what earlier tests have left, such as
    servers, is gone.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def unreachable(name: str) -> set[str]:
    """What the collector finds: the types' names, or the modules that they are of."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return {getattr(type(found), name) for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.mark.promise("reset-frees-memory")
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("scenario", some(1, ["default", "empty", "past_due", "extremes"]))
def test_a_world_whose_past_was_lived_here_is_gone_with_its_last_reference(scenario: str) -> None:
    """The actors who lived it held it in a cycle: ten resets of a large world took more
    than a gigabyte.
    """
    worlds = create_app(FROZEN).sandboxes
    asyncio.run(worlds.reset("default", Beginning(scenario, 7)))
    world = worlds.default
    held = [weakref.ref(part) for part in (world, world.store, world.log)]
    del world
    asyncio.run(worlds.reset("default", Beginning("empty", 8)))
    assert [] == [reference() for reference in held if reference() is not None]


@pytest.mark.promise("reset-frees-memory")
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("asked", ["import", "invariants"])
def test_a_sandbox_that_was_inspected_is_gone_with_its_last_reference(asked: str) -> None:
    """Who inspected it was held by a cycle, and had it: each import stayed in memory."""
    inside = Inside(create_app(FROZEN))
    sandboxes = inside.app.sandboxes
    if asked == "import":
        file = inside.ask("GET", "/_sandbox/export").body
        assert inside.ask("POST", "/_sandbox/import", file, media=MEDIA).status == 200
    else:
        assert inside.ask("GET", "/_sandbox/invariants").status == 200
    held = [weakref.ref(part) for part in (sandboxes.default, sandboxes.default.store)]
    assert inside.ask("POST", "/_sandbox/reset", {"scenario": "empty"}).status == 200
    assert [] == [reference() for reference in held if reference() is not None]
    inside.close()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/s/refused/nowhere", 404),
        ("GET", "/v2/plans", 200),
        ("GET", "/v2/customers", 200),
        ("HEAD", "/v2/customers", 200),
        ("GET", "/v2/customers/nobody", 404),
        ("POST", "/v2/customers", 422),
        ("GET", "/openapi.json", 200),
        ("GET", "/_sandbox/health", 200),
        ("GET", "/_sandbox/invariants", 200),
        ("GET", "/nowhere", 404),
        ("PAGE", "/docs/createPixOrder", 200),
        ("PAGE", "/console/requests", 200),
        ("PAGE", "/guide/webhooks", 200),
        ("PAGE", "/nowhere", 404),
    ],
)
def test_a_request_that_was_answered_leaves_nothing_to_collect(
    serve: Serve, method: str, path: str, status: int
) -> None:
    """What sends a whole answer knows the scope that it stands in, and what creates a sandbox knows
    the call.

    Kept there, each request would stay, and with it the sandbox.
    """
    live = serve()
    with httpx2.Client(base_url=live.url, verify=NO_TLS) as client:
        client.headers["Authorization"] = f"Bearer {own_pair(live.app.sandboxes.default)[1]}"
        headers = {"X-Sandbox-As-Of": "0"} if path == "/v2/plans" else {}
        if method == "PAGE":
            method = "GET"
            headers = {"Accept": "text/html"}
        body: dict[str, str] | None = {} if method == "POST" else None
        answers = [client.request(method, path, json=body, headers=headers) for _ in range(3)]
        left = unreachable("__qualname__")
    assert [status] * 3 == [answer.status_code for answer in answers]
    assert not {"Document", "Inspected", "Request", "Response", "Sheet", "Trace"} & left


@pytest.mark.usefixtures("no_collector")
def test_a_connection_that_was_reset_is_gone(serve: Serve) -> None:
    """uvicorn kept its timer for the next request, and by it the last one, for an hour."""
    live = serve()
    request = b"GET /_sandbox/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(5):
        with connect(live.port) as connection:
            connection.sendall(request)
            assert connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with connect(live.port) as connection:
        connection.sendall(request)
        assert 200 == answer_on(connection).status  # it has noticed the others by now
        left = [each for each in gc.get_objects() if isinstance(each, HttpProtocol)]
        assert [] == [each for each in left if each.link.is_closing()]
