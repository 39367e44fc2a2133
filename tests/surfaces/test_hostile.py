"""What an attacker tried once: half-sent bodies, floods, borrowed replies, strangers' pages, rings of deliveries."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from stub_server.calls.call import Call
from stub_server.contract.formats import is_ip_network
from stub_server.engine.journal import Trace
from stub_server.engine.step import Saved
from stub_server.events.network import allowed
from stub_server.events.sender import Delivery
from stub_server.http import validation
from stub_server.http.answers import render
from stub_server.settings import Settings

from ..conftest import Serve
from ..support import forge
from ..support.live import NO_TLS, Live
from ..support.receiver import Receiver, receiving
from ..support.refusal import fields, refused
from ..support.wire import Answer, Door, Header

STRANGER: Header = ("Origin", "https://stranger.example")
SECRET = "do-not-show-me"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on this machine."""
    with receiving() as made:
        yield made


def token(live: Live, door: Door, *scopes: str) -> str:
    """A JWT of the door's sandbox with these scopes alone."""
    body = {"scopes": list(scopes)}
    made = httpx2.post(f"{live.url}{door.prefix}/_sandbox/tokens", json=body, verify=NO_TLS, timeout=30).json()
    return str(made["token"])


def post(door: Door, path: str, body: Any, *headers: Header, token: str = "") -> Answer:
    """A POST with a JSON body."""
    return door.ask("POST", path, json.dumps(body).encode(), headers=headers, token=token)


def some_project(door: Door, index: int) -> str:
    """A seeded project's id."""
    found: str = door.ask("GET", "/v2/projects?limit=5").json()["data"]["projects"][index]["id"]
    return found


def webhook(door: Door, url: str, **more: Any) -> str:
    """A new webhook's id."""
    made = post(door, "/v2/webhooks", {"url": url, "events": ["webhook.test"], **more})
    assert made.status == 201, made.body
    ident: str = made.json()["webhook"]["id"]
    return ident


# -- bodies


@pytest.mark.parametrize("sent", ['{"name":"Meia","email":"meia@example.com","document":"HALFSENT%d"}', ""])
@pytest.mark.parametrize("path", ["/v2/customers", "/v2/projects/{project}/archive"])
def test_a_request_whose_body_was_cut_off_is_not_done(live: Live, door: Door, sent: str, path: str) -> None:
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
    assert (journal[-1].method, journal[-1].code) == ("POST", "malformed_request")
    assert door.ask("GET", "/v2/customers?limit=1").json()["pagination"]["total"] == before
    assert door.ask("GET", f"/v2/projects/{project}").json()["data"]["project"]["status"] == "draft"


@pytest.mark.parametrize(
    "body",
    [
        b'{"items":[' + b",".join([b"{}"] * 100_000) + b"]}",
        b'{"items":[' + b",".join([b"1"] * 100_000) + b"]}",
        b"{" + b",".join(b'"k%d":1' % n for n in range(30_000)) + b"}",
    ],
    ids=["objects", "numbers", "members"],
)
def test_a_flood_of_violations_holds_nobody_up(door: Door, body: bytes) -> None:
    """Telling all of them took ten seconds of everybody's time; the first one is as good."""
    told = refused(door.ask("POST", "/v2/orders/pix", body), 422, "validation_error")
    assert len(told["details"]) == 1


@pytest.mark.promise("journal")
def test_a_journal_counts_the_names_of_headers(door: Door) -> None:
    """2,000 of them of 60 kB each were kept beyond what a sandbox may keep."""
    sent = 650
    for number in range(sent):
        assert 404 == door.ask("GET", "/v2/nothing", headers=[(f"x-{number}-{'x' * 59_000}", "")], token=None).status
    listed = door.ask("GET", "/_sandbox/requests?limit=1").json()["pagination"]["total"]
    assert 500 < listed <= 32 * 1024 * 1024 / 59_000


def test_a_flood_of_warnings_is_not_compared_with_itself() -> None:
    """Seven thousand unknown query parameters fit into one request; each was compared with all before."""
    call = Call.__new__(Call)
    for number in range(1_000):
        call.warn(f"unknown_query_parameter:p{number}")
    assert call.warnings[0] == "unknown_query_parameter:p0"
    assert 20 <= len(call.warnings) <= 100


def test_an_ordinary_body_is_told_all_its_violations(door: Door) -> None:
    """The bound is far above what a client sends by mistake."""
    item = {"description": "", "quantity": 0, "amount": -1}
    body = {"projectId": "x", "planId": "y", "totalAmount": -1, "customer": {}, "items": [item] * 5}
    assert json.dumps(body).count(",") < validation.WIDEST
    told = refused(post(door, "/v2/orders/pix", body), 422, "validation_error")
    assert {"projectId", "planId", "totalAmount", "items[0].quantity", "items[4].amount"} <= set(fields(told))


def test_a_huge_text_is_no_network_and_is_not_remembered() -> None:
    """A cache keyed by what clients send would grow by a megabyte per request."""
    text = "1." * 500_000
    references = sys.getrefcount(text)
    assert not is_ip_network(text)
    assert references == sys.getrefcount(text)
    assert is_ip_network("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128")


# -- saved replies


@pytest.mark.promise("saved-reply-needs-rights")
def test_a_saved_private_key_is_not_repeated_to_whoever_may_do_less(live: Live, door: Door) -> None:
    """A token that could not have made the key must not be handed it by replaying the request."""
    body = {"name": "Emprestada", "scopes": ["orders:write"]}
    key: Header = ("Idempotency-Key", "borrowed-key")
    made = post(door, "/api-keys", body, key)
    assert made.status == 201
    narrow = token(live, door, "api_keys:write")
    answer = post(door, "/api-keys", body, key, token=narrow)
    refused(answer, 409, "idempotency_key_reused")
    assert b"sk_sandbox_" not in answer.body
    assert post(door, "/api-keys", body, key).json() == made.json()


def test_a_saved_signing_key_is_not_repeated_to_a_key_of_other_projects(door: Door) -> None:
    """allowed_projects holds for replies that were saved for somebody else."""
    mine, other = some_project(door, 0), some_project(door, 1)
    scopes = ["webhooks:write"]
    made = post(door, "/api-keys", {"name": "Restrita", "scopes": scopes, "allowed_projects": [mine]})
    restricted = made.json()["api_key"]["private_key"]
    body = {"url": "http://127.0.0.1:9/borrowed", "events": ["*"], "projectId": other}
    key: Header = ("Idempotency-Key", "borrowed-webhook")
    assert post(door, "/v2/webhooks", body, key).status == 201
    answer = post(door, "/v2/webhooks", body, key, token=restricted)
    refused(answer, 409, "idempotency_key_reused")
    assert b"whsec_" not in answer.body


# -- tokens


@pytest.mark.parametrize("claim", ["sub", "merchant_id"])
@pytest.mark.parametrize("value", ["", "user-1", "b7b0d5a34c064556bb91d5022a615218"])
def test_a_signed_token_whose_ids_are_no_ids_is_401(live: Live, door: Door, claim: str, value: str) -> None:
    """Taken, they would end up in records and events that break the contract for every later reader."""
    forged = forge.signed(live.settings, **{"sandbox": "surfaces", claim: value})
    refused(door.ask("GET", "/v2/customers", token=forged), 401, "invalid_token")


def test_the_merchant_of_a_token_is_the_same_in_capitals(live: Live, door: Door) -> None:
    """Ids are the same in any case, as everywhere."""
    home = live.app.sandboxes.entry("surfaces").sandbox.home
    forged = forge.signed(live.settings, sandbox="surfaces", merchant_id=home.upper(), scope="*")
    assert door.ask("GET", "/v2/customers?limit=1", token=forged).json()["pagination"]["total"] > 0


def test_a_huge_token_is_verified_and_not_remembered(live: Live, door: Door) -> None:
    """On loopback everybody can sign one: thousands of sixty kilobytes each would stay."""
    home = live.app.sandboxes.entry("surfaces").sandbox.home
    huge = forge.signed(live.settings, sandbox="surfaces", merchant_id=home, scope="*", padding="x" * 40_000)
    assert 200 == door.ask("GET", "/v2/customers?limit=1", token=huge).status
    authorization = f"Bearer {huge}".encode()
    references = sys.getrefcount(authorization)
    assert home == live.app.server.tokens.verified(authorization).merchant_id
    assert references == sys.getrefcount(authorization)


# -- strangers' pages


@pytest.mark.promise("foreign-page-creates-nothing")
@pytest.mark.parametrize(
    "headers", [[STRANGER], [("Origin", "null")], [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]]
)
def test_a_strangers_page_makes_no_worlds(live: Live, headers: list[Header]) -> None:
    """A picture's address is enough to send a request, and there is room for so many worlds only."""
    name = "by-a-stranger"
    answer = Door(live.port, f"/s/{name}", "x").ask("GET", "/openapi.json", headers=headers)
    refused(answer, 404, "sandbox_not_found")
    forged = forge.signed(live.settings, sandbox=name)
    refused(Door(live.port, "", forged).ask("GET", "/v2/customers", headers=headers), 404, "sandbox_not_found")
    assert live.app.sandboxes.find(name) is None


def test_a_local_page_makes_worlds(live: Live) -> None:
    """The developer's own application does, from whatever port."""
    headers: list[Header] = [("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "cross-site")]
    assert Door(live.port, "/s/by-a-local-page", "x").ask("GET", "/openapi.json", headers=headers).status == 200
    live.app.sandboxes.forget("by-a-local-page")


@pytest.mark.promise("foreign-page-no-private-webhook")
@pytest.mark.parametrize(
    ("origin", "error"), [("https://stranger.example", "blocked"), ("null", "blocked"), ("http://localhost:3000", None)]
)
def test_a_strangers_page_reaches_no_private_address_through_a_webhook(
    door: Door, receiver: Receiver, origin: str, error: str | None
) -> None:
    """The token of a default start is no secret; the networks of whoever started it are not a page's to read."""
    ident = webhook(door, f"{receiver.url}/{abs(hash(origin))}")
    answer = post(door, f"/v2/webhooks/{ident}/test", {}, ("Origin", origin))
    assert answer.json()["log"]["error"] == error
    assert len(receiver.requests) == (error is None)
    door.ask("DELETE", f"/v2/webhooks/{ident}")


def test_an_address_that_a_strangers_page_chose_stays_unreached_for_its_user(door: Door, receiver: Receiver) -> None:
    """Also when the user sends a test, retries it or has the receiver certified."""
    body = {"url": f"{receiver.url}/theirs", "events": ["*"]}
    made = post(door, "/v2/webhooks", body, ("Origin", "https://evil.example")).json()["webhook"]
    log = post(door, f"/v2/webhooks/{made['id']}/test", {}).json()["log"]
    assert "blocked" == log["error"]
    assert "blocked" == door.ask("POST", f"/v2/webhooks/logs/{log['id']}/retry").json()["log"]["error"]
    assert 200 == post(door, "/_sandbox/certify", {"webhookId": made["id"]}).status
    assert [] == receiver.requests
    door.ask("DELETE", f"/v2/webhooks/{made['id']}")


def test_an_empty_admin_key_opens_nothing(serve: Serve) -> None:
    """An unset variable in a start script is no key that everybody knows."""
    door = Door(serve(host="0.0.0.0", admin_key="").port, "", "x")  # noqa: S104 - told, not bound
    for headers in ([], [("X-Sandbox-Admin-Key", "")]):
        refused(door.ask("GET", "/_sandbox/clock", headers=headers), 403, "admin_key_required")


# -- deliveries


def test_a_delivery_sets_off_no_delivery(live: Live, door: Door, receiver: Receiver) -> None:
    """A webhook on the server's own retry would call itself for ever: the server does not let it in."""
    ident = webhook(door, f"{receiver.url}/ring")
    log = post(door, f"/v2/webhooks/{ident}/test", {}).json()["log"]["id"]
    retry = f"/v2/webhooks/logs/{log}/retry"
    made = post(door, "/api-keys", {"name": "Anel", "scopes": ["webhooks:write"]}).json()["api_key"]["private_key"]
    changes = {"url": live.url + door.prefix + retry, "headers": [{"name": "Authorization", "value": f"Bearer {made}"}]}
    assert door.send("PUT", f"/v2/webhooks/{ident}", changes).status == 200
    assert door.ask("POST", retry).json()["log"]["response_status"] == 403
    shown = door.ask("GET", f"/v2/webhooks/logs/{log}").json()["log"]
    assert "delivery_not_allowed" in shown["response_body"]
    assert [a["error"] for a in shown["attempts"] if a["trigger"] == "manual"] == ["http_4xx"]
    door.ask("DELETE", f"/v2/webhooks/{ident}")


@pytest.mark.parametrize("address", ["::ffff:0:a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "168.63.129.16", "192.0.0.192"])
def test_translated_and_further_metadata_addresses_are_never_open(address: str) -> None:
    """What a network's own translator makes of them cannot be known here."""
    assert not allowed(address, local=True)


@pytest.mark.parametrize("address", ["fec0::1", "5f00::1", "64:ff9b:1::1", "::ffff:0:7f00:1"])
def test_only_global_unicast_ipv6_is_public(address: str) -> None:
    """Not every address outside the private lists is one of the internet."""
    assert not allowed(address, local=False)


# -- answers and logs


def test_setting_the_clock_answers_as_the_contract_says(live: Live) -> None:
    """It moved the clock and then answered 500."""
    door = Door(live.port, "/s/hostile-clock", "")
    answer = door.ask("PATCH", "/_sandbox/clock", b'{"to":"2026-12-01T00:00:00Z"}', token=None)
    assert (200, "2026-12-01T00:00:00.000Z") == (answer.status, answer.json()["now"])
    assert answer.json() == door.ask("GET", "/_sandbox/clock", token=None).json() | {
        "offset_seconds": answer.json()["offset_seconds"]
    }
    live.app.sandboxes.forget("hostile-clock")


@pytest.mark.promise("no-secret-in-repr")
@pytest.mark.parametrize(
    "value",
    [
        Settings(admin_key=SECRET, secret=SECRET.encode()),
        Saved(b"", 0, 201, SECRET.encode(), ()),
        Delivery("http://127.0.0.1/", "evt_1", b"", (), (SECRET,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_secret_is_in_a_repr(value: object) -> None:
    """Tracebacks and debuggers show reprs."""
    assert SECRET not in repr(value)


def test_a_path_writes_no_lines_of_its_own_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """%0a in a path is a line feed by the time it is logged."""
    trace = Trace("req_1", 0, "GET", "/v2/x\nERROR forged", b"", "default")
    assert render(ValueError("defect"), trace)[0] == 500
    assert "\nERROR forged" not in caplog.records[0].getMessage()
