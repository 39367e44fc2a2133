"""The pages of requests: the list with its filters, and one request with what it did and what would
have worked.
"""

import httpx2
import pytest

from ..support.console import Console
from ..support.make import Maker, customer_body

pytestmark = pytest.mark.check

HOSTILE = "<script>alert(1)</script> \u202eabc \U0001f984 'x\" {{ 1234567 * 9 }}"


def newest(control: httpx2.Client) -> str:
    """The id of the newest request to the API."""
    return str(control.get("/requests", params={"limit": 1}).json()["requests"][0]["id"])


def test_the_list_has_the_filters_of_the_control(console: Console, api: httpx2.Client) -> None:
    """They stand in the address. One that is refused is said so, beside the form as it was sent."""
    api.get("/v2/orders", params={"limit": 1})
    api.get("/v2/plans", params={"limit": 0})
    page = console.open("/console/requests")
    assert "/v2/orders ?limit=1" in page.text
    assert "Validation error" in page.text
    refused = console.send(page, "Filter", status="4xx")
    assert "status=4xx" in refused.url
    assert "/v2/orders ?limit=1" not in refused.text
    assert "/v2/plans ?limit=0" in refused.text
    assert "No request matches" in console.open("/console/requests?code=nothing_like_it").text
    wrong = console.open("/console/requests?status=zzz")
    assert (200, "zzz") == (wrong.status, wrong.form("Filter").values["status"])
    assert "The filter was refused" in wrong.text
    assert 200 == console.open("/console/requests?page=99999999999999999999").status


def test_a_warning_is_seen_in_the_list_and_filters_it(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    api.get("/v2/plans", params={"naem": "x"})
    api.get("/v2/orders")
    assert "200 warning" in console.open("/console/requests").text
    page = console.send(console.open("/console/requests"), "Filter", warned="true")
    assert "/v2/plans" in page.text
    assert not [link for link in page.links if "/v2/orders" in link]
    (found,) = control.get("/requests", params={"warned": "true"}).json()["requests"]
    assert ("/v2/plans", True) == (found["path"], "naem" in found["warnings"][0])


def test_a_page_of_the_list_leads_to_the_next(console: Console, api: httpx2.Client) -> None:
    for number in range(55):
        api.get("/v2/orders", params={"limit": 1, "x": number})
    page = console.open("/console/requests?method=GET")
    assert "55 in all, page 1 of 2" in page.text
    (older,) = [link for link in page.links if "page=2" in link]
    assert "method=GET" in older
    assert "?limit=1&x=0" in console.follow(page, older).text


def test_a_request_shows_both_sides_and_what_it_changed(
    console: Console, api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    made = make_customer(name="Ana")
    api.put(f"/v2/customers/{made['id']}", json={"name": "Outra"})
    page = console.open(f"/console/requests/{newest(control)}")
    assert 200 == page.status
    for text in (
        "Update a customer",
        "Request",
        "Response",
        "Where its time went",
        "Step 2,",
        "customer.updated",
    ):
        assert text in page.text, text
    assert "name Ana Outra" in page.text
    assert f"../../console/data/customers/{made['id']}" in page.links
    assert 404 == console.open("/console/requests/req_00").status
    assert 404 == console.open("/console/requests/nothing%20of%20the%20kind").status


def test_a_request_is_sent_again(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    """As its command would: with body and query, and the ready token."""
    body = customer_body(name='It\'s "quoted" $HOME `x` \\ é')
    api.post("/v2/customers", json=body)
    console.send(console.open(f"/console/requests/{newest(control)}"), "Send again")
    again = control.get(f"/requests/{newest(control)}").json()["request"]
    assert (409, body) == (again["status"], again["request"]["body"])
    api.get("/v2/customers", params={"name": "a b&c=é/%"})
    done = console.send(console.open(f"/console/requests/{newest(control)}"), "Send again")
    kept = control.get("/requests", params={"limit": 2}).json()["requests"]
    assert kept[0]["query"] == kept[1]["query"]
    assert f"/console/requests/{kept[0]['id']}?done=" in done.url
    assert "List customers : done." in done.text


@pytest.mark.parametrize(
    "path", ["/v2/orders/00000000-0000-4000-8000-00000000000é", "/v2/a%2Fb/%00"]
)
def test_odd_paths_are_sent_again_as_they_were(
    console: Console, api: httpx2.Client, control: httpx2.Client, path: str
) -> None:
    api.get(path)
    console.send(console.open(f"/console/requests/{newest(control)}"), "Send again")
    first, again = control.get("/requests", params={"limit": 2}).json()["requests"]
    assert first["path"] == again["path"]


def test_the_nearest_request_is_sent_with_what_it_needs_before(
    console: Console,
    api: httpx2.Client,
    control: httpx2.Client,
    make_order: Maker,
    make_project: Maker,
) -> None:
    project = make_project(status="draft")
    refused = api.post(f"/v2/projects/{project['id']}/suspend")
    assert 409 == refused.status_code
    page = console.open(f"/console/requests/{newest(control)}")
    assert "Why it was refused" in page.text
    assert "The nearest request that succeeds" in page.text
    done = console.send(page, "Send it")
    assert "Suspend a project : done." in done.text
    assert (
        "suspended" == api.get(f"/v2/projects/{project['id']}").json()["data"]["project"]["status"]
    )


def test_hostile_data_is_text(console: Console, api: httpx2.Client, control: httpx2.Client) -> None:
    """In names, queries, paths, headers and codes."""
    api.post(
        "/v2/customers",
        json={"name": HOSTILE, HOSTILE: HOSTILE},
        headers={"X-Odd": "<img src=x onerror=alert(1)>"},
    )
    api.get(f"/v2/{HOSTILE}", params={"q": HOSTILE})
    for each in control.get("/requests").json()["requests"]:
        for path in (f"/console/requests/{each['id']}", "/console/requests"):
            page = console.open(path)
            assert 200 == page.status
            assert "<script>alert" not in page.response.text
            assert "<img src=x" not in page.response.text
            assert "11111103" not in page.response.text
    for query in ("status", "code", "path", "contains", "done", "page", "q"):
        page = console.open(f"/console/requests?{query}=%3Cscript%3Ealert(1)%3C/script%3E%00%ff")
        assert page.status in (200, 422)
        assert "<script>alert" not in page.response.text


def test_a_dropped_connection_is_said_so(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    api.get("/v2/orders")
    page = console.open(f"/console/requests/{newest(control)}")
    control.post("/faults", json={"then": {"drop_connection": "before"}})
    assert "A fault rule dropped the connection" in console.send(page, "Send again").text


def test_clearing_the_list_is_an_action(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    api.get("/v2/orders")
    done = console.send(console.open("/console/requests"), "Forget all")
    assert "Delete all requests : done." in done.text
    assert "No requests yet" in done.text
    assert [] == control.get("/requests").json()["requests"]


def test_the_nearest_request_keeps_the_price_and_shows_what_is_new_alone(
    console: Console, api: httpx2.Client, control: httpx2.Client, make_order: Maker
) -> None:
    make_order()
    body = control.get(f"/requests/{newest(control)}").json()["request"]["request"]["body"]
    del body["planId"]
    assert 422 == api.post("/v2/orders/pix", json=body).status_code
    page = console.open(f"/console/requests/{newest(control)}")
    changes = page.text.partition("The nearest request that succeeds")[2].partition("As a command")[
        0
    ]
    assert "body.planId nothing" in changes
    assert "totalAmount" not in changes
    done = console.send(page, "Send it")
    assert "201" in done.text
    assert "price_mismatch" not in done.text
    assert done.text.index("What it changed") < done.text.index("Request {")


@pytest.mark.promise("page-shows-body")
def test_of_a_long_body_the_beginning_is_shown_with_a_link_to_all_of_it(
    console: Console, api: httpx2.Client
) -> None:
    """The page of 16 KB of quotation marks took two seconds of everybody's time, that of
    a megabyte hours.
    """
    body = '"' + '\\"' * 100_000
    sent = api.post("/v2/customers", content=body, headers={"Content-Type": "application/json"})
    address = f"/console/requests/{sent.headers['x-request-id']}"
    page = console.open(address)
    assert "This is the beginning." in page.text
    assert 8_192 <= page.text.count("\\") + page.text.count('"') < 12_000
    assert len(page.response.content) < 60 << 10
    (link,) = [link for link in page.links if "/console/whole/" in link]
    whole = console.follow(page, link).response
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.text == body
    api.post("/_sandbox/inbox/shop", content=f" {body}").raise_for_status()
    message = console.open("/console/inboxes/shop/1")
    (link,) = [link for link in message.links if "/console/whole/" in link]
    assert console.follow(message, link).response.text == f" {body}"


@pytest.mark.promise("fields-form-console")
def test_a_form_has_a_thousand_fields(console: Console) -> None:
    fields = "&".join(f"a{number}=1" for number in range(1_001))
    headers = {"Origin": console.origin, "Content-Type": "application/x-www-form-urlencoded"}
    answer = console.http.post(
        f"{console.base}/console/faults/make", content=fields, headers=headers
    )
    assert (413, "payload_too_large") == (answer.status_code, answer.json()["code"])
