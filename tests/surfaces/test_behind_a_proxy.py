"""A server behind a proxy, which says in X-Forwarded-For who its client is: only one that is named
is believed.
"""

from time import monotonic

import httpx2
import pytest

from stub_server.core import windows

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.make import typed
from ..support.processes import Process
from ..support.refusal import refused
from ..support.wire import Door, Header
from .conftest import door_to

pytestmark = pytest.mark.check
CLIENT: Header = ("X-Forwarded-For", "203.0.113.5")
NAMED = "10.0.0.5, 127.0.0.0/8"
OTHER = "10.0.0.5"


def limited_key(door: Door) -> str:
    """A key that may be used from the client's network alone."""
    body = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": ["203.0.113.0/24"]}
    return typed(str, door.send("POST", "/api-keys", body).json()["api_key"]["private_key"])


@pytest.mark.promise("named-proxies-believed")
@pytest.mark.parametrize(("proxies", "status"), [(NAMED, 200), (OTHER, 403), (None, 403)])
def test_allowed_ips_see_the_client_of_a_named_proxy(
    serve: Serve, proxies: str | None, status: int
) -> None:
    door = door_to(serve(forwarded_allow_ips=proxies, scenario="empty"))
    answer = door.ask("GET", "/v2/orders?limit=1", token=limited_key(door), headers=[CLIENT])
    assert status == answer.status, answer.body
    if status == 403:
        assert "127.0.0.1" in refused(answer, 403, "ip_not_allowed")["message"]


def test_a_client_adds_nothing_to_what_the_proxy_says(serve: Serve) -> None:
    """A proxy appends the address that it sees: what stands before may be anything."""
    door = door_to(serve(forwarded_allow_ips=NAMED, scenario="empty"))
    key = limited_key(door)
    for sent in (
        "203.0.113.5, 198.51.100.1",
        "203.0.113.5, 198.51.100.1, 10.0.0.5",
        "203.0.113.5, a b",
    ):
        answer = door.ask(
            "GET", "/v2/orders?limit=1", token=key, headers=[("X-Forwarded-For", sent)]
        )
        refused(answer, 403, "ip_not_allowed")


# -- wrong keys


@pytest.fixture
def team(serve: Serve) -> Live:
    """A team's server, behind a proxy that says who calls."""
    return serve(
        forwarded_allow_ips="127.0.0.1", admin_key="a-long-admin-key", seed=79, scenario="empty"
    )


def status(live: Live, client: str, path: str = "/_sandbox/clock", **headers: str) -> int:
    """How a request of somebody is answered."""
    sent = {"X-Forwarded-For": client} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    answer = httpx2.get(live.url + path, headers=sent, verify=NO_TLS, timeout=30)
    if answer.status_code == 429:
        assert "rate_limited" == answer.json()["code"]
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    return answer.status_code


@pytest.mark.promise("wrong-keys-slowed")
@pytest.mark.parametrize(
    ("header", "path", "first"),
    [
        ("X_Sandbox_Admin_Key", "/_sandbox/clock", 403),
        ("X_Sandbox_Admin_Key", "/_sandbox/health", 200),
        ("X_Sandbox_Control_Key", "/_sandbox/clock", 403),
        ("X_Sandbox_Control_Key", "/openapi.yaml", 200),
        ("Authorization", "/_sandbox/metrics", 403),
    ],
)
def test_ten_wrong_keys_of_an_address_are_enough_for_a_minute(
    team: Live,
    header: str,
    path: str,
    first: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever one could be tried; right ones work, and others are not held up."""
    client = f"client of {request.node.name}"
    wrong = {header: "Bearer wrong" if header == "Authorization" else "wrong"}
    assert [first] * 10 + [429] == [status(team, client, path, **wrong) for _ in range(11)]
    assert (200, first) == (
        status(team, client, X_Sandbox_Admin_Key="a-long-admin-key"),
        status(team, f"another {client}", path, **wrong),
    )
    later = monotonic() + 61
    monkeypatch.setattr(windows, "monotonic", lambda: later)
    assert first == status(team, client, path, **wrong)


@pytest.mark.promise("banner-without-key")
@pytest.mark.parametrize(
    "flags",
    [
        ("--admin-key", "a-long-admin-key"),
        ("--allow-host", "x.example"),
        ("--base-url", "https://x.example"),
    ],
)
def test_the_banner_of_a_public_server_has_no_key(flags: tuple[str, ...]) -> None:
    with Process(*flags) as public:
        assert "sk_sandbox_…" in public.banner
        assert [] == [
            word for word in public.banner.split() if len(word.partition("sk_sandbox_")[2]) > 5
        ]
        assert "a-long-admin-key" not in public.banner
