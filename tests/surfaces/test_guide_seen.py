"""The guide in a real browser: wide and narrow, light and dark, by keyboard and by search."""

import pytest

from ..support.browser import Page
from ..support.live import Live

pytestmark = [pytest.mark.check, pytest.mark.turn]

PAGES = (
    "/guide",
    "/guide/webhooks",
    "/guide/console",
    "/guide/reference/errors",
    "/guide?q=webhook+signature",
)


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (360, True)], ids=["wide-light", "narrow-dark"]
)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_and_has_no_barriers(
    browser: Page, live: Live, path: str, width: int, dark: bool
) -> None:
    browser.seen(width, dark=dark)
    browser.go(live.url + path)
    assert width >= browser.look("document.documentElement.scrollWidth")
    assert [] == browser.barriers()
    assert [] == browser.complaints()


def test_a_search_leads_to_the_section(browser: Page, live: Live) -> None:
    browser.seen()
    browser.go(f"{live.url}/guide/api")
    browser.look(
        "(f => { f.q.value = 'verify a signature'; f.requestSubmit()"
        " })(document.querySelector('main form'))"
    )
    browser.until(
        "location.search === '?q=verify+a+signature' && !!document.querySelector('article a')"
    )
    browser.look("document.querySelector('article a').click()")
    browser.until("document.querySelector(':target')?.textContent === 'Verify a signature'")
