"""What all pages of the console have in common: who may open them, what a form needs, where its
links lead.
"""

import re
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

import stub_server
from stub_server.console.shell import FOOT, NOW

from ..conftest import Serve
from ..support.console import Console
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker, done
from .conftest import Visit

pytestmark = pytest.mark.check

ADMIN = "an admin key of the tests"
PACKAGE = Path(stub_server.__file__).parent


@pytest.fixture(scope="module")
def guarded(serve: Serve) -> Live:
    """A server whose controls need a key."""
    # the test's server listens on loopback all the same
    return serve(admin_key=ADMIN, host="0.0.0.0")  # noqa: S104 - a setting: it listens on loopback


def asked(guarded: Live, path: str) -> Json:
    """What a control of the guarded server answers to its admin."""
    headers = {"X-Sandbox-Admin-Key": ADMIN}
    return done(httpx2.get(guarded.url + path, headers=headers, verify=NO_TLS))


def test_pages_forbid_what_they_do_not_need(console: Console) -> None:
    page = console.open("/console/requests")
    headers = page.response.headers
    assert 200 == page.status
    policy = (
        "default-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
        " object-src 'none'"
    )
    assert policy == headers["content-security-policy"]
    assert ("same-origin", "same-origin", "nosniff", "no-store") == (
        headers["referrer-policy"], headers["cross-origin-resource-policy"], headers["x-content-type-options"],
        headers["cache-control"],
    )  # fmt: skip
    assert not re.search(r"<script(?![^>]* src=)|style=|\son\w+=|javascript:", page.response.text)


@pytest.mark.parametrize("path", ["/", "/console/requests"])
def test_every_link_of_a_page_leads_to_a_page_of_its_sandbox(
    console: Console, api: httpx2.Client, path: str
) -> None:
    api.get("/v2/orders")
    page = console.open(path)
    assert any("console/requests/req_" in link for link in page.links)
    assert len(page.links) > 5
    for link in set(page.links):
        assert not link.startswith(("/", "http")), link
        assert 200 == console.follow(page, link).status, link


def test_what_a_page_asks_leaves_no_trace(
    console: Console, control: httpx2.Client, api: httpx2.Client, live: Live
) -> None:
    """Neither in the journal nor in the terminal; and no fault rule or rate limit meets it."""
    control.post("/faults", json={"then": {"status": 503}})
    seen = []

    def listen(trace: object) -> None:
        seen.append(str(getattr(trace, "path", "")))

    live.app.server.listeners.append(listen)
    try:
        assert 200 == console.open("/console/requests").status
    finally:
        live.app.server.listeners.remove(listen)
    assert "/console/requests" in seen
    assert not [
        path
        for path in seen
        if path in ("/_sandbox/clock", "/_sandbox/requests", "/_sandbox/sandboxes")
    ]
    kept = control.get("/requests", params={"control": "true"}).json()["requests"]
    assert ["/_sandbox/faults"] == [each["path"] for each in kept]


def test_an_action_leads_to_pages_of_the_console_alone(console: Console, live: Live) -> None:
    for to in (
        "https://evil.example/",
        "//evil.example/console/x",
        "/docs",
        "javascript:alert(1)",
        "/console/\\..",
        "",
    ):
        page = console.send(console.open("/console/requests"), "Forget all", back=to)
        assert page.url.startswith(f"{console.base}/console/requests?done=req_"), to
        assert "Delete all requests : done." in page.text
    assert "done." not in console.open("/console/requests?done=req_0123456789abcdef01234567").text


def test_no_page_of_another_origin_may_read_the_console(live: Live) -> None:
    for origin in ("http://localhost:3000", "https://evil.example"):
        answer = httpx2.get(
            f"{live.url}/console/requests", headers={"Origin": origin}, verify=NO_TLS
        )
        assert "access-control-allow-origin" not in answer.headers
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = httpx2.options(
            f"{live.url}/console/requests/clear", headers=headers, verify=NO_TLS
        )
        assert "access-control-allow-origin" not in preflight.headers
    headers = {"Sec-Fetch-Site": "same-site"}
    assert (
        403
        == httpx2.get(
            f"{live.url}/console/requests.har", headers=headers, verify=NO_TLS
        ).status_code
    )


def test_a_page_takes_gets_and_forms(live: Live) -> None:
    answer = httpx2.put(f"{live.url}/console/requests", verify=NO_TLS)
    assert (405, "GET, HEAD, POST, OPTIONS") == (answer.status_code, answer.headers["allow"])
    assert 204 == httpx2.options(f"{live.url}/console/requests", verify=NO_TLS).status_code
    for path in ("/console/nothing", "/console/requests/x/y/z", "/pay/"):
        assert 404 == httpx2.get(live.url + path, verify=NO_TLS).status_code, path
    assert 405 == httpx2.get(f"{live.url}/console/do/rewindSandbox", verify=NO_TLS).status_code
    for path in ("/console", "/console/", "/s/default/console/"):
        moved = httpx2.get(live.url + path, verify=NO_TLS)
        assert (307, f"{path.rstrip('/')}/requests") == (
            moved.status_code,
            moved.headers["location"],
        )


def test_a_sandbox_that_is_not_there_is_made_by_a_click(
    visit: Visit, live: Live, sandbox_name: str
) -> None:
    """And not by looking."""
    console = visit(live.url, sandbox_name)
    page = console.open("/console/requests")
    assert 404 == page.status
    assert f"There is no sandbox “{sandbox_name}” yet" in page.text
    assert (
        404
        == httpx2.get(f"{live.url}/_sandbox/sandboxes/{sandbox_name}", verify=NO_TLS).status_code
    )
    made = console.send(page, "Make it")
    assert (200, f"{console.base}/console/requests") == (made.status, made.url)


def test_the_head_leads_to_other_sandboxes(live: Live, console: Console, sandbox_name: str) -> None:
    page = console.open("/console/requests")
    assert f"../../../s/{sandbox_name}/console/requests" in page.links
    assert "../console/sandboxes#create" in page.links


def test_times_are_of_one_zone_that_a_visitor_chooses(console: Console) -> None:
    """Brasília, or UTC, which the head names; a field of a form has it too."""
    page = console.open("/console/clock")
    assert "20 Nov 2026, 11:32:05 Brasília UTC" in page.text
    page = console.follow(page, next(link for link in page.links if "zone=utc" in link))
    assert f"{console.base}/console/clock" == page.url
    assert "20 Nov 2026, 14:32:05 Brasília UTC" in page.text
    assert "2026-11-21T14:32" == page.form("To this date").values["to"]


def test_every_page_has_one_shell(console: Console, make_order: Maker) -> None:
    """The same head and the same list, on pages of operations, the guide and the overview too; on
    /pay none.
    """
    order = make_order()
    lists = {}
    for path in (
        "/",
        "/docs",
        "/docs/listPlans",
        "/guide",
        "/guide/api",
        "/console/requests",
        "/console/keys",
    ):
        html = console.open(path).response.text
        side = html.partition('<nav class="side"')[2].partition("</nav>")[0]
        lists[path] = re.sub(r'\.\./|\./| aria-current="page"| open', "", side)
        assert '<form class="finder"' in html
        assert "20 Nov 2026," in html
        assert (
            html.index("<h2>Now</h2>") < html.index("<h2>API</h2>") < html.index("<h2>Guide</h2>")
        )
    del lists["/"]  # it is below its own address
    assert 1 == len(set(lists.values()))
    assert "<nav" not in console.open(f"/pay/{order['id']}").response.text


def test_pages_are_light(console: Console, make_order: Maker) -> None:
    """At most 60 KiB of HTML, 40 of CSS and 20 of JavaScript."""
    order = make_order()
    paths = [
        "/",
        "/docs",
        "/docs/createOrder",
        "/docs/addPersona",
        "/guide",
        "/console/data/customers",
        "/console/clock",
    ]
    paths += [f"/console/data/orders/{order['id']}", f"/pay/{order['id']}"]
    paths += [f"/console/{path}" for path in (*NOW, *FOOT)]
    heavy = {
        path: size
        for path in paths
        if (size := len(console.open(path).response.content)) > 60 << 10
    }
    assert {} == heavy
    static = {file.name: file.stat().st_size for file in (PACKAGE / "console" / "static").iterdir()}
    assert static["console.css"] < 40 << 10
    assert sum(size for name, size in static.items() if name.endswith(".js")) < 20 << 10


def test_a_page_that_is_none_says_what_it_may_have_been(console: Console) -> None:
    for path, meant in (("/docs/createPixOrdr", "docs/createPixOrder"), ("/guide/webhook", "guide/webhooks"),
                        ("/console/request", "console/requests"), ("/guide/upgrade", "guide/teams#upgrade"),
                        ("/guide/quickstart", "guide/about#quickstart")):  # fmt: skip
        page = console.open(path)
        assert 404 == page.status
        assert any(link.endswith(meant) for link in page.links[-6:]), path
    for path in ("/console/nothing", "/guide/nothing", "/guide/%00"):  # like none
        assert "It may have been" not in console.open(path).text, path


# -- keys


@pytest.fixture
def stranger(visit: Visit, guarded: Live) -> Console:
    """A browser that has given no key."""
    return visit(guarded.url)


def test_with_an_admin_key_every_page_asks_for_it_once(stranger: Console, guarded: Live) -> None:
    page = stranger.open("/console/requests?status=4xx")
    assert 403 == page.status
    assert "This sandbox asks for a key" in page.text
    assert 403 == stranger.send(page, "Open the console", key="wrong").status
    opened = stranger.send(page, "Open the console", key=ADMIN)
    assert (200, f"{guarded.url}/console/requests?status=4xx") == (opened.status, opened.url)
    assert 200 == stranger.open("/console/requests").status
    assert 200 == stranger.open("/console/requests.har").status
    assert ADMIN not in opened.response.text
    left = stranger.send(opened, "Leave")
    assert 403 == left.status


@pytest.mark.promise("wrong-keys-slowed")
def test_wrong_keys_of_the_form_are_slowed(visit: Visit, serve: Serve) -> None:
    """Right ones, that of the sandbox too, work at once."""
    slowed = serve(admin_key=ADMIN, host="0.0.0.0", seed=83)  # noqa: S104 - a setting: it listens on loopback
    stranger = visit(slowed.url)
    page = stranger.open("/console/requests")
    wrong = {stranger.send(page, "Open the console", key="wrong").status for _ in range(11)}
    assert {403, 429} == wrong
    own = slowed.app.sandboxes.control_key("default")
    assert 200 == stranger.send(page, "Open the console", key=own).status


def test_the_cookie_is_the_servers_own_and_opens_no_control(
    stranger: Console, guarded: Live
) -> None:
    page = stranger.open("/console/requests")
    before = stranger.http.cookies[f"stub_console_{guarded.port}"]
    form = page.form("Open the console")
    answer = stranger.http.post(
        f"{guarded.url}/console/key", data=form.values | {"key": ADMIN}, headers={"Origin": guarded.url},
        follow_redirects=False,
    )  # fmt: skip
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"stub_console_{guarded.port}=")
    assert {"HttpOnly", "Path=/", "SameSite=Strict"} == {
        part.strip() for part in cookie.split(";")[1:]
    }
    assert before not in cookie
    for path in ("/_sandbox/clock", "/_sandbox/credentials", "/_sandbox/stream"):
        assert 403 == stranger.http.get(guarded.url + path).status_code


def test_the_session_opens_the_stream_of_the_console(stranger: Console) -> None:
    page = stranger.open("/console/requests")
    with stranger.http.stream("GET", f"{stranger.base}/console/stream") as closed:
        assert 403 == closed.status_code
    stranger.send(page, "Open the console", key=ADMIN)
    with stranger.http.stream("GET", f"{stranger.base}/console/stream") as stream:
        assert (200, "text/event-stream") == (stream.status_code, stream.headers["content-type"])
        assert next(stream.iter_text()).startswith("retry:")


def test_over_https_the_cookie_is_sent_over_https_alone(visit: Visit, serve: Serve) -> None:
    secure = serve(admin_key=ADMIN, base_url="https://sandbox.example.com")
    page = visit(secure.url).open("/console/requests")
    assert "Secure" in page.response.headers["set-cookie"]


def test_a_control_key_opens_its_own_sandbox(visit: Visit, guarded: Live) -> None:
    headers = {"X-Sandbox-Admin-Key": ADMIN}
    for name in ("mine", "other"):
        made = httpx2.post(
            f"{guarded.url}/_sandbox/sandboxes", json={"name": name}, headers=headers, verify=NO_TLS
        )
        assert 201 == made.status_code
    key = asked(guarded, "/s/mine/_sandbox/credentials")["control_key"]
    console = visit(guarded.url, "mine")
    opened = console.send(console.open("/console/requests"), "Open the console", key=key)
    assert 200 == opened.status
    (cookie,) = [each for each in console.http.cookies.jar if each.path == "/s/mine/"]
    assert cookie.name == f"stub_console_{guarded.port}"
    other = visit(guarded.url, "other")
    page = other.open("/console/requests")
    assert 403 == other.send(page, "Open the console", key=key).status
    sent = {"Cookie": f"{cookie.name}={cookie.value}"}
    assert (
        403
        == httpx2.get(
            f"{guarded.url}/s/other/console/requests", headers=sent, verify=NO_TLS
        ).status_code
    )
    assert (
        200
        == httpx2.get(
            f"{guarded.url}/s/mine/console/requests", headers=sent, verify=NO_TLS
        ).status_code
    )


def test_a_visitor_from_another_site_keeps_the_session(stranger: Console) -> None:
    """Browsers keep the cookie back then: the page asks once more from its own site."""
    page = stranger.open("/console/requests", **{"Sec-Fetch-Site": "cross-site"})
    assert (200, ["Open the console"]) == (page.status, page.text.split(" console ", 1)[1:])
    assert "set-cookie" not in page.response.headers
    assert 'http-equiv="refresh"' in page.response.text


# -- the finder


def test_any_id_leads_to_its_page(
    console: Console, api: httpx2.Client, make_customer: Maker
) -> None:
    request = api.get("/v2/orders").headers["x-request-id"]
    found = console.open(f"/console/find?q=+{request}+")
    assert f"{console.base}/console/requests/{request}" == found.url
    text = "nothing-like-it"
    assert (
        f"{console.base}/console/requests?contains={text}"
        == console.open(f"/console/find?q={text}").url
    )
    assert f"{console.base}/console/requests" == console.open("/console/find?q=").url


def test_a_name_leads_to_what_has_it(
    console: Console, api: httpx2.Client, make_customer: Maker, make_order: Maker
) -> None:
    """Records by code, CPF, e-mail and name; operations; pages of the guide.

    Where there are several, all are shown.
    """
    order = make_order()
    customer = make_customer(
        name="Zuleica Uirapuru", email="zuleica@example.com", document="168.995.350-09"
    )
    path = f"/console/data/customers/{customer['id']}"
    for text in ("168.995.350-09", "16899535009", "zuleica@example.com", "zuleica uirapuru"):
        assert f"{console.base}{path}" == console.open(f"/console/find?q={text}").url, text
    code = console.open(f"/console/find?q={order['code']}")
    assert f"{console.base}/console/data/orders/{order['id']}" == code.url
    assert (
        f"{console.base}/docs/createPixOrder" == console.open("/console/find?q=createpixorder").url
    )
    several = console.open("/console/find?q=refund")
    assert "Refund an order control" in several.text
    assert (
        "Orders, payments and subscriptions: Fail, expire or refund an order guide" in several.text
    )
    assert 200 == console.open("/console/find?q=%3Cscript%3Ealert(1)%3C/script%3E").status


def test_an_inbox_names_the_webhooks_that_lead_to_it_and_not_to_one_of_its_name(
    console: Console, api: httpx2.Client
) -> None:
    for base in (console.base, f"{console.origin}/s/another"):
        body = {"url": f"{base}/_sandbox/inbox/shop", "events": ["*"], "name": f"To {base}"}
        assert 201 == api.post("/v2/webhooks", json=body).status_code
    shown = console.open("/console/inboxes/shop").text
    assert f"To {console.base}" in shown
    assert "s/another" not in shown


# -- no input is an error of the server


ODD = (
    "",
    "x",
    "é\U0001f984",
    "../..",
    "%00",
    "a/b",
    "a%2Fb",
    "{{7*7}}",
    "x" * 3_000,
    "http://[",
    "-1",
    "1e999",
    "\u202e",
)


def test_no_input_is_an_error_of_the_server(
    console: Console, control: httpx2.Client, live: Live
) -> None:
    """Whatever stands in a path, a query or a form."""
    page = console.open("/console/requests")
    token = page.form("Forget all").values["token"]
    paths = ["requests/{}", "data/{}", "data/orders/{}", "try/{}", "find?q={}"]
    paths += [
        "requests?page={}",
        "requests?status={}",
        "requests?since={}",
        "requests?done={}",
        "data/orders?page={}",
    ]
    for path in paths:
        for odd in ODD:
            found = console.open("/console/" + path.replace("{}", odd))
            assert found.status < 500, (path, odd, found.text)
    forms = [
        "key",
        "leave",
        "sandboxes/new",
        "requests/x/send",
        "requests/x/nearest",
    ]
    forms += [
        "do/rewindSandbox",
        "do/triggerEvent",
        "do/updateSettings",
        "do/payOrder",
        "do/x",
        "try/createPixOrder",
    ]
    for path in forms:
        for odd in (*ODD, "\ud800"):
            values = dict.fromkeys(
                ("to", "to_step", "type", "overrides", "autopay", "orderId", "key", "name", "body"),
                odd,
            ) | {"token": token}
            body = "&".join(
                f"{name}={quote(value, errors='replace')}" for name, value in values.items()
            )
            answer = console.http.post(
                f"{console.base}/console/{path}", content=body, follow_redirects=False,
                headers={"Origin": console.origin, "Content-Type": "application/x-www-form-urlencoded"},
            )  # fmt: skip
            assert answer.status_code < 500, (path, odd, answer.text)
    for media, content in (
        ("application/json", b"{"),
        ("multipart/form-data", b"x"),
        ("", b"\xff" * 1000),
    ):
        headers = {"Origin": console.origin, "Content-Type": media}
        assert (
            403
            == console.http.post(
                f"{console.base}/console/do/rewindSandbox", content=content, headers=headers
            ).status_code
        )
    odd_cookie = {b"Cookie": b"\xe9=\xff; stub_console_1=\x80"}
    assert (
        200
        == httpx2.get(f"{live.url}/console/requests", headers=odd_cookie, verify=NO_TLS).status_code
    )
