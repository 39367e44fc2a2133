"""The page of a payer in a real browser: paid with scripts and without, and what happens elsewhere
is seen.
"""

import httpx2
import pytest

from ..support.browser import Page
from ..support.make import Maker

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.fixture(autouse=True)
def phone(browser: Page) -> None:
    browser.seen(360)


@pytest.mark.parametrize("run", [True, False])
def test_an_order_is_paid_by_one_click(
    browser: Page, base: str, make_order: Maker, control: httpx2.Client, *, run: bool
) -> None:
    order = make_order(success_url="https://shop.example/thanks")
    browser.scripts(run=run)
    try:
        browser.go(f"{base}/pay/{order['id']}")
        assert browser.look("document.querySelector('.qr').naturalWidth > 0")
        browser.look(
            "[...document.querySelectorAll('button')].find(b => b.textContent === 'I have"
            " paid').click()"
        )
        browser.until("document.querySelector('h1')?.textContent === 'Paid'")
        assert "https://shop.example/thanks" == browser.look(
            "document.querySelector('main a')?.href"
        )
    finally:
        browser.scripts(run=True)
    assert "paid" == control.get(f"/orders/{order['id']}").json()["order"]["status"]


def test_what_happens_elsewhere_is_seen(
    browser: Page, base: str, make_order: Maker, control: httpx2.Client
) -> None:
    order = make_order()
    browser.go(f"{base}/pay/{order['id']}")
    assert 200 == control.post(f"/orders/{order['id']}/expire").status_code
    browser.until("document.querySelector('h1')?.textContent === 'Expired'")


def test_the_time_runs_with_the_clock_of_the_sandbox(
    browser: Page, base: str, make_order: Maker, control: httpx2.Client
) -> None:
    order = make_order()
    browser.go(f"{base}/pay/{order['id']}")
    assert "24:00:00" == browser.look("document.getElementById('left').textContent")
    assert 200 == control.patch("/clock", json={"frozen": False}).status_code
    browser.go(f"{base}/pay/{order['id']}?running")
    browser.until("document.getElementById('left').textContent < '23:59:58'")


def test_the_code_is_copied_by_a_click(browser: Page, base: str, make_order: Maker) -> None:
    order = make_order()
    browser.go(f"{base}/pay/{order['id']}")
    browser.tell(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.look("document.querySelector('.code [data-copy]').click()")
    browser.until("document.querySelector('.code .is-done') !== null")
    assert order["last_transaction"]["qr_code"] == browser.look("navigator.clipboard.readText()")
