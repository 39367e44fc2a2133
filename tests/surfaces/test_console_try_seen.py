"""Trying an operation in a real browser: the answer comes beside the form, the code
follows what is written.
"""

import httpx2
import pytest

from ..support.browser import Page

pytestmark = [pytest.mark.check, pytest.mark.turn]


def click(browser: Page, text: str) -> None:
    """Click a button by its text."""
    browser.look(
        "[...document.querySelectorAll('button')].find(each => each.textContent ==="
        f" '{text}').click()"
    )


@pytest.mark.parametrize("run", [True, False])
@pytest.mark.parametrize("path", ["/docs/createPixOrder", "/console/try/createPixOrder"])
def test_the_answer_comes_beside_the_form(
    browser: Page, base: str, control: httpx2.Client, path: str, *, run: bool
) -> None:
    """With scripts on the same page, and without them on the next; both lead to the request."""
    browser.scripts(run=run)
    try:
        browser.go(base + path)
        click(browser, "Send")
        browser.until(
            "document.querySelector('#answer .badge') !== null && document.readyState ==="
            " 'complete'"
        )
        assert (path if run else "/console/try/createPixOrder") == browser.look(
            "location.pathname"
        ).removeprefix(base[base.index("/s/") :])
        assert "201" == browser.look("document.querySelector('#answer .badge').textContent")
        newest = control.get("/requests").json()["requests"][0]["id"]
        assert f"{base}/console/requests/{newest}" == browser.look(
            "document.querySelector('#answer a').href"
        )
    finally:
        browser.scripts(run=True)
    assert [] == browser.barriers()


def test_the_code_follows_what_is_written(browser: Page, base: str, control: httpx2.Client) -> None:
    browser.go(f"{base}/docs/listOrders")
    browser.look("document.querySelectorAll('#code details')[1].open = true")
    browser.look(
        "(field => { field.value = '3'; field.dispatchEvent(new Event('input', {bubbles: true}));"
        " })(document.querySelector('[name=\"query.limit\"]'))"
    )
    browser.until("document.getElementById('curl').textContent.includes('/v2/orders?limit=3')")
    assert browser.look("document.querySelectorAll('#code details')[1].open") is True
    assert [] == control.get("/requests").json()["requests"]
