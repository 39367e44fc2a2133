"""What an attacker tried once: half-sent bodies, floods, and strangers' pages."""

import json
import socket
import time
from typing import Any

import pytest

from stub_server.domain.deliveries import Delivery
from stub_server.engine.lists import Saved
from stub_server.engine.sandbox import Rules
from stub_server.engine.step import SandboxSettings
from stub_server.settings import Settings

from ..support import forge
from ..support.live import Live
from ..support.make import typed
from ..support.receiver import Receiver
from ..support.refusal import refused
from ..support.wire import Answer, Door, Header

STRANGER: Header = ("Origin", "https://stranger.example")
LOCAL: Header = ("Origin", "http://localhost:3000")
SECRET = "do-not-show-me"
NOTHING: Any = None


def post(door: Door, path: str, body: Any, *headers: Header) -> Answer:
    """A POST with a JSON body."""
    return door.ask("POST", path, json.dumps(body).encode(), headers=headers)


def webhook(door: Door, url: str, **more: Any) -> str:
    """A new webhook's id."""
    made = post(door, "/v2/webhooks", {"url": url, "events": ["webhook.test"], **more})
    assert made.status == 201, made.body
    return typed(str, made.json()["webhook"]["id"])


# -- bodies


@pytest.mark.parametrize(
    "sent", ['{"name":"Meia","email":"meia@example.com","document":"HALFSENT%d"}', ""]
)
@pytest.mark.parametrize("path", ["/v2/customers", "/v2/projects/{project}/archive"])
def test_a_request_whose_body_was_cut_off_is_not_done(
    live: Live, door: Door, sent: str, path: str
) -> None:
    """Neither what came of the body, nor the operation without its optional body."""
    created = post(door, "/v2/projects", {"name": f"Cortado {len(sent)} {len(path)}"})
    project = created.json()["data"]["project"]["id"]
    body = (sent.replace("%d", str(len(path)))).encode()
    before = door.ask("GET", "/v2/customers?limit=1").json()["pagination"]["total"]
    head = (
        f"POST {door.prefix}{path.format(project=project)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {door.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body) + 9}\r\n\r\n"
    )
    seen = len(live.app.sandboxes.entry("surfaces").sandbox.journal)
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)
    journal = live.app.sandboxes.entry("surfaces").sandbox.journal
    until = time.monotonic() + 10
    while len(journal) == seen and time.monotonic() < until:
        time.sleep(0.01)
    newest = next(reversed(journal))
    assert (newest.method, newest.code) == ("POST", "malformed_request")
    assert door.ask("GET", "/v2/customers?limit=1").json()["pagination"]["total"] == before
    assert door.ask("GET", f"/v2/projects/{project}").json()["data"]["project"]["status"] == "draft"


@pytest.mark.promise("journal")
def test_a_journal_counts_the_names_of_headers(door: Door) -> None:
    """2,000 of them of 60 kB each were kept beyond what a sandbox may keep."""
    sent = 650
    for number in range(sent):
        assert (
            404
            == door.ask(
                "GET", "/v2/nothing", headers=[(f"x-{number}-{'x' * 59_000}", "")], token=None
            ).status
        )
    listed = door.ask("GET", "/_sandbox/requests?limit=1").json()["pagination"]["total"]
    assert 500 < listed <= 32 * 1024 * 1024 / 59_000


# -- strangers' pages


@pytest.mark.promise("foreign-page-creates-nothing")
@pytest.mark.parametrize(
    "headers",
    [
        [STRANGER],
        [("Origin", "null")],
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
    ],
)
def test_a_strangers_page_makes_no_worlds(live: Live, headers: list[Header]) -> None:
    """A picture's address is enough to send a request, and there is room for so many
    worlds only.
    """
    name = "by-a-stranger"
    answer = Door(live.port, f"/s/{name}", "x").ask("GET", "/openapi.json", headers=headers)
    refused(answer, 404, "sandbox_not_found")
    forged = forge.signed(live.settings, sandbox=name)
    refused(
        Door(live.port, "", forged).ask("GET", "/v2/customers", headers=headers),
        404,
        "sandbox_not_found",
    )
    assert live.app.sandboxes.find(name) is None


@pytest.mark.promise("foreign-page-no-private-webhook")
@pytest.mark.parametrize(
    ("origin", "error"),
    [("https://stranger.example", "blocked"), ("null", "blocked"), ("http://localhost:3000", None)],
)
def test_a_strangers_page_reaches_no_private_address_through_a_webhook(
    door: Door, receiver: Receiver, origin: str, error: str | None
) -> None:
    """The token of a default start is no secret; the networks of whoever started it are not a
    page's to read.
    """
    ident = webhook(door, f"{receiver.url}/{abs(hash(origin))}")
    answer = post(door, f"/v2/webhooks/{ident}/test", {}, ("Origin", origin))
    assert answer.json()["log"]["error"] == error
    assert len(receiver.requests) == (error is None)
    door.ask("DELETE", f"/v2/webhooks/{ident}")


@pytest.mark.promise("foreign-page-no-private-webhook")
def test_a_strangers_page_moves_no_webhook_to_a_private_address(
    door: Door, receiver: Receiver
) -> None:
    """Its owner's own application does."""
    path = f"/v2/webhooks/{webhook(door, 'https://receiver.example/moved')}"
    for number, (origin, error) in enumerate(((STRANGER, "blocked"), (LOCAL, None))):
        body = json.dumps({"url": f"{receiver.url}/moved/{number}"}).encode()
        assert door.ask("PUT", path, body, headers=[origin]).status == 200
        assert post(door, f"{path}/test", {}).json()["log"]["error"] == error
    door.ask("DELETE", path)


# -- answers and logs


@pytest.mark.promise("no-secret-in-repr")
@pytest.mark.parametrize(
    "value",
    [
        Settings(admin_key=SECRET, secret=SECRET.encode()),
        Saved(("", "", "", ""), b"", 0, 201, SECRET.encode(), ()),
        Delivery("http://127.0.0.1/", "evt_1", b"", (), (SECRET,)),
        Rules(
            NOTHING, {}, {}, {}, {}, (), NOTHING, NOTHING, "", SandboxSettings(), SECRET.encode()
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_secret_is_in_a_repr(value: object) -> None:
    """Tracebacks and debuggers show reprs."""
    assert SECRET not in repr(value)
