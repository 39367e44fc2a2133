"""A server that others can reach: the control surface is shut, and nobody makes worlds by
naming them.
"""

from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.cli import banner

from ..conftest import Serve
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.refusal import refused
from ..support.wire import Door

pytestmark = pytest.mark.check

WAYS: dict[str, dict[str, Any]] = {
    # the test's server listens on loopback all the same
    "its bind": {"host": "0.0.0.0"},  # noqa: S104 - a setting: it listens on loopback
    "the address of a proxy": {"base_url": "https://sandbox.team.example"},
    "a name that a proxy passes on": {"allow_hosts": ("sandbox.team.example",)},
}


@pytest.fixture(params=WAYS)
def public(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What makes a server one that others can reach."""
    return WAYS[request.param]


@pytest.mark.promise("control-closed-without-key")
@pytest.mark.parametrize(
    "path", ["/_sandbox", "/_sandbox/credentials", "/_sandbox/clock", "/_sandbox/nothing"]
)
def test_without_an_admin_key_the_control_surface_is_shut(
    serve: Serve, path: str, public: dict[str, Any]
) -> None:
    door = Door(serve(**public, scenario="empty").port, "", "x")
    for host, headers in ((None, []), (None, [("X-Sandbox-Admin-Key", "")]), ("localhost", [])):
        refused(door.ask("GET", path, headers=headers, host=host), 403, "admin_key_required")


@pytest.mark.promise("control-closed-without-key")
@pytest.mark.parametrize("key", [None, "a-long-admin-key"])
@pytest.mark.parametrize("before", ["*", "**", "*%2f", "*@evil.example"])
def test_a_target_that_begins_otherwise_leads_past_no_key(
    serve: Serve, before: str, key: str | None, public: dict[str, Any]
) -> None:
    """HTTP has such a target for OPTIONS; a parser takes it for other methods too."""
    door = Door(serve(**public, admin_key=key, scenario="empty").port, "", "x")
    for method, path in (("GET", "credentials"), ("GET", "requests"), ("POST", "sandboxes")):
        refused(door.ask(method, f"{before}/_sandbox/{path}", token=None), 404, "route_not_found")


@pytest.mark.promise("control-closed-without-key")
def test_without_an_admin_key_no_control_key_opens_it(
    tmp_path: Path, public: dict[str, Any]
) -> None:
    """Such a key was handed out while the server of the store had an admin key."""
    of_team = replace(FROZEN, **public, scenario="empty", store=tmp_path / "store")
    with running(replace(of_team, admin_key="a-long-admin-key")) as server:
        answer = Door(server.port, "", "x").ask(
            "GET", "/_sandbox/credentials", headers=[("X-Sandbox-Admin-Key", "a-long-admin-key")]
        )
        key = [("X-Sandbox-Control-Key", answer.json()["control_key"])]
        assert 200 == Door(server.port, "", "x").ask("GET", "/_sandbox/clock", headers=key).status
    with running(of_team) as server:
        for path in ("/_sandbox/clock", "/_sandbox/credentials"):
            refused(
                Door(server.port, "", "x").ask("GET", path, headers=key), 403, "admin_key_required"
            )


@pytest.mark.promise("no-private-webhooks")
def test_no_webhook_reaches_this_machine_and_no_stranger_delays(
    serve: Serve, public: dict[str, Any]
) -> None:
    server = serve(**public, scenario="empty")
    door = Door(server.port, "", server.app.server.ready_token(server.app.sandboxes.default))
    body = {"url": "http://127.0.0.1:9/", "events": ["webhook.test"]}
    path = f"/v2/webhooks/{door.send('POST', '/v2/webhooks', body).json()['webhook']['id']}/test"
    assert "blocked" == door.send("POST", path, {}).json()["log"]["error"]
    slow = [("X-Sandbox-Delay", "20000")]
    assert 401 == door.ask("GET", "/v2/plans", headers=slow, token=None).status


@pytest.mark.promise("health-for-strangers")
def test_health_tells_strangers_neither_a_path_nor_the_seed(
    serve: Serve, tmp_path: Path, public: dict[str, Any]
) -> None:
    """A file of the user's is named without its folders; whoever has the admin key is told all."""
    file = tmp_path / "loja.yaml"
    file.write_text("merchant: { name: Loja, city: Recife }\n", encoding="utf-8")
    server = serve(**public, admin_key="a-long-admin-key", scenario=str(file))
    health = f"{server.url}/_sandbox/health"
    for headers in ({}, {"X-Sandbox-Admin-Key": "wrong"}, {"X-Sandbox-Admin-Key": ""}):
        body = httpx2.get(health, headers=headers, verify=NO_TLS).json()
        assert ("loja", False) == (body["scenario"], "seed" in body)
        assert str(tmp_path) not in str(body)
    told = httpx2.get(
        health, headers={"X-Sandbox-Admin-Key": "a-long-admin-key"}, verify=NO_TLS
    ).json()
    assert (str(file), 42) == (told["scenario"], told["seed"])
    local = httpx2.get(f"{serve(scenario=str(file)).url}/_sandbox/health", verify=NO_TLS).json()
    assert (str(file), 42) == (local["scenario"], local["seed"])


@pytest.mark.promise("admin-key-creates-sandboxes")
def test_a_world_that_was_not_made_is_404(serve: Serve, public: dict[str, Any]) -> None:
    port = serve(**public, scenario="empty").port
    refused(Door(port, "/s/alice", "x").ask("GET", "/v2/customers"), 404, "sandbox_not_found")
    refused(
        Door(port, "", "x").ask("GET", "/v2/customers", headers=[("X-Sandbox", "alice")]),
        404,
        "sandbox_not_found",
    )
    assert Door(port, "/s/default", "x").ask("GET", "/v2/customers").status == 401


def told_at_start(live: Live) -> str:
    """What the command prints when this server is ready."""
    with redirect_stdout(StringIO()) as out:
        banner.show(live.app, live.settings)
    return out.getvalue()


def test_the_start_and_the_front_page_say_how_sandboxes_are_made(
    serve: Serve, public: dict[str, Any]
) -> None:
    """On this machine a refused request makes none, and elsewhere no name does."""
    own = serve()
    shared = serve(**public, admin_key="k", scenario="empty")
    for server, how in (
        (own, "is a separate sandbox, created by the first request to it that succeeds"),
        (
            shared,
            f"is a separate sandbox, created by POST {shared.settings.url}/_sandbox/sandboxes",
        ),
    ):
        assert how in " ".join(told_at_start(server).split())
        page = httpx2.get(f"{server.url}/", headers={"Accept": "text/html"}, verify=NO_TLS).text
        assert how in page.replace("</code>", "")


@pytest.mark.promise("start-warns")
@pytest.mark.parametrize(
    ("settings", "opens", "closed"),
    [
        ({}, False, True),
        ({"auth": "lenient"}, True, True),
        ({"auth": "lenient", "admin_key": "k"}, True, False),
        ({"admin_key": "k"}, False, False),
    ],
)
def test_the_start_says_what_a_public_bind_opens_and_what_stays_closed(
    serve: Serve, settings: dict[str, Any], opens: bool, closed: bool, public: dict[str, Any]
) -> None:
    text = told_at_start(serve(**public, **settings, scenario="empty"))
    assert "public, because of --" in " ".join(text.split())
    where = public.get("allow_hosts", [*public.values()])[0]
    said = (
        f"--auth lenient on {where}: everybody who can call this address can read and change every"
        " record"
    )
    assert opens == (said in text)
    assert closed == (f"no --admin-key on {where}: /_sandbox refuses everything" in text)
    # the last: no proxy is named
    assert (opens + closed + ("base_url" in public)) == text.count("warning")
