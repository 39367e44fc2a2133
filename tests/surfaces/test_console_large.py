"""A sandbox with 100,000 orders: its lists and the first write to a copy by the server's CPU time,
and every page of its console in a real browser, by its bytes too.
"""

import gc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from threading import enumerate as enumerate_threads
from time import clock_gettime, pthread_getcpuclockid

import pytest

from stub_server.console.shell import FOOT, NOW

from ..benchmarks.sizes import scenario
from ..support.browser import Page
from ..support.cost import Measured, measured, slowness
from ..support.live import FROZEN
from ..support.make import order_body
from ..support.wire import Door

pytestmark = pytest.mark.night
ORDERS = 100_000
OWN = 0.100 * slowness()  # seconds of CPU time that a page takes beside the controls it calls
HOLD = 0.050 * slowness()  # seconds of CPU time in which nobody else is served
WEIGHT = 60 << 10
HTML = [("Accept", "text/html")]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """A server whose sandbox has so many orders."""
    of = str(scenario(ORDERS, tmp_path_factory.mktemp("large")))
    with measured(replace(FROZEN, scenario=of)) as found:
        gc.freeze()  # as the product does once it serves
        yield found
        gc.unfreeze()


def paths(found: Measured) -> list[str]:
    """First and later pages of each list, searches, filters and sort orders, and one record of each
    kind.
    """
    door = found.door
    orders = door.ask("GET", "/v2/orders?limit=25&status=paid").json()
    (order, *_), last = orders["orders"], orders["pagination"]["total_pages"]
    customer = door.ask("GET", "/v2/customers?limit=1").json()["customers"][0]
    subscription = door.ask("GET", "/v2/subscriptions?limit=1").json()["subscriptions"][0]
    refused = door.ask("POST", "/v2/customers", body=b'{"name": "x"}').header("x-request-id")
    lists = ["orders", "subscriptions", "customers", "plans", "webhook_logs"]
    return [
        "/",
        "/docs",
        *(f"/console/{name}" for name in (*NOW, *FOOT)),
        *(f"/console/data/{name}" for name in lists),
        *(f"/console/data/{name}?page=300" for name in lists[:3]),
        f"/console/data/orders?status=paid&page={last}",
        "/console/data/orders?sort=-totalAmount&page=900",
        "/console/data/orders?search=maria",
        "/console/data/orders?search=529.982.247",
        "/console/data/orders?created_since=2026-06-01T00:00",
        "/console/data/customers?search=maria",
        f"/console/data/orders?customerId={customer['id']}",
        f"/console/data/orders/{order['id']}",
        f"/console/data/customers/{customer['id']}",
        f"/console/data/subscriptions/{subscription['id']}",
        f"/console/requests/{refused}",
        "/console/clock?page=300",
        "/console/events?type=order.paid",
        "/console/find?q=maria",
        f"/console/find?q={order['code']}",
    ]


def of_controls(found: Measured) -> float:
    """Seconds of CPU time of the thread that serves: controls run in it, pages in others."""
    (thread,) = [each for each in enumerate_threads() if each.name == f"server-{found.door.port}"]
    assert thread.ident is not None
    return clock_gettime(pthread_getcpuclockid(thread.ident))


LISTS = (
    "orders?status=paid&sort=-totalAmount",
    "orders?paymentMethod=pix&status=paid",
    "orders?paid_since=2025-01-01T00:00:00Z&status=paid&sort=totalAmount",
    "orders?search=maria&sort=totalAmount",
    "customers?search=1&sort=name",
)


def test_a_list_without_an_index_of_its_own_holds_nobody_up(large: Measured) -> None:
    """Each is asked first after a write, which drops what the table remembers."""
    door, heart = large
    customer = door.ask("GET", "/v2/customers?limit=1").json()["customers"][0]["id"]
    slow = {}
    for path in LISTS:
        for number in range(5):
            _order(door)
            door.send("PUT", f"/v2/customers/{customer}", {"metadata": {"n": f"{path}{number}"}})
            cost = heart.cost_of(partial(door.ask, "GET", f"/v2/{path}"))
            if cost.hold < HOLD:
                break
        else:
            slow[path] = cost
    assert {} == slow


def test_the_first_write_to_a_copy_holds_nobody_up(large: Measured) -> None:
    """Nor does the first one to the sandbox of which it is a copy."""
    door, heart = large
    holds = []
    for _ in range(5):
        made = door.send("POST", "/_sandbox/sandboxes/default/fork", {"name": "copy"}).json()
        fork = Door(door.port, "/s/copy", made["sandbox"]["credentials"]["jwt"])
        holds.append([heart.cost_of(partial(_order, each)).hold for each in (fork, door)])
        door.ask("DELETE", "/_sandbox/sandboxes/copy")
    assert min(map(max, holds)) < HOLD, holds


def _order(door: Door) -> None:
    sample = door.ask("GET", "/_sandbox/credentials").json()["sample"]
    answer = door.send("POST", "/v2/orders/pix", order_body(sample["projectId"], sample["planId"]))
    assert answer.status == 201, answer


def show(browser: Page, url: str) -> None:
    """Open an address, which may lead to another one."""
    browser.look("window.isLeft = true")
    browser.tell("Page.navigate", url=url)
    browser.until("window.isLeft !== true && document.readyState === 'complete'")


def test_a_page_costs_what_its_controls_cost(large: Measured, browser: Page) -> None:
    """And holds up nobody else; it is at most 60 KiB."""
    door, heart = large
    base = f"http://127.0.0.1:{door.port}"
    browser.go(f"{base}/")
    slow = {}
    for path in paths(large):
        show(browser, base + path)
        html = door.ask("GET", path, headers=HTML).body.decode()
        ask = partial(door.ask, "GET", path, headers=HTML)
        owns = []
        for _ in range(3):
            before = of_controls(large)
            page = heart.cost_of(ask)
            owns.append(page.total - (of_controls(large) - before))
        if heart.least(ask, HOLD).hold > HOLD or min(owns) > OWN or len(html.encode()) > WEIGHT:
            slow[path] = (page, owns, len(html))
    assert {} == slow
