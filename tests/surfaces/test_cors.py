"""What a browser may do: pages of this machine, and pages that the user names, may read the API."""

import pytest

from ..conftest import Serve
from ..support.refusal import refused
from ..support.wire import Answer, Door, Header
from .conftest import door_to

LOCAL = [
    "http://localhost:5173",
    "http://127.0.0.1:3000",
    "http://[::1]:8080",
    "http://app.localhost",
    "capacitor://localhost",
    "http://127.0.0.2",
]
FOREIGN = [
    "https://shop.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://127.evil.example",
    "null", "http://localhost@evil.example", "http://evil.example/localhost", "file://", "http://", "http://[::1", "",
    r"http://evil.example\.localhost", "http:evil.example://localhost", "evil.example/x://localhost", "://localhost",
    "http ://localhost", "http://.localhost", "http://a..localhost",
]  # fmt: skip
EXPOSED = [
    "X-Request-Id",
    "Location",
    "WWW-Authenticate",
    "Idempotent-Replayed",
    "X-Sandbox-Warnings",
    "X-Sandbox-Now",
    "ETag",
]


def preflight(
    door: Door, path: str, origin: str, method: str = "PUT", asked: str | None = None
) -> Answer:
    """What a browser sends before a request that is not simple: without any credential."""
    headers: list[Header] = [("Origin", origin), ("Access-Control-Request-Method", method)]
    if asked is not None:
        headers.append(("Access-Control-Request-Headers", asked))
    return door.ask("OPTIONS", path, headers=headers, token=None)


@pytest.mark.parametrize("origin", LOCAL)
def test_a_preflight_of_the_api_lets_pages_of_this_machine_through(
    door: Door, customer_id: str, origin: str
) -> None:
    answer = preflight(
        door, f"/v2/customers/{customer_id}", origin, asked="authorization,content-type,x-mine"
    )
    assert (204, b"") == (answer.status, answer.body)
    assert answer.header("access-control-allow-origin") == origin
    assert answer.header("access-control-allow-credentials") == "true"
    assert "PUT" in (answer.header("access-control-allow-methods") or "")
    assert answer.header("access-control-allow-headers") == "authorization,content-type,x-mine"
    assert "Origin" in (answer.header("vary") or "")


def readable(answer: Answer, origin: str) -> bool:
    """Whether a page of that origin may read the answer, credentials included."""
    return (
        answer.header("access-control-allow-origin") == origin
        and answer.header("access-control-allow-credentials") == "true"
        and set(EXPOSED) <= set((answer.header("access-control-expose-headers") or "").split(", "))
        and "Origin" in (answer.header("vary") or "")
    )


@pytest.mark.parametrize("origin", [LOCAL[0], LOCAL[2]])
@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/v2/customers?limit=1", "", 200),
        ("GET", "/v2/customers", None, 401),
        ("GET", "/v2/nothing", "", 404),
        ("DELETE", "/v2/customers", "", 405),
        ("POST", "/v2/customers", "", 422),
        ("OPTIONS", "/v2/customers", "", 204),
        ("GET", "/openapi.json", None, 200),
    ],
)
def test_every_answer_of_the_api_can_be_read(
    door: Door, origin: str, method: str, path: str, token: str | None, status: int
) -> None:
    """A refusal that a browser hides from its page explains nothing."""
    body = b"{}" if method == "POST" else None
    answer = door.ask(method, path, body, headers=[("Origin", origin)], token=token)
    assert (status, True) == (answer.status, readable(answer, origin))


@pytest.mark.promise("foreign-page-reads-nothing")
@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_a_stranger_reads_nothing_on_loopback(door: Door, origin: str) -> None:
    """The credentials of a loopback server follow from its seed: every page of the web
    could know them.
    """
    answer = preflight(door, "/v2/customers", origin)
    assert (204, None) == (answer.status, answer.header("access-control-allow-origin"))
    answer = door.ask("GET", "/v2/customers?limit=1", headers=[("Origin", origin)])
    assert (200, None) == (answer.status, answer.header("access-control-allow-origin"))


@pytest.mark.check
@pytest.mark.parametrize(
    ("settings", "origin", "reads"),
    [
        ({"cors_origins": ("https://shop.example",)}, "https://shop.example", True),
        ({"cors_origins": ("https://shop.example",)}, "https://other.example", False),
        ({"cors_origins": ("*",)}, "https://other.example", True),
    ],
)
def test_the_user_names_pages_that_read_the_api(
    serve: Serve, settings: dict[str, tuple[str, ...]], origin: str, reads: bool
) -> None:
    """`--cors-origin`, for a frontend that is served from elsewhere."""
    other = door_to(serve(**settings, scenario="empty"))
    answer = other.ask("GET", "/v2/customers?limit=1", headers=[("Origin", origin)])
    assert (200, reads) == (answer.status, readable(answer, origin))
    assert reads == (
        preflight(other, "/v2/customers", origin).header("access-control-allow-origin") == origin
    )


@pytest.mark.parametrize("origin", [None, LOCAL[0], FOREIGN[0]])
@pytest.mark.parametrize(
    "path",
    [
        "/v2/customers?limit=1", "/v2/nothing", "/openapi.json", "/", "/static/console.css", "/_sandbox/clock",
        "/_sandbox/health", "/_sandbox/qr.svg?code=x", "/_sandbox/qr.png?code=x",
    ],
)  # fmt: skip
def test_every_answer_says_that_it_depends_on_the_origin(
    door: Door, path: str, origin: str | None
) -> None:
    """A cache that kept an answer without would show it to a page for which it was not meant."""
    headers: list[Header] = [] if origin is None else [("Origin", origin)]
    assert "Origin, Accept, Accept-Encoding" == door.ask("GET", path, headers=headers).header(
        "vary"
    )


@pytest.mark.parametrize("path", ["/_sandbox/credentials", "/_sandbox/clock", "/_sandbox"])
@pytest.mark.parametrize("origin", LOCAL)
def test_local_pages_use_the_control_surface(door: Door, path: str, origin: str) -> None:
    assert preflight(door, path, origin).status == 204
    answer = door.ask("GET", path, headers=[("Origin", origin)])
    assert answer.status != 403
    assert readable(answer, origin)


@pytest.mark.parametrize("path", ["/_sandbox/credentials", "/_sandbox/clock", "/_sandbox"])
@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.matrix
def test_pages_of_strangers_do_not(door: Door, path: str, origin: str) -> None:
    """Else every web page that a developer visits could read the credentials."""
    refused(preflight(door, path, origin), 403, "admin_key_required")
    answer = door.ask("GET", path, headers=[("Origin", origin)])
    refused(answer, 403, "admin_key_required")
    assert answer.header("access-control-allow-origin") is None
    assert answer.header("www-authenticate") is None


@pytest.mark.promise("control-for-named-origins")
@pytest.mark.check
@pytest.mark.parametrize("origin", ["https://console.example", "https://other.example"])
@pytest.mark.parametrize("admin_key", [None, "a-long-admin-key"])
def test_a_page_of_another_machine_uses_the_control_surface_only_if_it_is_named(
    serve: Serve, admin_key: str | None, origin: str
) -> None:
    """With a key or without: a page that somebody opens may hold the key of whoever opens it.

    `*` names nobody.
    """
    door = Door(
        serve(
            admin_key=admin_key, cors_origins=("*", "https://Console.example/"), scenario="empty"
        ).port,
        "",
        "x",
    )
    is_named = origin == "https://console.example"
    asked = preflight(door, "/_sandbox/clock", origin)
    assert (204 if is_named else 403, origin if is_named else None) == (
        asked.status,
        asked.header("access-control-allow-origin"),
    )
    key: list[Header] = [] if admin_key is None else [("X-Sandbox-Admin-Key", admin_key)]
    answer = door.ask("GET", "/_sandbox/clock", headers=[*key, ("Origin", origin)])
    assert is_named == readable(answer, origin)
    assert is_named or answer.header("access-control-allow-origin") is None
    assert (200 if is_named or key else 403) == answer.status
