"""The key of one sandbox for its control surface: what it opens, what it does not, and
where it is kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.server import server as served

from ..support.files import HEADERS
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import created
from ..support.refusal import refused

ADMIN = "a-long-admin-key"
NAMED = ("https://app.example.com",)
# what the settings say, nothing is bound
PUBLIC = replace(FROZEN, host="0.0.0.0", admin_key=ADMIN, cors_origins=NAMED)  # noqa: S104 - a setting: it listens on loopback
Json = dict[str, Any]
Answer = httpx2.Response


class Team:
    """Callers of one server with whatever keys."""

    def __init__(self, live: Live) -> None:
        self.url = f"http://127.0.0.1:{live.port}"

    def ask(
        self,
        method: str,
        path: str,
        key: str | None = None,
        *,
        admin: bool = False,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        """An answer to a request with whatever keys."""
        headers = dict(headers or {})
        if key is not None:
            headers["X-Sandbox-Control-Key"] = key
        if admin:
            headers["X-Sandbox-Admin-Key"] = ADMIN
        return httpx2.request(
            method, self.url + path, headers=headers, verify=NO_TLS, timeout=60, **more
        )

    def made(self, name: str, path: str = "/_sandbox/sandboxes") -> Json:
        """The credentials of a new sandbox."""
        return dict(
            created(self.ask("POST", path, admin=True, json={"name": name}))["sandbox"][
                "credentials"
            ]
        )


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is refused for the wrong keys of another one."""
    monkeypatch.setattr(served, "MOST_WRONG", 10_000)


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with running(PUBLIC) as live:
        yield live


@pytest.fixture(scope="module")
def team(server: Live) -> Team:
    return Team(server)


@pytest.fixture(scope="module")
def key(team: Team) -> str:
    """That of the sandbox `alice`; there is a sandbox `bob` too."""
    team.made("bob")
    return str(team.made("alice")["control_key"])


ORDER = "00000000-0000-4000-8000-000000000000"
OPENED = [
    ("GET", "/credentials", None, 200),
    ("GET", "/clock", None, 200),
    ("POST", "/clock/advance", {"seconds": 1}, 200),
    ("GET", "/requests", None, 200),
    ("GET", "/requests.har", None, 200),
    ("GET", "/settings", None, 200),
    ("PATCH", "/settings", {"autopay": 1}, 200),
    ("POST", f"/orders/{ORDER}/pay", None, 404),
    ("POST", "/faults", {"preset": "flaky"}, 201),
    ("DELETE", "/faults", None, 204),
    ("POST", "/snapshots", {"name": "one"}, 201),
    ("POST", "/rewind", {"to_step": 0}, 200),
    ("POST", "/tokens", {}, 201),
    ("GET", "/export", None, 200),
    ("GET", "/events", None, 200),
    ("POST", "/certify", {"webhookId": ORDER}, 409),
    ("POST", "/reset", {}, 200),
]
CLOSED = [
    ("GET", "/s/alice/_sandbox/sandboxes", None),
    ("GET", "/s/alice/_sandbox/sandboxes/alice", None),
    ("POST", "/s/alice/_sandbox/sandboxes", {"name": "carol"}),
    ("DELETE", "/s/alice/_sandbox/sandboxes/alice", None),
    ("POST", "/s/alice/_sandbox/sandboxes/alice/fork", {}),
    ("GET", "/s/alice/_sandbox//sandboxes", None),
    ("POST", "/s/alice/_sandbox/import", {}),
    ("GET", "/s/alice/_sandbox/metrics", None),
    ("GET", "/_sandbox/clock", None),
    ("GET", "/s/default/_sandbox/clock", None),
    ("GET", "/s/bob/_sandbox/clock", None),
    ("POST", "/s/bob/_sandbox/reset", {}),
    ("GET", "/s/nobody/_sandbox/clock", None),
    ("GET", "/s/-no-/_sandbox/clock", None),
]


def test_of_two_keys_that_of_the_sandbox_counts(team: Team, key: str) -> None:
    answer = team.ask("POST", "/s/alice/_sandbox/sandboxes", key, admin=True, json={})
    said = refused(answer, 403, "admin_key_required")["message"]
    assert "Send the admin key as X-Sandbox-Admin-Key instead." in said


@pytest.mark.parametrize(("method", "path", "body", "status"), OPENED, ids=str)
def test_it_opens_the_controls_of_its_sandbox(
    team: Team, key: str, method: str, path: str, body: Json | None, status: int
) -> None:
    assert status == team.ask(method, f"/s/alice/_sandbox{path}", key, json=body).status_code
    refused(team.ask(method, f"/s/alice/_sandbox{path}", json=body), 403, "admin_key_required")
    refused(
        team.ask(method, f"/s/alice/_sandbox{path}", key + "0", json=body),
        403,
        "admin_key_required",
    )
    if path == "/clock":
        assert (
            200
            == team.ask("GET", "/_sandbox/clock", key, headers={"X-Sandbox": "alice"}).status_code
        )


@pytest.mark.promise("control-key-of-one-sandbox")
@pytest.mark.parametrize(("method", "path", "body"), CLOSED, ids=str)
def test_it_opens_nothing_else(
    team: Team, key: str, method: str, path: str, body: Json | None
) -> None:
    refused(team.ask(method, path, key, json=body), 403, "admin_key_required")


def test_a_reset_keeps_it_and_a_fork_or_another_of_the_name_has_its_own(team: Team) -> None:
    first = team.made("carol")["control_key"]
    assert 200 == team.ask("POST", "/s/carol/_sandbox/reset", first, json={}).status_code
    file = team.ask("GET", "/s/carol/_sandbox/export", first).content
    done = team.ask("POST", "/s/carol/_sandbox/import", admin=True, content=file, headers=HEADERS)
    assert 200 == done.status_code
    assert first == team.ask("GET", "/s/carol/_sandbox/credentials", first).json()["control_key"]
    forked = team.made("dora", "/_sandbox/sandboxes/carol/fork")["control_key"]
    assert 204 == team.ask("DELETE", "/_sandbox/sandboxes/carol", admin=True).status_code
    again = team.made("carol")["control_key"]
    assert 3 == len({first, forked, again})
    refused(team.ask("GET", "/s/carol/_sandbox/clock", first), 403, "admin_key_required")


def test_verbs_of_the_command_take_it(
    team: Team, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a flag or from the environment; what it does not open they say in one line."""
    aim = ["--server", team.url, "--sandbox", "alice"]
    assert 0 == CliRunner().invoke(main, ["requests", "list", *aim, "--control-key", key]).exit_code
    monkeypatch.setenv("STUB_CONTROL_KEY", key)
    monkeypatch.setenv("STUB_ADMIN_KEY", "another")
    assert 0 == CliRunner().invoke(main, ["requests", "list", *aim]).exit_code
    wrong = CliRunner().invoke(main, ["requests", "list", "--server", team.url, "--sandbox", "bob"])
    assert 1 == wrong.exit_code
    assert "is not the control key of this sandbox" in wrong.output


@pytest.mark.promise("tokens-keys-cannot-made-seed")
def test_the_key_of_a_sandbox_is_another_one_on_another_server(team: Team) -> None:
    with running(PUBLIC) as other:
        assert team.made("ella")["control_key"] != Team(other).made("ella")["control_key"]
