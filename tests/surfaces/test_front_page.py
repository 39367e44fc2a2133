"""The front page: what a person sees who opens the server's address in a browser."""

import re

import httpx2
import pytest

from ..conftest import Serve
from ..support.console import Console
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker

pytestmark = pytest.mark.check

BROWSER = {"Accept": "text/html"}


def test_the_list_of_the_api_has_every_operation_of_both_contracts(live: Live) -> None:
    """Nobody has to guess a path, and a filter finds an operation by path, name and word."""
    every = httpx2.get(f"{live.url}/docs", verify=NO_TLS).text
    for address in ("/openapi.json", "/_sandbox/openapi.json"):
        for path in httpx2.get(live.url + address, verify=NO_TLS).json()["paths"]:
            assert f"{path}</code>" in every
    for words, found in (
        ("/V2/orders pix", "createPixOrder"),
        ("copy-and-paste", "createPixOrder"),
        ("refundOrder", "refundOrder"),
    ):
        listed = httpx2.get(f"{live.url}/docs", params={"q": words}, verify=NO_TLS).text.partition(
            "<main"
        )[2]
        assert f'href="docs/{found}"' in listed
        assert 'href="docs/listCustomers"' not in listed


@pytest.mark.parametrize(
    ("what", "method", "path"),
    [("Place an order", "POST", "/v2/orders/pix"), ("Go a month on", "POST", "/_sandbox/clock/advance"),
     ("Break something", "POST", "/_sandbox/faults"), ("Pay it", "POST", "/pay")],
)  # fmt: skip
def test_a_newcomer_begins_by_one_click(
    console: Console, control: httpx2.Client, make_order: Maker, what: str, method: str, path: str
) -> None:
    """The overview then says what was done, with the way back, which for a fault rule is
    to remove it.
    """
    make_order()
    page = console.send(console.open("/"), what)
    assert page.url.startswith(f"{console.base}/?done=req_")
    assert ": done." in page.text
    newest = control.get("/requests", params={"control": "true"}).json()["requests"][0]
    assert (method, True) == (newest["method"], newest["path"].endswith(path))
    undone = console.send(page, "Undo")
    assert undone.url.startswith(f"{console.base}/?done=req_")
    assert ": done." in undone.text
    assert [] == control.get("/faults").json()["faults"]


def test_a_placed_order_leads_to_its_pages(console: Console, api: httpx2.Client) -> None:
    """The order, where it is paid, and its deliveries."""
    webhook = {"url": "https://shop.example/hooks", "name": "shop", "events": ["*"]}
    assert 201 == api.post("/v2/webhooks", json=webhook).status_code
    page = console.send(console.open("/"), "Place an order")
    order = api.get("/v2/orders", params={"limit": 1}).json()["orders"][0]
    ident = page.url.partition("done=")[2]
    assert f"console/data/orders/{order['id']}" in page.links
    assert f"pay/{order['id']}" in page.links
    deliveries = console.follow(page, f"console/requests/{ident}#deliveries")
    assert "order.created https://shop.example/hooks" in deliveries.text
    assert f"console/requests/{ident}#deliveries" in page.links
    assert not [
        link for link in console.send(page, "Go a month on").links if link.endswith("#deliveries")
    ]


def test_what_is_due_next_is_said_in_words(console: Console, make_order: Maker) -> None:
    make_order()
    page = console.open("/")
    assert "Webhook is sent" in page.text or "Next order is placed" in page.text
    assert not re.search(
        r"(order|subscription|webhook)\.[a-z_]+", page.text.partition("Due next")[2]
    )


def test_a_reset_is_asked_for_and_undone(
    console: Console, api: httpx2.Client, make_order: Maker
) -> None:
    order = make_order()
    page = console.open("/")
    assert "become what they were when it began" in page.text
    done = console.send(page, "Reset it")
    assert "Reset the sandbox : done." in done.text
    assert 404 == api.get(f"/v2/orders/{order['id']}").status_code
    console.send(done, "Undo")
    assert 200 == api.get(f"/v2/orders/{order['id']}").status_code


def test_it_shows_the_last_requests_and_the_clock(
    live: Live, sandbox_name: str, api: httpx2.Client
) -> None:
    """Newest first, with every page of the console and the finder."""
    for number in range(7):
        api.get("/v2/orders", params={"limit": number + 1})
        api.get(f"/v2/orders/<script>{number}")
    html = httpx2.get(f"{live.url}/s/{sandbox_name}/", headers=BROWSER, verify=NO_TLS).text
    assert 5 == html.count('href="console/requests/req_')
    assert ["6", "5"] == re.findall(r"orders/&lt;script&gt;([0-9])", html)[:2]
    assert "<script>6" not in html
    assert '<span class="badge">frozen</span>' in html
    assert '<form class="finder" role="search" action="console/find">' in html
    assert len(html) < 30_000


@pytest.mark.promise("front-page-for-strangers")
@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"admin_key": "not-for-everybody"}, {}),
        ({"admin_key": "not-for-everybody"}, {"X-Sandbox-Admin-Key": "wrong"}),
        # the test's server listens on loopback all the same
        ({"host": "0.0.0.0"}, {}),  # noqa: S104 - a setting: it listens on loopback
        ({}, {"Origin": "https://elsewhere.example"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_strangers_see_no_request_and_no_clock(
    serve: Serve, settings: Json, headers: dict[str, str]
) -> None:
    """Nor do the pages of the API and the guide; a session changes nothing for pages of
    other origins.
    """
    server = serve(**settings, scenario="empty")
    httpx2.get(f"{server.url}/v2/orders", verify=NO_TLS)
    for path in ("/", "/docs", "/docs/listOrders", "/guide/api"):
        html = httpx2.get(f"{server.url}{path}", headers=BROWSER | headers, verify=NO_TLS).text
        assert "console/requests/req_" not in html
        assert "data-stream" not in html
        assert 'id="recent"' not in html
        assert 'console/requests"' in html


@pytest.mark.parametrize("name", ["front", "Front"])
def test_the_page_of_a_sandbox_stands_below_its_prefix_and_speaks_of_it(
    live: Live, name: str
) -> None:
    """Without the slash, links would lead elsewhere: the browser is sent there."""
    moved = httpx2.get(f"{live.url}/s/{name}?x=1", verify=NO_TLS)
    assert (307, "/s/front/?x=1", b"") == (
        moved.status_code,
        moved.headers["location"],
        moved.content,
    )
    assert moved.headers["x-request-id"]
    page = httpx2.get(f"{live.url}/s/{name}", follow_redirects=True, headers=BROWSER, verify=NO_TLS)
    assert page.status_code == 200
    assert f"<code>{live.url}/s/front</code>" in page.text
    assert (
        f"<code>{live.url}</code>"
        in httpx2.get(f"{live.url}/", headers=BROWSER, verify=NO_TLS).text
    )
    assert httpx2.post(f"{live.url}/s/{name}", verify=NO_TLS).status_code == 307
    live.app.sandboxes.forget("front")


def test_a_cookie_that_is_decoded_to_other_letters_is_no_defect(live: Live) -> None:
    cookie = f'stub_console_{live.port}="a.b.\\303\\251"'
    assert (
        200
        == httpx2.get(
            f"{live.url}/", headers=BROWSER | {"Cookie": cookie}, verify=NO_TLS
        ).status_code
    )


def test_a_browser_at_a_mistyped_path_is_shown_a_page_and_programs_json(live: Live) -> None:
    for path, accept, kind in (
        ("/gude/payments", "text/html", "text/html"),
        ("/gude/payments", "*/*", "application/json"),
        ("/v2/ordres", "text/html", "application/json"),
    ):
        answer = httpx2.get(live.url + path, headers={"Accept": accept}, verify=NO_TLS)
        assert (404, kind) == (answer.status_code, answer.headers["content-type"].partition(";")[0])
        assert ('href="guide/payments"' in answer.text.replace("../", "")) is (kind == "text/html")
