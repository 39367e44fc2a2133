"""The console in a real browser: without barriers, without errors, with nothing from
elsewhere, live.
"""

import re

import httpx2
import pytest

from stub_server.console.shell import FOOT, NOW

from ..support.browser import Page
from ..support.live import NO_TLS
from ..support.make import Maker

pytestmark = [pytest.mark.check, pytest.mark.turn]
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984" + "x" * 80

CUT = (
    "[...document.querySelectorAll('.card')].filter(each => each.scrollWidth > each.clientWidth +"
    " 1).map(each => each.innerText.slice(0, 60))"
)
"""Tables that a window is too narrow for."""


@pytest.fixture
def paths(
    control: httpx2.Client, api: httpx2.Client, make_customer: Maker, make_order: Maker
) -> list[str]:
    """Every page, of a sandbox in which something has happened; of requests one for each
    method and status.
    """
    make_customer(name=HOSTILE)
    order = make_order()
    control.post(f"/orders/{order['id']}/pay")
    pending = make_order(items=[{"description": HOSTILE, "quantity": 1, "amount": 49.9}])
    control.post("/snapshots", json={"name": "before", "description": HOSTILE})
    control.post(
        "/faults",
        json={"name": HOSTILE, "match": {"path": HOSTILE[:90]}, "then": {"message": HOSTILE}},
    )
    api.post("/v2/customers", json={"name": HOSTILE, "document": "1"})
    api.get(f"/v2/orders/{order['id']}", params={"x": HOSTILE})
    inbox = str(control.base_url).rstrip("/") + "/inbox/shop"
    httpx2.post(inbox, content=HOSTILE.encode(), headers={"webhook-id": "<b>"}, verify=NO_TLS)
    hook = api.post(
        "/v2/webhooks", json={"url": inbox, "events": ["*"], "name": HOSTILE[:100]}
    ).json()["webhook"]["id"]
    make_customer(name=HOSTILE)
    moved = control.post("/clock/advance", json={"days": 2, "wait_seconds": 10})
    message = control.get("/inbox/shop", params={"verified": "true"}).json()["messages"][0]
    log = api.get(
        "/v2/webhooks/logs", params={"event_id": message["event_id"], "webhookId": hook}
    ).json()["logs"][0]
    judged = control.post("/certify", json={"webhookId": hook}, timeout=60)
    kept = {
        (each["method"], each["status"]): each
        for each in control.get("/requests").json()["requests"]
    }
    subscription = api.get("/v2/subscriptions", params={"orderId": order["id"]}).json()[
        "subscriptions"
    ][0]
    return [
        "/",
        "/docs/createPixOrder",
        "/docs/importSandbox",
        "/console/try/listOrders",
        f"/console/data/subscriptions/{subscription['id']}",
        *(f"/console/{name}" for name in (*NOW, *FOOT)),
        "/console/requests?status=zzz",
        "/console/requests?contains=nothing+like+it",
        "/console/nothing",
        "/console/data/orders",
        "/console/data/webhook_logs",
        "/console/data/orders?code=NOTHING",
        f"/console/data/orders/{order['id']}",
        "/console/try/createPixOrder",
        f"/console/clock?done={moved.headers['x-request-id']}",
        f"/console/events/{message['event_id']}",
        f"/console/webhooks/{message['webhookId']}",
        f"/console/webhooks/deliveries/{log['id']}",
        f"/console/webhooks/{message['webhookId']}/certificates/{judged.headers['x-request-id']}",
        "/console/inboxes/shop",
        f"/console/inboxes/shop/{message['number']}",
        "/console/inboxes/shop/1",
        "/console/keys?q=nothing+like+it",
        *(f"/pay/{each}" for each in (order["id"], pending["id"], "x")),
    ] + [f"/console/requests/{each['id']}" for each in kept.values()]


@pytest.mark.night
@pytest.mark.parametrize("looks", [1, 2])
def test_every_page_is_for_everybody(
    browser: Page, base: str, paths: list[str], looks: int
) -> None:
    """No finding of axe-core, nothing scrolled sideways or cut, nothing from elsewhere, no
    complaint of the browser.

    axe-core looks at one page of each kind, wide and light or narrow and dark in turn; at night at
    all, both ways.
    """
    browser.heard.clear()
    kinds = [
        re.sub(r"[?].*|(?<=/)([0-9]+|x|req_\w+|[0-9a-f]{8}-[0-9a-f-]{27})(?=/|$)", "", path)
        for path in paths
    ]
    for number, path in enumerate(paths):
        browser.seen(1280)
        browser.go(base + path)
        for width in (768, 1000):
            browser.seen(width)
            assert [] == browser.look(CUT), (path, width)
        browser.look("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        for look in range(2):
            width, is_dark = ((1280, False), (360, True))[(number + look) % 2]
            browser.seen(width, dark=is_dark)
            assert width >= browser.look("document.documentElement.scrollWidth"), (path, width)
            if looks == 2 or (look == 0 and kinds[number] not in kinds[:number]):
                assert [] == browser.barriers(), (path, width)
    assert {base.partition("/s/")[0]} == {
        "/".join(url.split("/")[:3]) for url in browser.requested() if not url.startswith("data:")
    }
    assert [] == [each for each in browser.complaints() if "status of 4" not in each]


def test_a_list_follows_what_happens(browser: Page, base: str, api: httpx2.Client) -> None:
    browser.go(f"{base}/console/requests")
    browser.until("document.querySelector('.live.is-on') !== null")
    assert "No requests yet" in browser.look("document.getElementById('rows').innerText")
    api.get("/v2/orders", params={"limit": 3})
    browser.until("document.getElementById('rows').innerText.includes('/v2/orders?limit=3')")


def test_ids_are_copied_by_a_click(browser: Page, base: str, api: httpx2.Client) -> None:
    request = api.get("/v2/orders").headers["x-request-id"]
    browser.go(f"{base}/console/requests/{request}")
    browser.tell(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.look("document.querySelector('.way [data-copy]').click()")
    browser.until("document.querySelector('.way .copy.is-done') !== null")
    assert request == browser.look("navigator.clipboard.readText()")


def test_events_deliveries_and_the_clock_are_followed(
    browser: Page, base: str, control: httpx2.Client
) -> None:
    """Each page shows what happens elsewhere, and the time of a clock that runs."""
    control.post("/events", json={"type": "plan.updated"})
    for path, part, shown in (
        ("/console/events", "rows", "order.refunded"),
        ("/console/webhooks", "rows", "order.refunded"),
        ("/console/clock", "now", "20 Dec 2026"),
    ):
        browser.go(base + path)
        browser.until("document.querySelector('.live.is-on') !== null")
        if part == "now":
            control.post("/clock/advance", json={"months": 1})
        else:
            control.post("/events", json={"type": "order.refunded"})
        browser.until(f"document.getElementById('{part}').innerText.includes('{shown}')")
    control.patch("/clock", json={"frozen": False})
    browser.until("document.querySelector('#now [data-tick]') !== null")
    before = browser.look("document.querySelector('#now [data-tick]').textContent")
    browser.until(f"document.querySelector('#now [data-tick]').textContent !== '{before}'")
