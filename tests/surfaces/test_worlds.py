"""Which sandbox a request reaches: path prefix, else header, else the credential,
else `default`.
"""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from stub_server.data.keys import own_pair

from ..conftest import Serve
from ..support import forge
from ..support.live import NO_TLS, Live
from ..support.refusal import refused, says
from ..support.wire import Door

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


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_right_form_makes_a_world_at_first_mention(live: Live, name: str) -> None:
    answer = httpx2.get(f"{live.url}/s/{name}/_sandbox/credentials", verify=NO_TLS)
    assert (200, name) == (answer.status_code, answer.json()["sandbox"])
    live.app.sandboxes.forget(name)


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_a_name_of_another_form_is_404_in_the_path(live: Live, name: str) -> None:
    refused(
        Door(live.port, f"/s/{name}", "x").ask("GET", "/v2/customers"), 404, "sandbox_not_found"
    )


def test_the_header_chooses_where_the_path_does_not(door: Door) -> None:
    headers = [("X-Sandbox", "surfaces")]
    assert (
        plain(door).ask("GET", "/_sandbox/health", headers=headers).json()["sandbox"] == "surfaces"
    )
    assert plain(door).ask("GET", "/v2/customers", headers=headers).status == 200


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
    """A slip in a name would take the place of a world that somebody uses.

    The default one's journal tells of it.
    """
    own = forge.signed(live.settings, sandbox="mistyped")
    default = live.app.sandboxes.default
    known = {
        "the default sandbox's": f"Bearer {own_pair(default)[1]}",
        "its own": f"Bearer {own}",
    }
    headers = {} if credential is None else {"Authorization": known.get(credential, credential)}
    headers |= {"X-Sandbox": "mistyped"} if way == "header" else {}
    whole = path if way == "header" else f"/s/mistyped{path}"
    answer = httpx2.request(
        method,
        live.url + whole,
        headers=headers,
        json={} if method == "POST" else None,
        verify=NO_TLS,
    )
    assert (status, code) == (answer.status_code, answer.json()["code"])
    assert live.app.sandboxes.find("mistyped") is None
    shown = httpx2.get(
        f"{live.url}/_sandbox/requests/{answer.headers['x-request-id']}", verify=NO_TLS
    )
    assert (200, whole, status) == (
        shown.status_code, shown.json()["request"]["path"], shown.json()["request"]["status"]
    )  # fmt: skip


READING = (
    "clock", "events", "faults", "health", "invariants", "requests", "requests.har", "sandboxes", "snapshots", "steps",
    "stream",
)  # fmt: skip


@pytest.mark.check
@pytest.mark.parametrize("way", ["path", "header"])
def test_reading_controls_create_no_sandbox(serve: Serve, way: str) -> None:
    """All but the credentials.

    A slip in a name left a sandbox behind, whose empty journal answered 200.
    """
    live = serve(seed=12, scenario="empty")
    live.app.sandboxes.forget("alice")
    client = Door(live.port, "/s/alcie" if way == "path" else "", "x")
    headers = [] if way == "path" else [("X-Sandbox", "alcie")]

    def told(read: str) -> str:
        message = refused(
            client.ask("GET", f"/_sandbox/{read}", headers=headers), 404, "sandbox_not_found"
        )
        return str(message["message"])

    assert all(
        says(text, "alcie", "GET /s/alcie/_sandbox/credentials") for text in map(told, READING)
    )
    assert 200 == Door(live.port, "/s/alice", "x").ask("GET", "/_sandbox/credentials").status
    assert says(told("requests"), "alcie", "alice")
    assert ["default", "alice"] == [world.name for world in live.app.sandboxes.sandboxes()]
    assert 200 == client.ask("GET", "/_sandbox/credentials", headers=headers).status
    assert 200 == client.ask("GET", "/_sandbox/requests", headers=headers).status
    live.app.sandboxes.forget("alcie")


def test_names_are_suggested_to_the_admin_alone(serve: Serve) -> None:
    # the server that the test asks
    live = serve(host="0.0.0.0", admin_key="a-long-admin-key", scenario="empty")  # noqa: S104 - a setting: it listens on loopback
    admin = {"X-Sandbox-Admin-Key": "a-long-admin-key"}
    made = httpx2.post(
        f"{live.url}/_sandbox/sandboxes", json={"name": "alice"}, headers=admin, verify=NO_TLS
    )
    assert 201 == made.status_code
    for path, headers, told in (
        ("/v2/customers", {}, False),
        ("/v2/customers", {"X-Sandbox-Admin-Key": "another"}, False),
        ("/v2/customers", admin, True),
        ("/_sandbox/requests", admin, True),
    ):
        answer = httpx2.get(f"{live.url}/s/alcie{path}", headers=headers, verify=NO_TLS)
        assert ("sandbox_not_found", told) == (
            answer.json()["code"],
            "alice" in answer.text,
        ), answer.text
    hidden = httpx2.get(f"{live.url}/s/alcie/_sandbox/requests", verify=NO_TLS)
    assert (403, False) == (hidden.status_code, "alice" in hidden.text)


def client_of_the_next(live: Live, name: str) -> Door:
    """Somebody with a token of the sandbox that the next request to a name makes."""
    generation = live.app.sandboxes.generations.first(name)
    return Door(
        live.port, f"/s/{name}", forge.signed(live.settings, sandbox=name, generation=generation)
    )


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
                lambda number: client.send(
                    "POST", "/v2/customers", body | {"document": f"P4SS{number}"}
                ),
                range(8),
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
