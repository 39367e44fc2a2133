"""Which sandbox a request reaches: path prefix, else header, else the credential, else `default`."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from ..conftest import Serve
from ..support import forge
from ..support.live import NO_TLS, Live
from ..support.refusal import refused, says
from ..support.wire import Door
from .conftest import door_to

UNKNOWN = "00000000-0000-4000-8000-000000000000"
NAMES = ["a", "0", "alice", "alice-2", "a" * 63, "1-1", "a--b", "a_b", "a.b", "v2.1_x-y"]
WRONG_NAMES = [
    "",
    "-a",
    "_a",
    ".a",
    "a-",
    "-",
    "a_",
    "a.",
    "a" * 64,
    "%E2%84%AA",
    "a%20b",
    "a%00",
    "%C3%A9",
    "a%0A",
    "..",
    "*",
    "a+b",
]


def plain(door: Door, token: str = "") -> Door:
    """The same server without a prefix."""
    return Door(door.port, "", token or door.token)


def clients(door: Door) -> int:
    """How many customers its sandbox has."""
    answer = door.ask("GET", "/v2/customers?limit=1")
    assert answer.status == 200, answer.body
    total: int = answer.json()["pagination"]["total"]
    return total


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_right_form_makes_a_world_at_first_mention(live: Live, name: str) -> None:
    answer = httpx2.get(f"{live.url}/s/{name}/_sandbox/credentials", verify=NO_TLS)
    assert (200, name) == (answer.status_code, answer.json()["sandbox"])
    live.app.sandboxes.forget(name)


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_a_name_of_another_form_is_404_in_the_path(live: Live, name: str) -> None:
    refused(Door(live.port, f"/s/{name}", "x").ask("GET", "/v2/customers"), 404, "sandbox_not_found")


@pytest.mark.parametrize("name", ["", "-a", "a" * 64, "a b", "é", "a,b"])
def test_a_name_of_another_form_is_404_in_the_header(door: Door, name: str) -> None:
    refused(plain(door).ask("GET", "/v2/customers", headers=[("X-Sandbox", name)]), 404, "sandbox_not_found")


@pytest.mark.parametrize("name", ["Alice.K5", "ALICE.k5"])
def test_capitals_in_a_name_mean_the_same_world(live: Live, name: str) -> None:
    """In the path and in the header; answers show the name without them."""
    doors = [Door(live.port, "", "x").ask("GET", f"/s/{name}/_sandbox/credentials")]
    doors.append(Door(live.port, "", "x").ask("GET", "/_sandbox/credentials", headers=[("X-Sandbox", name)]))
    assert ["alice.k5", "alice.k5"] == [answer.json()["sandbox"] for answer in doors]
    assert doors[0].json()["base_url"] == f"{live.url}/s/alice.k5"
    assert live.app.sandboxes.find(name) is live.app.sandboxes.find("alice.k5")
    live.app.sandboxes.forget("alice.k5")


def test_the_prefix_alone_is_no_path(live: Live) -> None:
    for path in ("/s", "/s/", "/s/surfaces/s/bob/v2/customers"):
        assert Door(live.port, "", "x").ask("GET", path).status == 404


def test_the_path_wins_over_the_header(live: Live, door: Door) -> None:
    assert door.ask("GET", "/_sandbox/health", headers=[("X-Sandbox", "elsewhere")]).json()["sandbox"] == "surfaces"


@pytest.mark.parametrize(
    ("header", "warnings"),
    [("bob", "x_sandbox_ignored"), ("-no-", "x_sandbox_ignored"), ("", "x_sandbox_ignored"), ("Surfaces", None)],
)
@pytest.mark.parametrize("path", ["/v2/customers?limit=1", "/_sandbox/clock"])
def test_a_header_that_names_another_world_than_the_path_is_told(
    live: Live, door: Door, path: str, header: str, warnings: str | None
) -> None:
    """The path wins. It did so without a word."""
    answer = door.ask("GET", path, headers=[("X-Sandbox", header)])
    assert (200, warnings) == (answer.status, answer.header("x-sandbox-warnings"))
    assert live.app.sandboxes.find("bob") is None


def test_the_header_chooses_where_the_path_does_not(door: Door) -> None:
    headers = [("X-Sandbox", "surfaces")]
    assert plain(door).ask("GET", "/_sandbox/health", headers=headers).json()["sandbox"] == "surfaces"
    assert plain(door).ask("GET", "/v2/customers", headers=headers).status == 200


def test_the_header_wins_over_the_token(door: Door) -> None:
    """And the token of another sandbox is then refused."""
    refused(plain(door).ask("GET", "/v2/customers", headers=[("X-Sandbox", "default")]), 401, "invalid_token")


def test_the_token_chooses_where_nothing_else_does(door: Door) -> None:
    made = door.send(
        "POST", "/v2/customers", {"name": "Só aqui", "email": "so@example.com", "document": "P4SS0NLYHERE"}
    )
    assert made.status == 201
    ident = made.json()["customer"]["id"]
    assert plain(door).ask("GET", f"/v2/customers/{ident}").status == 200


def test_without_any_hint_it_is_the_default_sandbox(live: Live) -> None:
    assert httpx2.get(f"{live.url}/_sandbox/health", verify=NO_TLS).json()["sandbox"] == "default"
    assert httpx2.get(f"{live.url}/_sandbox/credentials", verify=NO_TLS).json()["sandbox"] == "default"


def test_a_forged_token_chooses_no_world(live: Live) -> None:
    """Its claim is believed only after its signature: no world is made for it."""
    token = forge.unsigned(sandbox="made-by-a-stranger")
    refused(Door(live.port, "", token).ask("GET", "/v2/customers"), 401, "invalid_token")
    assert live.app.sandboxes.find("made-by-a-stranger") is None


def test_a_token_of_a_world_that_is_gone_makes_it_anew(live: Live) -> None:
    token = forge.signed(live.settings, sandbox="gone-and-back")
    assert Door(live.port, "", token).ask("GET", "/_sandbox/credentials").json()["sandbox"] == "gone-and-back"
    live.app.sandboxes.forget("gone-and-back")


@pytest.mark.promise("refused-request-creates-nothing")
@pytest.mark.parametrize(
    ("method", "path", "credential", "status", "code"),
    [
        ("GET", "/v2/customers", None, 401, "missing_credentials"),
        ("GET", "/v2/customers", "Bearer nonsense", 401, "invalid_token"),
        ("GET", "/v2/customers", "the default sandbox's", 401, "invalid_token"),
        ("GET", "/v2/nothing", None, 404, "route_not_found"),
        ("DELETE", "/v2/customers", None, 405, "method_not_allowed"),
        ("POST", "/v2/customers", "its own", 422, "validation_error"),
    ],
)
@pytest.mark.parametrize("way", ["path", "header"])
def test_a_refused_request_makes_no_world(
    live: Live, way: str, method: str, path: str, credential: str | None, status: int, code: str
) -> None:
    """A slip in a name would take the place of a world that somebody uses. The default one's journal tells of it."""
    own = forge.signed(live.settings, sandbox="mistyped")
    default = live.app.sandboxes.default
    known = {"the default sandbox's": f"Bearer {default.credentials['private_key']}", "its own": f"Bearer {own}"}
    headers = {} if credential is None else {"Authorization": known.get(credential, credential)}
    headers |= {"X-Sandbox": "mistyped"} if way == "header" else {}
    whole = path if way == "header" else f"/s/mistyped{path}"
    answer = httpx2.request(
        method, live.url + whole, headers=headers, json={} if method == "POST" else None, verify=NO_TLS
    )
    assert (status, code) == (answer.status_code, answer.json()["code"])
    assert live.app.sandboxes.find("mistyped") is None
    shown = httpx2.get(f"{live.url}/_sandbox/requests/{answer.headers['x-request-id']}", verify=NO_TLS)
    assert (200, whole, status) == (
        shown.status_code, shown.json()["request"]["path"], shown.json()["request"]["status"]
    )  # fmt: skip


def test_each_refusal_in_a_world_that_does_not_exist_has_an_id_of_its_own(live: Live) -> None:
    """By which the journal of the default world tells of it, at that world's time and step."""
    url, control = f"{live.url}/s/never-made/v2/plans", f"{live.url}/_sandbox"
    websocket = {"Connection": "Upgrade", "Upgrade": "websocket"}
    refused = [
        httpx2.get(url, verify=NO_TLS),
        httpx2.get(url, verify=NO_TLS),
        httpx2.post(url, verify=NO_TLS),
        httpx2.get(url, headers=websocket, verify=NO_TLS),
    ]
    assert [401, 401, 401, 400] == [answer.status_code for answer in refused]
    idents = [answer.json()["request_id"] for answer in refused]
    assert idents == [answer.headers["x-request-id"] for answer in refused]
    assert 4 == len(set(idents))
    now = httpx2.get(f"{control}/clock", verify=NO_TLS).json()["now"]
    for ident in idents:
        told = httpx2.get(f"{control}/requests/{ident}", verify=NO_TLS).json()["request"]
        assert ("/s/never-made/v2/plans", now) == (told["path"], told["at"])


READING = (
    "clock", "events", "faults", "health", "invariants", "requests", "requests.har", "sandboxes", "snapshots", "steps",
    "stream",
)  # fmt: skip


@pytest.mark.check
@pytest.mark.parametrize("way", ["path", "header"])
def test_reading_controls_create_no_sandbox(serve: Serve, way: str) -> None:
    """All but the credentials. A slip in a name left a sandbox behind, whose empty journal answered 200."""
    live = serve(seed=12)
    live.app.sandboxes.forget("alice")
    client = Door(live.port, "/s/alcie" if way == "path" else "", "x")
    headers = [] if way == "path" else [("X-Sandbox", "alcie")]

    def told(read: str) -> str:
        message = refused(client.ask("GET", f"/_sandbox/{read}", headers=headers), 404, "sandbox_not_found")
        return str(message["message"])

    assert all(says(text, "alcie", "GET /s/alcie/_sandbox/credentials") for text in map(told, READING))
    assert 200 == Door(live.port, "/s/alice", "x").ask("GET", "/_sandbox/credentials").status
    assert says(told("requests"), "alcie", "alice")
    assert ["default", "alice"] == [world.name for world in live.app.sandboxes.sandboxes()]
    assert 200 == client.ask("GET", "/_sandbox/credentials", headers=headers).status
    assert 200 == client.ask("GET", "/_sandbox/requests", headers=headers).status
    live.app.sandboxes.forget("alcie")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", f"/v2/orders/{UNKNOWN}", None, 404, "not_found"),
        ("PATCH", "/_sandbox/clock", {"to": "2001-01-01T00:00:00Z"}, 409, "clock_moves_forward_only"),
        ("PATCH", "/_sandbox/clock", {"too": "2001-01-01T00:00:00Z"}, 422, "validation_error"),
        ("POST", "/_sandbox/import", {}, 415, "unsupported_media_type"),
        ("POST", "/_sandbox/reset", {"scenario": "no such"}, 404, "scenario_not_found"),
        ("POST", f"/_sandbox/orders/{UNKNOWN}/pay", None, 404, "not_found"),
        ("POST", "/_sandbox/inbox/no%20name", {}, 404, "not_found"),
        ("POST", "/_sandbox/nothing", {}, 404, "route_not_found"),
        ("POST", "/_sandbox/requests/verify", {"request": {}, "times": {"exactly": 3}}, 409, "verification_failed"),
    ],
)
def test_a_call_that_fails_creates_no_sandbox(
    live: Live, method: str, path: str, body: Any, status: int, code: str
) -> None:
    """The journal of the default sandbox shows what failed, with the whole path."""
    client = Door(live.port, "/s/fails", forge.signed(live.settings, sandbox="fails"))
    answer = client.ask(method, path) if body is None else client.send(method, path, body)
    assert status == answer.status, answer.body
    assert answer.json().get("code", code) == code
    assert live.app.sandboxes.find("fails") is None
    newest = httpx2.get(f"{live.url}/_sandbox/requests?limit=1", verify=NO_TLS).json()["requests"][0]
    if not path.startswith("/_sandbox/inbox"):
        assert (f"/s/fails{path}", status) == (newest["path"], newest["status"])


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/openapi.yaml"])
def test_a_page_that_is_refused_creates_no_sandbox(live: Live, path: str) -> None:
    refused(Door(live.port, "/s/fails", "x").ask("DELETE", path), 405, "method_not_allowed")
    assert live.app.sandboxes.find("fails") is None


def test_a_file_that_is_refused_creates_no_sandbox(live: Live) -> None:
    headers = {"Content-Type": "application/vnd.stub.sandbox+gzip"}
    answer = httpx2.post(f"{live.url}/s/fails/_sandbox/import", content=b"no file", headers=headers, verify=NO_TLS)
    assert 422 == answer.status_code
    assert live.app.sandboxes.find("fails") is None


def test_names_are_suggested_to_the_admin_alone(serve: Serve) -> None:
    live = serve(host="0.0.0.0", admin_key="a-long-admin-key")  # noqa: S104 - the server that the test asks
    admin = {"X-Sandbox-Admin-Key": "a-long-admin-key"}
    made = httpx2.post(f"{live.url}/_sandbox/sandboxes", json={"name": "alice"}, headers=admin, verify=NO_TLS)
    assert 201 == made.status_code
    for path, headers, told in (
        ("/v2/customers", {}, False),
        ("/v2/customers", {"X-Sandbox-Admin-Key": "another"}, False),
        ("/v2/customers", admin, True),
        ("/_sandbox/requests", admin, True),
    ):
        answer = httpx2.get(f"{live.url}/s/alcie{path}", headers=headers, verify=NO_TLS)
        assert ("sandbox_not_found", told) == (answer.json()["code"], "alice" in answer.text), answer.text
    hidden = httpx2.get(f"{live.url}/s/alcie/_sandbox/requests", verify=NO_TLS)
    assert (403, False) == (hidden.status_code, "alice" in hidden.text)


def client_of_the_next(live: Live, name: str) -> Door:
    """Somebody with a token of the sandbox that the next request to a name makes."""
    generation = live.app.sandboxes.generations.first(name)
    return Door(live.port, f"/s/{name}", forge.signed(live.settings, sandbox=name, generation=generation))


def test_a_request_that_succeeds_makes_its_world(live: Live) -> None:
    """Its journal begins with it; of many at once each finds the same one."""
    token = forge.signed(live.settings, sandbox="well-typed")
    client = Door(live.port, "/s/well-typed", token)
    assert 200 == client.ask("GET", "/v2/orders").status
    asked = client.ask("GET", "/_sandbox/requests").json()["requests"]
    assert ["/v2/orders"] == [each["path"] for each in asked]
    live.app.sandboxes.forget("well-typed")
    client = client_of_the_next(live, "well-typed")
    body = {"name": "Um", "email": "um@example.com", "document": "P4SS0NE"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda number: client.send("POST", "/v2/customers", body | {"document": f"P4SS{number}"}), range(8)
            )
        )
    assert [201] * 8 == [answer.status for answer in answers]
    assert 8 == len({answer.header("x-request-id") for answer in answers})
    assert 8 == client.ask("GET", "/v2/customers?name=Um&limit=1").json()["pagination"]["total"]
    live.app.sandboxes.forget("well-typed")
    client = client_of_the_next(live, "well-typed")
    past = client.ask("GET", "/v2/customers?limit=1", headers=[("X-Sandbox-As-Of", "0")])
    assert 200 == past.status
    assert live.app.sandboxes.find("well-typed") is not None
    live.app.sandboxes.forget("well-typed")


@pytest.mark.check
def test_a_caller_whom_the_control_surface_refuses_makes_no_world(serve: Serve) -> None:
    live = serve(admin_key="a-long-admin-key")
    path = f"{live.url}/s/mistyped/_sandbox/clock"
    assert 403 == httpx2.get(path, verify=NO_TLS).status_code
    assert 403 == httpx2.post(f"{path}/advance", json={"seconds": 1}, verify=NO_TLS).status_code
    assert live.app.sandboxes.find("mistyped") is None
    admin = {"X-Sandbox-Admin-Key": "a-long-admin-key"}
    unmade = httpx2.post(f"{path}/advance", json={"seconds": 1}, headers=admin, verify=NO_TLS)
    assert (404, "sandbox_not_found") == (unmade.status_code, unmade.json()["code"])


def test_worlds_do_not_see_each_other(live: Live) -> None:
    one, two = door_to(live, "world-one"), door_to(live, "world-two")
    before = clients(two)
    made = one.send("POST", "/v2/customers", {"name": "Um", "email": "um@example.com", "document": "P4SS0NE"}).json()
    refused(two.ask("GET", f"/v2/customers/{made['customer']['id']}"), 404, "not_found")
    assert clients(two) == before
    assert clients(one) == before + 1
    for name in ("world-one", "world-two"):
        live.app.sandboxes.forget(name)


def test_a_key_of_one_world_opens_no_other(live: Live) -> None:
    one, two = door_to(live, "world-one"), door_to(live, "world-two")
    key = one.send("POST", "/api-keys", {"name": "Um", "scopes": ["orders:read"]}).json()["api_key"]["private_key"]
    assert one.ask("GET", "/v2/orders?limit=1", token=key).status == 200
    refused(two.ask("GET", "/v2/orders?limit=1", token=key), 401, "invalid_token")
    for name in ("world-one", "world-two"):
        live.app.sandboxes.forget(name)


def test_a_location_is_found_in_the_sandbox_it_was_made_in(door: Door) -> None:
    made = door.send("POST", "/v2/customers", {"name": "Onde", "email": "o@example.com", "document": "P4SSWHERE"})
    location = made.header("location") or ""
    path = location.removeprefix(f"http://127.0.0.1:{door.port}")
    found = plain(door).ask("GET", path)
    assert (200, made.json()["customer"]) == (found.status, found.json()["customer"])


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4600", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_page_under_a_strangers_name_makes_no_worlds(live: Live, host: str) -> None:
    """DNS rebinding: the browser believes the stranger's name, the Host header gives it away."""
    name = f"rebound-{len(host)}"
    refused(Door(live.port, f"/s/{name}", "x").ask("GET", "/v2/customers", host=host), 403, "host_not_allowed")
    assert live.app.sandboxes.find(name) is None


def test_the_journal_knows_the_id_of_an_answer_that_created_nothing(live: Live) -> None:
    """Nobody uses a sandbox by asking which methods a path has: the journal of `default` has the request."""
    answer = httpx2.options(f"{live.url}/s/never-used/v2/customers", verify=NO_TLS)
    kept = httpx2.get(f"{live.url}/_sandbox/requests/{answer.headers['X-Request-Id']}", verify=NO_TLS)
    assert (204, 200, None) == (answer.status_code, kept.status_code, live.app.sandboxes.find("never-used"))
