"""The inbox: a webhook's receiver without a server of one's own."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from ..conftest import Serve
from ..support.live import NO_TLS, NOW, Live
from ..support.make import Json, created, done, list_of, object_of
from ..support.receiver import Received
from .hooks import WEBHOOKS, sent, verified
from .steps import refused


@pytest.fixture
def address(live: Live, sandbox_name: str) -> str:
    """The inbox `shop` of the test's sandbox."""
    return f"{live.url}/s/{sandbox_name}/_sandbox/inbox/shop"


@pytest.fixture
def webhook(api: httpx2.Client, address: str) -> Json:
    """A webhook that delivers there; only tests are sent to it."""
    body = {
        "url": address,
        "events": ["*"],
        "is_active": False,
        "headers": [{"name": "X-Loja", "value": "matriz"}],
    }
    return object_of(created(api.post(WEBHOOKS, json=body)), "webhook")


def arrived(control: httpx2.Client, name: str = "shop", **query: Any) -> list[Json]:
    """The messages that match, newest first."""
    return list_of(done(control.get(f"/inbox/{name}", params=query)), "messages")


def posted(address: str, body: bytes = b"{}", **headers: str) -> httpx2.Response:
    """What a sender is answered."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(address, content=body, headers=named, timeout=30, verify=NO_TLS)


def test_a_delivery_arrives_with_its_headers_and_is_verified(
    api: httpx2.Client, control: httpx2.Client, webhook: Json
) -> None:
    log = sent(api, webhook)
    assert ("delivered", 200) == (log["status"], log["response_status"])
    (message,) = arrived(control)
    assert (True, webhook["id"], None, None) == tuple(
        message[name] for name in ("verified", "webhookId", "reason", "message")
    )
    assert ("webhook.test", log["event_id"], NOW) == tuple(
        message[name] for name in ("event_type", "event_id", "received_at")
    )
    assert "matriz" == message["headers"]["x-loja"]
    assert log["request_body"] == message["body"]
    assert len(message["body"]) == message["body_bytes"]
    verified(Received("", message["headers"], message["body"].encode()), webhook["signing_key"])


def signed(key: str, body: bytes, *, ago: int = 0, ident: str = "evt_1") -> dict[str, str]:
    """The three headers, by the independent library."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    signature = Webhook(key).sign(ident, at, body.decode())
    stamp = str(int(at.timestamp()))
    return {"webhook_id": ident, "webhook_timestamp": stamp, "webhook_signature": signature}


def without(name: str) -> Callable[[Json], Json]:
    """What leaves a header out."""
    return lambda headers: {key: value for key, value in headers.items() if key != name}


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        (without("webhook_id"), "header_missing", "webhook-id"),
        (without("webhook_timestamp"), "header_missing", "webhook-timestamp"),
        (without("webhook_signature"), "header_missing", "webhook-signature"),
        (
            lambda headers: headers | {"webhook_timestamp": "soon"},
            "timestamp_invalid",
            "seconds since 1970",
        ),
        (
            lambda headers: headers | {"webhook_timestamp": "-5"},
            "timestamp_invalid",
            "seconds since 1970",
        ),
        (
            lambda headers: headers | {"webhook_signature": "v1a,abc"},
            "signature_malformed",
            "v1,<base64>",
        ),
        (
            lambda headers: headers | {"webhook_signature": "v1,abc"},
            "no_key_matches",
            "no key of this sandbox's webhooks",
        ),
        (
            lambda headers: headers | {"webhook_id": "evt_2"},
            "no_key_matches",
            "no key of this sandbox's webhooks",
        ),
    ],
)
def test_what_is_not_signed_well_says_why(
    control: httpx2.Client,
    webhook: Json,
    address: str,
    change: Callable[[Json], Json],
    reason: str,
    says: str,
) -> None:
    """It is kept and answered all the same."""
    answer = posted(address, b"{}", **change(signed(webhook["signing_key"], b"{}")))
    assert (200, False, reason) == (
        answer.status_code,
        answer.json()["verified"],
        answer.json()["reason"],
    )
    (message,) = arrived(control)
    assert (False, None, reason) == (message["verified"], message["webhookId"], message["reason"])
    assert says in message["message"]


def test_whatever_is_posted_is_kept(control: httpx2.Client, address: str) -> None:
    """No JSON, no UTF-8, nothing at all; credentials are not kept."""
    for body in (b"", b"\xff\x00a", b"[1", b'{"type":7}', b"[" * 5_000):
        assert (
            200
            == posted(address, body, authorization="Bearer x", cookie="a=b", x_a="1").status_code
        )
    found = arrived(control)
    assert [5_000, 10, 2, 3, 0] == [message["body_bytes"] for message in found]
    assert "\ufffd\ufffda" == found[3]["body"]
    assert {None} == {message["event_type"] for message in found}
    shown = [found[0]["headers"][name] for name in ("authorization", "cookie", "x-a")]
    assert ["[redacted]", "[redacted]", "1"] == shown


def test_a_list_cuts_long_bodies_and_one_message_shows_all(
    control: httpx2.Client, address: str
) -> None:
    number = posted(address, b"a" * 20_000).json()["received"]
    (message,) = arrived(control)
    assert (8_192, 20_000) == (len(message["body"]), message["body_bytes"])
    whole = control.get(f"/inbox/shop/{number}").json()["message"]
    assert message | {"body": "a" * 20_000} == whole
    for other in (
        f"/inbox/shop/{number + 1}",
        f"/inbox/stall/{number}",
        "/inbox/shop/0",
        "/inbox/shop/x",
    ):
        assert 404 == control.get(other).status_code


def test_the_messages_are_listed_newest_first_by_page_and_filter(
    api: httpx2.Client, control: httpx2.Client, webhook: Json, address: str
) -> None:
    sent(api, webhook)
    sent(api, webhook, event_type="order.paid")
    posted(address, b'{"type":"order.paid"}')
    posted(address, b'{"type":"nave.pousou"}')

    def numbers(**query: Any) -> list[int]:
        return [message["number"] for message in arrived(control, **query)]

    assert [4, 3, 2, 1] == numbers()
    assert [3, 2] == numbers(event_type="order.paid")
    assert [4] == numbers(event_type="nave.pousou")
    assert [2, 1] == numbers(verified="true")
    assert [4, 3] == numbers(verified="false")
    assert [3] == numbers(verified="false", event_type="order.paid")
    assert [2] == numbers(limit=2, page=2)[:1]
    page = control.get("/inbox/shop", params={"limit": 3, "page": 2}).json()["pagination"]
    assert (4, 2, False, True) == (
        page["total"],
        page["total_pages"],
        page["has_next"],
        page["has_prev"],
    )
    assert [] == numbers(page=9) == numbers(page=2**53 - 1)


def test_an_inbox_answers_what_it_was_told(control: httpx2.Client, address: str) -> None:
    """So often, with headers, and late; then 200 again."""
    told = {"status": 503, "times": 2, "headers": [{"name": "Retry-After", "value": "120"}]}
    assert {"answer": {"delay_ms": 0} | told} == control.put("/inbox/shop/answer", json=told).json()
    answers = [posted(address) for _ in range(3)]
    assert [503, 503, 200] == [answer.status_code for answer in answers]
    assert ["120", "120", None] == [answer.headers.get("retry-after") for answer in answers]
    assert [200, 503, 503] == [message["answered"] for message in arrived(control)]
    control.put("/inbox/shop/answer", json={"delay_ms": 300})
    begun = time.monotonic()
    assert 200 == posted(address).status_code
    assert time.monotonic() - begun >= 0.3
    control.put("/inbox/shop/answer", json={"status": 204})
    assert (204, b"") == (posted(address).status_code, posted(address).content)
    control.put("/inbox/shop/answer", json={})
    assert 200 == posted(address).status_code


@pytest.mark.parametrize("name", ["Set-Cookie", "X-Accel-Redirect"])
def test_an_inbox_answers_no_header_that_acts_beyond_it(
    control: httpx2.Client, address: str, name: str
) -> None:
    told = {"headers": [{"name": name, "value": "/private"}]}
    refused(control.put("/inbox/shop/answer", json=told), 422, "validation_error")
    assert name not in posted(address).headers


@pytest.mark.check
def test_every_process_of_this_machine_may_post_and_no_page_of_another(serve: Serve) -> None:
    """With or without an admin key; reading asks for it."""
    server = serve(admin_key="k", scenario="empty")
    address = f"{server.url}/_sandbox/inbox/shop"
    assert 200 == posted(address).status_code
    refused(posted(address, origin="https://elsewhere.example"), 403, "admin_key_required")
    refused(posted(address, host="elsewhere.example"), 403, "host_not_allowed")
    refused(httpx2.get(address, verify=NO_TLS), 403, "admin_key_required")
    read = httpx2.get(address, headers={"X-Sandbox-Admin-Key": "k"}, verify=NO_TLS)
    assert 1 == read.json()["pagination"]["total"]


def test_beyond_loopback_the_inbox_asks_for_the_admin_key(serve: Serve) -> None:
    # the test itself listens on loopback
    public = serve(host="0.0.0.0", admin_key="k", secret=b"s", scenario="empty")  # noqa: S104 - a setting: it listens on loopback
    address = f"{public.url}/_sandbox/inbox/shop"
    refused(posted(address, webhook_id="evt_1"), 403, "admin_key_required")
    assert 200 == posted(address, webhook_id="evt_1", x_sandbox_admin_key="k").status_code
    read = httpx2.get(address, headers={"X-Sandbox-Admin-Key": "k"}, verify=NO_TLS)
    (message,) = read.json()["messages"]
    assert "[redacted]" == message["headers"]["x-sandbox-admin-key"]


@pytest.mark.promise("inboxes")
@pytest.mark.check
def test_all_inboxes_of_a_server_share_a_bound(serve: Serve) -> None:
    """Where nothing is left the fullest ones make room, as logs do."""
    server = serve(seed=9, scenario="empty")
    with httpx2.Client(base_url=server.url, timeout=30, verify=NO_TLS) as client:
        for world in range(18):
            for _ in range(15):
                client.post(f"/s/w{world}/_sandbox/inbox/shop", content=b"a" * 1_048_576)

        kept = [
            client.get(f"/s/w{world}/_sandbox/inbox/shop").json()["pagination"]["total"]
            for world in range(18)
        ]
        assert 245 <= sum(kept) <= 256, kept
        assert 10 <= min(kept), kept


def test_the_inboxes_in_use_are_listed_with_their_addresses(
    control: httpx2.Client, address: str, sandbox_name: str
) -> None:
    posted(address)
    posted(address)
    control.put("/inbox/Stall.2/answer", json={"status": 500})
    stall, shop = control.get("/inbox").json()["inboxes"]
    assert (address, 2, 2, NOW) == tuple(
        shop[name] for name in ("url", "received", "messages", "last_received_at")
    )
    assert (0, 0, None) == tuple(
        stall[name] for name in ("received", "messages", "last_received_at")
    )
    assert ("Stall.2", 500) == (stall["name"], stall["answer"]["status"])
    assert 200 == httpx2.get(shop["url"], verify=NO_TLS).status_code
    assert ["shop"] == [
        entry["name"] for entry in control.get("/inbox?limit=1&page=2").json()["inboxes"]
    ]
