"""The contract as strangers read it, with fixed examples; a sandbox shows its records to those who may read all."""

import io
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from statistics import median
from time import monotonic, sleep
from typing import Any

import pytest

from stub_server.console.examples import with_examples_of_parameters
from stub_server.request_log import RequestLog

from ..conftest import Serve
from ..support.contract import document, parsed
from ..support.live import Live
from ..support.wire import Answer, Door, Header, connect
from .conftest import door_to

pytestmark = pytest.mark.check

FILES = ["/openapi.json", "/openapi.yaml"]
ADMIN = "a-long-admin-key"
FOREIGN = "https://editor.swagger.example"


@pytest.fixture(scope="module")
def public(serve: Serve) -> Live:
    """A server that others can reach."""
    return serve(host="0.0.0.0", admin_key=ADMIN)  # noqa: S104 - the test's server listens on loopback all the same


@pytest.fixture(scope="module")
def credentials(public: Live) -> Any:
    """Those of its sandbox."""
    door = Door(public.port, "", "")
    return door.ask("GET", "/_sandbox/credentials", headers=[("X-Sandbox-Admin-Key", ADMIN)]).json()


def is_fixed(answer: Answer) -> bool:
    """Whether the contract was served with its own examples."""
    assert 200 == answer.status, answer.body
    return _is_fixed(answer.body)


@cache
def _is_fixed(body: bytes) -> bool:
    found, fixed = parsed(body), with_examples_of_parameters(document().raw)
    found.pop("servers")
    return bool(found == {key: value for key, value in fixed.items() if key not in ("servers", "x-example-records")})


@pytest.mark.promise("strangers-see-no-live-example")
@pytest.mark.parametrize("path", FILES)
def test_a_public_server_shows_strangers_no_record(public: Live, credentials: Any, path: str) -> None:
    """A public key identifies its merchant, and lets its holder wait at the server's cost."""
    door = Door(public.port, "", "")
    answer = door.ask("GET", path)
    assert is_fixed(answer)
    for wrong in ("x", credentials["public_key"], "sk_sandbox_wrong"):
        assert is_fixed(Door(public.port, "", wrong).ask("GET", path))
    for right in (credentials["private_key"], credentials["jwt"]):
        shown = Door(public.port, "", right).ask("GET", path)
        assert credentials["sample"]["orderId"] in shown.body.decode()
        assert answer.header("etag") != shown.header("etag")
        etag: list[Header] = [("If-None-Match", shown.header("etag") or "")]
        assert 304 == Door(public.port, "", right).ask("GET", path, headers=etag).status
        assert 200 == door.ask("GET", path, headers=etag).status
    for name, key in (("Admin", ADMIN), ("Control", credentials["control_key"])):
        assert not is_fixed(door.ask("GET", path, headers=[(f"X-Sandbox-{name}-Key", key)]))
        assert is_fixed(door.ask("GET", path, headers=[(f"X-Sandbox-{name}-Key", "wrong")]))


def test_a_key_that_may_not_read_all_is_shown_no_record(public: Live, credentials: Any) -> None:
    owner = Door(public.port, "", credentials["jwt"])
    scopes = ["plans:read"]
    restricted = [{"scopes": scopes}, {"allowed_projects": [credentials["sample"]["projectId"]]}]
    every = [scope["name"] for scope in document().scopes if scope["assignable"]]
    for number, limits in enumerate(restricted):
        made = owner.send("POST", "/api-keys", {"name": f"Partner {number}", "scopes": every} | limits).json()
        assert is_fixed(Door(public.port, "", made["api_key"]["private_key"]).ask("GET", "/openapi.json"))


def test_a_page_of_an_operation_shows_strangers_the_examples_of_the_contract(public: Live, credentials: Any) -> None:
    samples = [*credentials["sample"].values(), credentials["public_key"], credentials["private_key"]]
    door = Door(public.port, "", "")
    for ident in ("getOrder", "createPixOrder", "getMerchantByPublicKey", "payOrder"):
        page = door.ask("GET", f"/docs/{ident}").body.decode()
        assert [] == [value for value in samples if value in page]
    order = document().raw["x-example-records"]["orderId"][0]
    assert order in door.ask("GET", "/docs/getOrder").body.decode()


@pytest.mark.parametrize("origin", [FOREIGN, "null"])
@pytest.mark.parametrize("path", FILES)
def test_any_page_reads_the_contract_of_a_local_server_with_fixed_examples(door: Door, path: str, origin: str) -> None:
    """With a credential too: the credentials of a local server follow from its seed."""
    for token in (None, door.token):
        answer = door.ask("GET", path, headers=[("Origin", origin)], token=token)
        assert (origin, True) == (answer.header("access-control-allow-origin"), is_fixed(answer))
    asked: list[Header] = [("Origin", origin), ("Access-Control-Request-Method", "GET")]
    assert origin == door.ask("OPTIONS", path, headers=asked, token=None).header("access-control-allow-origin")


@pytest.mark.parametrize("host", ["127.0.0.1:5173", "localhost:3000", "[::1]:8080"])
def test_a_page_of_another_local_port_sees_the_records_of_a_local_server(door: Door, host: str) -> None:
    """An application under development asks for ids that exist."""
    answer = door.ask("GET", "/openapi.json", headers=[("Origin", f"http://{host}")], token=None)
    assert not is_fixed(answer)
    assert f"http://{host}" == answer.header("access-control-allow-origin")


def test_a_local_page_sees_no_record_of_a_public_server_without_a_credential(public: Live) -> None:
    """It is a page of the caller's machine, which is not this one."""
    local: list[Header] = [("Origin", "http://127.0.0.1:5173")]
    assert is_fixed(Door(public.port, "", "").ask("GET", "/openapi.json", headers=local))


def test_a_page_of_this_server_and_a_named_one_with_a_credential_see_records(serve: Serve) -> None:
    door = door_to(serve(cors_origins=(FOREIGN,)))
    same: list[Header] = [("Origin", f"http://127.0.0.1:{door.port}")]
    assert not is_fixed(door.ask("GET", "/openapi.json", headers=same, token=None))
    named: list[Header] = [("Origin", FOREIGN)]
    assert is_fixed(door.ask("GET", "/openapi.json", headers=named, token=None))
    assert not is_fixed(door.ask("GET", "/openapi.json", headers=named))
    embedded: list[Header] = [("Sec-Fetch-Site", "cross-site")]
    assert is_fixed(door.ask("GET", "/openapi.json", headers=embedded, token=None))


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        ("GET", "/v2/plans", f"origin {FOREIGN} was refused, --cors-origin {FOREIGN} allows it"),
        ("OPTIONS", "/v2/plans", f"origin {FOREIGN} was refused, --cors-origin {FOREIGN} allows it"),
        ("GET", "/_sandbox/clock", f"origin {FOREIGN} was refused, --cors-origin {FOREIGN} allows it"),
        ("OPTIONS", "/_sandbox/clock", f"origin {FOREIGN} was refused, --cors-origin {FOREIGN} allows it"),
        ("GET", "/openapi.json", None),
        ("GET", "/_sandbox/health", None),
    ],
)
def test_the_terminal_says_which_origin_was_refused(serve: Serve, method: str, path: str, says: str | None) -> None:
    live, lines = serve(), io.StringIO()
    log = RequestLog("requests", lines)
    live.app.server.listeners.append(log)
    headers: list[Header] = [("Origin", FOREIGN), ("Access-Control-Request-Method", "GET")]
    Door(live.port, "", "").ask(method, path, headers=headers, token=None)
    until = monotonic() + 10
    while not (found := [line for line in lines.getvalue().splitlines() if f" {path} " in line]):
        assert monotonic() < until
        log.flush()
    (line,) = found
    assert ("origin" in line, says is None or line.endswith(says)) == (says is not None, True)


def waits(door: Door, seconds: float) -> list[float]:
    """How long each of a client's requests takes, on a connection of its own."""
    found: list[float] = []
    until = monotonic() + seconds
    while monotonic() < until:
        begun = monotonic()
        assert 200 == door.ask("GET", "/v2/plans?limit=1").status
        found.append(monotonic() - begun)
        sleep(0.01)
    return found


@pytest.fixture
def unread(live: Live) -> Iterator[None]:
    """A hundred clients that ask for the contract five times at once and read nothing."""
    request = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n\r\n".encode()
    with ExitStack() as opened:
        connections = [opened.enter_context(connect(live.port)) for _ in range(100)]
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        for connection in connections:
            connection.sendall(request * 5)
        yield


def test_clients_that_do_not_read_keep_no_other_waiting(live: Live, door: Door, request: pytest.FixtureRequest) -> None:
    """It waited for seconds: every answer was made anew, one after the other."""
    quiet = median(waits(door, 1))
    request.getfixturevalue("unread")
    assert max(waits(door, 3)) < 20 * quiet + 0.2
