"""The front page in a real browser: what it says when its script has run, and its button."""

import json
import shlex
from collections.abc import Iterator

import httpx2
import pytest

from ..conftest import Serve
from ..support.browser import Page, browsing
from ..support.live import NO_TLS, Live

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browsing() as page:
        yield page


def opened(browser: Page, url: str) -> Page:
    """The page at an address, once it has asked the server for everything."""
    browser.go(url)
    browser.until("!document.getElementById('others').hidden")
    return browser


def test_the_button_copies_a_call_that_works(browser: Page, live: Live) -> None:
    """Whole, as it is shown; the button says that it was done."""
    page = opened(browser, f"{live.url}/")
    page.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.look("document.getElementById('copy').click()")
    page.until("document.getElementById('copy').textContent === 'Copied'")
    copied = page.look("navigator.clipboard.readText()")
    assert page.look("document.getElementById('curl').textContent") == copied
    assert page.look("(e => e.scrollWidth <= e.clientWidth)(document.getElementById('curl'))") is True
    command, _, url, _, header = shlex.split(copied)
    name, _, value = header.partition(": ")
    assert "curl" == command
    assert 2 == len(httpx2.get(url, headers={name: value}, verify=NO_TLS).json()["customers"])


def test_the_page_of_a_world_speaks_of_that_world(browser: Page, live: Live, sandbox_name: str) -> None:
    """Its name, its data, and a call to it. The clock stands above every page."""
    base = f"{live.url}/s/{sandbox_name}"
    assert (
        httpx2.post(f"{base}/_sandbox/reset", json={"scenario": "empty", "seed": 7}, verify=NO_TLS).status_code == 200
    )
    page = opened(browser, f"{base}/")
    world = httpx2.get(f"{base}/_sandbox/sandboxes/{sandbox_name}", verify=NO_TLS).json()["sandbox"]
    assert sandbox_name in page.look("document.title")
    facts = page.look("document.getElementById('facts').innerText")
    assert f"scenario empty, seed 7, {world['records']} records" in facts
    assert f"'{base}/v2/customers?limit=2'" in page.look("document.getElementById('curl').textContent")


def test_a_server_whose_controls_are_shut_says_what_it_needs(browser: Page, serve: Serve) -> None:
    """The page shows the refusal instead of waiting for ever."""
    shut = serve(host="0.0.0.0")  # noqa: S104 - the test's server listens on loopback all the same
    refusal = httpx2.get(f"{shut.url}/_sandbox/credentials", verify=NO_TLS).json()["message"]
    browser.go(f"{shut.url}/")
    browser.until(f"document.getElementById('state').textContent === {json.dumps(refusal)}")
    assert browser.look("document.getElementById('command').hidden") is True


def test_an_operation_of_the_list_opens_with_a_call_to_copy(browser: Page, live: Live, sandbox_name: str) -> None:
    """In the world of the page that was left; the button copies the call whole."""
    page = opened(browser, f"{live.url}/s/{sandbox_name}/")
    page.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.look("document.querySelector('a[href=\"docs/getOrder\"]').click()")
    page.until(f"location.href === '{live.url}/s/{sandbox_name}/docs/getOrder' && document.readyState === 'complete'")
    page.look("document.getElementById('copy').click()")
    page.until("document.getElementById('copy').textContent === 'Copied'")
    copied = page.look("navigator.clipboard.readText()")
    assert page.look("document.getElementById('curl').textContent") == copied
    url, header = (shlex.split(copied)[at] for at in (6, 8))
    name, _, value = header.partition(": ")
    assert f"{live.url}/s/{sandbox_name}/v2/orders/" in url
    assert 200 == httpx2.get(url, headers={name: value}, verify=NO_TLS).status_code
