"""The console from one end to the other in a real browser, with scripts and without: sold, paid,
renewed, undone.
"""

from collections.abc import Iterator

import httpx2
import pytest

from ..support.browser import Page, browsing
from ..support.make import Maker, customer_body

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def browser(request: pytest.FixtureRequest) -> Iterator[Page]:
    with browsing() as page:
        page.seen()
        page.scripts(run=request.param)
        yield page


def press(browser: Page, label: str) -> None:
    """Press the button of a text, and wait for the page to which it leads."""
    found = (
        "[...document.querySelectorAll('form button')].find(each => each.textContent.trim() ==="
        f" {label!r})"
    )
    assert browser.look(f"Boolean({found} && !{found}.disabled)"), (
        f"{label}: {browser.look('document.body.innerText')}"
    )
    browser.look(f"document.documentElement.dataset.before = 'yes'; {found}.click()")
    browser.until("document.readyState === 'complete' && !document.documentElement.dataset.before")


def follow(browser: Page, selector: str) -> None:
    """Go where the first link of a selector leads."""
    browser.go(browser.look(f"document.querySelector({selector!r}).href"))


def text(browser: Page) -> str:
    """What the page says."""
    return str(browser.look("document.body.innerText"))


def test_an_order_is_sold_paid_and_renewed_and_its_webhooks_arrive(
    browser: Page, base: str, make_order: Maker, api: httpx2.Client
) -> None:
    browser.go(f"{base}/console/inboxes/shop")
    press(browser, "Send all events here")
    order = make_order()
    browser.go(f"{base}/console/data/orders/{order['id']}")
    follow(browser, "a[href*='/pay/']")
    press(browser, "I have paid")
    assert "Paid" in text(browser)
    subscription = api.get("/v2/subscriptions", params={"orderId": order["id"]}).json()[
        "subscriptions"
    ][0]
    browser.go(f"{base}/console/data/subscriptions/{subscription['id']}")
    assert "active" in text(browser)
    browser.go(f"{base}/console/clock")
    press(browser, "A month")
    browser.go(f"{base}/console/events")
    assert "subscription.renewed" in text(browser)
    browser.go(f"{base}/console/inboxes/shop")
    assert "subscription.renewed" in text(browser)


def test_what_was_refused_is_sent_as_it_succeeds_and_undone(
    browser: Page, base: str, api: httpx2.Client, control: httpx2.Client
) -> None:
    refused = api.post("/v2/customers", json=customer_body(document="52998224726"))
    assert 422 == refused.status_code
    browser.go(f"{base}/console/requests?status=422")
    follow(browser, f"a[href*='{refused.headers['x-request-id']}']")
    press(browser, "Send it")
    assert "201" in text(browser)
    found = {"document": "52998224725"}
    (made,) = api.get("/v2/customers", params=found).json()["customers"]
    press(browser, "Rewind to before it")
    assert 404 == api.get(f"/v2/customers/{made['id']}").status_code
    press(browser, "Undo")
    assert [made["id"]] == [
        each["id"] for each in api.get("/v2/customers", params=found).json()["customers"]
    ]


def test_the_page_of_a_record_follows_it_and_does_not_come_back_stale(
    browser: Page, base: str, make_order: Maker, control: httpx2.Client
) -> None:
    """With scripts; without them a page is as it was read."""
    order = make_order()
    browser.go(f"{base}/console/data/orders/{order['id']}")
    if not browser.look("document.querySelector('[data-copy]').hidden"):
        control.post(f"/orders/{order['id']}/pay")
        browser.until("document.querySelector('#head .badge').textContent === 'paid'")
        follow(browser, "a[href*='/pay/']")
        control.post(f"/orders/{order['id']}/refund")
        browser.look("history.back()")
        browser.until("document.querySelector('#head .badge')?.textContent === 'refunded'")
