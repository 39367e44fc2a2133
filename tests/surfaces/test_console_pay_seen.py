"""The page of a payer in a real browser: what happens elsewhere is seen, and the code is copied."""

import httpx2
import pytest

from ..support.browser import Page
from ..support.make import Maker

pytestmark = [pytest.mark.check, pytest.mark.turn]


@pytest.fixture(autouse=True)
def phone(browser: Page) -> None:
    browser.seen(360)


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
