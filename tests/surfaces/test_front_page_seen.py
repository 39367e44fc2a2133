"""The overview in a real browser: its call is copied and works, and what happens is
seen at once.
"""

import shlex

import httpx2
import pytest

from ..conftest import Serve
from ..support.browser import Page
from ..support.live import NO_TLS, Live

pytestmark = [pytest.mark.check, pytest.mark.turn]


def copied(browser: Page, pre: str) -> str:
    """What the button beside a command copies, which is the whole command."""
    browser.tell(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.look(f"document.querySelector({pre!r}).parentElement.querySelector('button').click()")
    browser.until(
        f"document.querySelector({pre!r}).parentElement.querySelector('.is-done') !== null"
    )
    text = str(browser.look("navigator.clipboard.readText()"))
    assert browser.look(f"document.querySelector({pre!r}).textContent") == text
    return text


def test_the_call_that_it_shows_works_and_appears_at_once(browser: Page, base: str) -> None:
    browser.seen()
    browser.go(f"{base}/")
    command, _, url, _, header = shlex.split(copied(browser, ".begin pre"))
    name, _, value = header.partition(": ")
    assert "curl" == command
    assert 2 == len(httpx2.get(url, headers={name: value}, verify=NO_TLS).json()["customers"])
    browser.until("document.getElementById('recent').innerText.includes('/v2/customers')")


def test_a_server_whose_controls_are_shut_says_how_to_ask(browser: Page, serve: Serve) -> None:
    shut = serve(host="0.0.0.0")  # noqa: S104 - the test's server listens on loopback all the same
    browser.go(f"{shut.url}/")
    assert "/_sandbox/credentials" in browser.look(
        "document.querySelector('.begin pre').textContent"
    )
    assert browser.look("document.getElementById('recent') === null")


def test_the_list_of_operations_follows_what_is_written(browser: Page, base: str) -> None:
    browser.go(f"{base}/docs")
    write = "(f => { f.value = 'refund'; f.dispatchEvent(new Event('input')) })"
    browser.look(f"{write}(document.querySelector('[data-filter]'))")
    shown = browser.look(
        "[...document.querySelectorAll('.list tr:not([hidden])')].map(each =>"
        " each.innerText).join()"
    )
    assert "Refund an order" in shown
    assert "List customers" not in shown


def test_an_operation_of_the_list_opens_with_a_call_to_copy(
    browser: Page, live: Live, sandbox_name: str
) -> None:
    """In the sandbox of the page that was left."""
    base = f"{live.url}/s/{sandbox_name}"
    httpx2.get(f"{base}/_sandbox/credentials", verify=NO_TLS).raise_for_status()
    browser.go(f"{base}/docs")
    browser.look("document.querySelector('main a[href=\"docs/getOrder\"]').click()")
    browser.until(f"location.href === '{base}/docs/getOrder' && document.readyState === 'complete'")
    words = shlex.split(copied(browser, "#curl"))
    name, _, value = words[8].partition(": ")
    assert f"{base}/v2/orders/" in words[6]
    assert 200 == httpx2.get(words[6], headers={name: value}, verify=NO_TLS).status_code


@pytest.mark.parametrize("run", [True, False])
def test_on_a_phone_the_list_is_a_drawer(browser: Page, base: str, *, run: bool) -> None:
    """With scripts and without; on a wide window it stands beside the page."""
    browser.scripts(run=run)
    try:
        browser.seen(360)
        browser.go(f"{base}/console/requests")
        shown = "getComputedStyle(document.getElementById('side')).display"
        assert "none" == browser.look(shown)
        browser.look("document.querySelector('.menu').click()")
        assert "block" == browser.look(shown)
        browser.seen(1280)
        browser.go(f"{base}/console/clock")
        assert "block" == browser.look(shown)
    finally:
        browser.scripts(run=True)
