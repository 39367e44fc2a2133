"""The pages of events, webhooks and inboxes: raised, delivered, tried again, verified, judged."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..receivers.running import shop
from ..support.console import Console, Page
from ..support.live import NO_TLS
from ..support.make import Json, Maker, created, done, list_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984"


def key_of(page: Page) -> str:
    """The signing key that a page shows."""
    found = re.search(r"whsec_[A-Za-z0-9+/=]{20,}", page.response.text)
    assert found is not None
    return found[0]


def code_of(page: Page, holds: str) -> str:
    """The piece of code of a page that has a text."""
    pieces = [
        unescape(found)
        for found in re.findall(r"<pre[^>]*>(.*?)</pre>", page.response.text, re.DOTALL)
    ]
    return next(piece for piece in pieces if holds in piece)


@pytest.fixture
def hook(console: Console) -> Page:
    """The page that shows the key of a new webhook to the inbox `shop`."""
    page = console.send(console.open("/console/inboxes/shop"), "Send all events here")
    assert "Its signing key, which is not shown again" in page.text
    return page


def delivered(control: httpx2.Client) -> list[Json]:
    """What the inbox `shop` has, once everything is delivered."""
    assert control.post("/webhooks/drain", json={"wait_seconds": 10}).json()["complete"]
    return list_of(done(control.get("/inbox/shop")), "messages")


# -- events


def test_an_event_names_its_cause_and_leads_to_it(
    console: Console,
    api: httpx2.Client,
    control: httpx2.Client,
    make_customer: Maker,
    make_order: Maker,
) -> None:
    customer = make_customer()
    order = make_order()
    control.post(f"/orders/{order['id']}/pay")
    page = console.open("/console/events")
    assert "order.paid order" in page.text
    event = control.get("/events", params={"resource_id": customer["id"]}).json()["events"][0]
    one = console.open(f"/console/find?q={event['id']}")
    assert one.url.endswith(f"/console/events/{event['id']}")
    request = next(link for link in one.links if "/console/requests/req_" in link)
    assert "Create a customer" in console.follow(one, request).text
    assert "created customer" in one.text
    assert "No webhook subscribed to it" in one.text


def test_an_event_is_raised_by_hand(
    console: Console, control: httpx2.Client, make_customer: Maker
) -> None:
    made = make_customer()
    page = console.open("/console/events")
    raised = console.send(
        page,
        "Raise it",
        type="customer.updated",
        resource_id=made["id"],
        overrides='{"name": "Ana Lima"}',
    )
    assert "Raise an event : done." in raised.text
    assert "/console/events/evt_" in raised.url
    assert "triggerEvent" in raised.text
    event = control.get("/events").json()["events"][0]
    assert ("customer.updated", "Ana Lima") == (event["type"], event["data"]["customer"]["name"])
    for wrong in (
        {"overrides": "{"},
        {"overrides": "[1]"},
        {"overrides": "[" * 254 + "]" * 254},
        {"type": "nothing"},
        {"resource_id": "x"},
        {"resource_id": UNKNOWN},
        {"overrides": '{"email": 5}', "resource_id": made["id"]},
    ):
        sent = {"type": "customer.updated"} | wrong
        assert "Raise an event was refused with 4" in console.send(page, "Raise it", **sent).text, (
            wrong
        )
    assert "The filter was refused" in console.open("/console/events?resource_id=x").text
    assert 404 == console.open("/console/events/evt_0").status


# -- webhooks


def test_a_key_is_shown_once_and_the_code_beside_it_verifies(
    hook: Page,
    console: Console,
    control: httpx2.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In Python and in Node, with the bytes that arrived; and not with a byte more."""
    key = key_of(hook)
    console.send(console.open("/console/events"), "Raise it", type="order.paid")
    (message,) = delivered(control)
    assert message["verified"]
    webhook = console.open(f"/console/webhooks/{message['webhookId']}")
    assert key not in webhook.response.text
    headers = message["headers"]
    body = message["body"].encode()
    monkeypatch.setenv("SIGNING_KEY", key)
    known: dict[str, Any] = {}
    exec(code_of(webhook, "def is_genuine"), known)  # noqa: S102 - the page's own code
    assert known["is_genuine"](headers, body)
    assert not known["is_genuine"](headers, body + b" ")
    assert not known["is_genuine"](headers | {"webhook-timestamp": "1"}, body)
    node = shutil.which("node")
    if node is None:
        return
    file = tmp_path / "verify.mjs"
    (tmp_path / "body").write_bytes(body)
    told = {name: value for name, value in headers.items() if name.startswith("webhook-")}
    lines = (
        f"\nconst body = (await import('node:fs')).readFileSync({str(tmp_path / 'body')!r});\nconst"
        f" told = {told!r};"
    )
    lines += "\nconsole.log(isGenuine(told, body), isGenuine(told, Buffer.concat([body, body])));"
    file.write_text(code_of(webhook, "isGenuine") + lines, encoding="utf-8")
    ran = subprocess.run([node, str(file)], capture_output=True, text=True, check=True, timeout=30)
    assert "true false" == ran.stdout.strip()


def test_a_delivery_that_failed_is_sent_again(
    hook: Page, console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    """From the list: why it failed, its attempts, the signature taken apart, and one more attempt
    that succeeds.
    """
    inbox = console.open("/console/inboxes/shop")
    answered = console.send(inbox, "Set the answer", status="503", times="1", retry_after="120")
    assert "1 more time" in answered.text
    console.send(console.open("/console/events"), "Raise it", type="order.paid")
    (message,) = delivered(control)
    page = console.open(
        f"/console/webhooks/{message['webhookId']}?status=retrying&event_type=order.paid"
    )
    (link,) = (link for link in page.links if "/console/webhooks/deliveries/" in link)
    shown = console.follow(page, link)
    assert "503" in shown.text
    assert "retrying" in shown.text
    for name in ("webhook-id", "webhook-timestamp"):
        assert message["headers"][name] in shown.text
    assert message["headers"]["webhook-signature"].removeprefix("v1,") in shown.text
    again = console.send(shown, "Send again")
    assert "delivered" in again.text
    assert "2 of 10" in again.text
    assert 2 == len(delivered(control))
    event = console.open(f"/console/events/{message['event_id']}")
    assert link.rpartition("/")[2] in [each.rpartition("/")[2] for each in event.links]


def test_a_webhook_is_created_switched_tested_and_deleted(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    page = console.open("/console/webhooks")
    refused = console.send(page, "Create it", url="nothing", events="order.*")
    assert "was refused with 422" in refused.text
    url = f"{console.base}/_sandbox/inbox/shop"
    made = console.send(page, "Create it", url=url, name=HOSTILE, events="order.*")
    key = key_of(made)
    webhook = api.get("/v2/webhooks").json()["webhooks"][0]
    assert (HOSTILE, ["order.*"], True) == (
        webhook["name"],
        webhook["events"],
        webhook["is_active"],
    )
    one = console.open(f"/console/webhooks/{webhook['id']}")
    assert "<script>alert" not in one.response.text
    tested = console.send(one, "Send it", event_type="order.refunded")
    assert "Send a test event : done." in tested.text
    assert "test" in tested.text
    off = console.send(one, "Switch off")
    assert "Switch on" in off.text
    assert not api.get(f"/v2/webhooks/{webhook['id']}").json()["webhook"]["is_active"]
    console.send(off, "Switch on")
    record = console.open(f"/console/data/webhooks/{webhook['id']}")
    keys = [
        key_of(console.send(one, "Rotate its key")),
        key_of(console.send(record, "Regenerate signing key")),
    ]
    assert 3 == len({key, *keys})
    gone = console.send(one, "Delete")
    assert gone.url.partition("?")[0].endswith("/console/webhooks")
    assert 404 == console.open(f"/console/webhooks/{webhook['id']}").status
    assert 200 == console.open(tested.url.removeprefix(console.base).partition("?")[0]).status


def test_a_broken_answer_to_a_test_delivery_leads_back_to_its_page(
    console: Console, control: httpx2.Client, hook: Page
) -> None:
    rule = {"match": {"operationId": "sendTestWebhook"}, "then": {"corrupt_json": True}}
    assert 201 == control.post("/faults", json=rule).status_code
    one = next(link for link in hook.links if re.search(r"/console/webhooks/[0-9a-f-]{36}$", link))
    tested = console.send(console.follow(hook, one), "Send it", event_type="order.refunded")
    assert (200, True) == (tested.status, "Send a test event : done." in tested.text)


def test_a_receiver_is_judged_and_the_report_is_a_page(
    hook: Page, console: Console, api: httpx2.Client
) -> None:
    webhook = api.get("/v2/webhooks").json()["webhooks"][0]
    report = console.send(console.open(f"/console/webhooks/{webhook['id']}"), "Certify")
    assert f"/console/webhooks/{webhook['id']}/certificates/req_" in report.url
    assert "The receiver breaks" in report.text
    assert "A forged delivery is refused" in report.text
    assert report.text.index("failed") < report.text.index("unknown")
    other = report.url.removeprefix(console.base).partition("certificates/")[0]
    for kept in ("x", "req_0", api.get("/v2/orders").headers["x-request-id"]):
        assert 404 == console.open(f"{other}certificates/{kept}").status


def test_a_report_with_an_unknown_rule_says_neither_passed_nor_failed(
    console: Console, api: httpx2.Client
) -> None:
    body = {"url": "http://127.0.0.1:9/", "events": ["order.paid"], "is_active": False}
    webhook = created(api.post("/v2/webhooks", json=body))["webhook"]
    with shop(api, "--work", "none", key=webhook["signing_key"]) as url:
        api.put(f"/v2/webhooks/{webhook['id']}", json={"url": url})
        report = console.send(console.open(f"/console/webhooks/{webhook['id']}"), "Certify")
    assert "The receiver breaks no rule that could be judged" in report.text
    assert "12 passed, 0 failed, 3 unknown" in report.text


def test_what_is_held_is_sent_and_what_is_due_waited_for(
    hook: Page, console: Console, control: httpx2.Client, make_customer: Maker
) -> None:
    page = console.open("/console/webhooks")
    sent = console.send(page, "Send what is held")
    assert "Drain the deliveries : done." in sent.text
    assert "Drain the deliveries : done." in console.send(page, "Wait for what is due").text


# -- inboxes


def test_an_inbox_shows_what_arrived_and_why_it_is_not_verified(
    hook: Page, console: Console, control: httpx2.Client
) -> None:
    address = f"{console.base}/_sandbox/inbox/shop"
    sent = httpx2.post(
        address,
        content=HOSTILE.encode(),
        headers={"X-Odd": "<b>", "Content-Type": "text/html"},
        verify=NO_TLS,
    )
    assert 200 == sent.status_code
    console.send(console.open("/console/events"), "Raise it", type="order.paid")
    delivered(control)
    page = console.open("/console/inboxes/shop")
    assert "header missing" in page.text
    assert "verified" in page.text
    assert "<script>alert" not in page.response.text
    good = console.send(page, "Filter", verified="true")
    assert "header missing" not in good.text
    assert "No message matches" in console.send(page, "Filter", event_type="plan.created").text
    assert "The filter was refused" in console.open("/console/inboxes/shop?verified=x").text
    one = console.open("/console/inboxes/shop/1")
    assert "The header webhook-id is missing." in one.text
    assert "<script>alert" not in one.response.text
    assert "<b>" not in one.response.text.partition('aria-label="The body"')[2]
    listed = console.open("/console/inboxes")
    assert "shop" in listed.text
    empty = console.send(page, "Empty it")
    assert "Nothing has arrived" in empty.text
    assert console.open("/console/inboxes/open?name=other").url.endswith("/console/inboxes/other")
    assert "No inbox is in use" in console.send(listed, "Empty all").text


def test_what_an_inbox_answers_is_said_in_a_form(console: Console, control: httpx2.Client) -> None:
    page = console.open("/console/inboxes/shop")
    told = console.send(
        page, "Set the answer", status="503", delay_ms="10", times="2", retry_after="120"
    )
    (box,) = control.get("/inbox").json()["inboxes"]
    expected = {
        "status": 503,
        "delay_ms": 10,
        "headers": [{"name": "Retry-After", "value": "120"}],
        "times": 2,
    }
    assert expected == box["answer"]
    assert "Retry-After: 120" in told.text
    for wrong in (
        {"status": "99"},
        {"status": "x"},
        {"times": "0"},
        {"delay_ms": "9" * 30},
        {"retry_after": "\u00e9"},
    ):
        assert "was refused with 422" in console.send(page, "Set the answer", **wrong).text, wrong


def test_what_there_is_not_is_no_defect(console: Console, credentials: Json) -> None:
    for path, status in (
        ("/console/webhooks/logs", 404),
        ("/console/webhooks/events", 404),
        (f"/console/webhooks/{UNKNOWN}", 404),
        (f"/console/webhooks/deliveries/{UNKNOWN}", 404),
        (f"/console/webhooks/{UNKNOWN}/certificates/%00", 404),
        ("/console/webhooks?page=0", 200),
        ("/console/inboxes/a%20b", 404),
        ("/console/inboxes/%F0%9F%A6%84", 404),
        ("/console/inboxes/shop/9999999999999999999999", 404),
        ("/console/inboxes?page=x", 422),
        ("/console/clock?page=x&done=%00", 422),
        ("/console/events?type=x&page=-1", 200),
        ("/console/events/%00", 422),
    ):
        assert status == console.open(path).status, path
