"""The console in a real browser: without barriers, without errors, with nothing from elsewhere, live."""

from collections.abc import Iterator

import httpx2
import pytest

from ..support.browser import Page, browsing
from ..support.live import Live
from ..support.make import Json, Maker

pytestmark = pytest.mark.check
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984" + "x" * 80


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browsing() as page:
        page.listen()
        yield page


@pytest.fixture
def base(live: Live, sandbox_name: str, credentials: Json) -> str:
    """The address of the test's sandbox."""
    return f"{live.url}/s/{sandbox_name}"


@pytest.fixture
def paths(control: httpx2.Client, api: httpx2.Client, make_customer: Maker, make_order: Maker) -> list[str]:
    """Every page, of a sandbox in which something has happened."""
    make_customer(name=HOSTILE)
    order = make_order()
    control.post(f"/orders/{order['id']}/pay")
    api.post("/v2/customers", json={"name": HOSTILE, "document": "1"})
    api.get(f"/v2/orders/{order['id']}", params={"x": HOSTILE})
    kept = control.get("/requests").json()["requests"]
    subscription = api.get("/v2/subscriptions", params={"orderId": order["id"]}).json()["subscriptions"][0]
    return [
        "/",
        "/docs/createPixOrder",
        "/docs/importSandbox",
        "/console/try/listOrders",
        f"/console/data/subscriptions/{subscription['id']}",
        "/console/requests",
        "/console/requests?status=zzz",
        "/console/requests?contains=nothing+like+it",
        "/console/nothing",
        "/console/data",
        "/console/data/orders",
        "/console/data/webhook_logs",
        "/console/data/orders?code=NOTHING",
        f"/console/data/orders/{order['id']}",
        "/console/data/orders/new/createPixOrder",
    ] + [f"/console/requests/{each['id']}" for each in kept]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_every_page_is_for_everybody(browser: Page, base: str, paths: list[str], width: int, dark: bool) -> None:
    """No finding of axe-core, nothing scrolled sideways, nothing from elsewhere, no complaint of the browser."""
    browser.seen(width, dark=dark)
    browser.heard.clear()
    for path in paths:
        browser.go(base + path)
        browser.look("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert [] == browser.barriers(), path
        assert width >= browser.look("document.documentElement.scrollWidth"), path
    assert {base.partition("/s/")[0]} == {"/".join(url.split("/")[:3]) for url in browser.requested()}
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
    browser.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.look("document.querySelector('.way [data-copy]').click()")
    browser.until("document.querySelector('.way .copy.is-done') !== null")
    assert request == browser.look("navigator.clipboard.readText()")


@pytest.mark.parametrize("run", [True, False])
def test_a_refusal_leads_to_the_request_that_works(
    browser: Page, base: str, api: httpx2.Client, control: httpx2.Client, *, run: bool
) -> None:
    """By one click, with scripts and without."""
    refused = api.post("/v2/customers", json={"name": "Ana", "email": "ana@example.com", "document": "52998224724"})
    assert 422 == refused.status_code
    browser.scripts(run=run)
    try:
        browser.go(f"{base}/console/requests/{refused.headers['x-request-id']}")
        browser.look("[...document.querySelectorAll('button')].find(b => b.textContent === 'Send it').click()")
        browser.until("location.search.startsWith('?done=')")
        browser.until("document.readyState === 'complete'")
        assert "Create a customer: done." in browser.look("document.querySelector('.flash').innerText")
    finally:
        browser.scripts(run=True)
    assert 201 == control.get("/requests").json()["requests"][0]["status"]
