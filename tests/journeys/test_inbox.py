"""The inbox: a webhook's receiver without a server of one's own."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from ..conftest import Serve
from ..support.live import NO_TLS, NOW, Live
from ..support.make import Json, created
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
    body = {"url": address, "events": ["*"], "is_active": False, "headers": [{"name": "X-Loja", "value": "matriz"}]}
    made: Json = created(api.post(WEBHOOKS, json=body))["webhook"]
    return made


def arrived(control: httpx2.Client, name: str = "shop", **query: Any) -> list[Json]:
    """The messages that match, newest first."""
    response = control.get(f"/inbox/{name}", params=query)
    assert response.status_code == 200, response.text
    found: list[Json] = response.json()["messages"]
    return found


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


def test_the_control_contract_describes_what_a_sender_does(control: httpx2.Client, address: str) -> None:
    item = control.get("/openapi.json").json()["paths"]["/inbox/{inboxName}"]
    answers = item["post"]["responses"]
    assert {"200", "403", "404", "413", "default"} == answers.keys()
    (example,) = answers["200"]["content"]["application/json"]["examples"].values()
    assert example["value"] == posted(address, b'{"type": "webhook.test"}').json()
    allowed = httpx2.options(address, verify=NO_TLS).headers["Allow"]
    assert {"GET", "POST"} <= set(allowed.split(", "))


def test_both_keys_verify_until_the_grace_of_the_old_one_ends(
    api: httpx2.Client, control: httpx2.Client, webhook: Json, address: str
) -> None:
    """On the sandbox clock, as the sender signs."""
    old = webhook["signing_key"]
    made = api.post(f"{WEBHOOKS}/{webhook['id']}/regenerate-key", json={"grace_period_seconds": 60})
    new = made.json()["webhook"]["signing_key"]
    sent(api, webhook)
    (message,) = arrived(control)
    assert message["verified"]
    assert 2 == len(message["headers"]["webhook-signature"].split(" "))
    for key, seconds, good in ((old, 59, True), (old, 1, False), (new, 0, True)):
        if seconds:
            assert 200 == control.post("/clock/advance", json={"seconds": seconds}).status_code
        assert good is posted(address, b"{}", **signed(key, b"{}")).json()["verified"]


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
        (lambda headers: headers | {"webhook_timestamp": "soon"}, "timestamp_invalid", "seconds since 1970"),
        (lambda headers: headers | {"webhook_timestamp": "-5"}, "timestamp_invalid", "seconds since 1970"),
        (lambda headers: headers | {"webhook_signature": "v1a,abc"}, "signature_malformed", "v1,<base64>"),
        (
            lambda headers: headers | {"webhook_signature": "v1,abc"},
            "no_key_matches",
            "no key of this sandbox's webhooks",
        ),
        (lambda headers: headers | {"webhook_id": "evt_2"}, "no_key_matches", "no key of this sandbox's webhooks"),
    ],
)
def test_what_is_not_signed_well_says_why(
    control: httpx2.Client, webhook: Json, address: str, change: Callable[[Json], Json], reason: str, says: str
) -> None:
    """It is kept and answered all the same."""
    answer = posted(address, b"{}", **change(signed(webhook["signing_key"], b"{}")))
    assert (200, False, reason) == (answer.status_code, answer.json()["verified"], answer.json()["reason"])
    (message,) = arrived(control)
    assert (False, None, reason) == (message["verified"], message["webhookId"], message["reason"])
    assert says in message["message"]


@pytest.mark.parametrize(("ago", "reason"), [(299, None), (330, "too_old"), (-330, "too_new")])
def test_a_timestamp_may_be_five_minutes_off(webhook: Json, address: str, ago: int, reason: str | None) -> None:
    assert reason == posted(address, b"{}", **signed(webhook["signing_key"], b"{}", ago=ago)).json()["reason"]


def test_a_sandbox_without_webhooks_says_so(live: Live, control: httpx2.Client, sandbox_name: str) -> None:
    assert 200 == control.post("/reset", json={"scenario": "empty"}).status_code
    address = f"{live.url}/s/{sandbox_name}/_sandbox/inbox/shop"
    assert "no_webhooks" == posted(address, b"{}", **signed("whsec_" + "a" * 32, b"{}")).json()["reason"]


def test_whatever_is_posted_is_kept(control: httpx2.Client, address: str) -> None:
    """No JSON, no UTF-8, nothing at all; credentials are not kept."""
    for body in (b"", b"\xff\x00a", b"[1", b'{"type":7}', b"[" * 5_000):
        assert 200 == posted(address, body, authorization="Bearer x", cookie="a=b", x_a="1").status_code
    found = arrived(control)
    assert [5_000, 10, 2, 3, 0] == [message["body_bytes"] for message in found]
    assert "\ufffd\ufffda" == found[3]["body"]
    assert {None} == {message["event_type"] for message in found}
    shown = [found[0]["headers"][name] for name in ("authorization", "cookie", "x-a")]
    assert ["[redacted]", "[redacted]", "1"] == shown


def test_headers_are_kept_up_to_a_bound(control: httpx2.Client, address: str) -> None:
    posted(address, b"", **{f"x_{number}": "v" * 3_000 for number in range(20)})
    (message,) = arrived(control)
    kept = {name: len(value) for name, value in message["headers"].items() if name.startswith("x-")}
    assert {2_000} == set(kept.values())
    assert 3 <= len(kept) <= 4


def test_a_list_cuts_long_bodies_and_one_message_shows_all(control: httpx2.Client, address: str) -> None:
    number = posted(address, b"a" * 20_000).json()["received"]
    (message,) = arrived(control)
    assert (8_192, 20_000) == (len(message["body"]), message["body_bytes"])
    whole = control.get(f"/inbox/shop/{number}").json()["message"]
    assert message | {"body": "a" * 20_000} == whole
    for other in (f"/inbox/shop/{number + 1}", f"/inbox/stall/{number}", "/inbox/shop/0", "/inbox/shop/x"):
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
    assert (4, 2, False, True) == (page["total"], page["total_pages"], page["has_next"], page["has_prev"])
    assert [] == numbers(page=9) == numbers(page=2**53 - 1)
    assert 422 == control.get("/inbox/shop", params={"verified": "maybe"}).status_code


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


@pytest.mark.parametrize(
    "body",
    [
        {"status": 199},
        {"status": 600},
        {"delay_ms": 20_001},
        {"times": 0},
        {"headers": [{"name": "Content-Length", "value": "5"}]},
        {"headers": [{"name": "X-A", "value": "1\r\nX-B: 2"}]},
        {"headers": [{"name": "Set-Cookie", "value": "a=b"}]},
        {"answer": 200},
    ],
)
def test_an_answer_that_cannot_be_given_is_refused(control: httpx2.Client, body: Json) -> None:
    refused(control.put("/inbox/shop/answer", json=body), 422, "validation_error")
    assert [] == control.get("/inbox").json()["inboxes"]


@pytest.mark.check
def test_a_delayed_answer_holds_up_nobody(control: httpx2.Client, address: str) -> None:
    """Another inbox of the same server answers meanwhile."""
    control.put("/inbox/shop/answer", json={"delay_ms": 1_500})
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(posted, address)
        while not arrived(control):
            time.sleep(0.01)
        assert 200 == posted(address.replace("/shop", "/stall")).status_code
        assert not slow.done()
        assert 200 == slow.result().status_code


def test_the_failure_that_an_inbox_was_told_is_in_the_log_of_the_delivery(
    api: httpx2.Client, control: httpx2.Client, webhook: Json
) -> None:
    control.put("/inbox/shop/answer", json={"status": 429, "headers": [{"name": "Retry-After", "value": "7"}]})
    log = sent(api, webhook)
    assert ("failed", 429, "7") == (log["status"], log["response_status"], log["response_headers"]["retry-after"])


def test_the_inboxes_in_use_are_listed_with_their_addresses(
    control: httpx2.Client, address: str, sandbox_name: str
) -> None:
    posted(address)
    posted(address)
    control.put("/inbox/Stall.2/answer", json={"status": 500})
    stall, shop = control.get("/inbox").json()["inboxes"]
    assert (address, 2, 2, NOW) == tuple(shop[name] for name in ("url", "received", "messages", "last_received_at"))
    assert (0, 0, None) == tuple(stall[name] for name in ("received", "messages", "last_received_at"))
    assert ("Stall.2", 500) == (stall["name"], stall["answer"]["status"])
    assert 200 == httpx2.get(shop["url"], verify=NO_TLS).status_code
    assert ["shop"] == [entry["name"] for entry in control.get("/inbox?limit=1&page=2").json()["inboxes"]]


def test_an_inbox_is_emptied_alone_or_with_all_others(control: httpx2.Client, address: str) -> None:
    other = address.replace("/shop", "/stall")
    for url in (address, other, address):
        posted(url)
    control.put("/inbox/shop/answer", json={"status": 500})
    assert 204 == control.delete("/inbox?name=shop").status_code
    assert ([], 1) == (arrived(control), len(arrived(control, "stall")))
    answer = posted(address)
    assert (200, 4) == (answer.status_code, answer.json()["received"])
    assert 204 == control.delete("/inbox").status_code
    assert [] == control.get("/inbox").json()["inboxes"]
    assert 204 == control.delete("/inbox?name=never-used").status_code


@pytest.mark.check
def test_a_misspelt_query_deletes_nothing(control: httpx2.Client, address: str, sandbox_name: str) -> None:
    """Without the member that narrows it, a DELETE would delete all; reading warns."""
    posted(address)
    control.post("/faults", json={"then": {"status": 500}})
    control.post("/snapshots", json={"name": "kept"})
    rule = control.get("/faults").json()["faults"][0]["id"]
    paths = ("/inbox", "/requests", f"/faults/{rule}", "/faults", "/snapshots/kept", f"/sandboxes/{sandbox_name}")
    for path in paths:
        refused(control.delete(f"{path}?nam=shop"), 422, "validation_error")
    assert 1 == len(arrived(control))
    assert "unknown_query_parameter:nam" == control.get("/inbox?nam=shop").headers["x-sandbox-warnings"]
    assert [204] * 6 == [control.delete(path).status_code for path in paths]


def test_the_inbox_is_the_observers_and_no_part_of_the_world(
    control: httpx2.Client, address: str, sandbox_name: str, live: Live
) -> None:
    """No step, no fork takes it along, and a reset empties it."""
    posted(address)
    world = f"/sandboxes/{sandbox_name}"
    assert 0 == control.get(world).json()["sandbox"]["step"]
    fork = control.post(f"{world}/fork", json={}).json()["sandbox"]["name"]
    try:
        assert [] == httpx2.get(f"{live.url}/s/{fork}/_sandbox/inbox", verify=NO_TLS).json()["inboxes"]
    finally:
        live.forget(fork)
    control.post("/reset")
    assert [] == control.get("/inbox").json()["inboxes"]


def test_a_name_that_is_none_is_404(control: httpx2.Client, address: str) -> None:
    for name in ("-a", "a" * 64, "a b", "%2e", "a%00"):
        answer = posted(address.replace("/shop", f"/{name}"))
        refused(answer, 404, "not_found")
        assert "1 to 63" in answer.json()["message"]
        assert 404 == control.get(f"/inbox/{name}").status_code


def test_a_body_beyond_the_limit_is_refused(control: httpx2.Client, address: str) -> None:
    refused(posted(address, b"a" * 1_048_577), 413, "payload_too_large")
    assert [] == arrived(control)
    assert 200 == posted(address, b"a" * 1_048_576).status_code


def test_a_delivery_reaches_nothing_else_of_the_control_surface(control: httpx2.Client) -> None:
    """Not even what is beside the inbox's address."""
    headers = {"webhook-id": "evt_1"}
    for method, path in (
        ("POST", "/reset"),
        ("GET", "/inbox/shop"),
        ("DELETE", "/inbox?name=shop"),
        ("PUT", "/inbox/shop/answer"),
        ("POST", "/inbox/shop/answer"),
        ("POST", "/inbox"),
    ):
        answer = control.request(method, path, headers=headers)
        assert (403, "delivery_not_allowed") == (answer.status_code, answer.json()["code"]), path


@pytest.mark.check
def test_every_process_of_this_machine_may_post_and_no_page_of_another(serve: Serve) -> None:
    """With or without an admin key; reading asks for it."""
    server = serve(admin_key="k")
    address = f"{server.url}/_sandbox/inbox/shop"
    assert 200 == posted(address).status_code
    refused(posted(address, origin="https://elsewhere.example"), 403, "admin_key_required")
    refused(posted(address, host="elsewhere.example"), 403, "host_not_allowed")
    refused(httpx2.get(address, verify=NO_TLS), 403, "admin_key_required")
    read = httpx2.get(address, headers={"X-Sandbox-Admin-Key": "k"}, verify=NO_TLS)
    assert 1 == read.json()["pagination"]["total"]


def test_beyond_loopback_the_inbox_asks_for_the_admin_key(serve: Serve) -> None:
    public = serve(host="0.0.0.0", admin_key="k", secret=b"s")  # noqa: S104 - the test itself listens on loopback
    address = f"{public.url}/_sandbox/inbox/shop"
    refused(posted(address, webhook_id="evt_1"), 403, "admin_key_required")
    assert 200 == posted(address, webhook_id="evt_1", x_sandbox_admin_key="k").status_code
    read = httpx2.get(address, headers={"X-Sandbox-Admin-Key": "k"}, verify=NO_TLS)
    (message,) = read.json()["messages"]
    assert "[redacted]" == message["headers"]["x-sandbox-admin-key"]


@pytest.mark.check
def test_an_inbox_is_bounded_in_messages_names_and_bytes(control: httpx2.Client) -> None:
    """The oldest messages go, and the name that was longest unused."""
    for _ in range(1_003):
        assert 200 == control.post("/inbox/shop", content=b"{}").status_code
    newest = control.get("/inbox/shop").json()
    assert (1_000, 1_003) == (newest["pagination"]["total"], newest["messages"][0]["number"])
    assert (1_003, 1_000) == tuple(
        control.get("/inbox").json()["inboxes"][0][name] for name in ("received", "messages")
    )
    for number in range(100):
        control.post(f"/inbox/stall-{number}", content=b"{}")
    assert 100 == control.get("/inbox").json()["pagination"]["total"]
    assert [] == arrived(control)
    control.post("/inbox/stall-0", content=b"{}")  # used again, so it is not the next to go
    control.put("/inbox/shop/answer", json={})
    assert ([2, 0]) == [len(arrived(control, f"stall-{number}")) for number in (0, 1)]
    for _ in range(17):
        control.post("/inbox/heavy", content=b"a" * 1_048_576)
    assert 15 == len(arrived(control, "heavy"))
    assert [] == arrived(control, "stall-99")


@pytest.mark.promise("inboxes")
@pytest.mark.check
def test_all_inboxes_of_a_server_share_a_bound(serve: Serve) -> None:
    """Where nothing is left the fullest ones make room: whoever receives something finds it there."""
    server = serve(seed=9)
    with httpx2.Client(base_url=server.url, timeout=30, verify=NO_TLS) as client:
        for world in range(18):
            for _ in range(15):
                client.post(f"/s/w{world}/_sandbox/inbox/shop", content=b"a" * 1_048_576)

        def totals(*names: str) -> list[int]:
            return [client.get(f"/s/{name}/_sandbox/inbox/shop").json()["pagination"]["total"] for name in names]

        kept = totals(*(f"w{world}" for world in range(18)))
        assert 245 <= sum(kept) <= 256, kept
        assert 10 <= min(kept), kept
        told = client.post("/s/late/_sandbox/inbox/shop", content=b"a" * 1_048_576).json()
        assert told["received"] == client.get("/s/late/_sandbox/inbox/shop").json()["messages"][0]["number"]
        others = [f"w{world}" for world in range(2, 18)]
        before = totals(*others)
        client.delete("/s/w0/_sandbox/inbox")
        client.delete("/_sandbox/sandboxes/w1")
        for _ in range(14):
            client.post("/s/late/_sandbox/inbox/shop", content=b"a" * 1_048_576)
        assert [15, *before] == totals("late", *others)


def test_a_name_does_not_end_with_a_line_feed(control: httpx2.Client) -> None:
    """Python's `$` would let it."""
    assert 404 == control.put("/inbox/shop%0a/answer", json={"status": 200}).status_code
    assert [] == control.get("/inbox").json()["inboxes"]
