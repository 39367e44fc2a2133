"""The pages of data: kinds, lists, one record with its history, and what can be done with it."""

import json
from pathlib import Path

import httpx2
import pytest

from ..conftest import Serve
from ..support.console import Console
from ..support.make import Json, Maker, customer_body
from .conftest import Visit

pytestmark = pytest.mark.check

DEEP = "[" * 300 + "]" * 300
UNKNOWN = "00000000-0000-4000-8000-000000000000"
KINDS = (
    "orders", "subscriptions", "customers", "plans", "products", "projects", "webhooks", "webhook_logs", "api_keys",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_list_whose_records_open(
    console: Console, control: httpx2.Client, kind: str
) -> None:
    page = console.open("/console/data")
    (link,) = [link for link in page.links if link.endswith(f"/data/{kind}")]
    listed = console.follow(page, link)
    records = [link for link in listed.links if f"/data/{kind}/" in link]
    assert records
    for record in (records[0], records[-1]):
        shown = console.follow(listed, record)
        assert 200 == shown.status
        assert "History as it began" in shown.text


def test_a_list_has_the_filters_and_orders_of_the_contract(
    console: Console, api: httpx2.Client
) -> None:
    page = console.open("/console/data/orders")
    paid = console.send(page, "Filter", status="paid", created_since="2026-11-01T00:00")
    assert "status=paid" in paid.url
    found = api.get(
        "/v2/orders",
        params={"status": "paid", "created_since": "2026-11-01T03:00:00Z", "limit": 25},
    ).json()["orders"]
    assert [f"../../console/data/orders/{each['id']}" for each in found] == [
        link for link in paid.links if "/data/orders/" in link
    ]
    assert "The filter was refused" in console.open("/console/data/orders?status=nothing").text
    assert "No order matches" in console.open("/console/data/orders?code=NOTHING").text


def test_a_record_has_its_history_and_the_way_back(
    console: Console, api: httpx2.Client, control: httpx2.Client, make_order: Maker
) -> None:
    order = make_order()
    page = console.open(f"/console/data/orders/{order['id']}")
    assert "Order expires unless paid" in page.text
    paid = console.send(page, "Pay")
    assert "Pay an order : done." in paid.text
    assert "status pending paid" in paid.text
    assert "order.paid" in paid.text
    assert "Pay: only when" not in page.text
    undone = console.send(paid, "Undo")
    assert "pending" == api.get(f"/v2/orders/{order['id']}").json()["status"]
    assert "status paid pending" in undone.text


def test_only_what_is_allowed_is_offered(
    console: Console, api: httpx2.Client, control: httpx2.Client, make_order: Maker
) -> None:
    """By the moves of the contract; sent all the same, the control refuses it, and the
    page says so.
    """
    order = make_order()
    path = f"/console/data/orders/{order['id']}"
    page = console.open(path)
    assert not [form for form in page.forms if "Refund" in form.label]
    sent = {"token": page.form("Pay").values["token"]}
    for ident, status in (
        ("nothing", 404), ("followSandbox", 404), ("payOrder", 400), ("payPixCode", 303),
    ):  # fmt: skip
        answer = console.http.post(
            f"{console.base}/console/do/{ident}",
            data=sent,
            headers={"Origin": console.origin},
            follow_redirects=False,
        )
        assert status == answer.status_code, ident
    control.post(f"/orders/{order['id']}/pay")
    refused = console.send(page, "Expire")
    assert "was refused with 409" in refused.text
    disputed = console.send(console.open(path), "Dispute")
    won = console.send(disputed, "Resolve dispute: won")
    assert "Resolve a dispute : done." in won.text
    subscription = api.get("/v2/subscriptions", params={"orderId": order["id"]}).json()[
        "subscriptions"
    ][0]
    kept = console.open(f"/console/data/subscriptions/{subscription['id']}")
    assert not [form for form in kept.forms if "Resume" in form.label]
    assert "Next order is placed" in kept.text
    ending = console.send(kept, "Cancel so", at_period_end="true")
    assert ("Period ends" in ending.text, "Next order is placed" in ending.text) == (True, False)
    assert "Resume a subscription : done." in console.send(ending, "Resume").text


def test_a_refund_in_part_and_a_failure_with_its_reason_are_forms(
    console: Console, api: httpx2.Client, make_order: Maker
) -> None:
    order = make_order()
    page = console.send(console.open(f"/console/data/orders/{order['id']}"), "Pay")
    refunded = console.send(page, "Refund so", amount="10.5")
    assert "Refunded amount 10.50" in refunded.text
    assert (
        "10.50"
        == api.get(f"/v2/orders/{order['id']}").json()["last_transaction"]["refunded_amount"]
    )
    assert "was refused with 422" in console.send(page, "Refund so", amount="much").text
    other = make_order()
    page = console.open(f"/console/data/orders/{other['id']}")
    failed = console.send(page, "Fail so", code="rejected_by_payer")
    assert "rejected_by_payer" in failed.text


def test_what_a_customer_does_with_orders_is_named_and_set_in_one_place(
    console: Console, control: httpx2.Client, make_customer: Maker
) -> None:
    customer = make_customer()
    page = console.open(f"/console/data/customers/{customer['id']}")
    assert "nothing is set" in page.text
    page = console.send(page, "Set it", payment="fails", times="2")
    assert "are refused, 2 more times" in page.text
    assert "Payment: fails, Times: 2" in page.text  # its history
    assert {"payment": "fails", "times": 2} == control.get(
        f"/customers/{customer['id']}/behaviour"
    ).json()
    assert "nothing is set" in console.send(page, "Set it", payment="null", times="").text


def test_a_customer_who_has_lived_a_life_is_added_by_one_click(
    console: Console, api: httpx2.Client
) -> None:
    page = console.open("/console/data/customers")
    forms = [form for form in page.forms if "persona" in form.values]
    assert "past_due_br" in [form.values["persona"] for form in forms]
    assert "A member for four months who stopped paying" in page.text
    assert "Past due BR" in page.text
    made = console.send(page, "Add", persona="past_due_br")
    assert "Add a persona : done." in made.text
    customer = made.url.rpartition("/")[2].partition("?")[0]
    found = api.get("/v2/subscriptions", params={"customerId": customer}).json()["subscriptions"]
    assert ["past_due"] == [each["status"] for each in found]


def test_heads_of_a_list_sort_it(console: Console, api: httpx2.Client) -> None:
    page = console.open("/console/data/orders")
    sorted_ = console.follow(page, next(link for link in page.links if "sort=-totalAmount" in link))
    found = api.get("/v2/orders", params={"sort": "-totalAmount", "limit": 25}).json()["orders"]
    listed = [link.rpartition("/")[2] for link in sorted_.links if "/data/orders/" in link]
    assert [each["id"] for each in found] == listed
    assert "Total amount ↓" in sorted_.text
    assert any("sort=totalAmount" in link for link in sorted_.links)
    assert "Created at ↓" in page.text


def test_a_record_is_edited_as_json(
    console: Console, api: httpx2.Client, make_customer: Maker
) -> None:
    """By the form of the operation, with the record as it is; what was written is kept where it is
    refused.
    """
    made = make_customer(name="Ana")
    page = console.open(f"/console/data/customers/{made['id']}")
    page = console.follow(page, next(link for link in page.links if link.endswith("/edit")))
    body = json.loads(page.form("Body").values["body"])
    assert ("Ana", made["id"]) == (body["name"], page.form("Body").values["path.customerId"])
    saved = console.send(page, "Body", body=json.dumps(body | {"name": "Outra"}))
    assert "Answer 200" in saved.text
    assert "Outra" == api.get(f"/v2/customers/{made['id']}").json()["customer"]["name"]
    refused = (
        ('{"name": 1}', "name"),
        ("{", "The body is not JSON"),
        ("[]", ""),
        (DEEP, "nested deeper"),
    )
    for text, why in refused:
        wrong = console.send(page, "Body", body=text)
        assert text == wrong.form("Body").values["body"]
        assert "Answer 4" in wrong.text
        assert why in wrong.text


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("orders", "createPixOrder"), ("orders", "createOrder"), ("customers", "createCustomer"),
        ("plans", "createPlan"), ("products", "createProduct"), ("projects", "createProject"),
        ("webhooks", "createWebhook"), ("api_keys", "createApiKey"),
    ],
)  # fmt: skip
def test_a_record_is_created_from_the_example_of_the_contract(
    console: Console, kind: str, operation: str
) -> None:
    """By the form of the operation, whose answer leads to the record."""
    listed = console.open(f"/console/data/{kind}")
    page = console.follow(
        listed, next(link for link in listed.links if link.endswith(f"/console/try/{operation}"))
    )
    made = console.send(page, "Body")
    assert "Answer 201" in made.text
    record = console.follow(
        made, next(link for link in made.links if f"/console/data/{kind}/" in link)
    )
    assert "created step" in record.text
    refused = console.send(page, "Body", body='{"x": 1}')
    why = console.follow(refused, next(link for link in refused.links if "/requests/req_" in link))
    assert "Why it was refused" in why.text
    for text in ("nothing", DEEP):
        assert "Answer 4" in console.send(page, "Body", body=text).text


def test_what_a_form_leaves_as_it_was_stays(console: Console, api: httpx2.Client) -> None:
    """Of an API key, which is read in a list alone, and of a record with every kind of value."""
    texts = {"markup": "</textarea><b>", "lines": "a\r\nb\u2028\t", "none": "", "digits": "1" * 40}
    customer = customer_body(metadata=texts)
    key = {
        "name": "Loja",
        "scopes": ["orders:read"],
        "expires_at": "2030-01-01T00:00:00Z",
        "metadata": texts,
    }
    for kind, path, member, body in (
        ("customers", "/v2/customers", "customer", customer), ("api_keys", "/api-keys", "api_key", key)
    ):  # fmt: skip
        ident = api.post(path, json=body).json()[member]["id"]
        page = console.open(f"/console/data/{kind}/{ident}")
        page = console.follow(page, next(link for link in page.links if link.endswith("/edit")))
        before = listed(console, kind, ident)
        assert "Answer 200" in console.send(page, "Body").text, kind
        assert before == listed(console, kind, ident)


def listed(console: Console, kind: str, ident: str) -> Json:
    """A record as its history has it last, but for when it was changed."""
    path = f"/console/whole/_sandbox/records/{kind}/{ident}/history?limit=1&of=versions"
    body = console.open(path).response.json()[0]["body"]
    return {name: value for name, value in body.items() if name not in ("updatedAt", "updated_at")}


def test_a_deleted_record_shows_what_it_was(
    console: Console, api: httpx2.Client, make_plan: Maker
) -> None:
    plan = make_plan()
    assert 200 == api.delete(f"/v2/plans/{plan['id']}").status_code
    page = console.open(f"/console/data/plans/{plan['id']}")
    assert "deleted" in page.text
    assert plan["name"] in page.text
    assert not [form for form in page.forms if "Delete" in form.label]
    assert not [link for link in page.links if link.endswith("/edit")]


def test_a_record_of_another_merchant_opens_by_its_id(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    token = control.post(
        "/tokens", json={"merchant_id": "5c1b0a52-2f6e-4b8f-8f0d-0c6a3e9d7b99"}
    ).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    made = api.post("/v2/projects", json={"name": "De outra loja"}, headers=headers).json()["data"][
        "project"
    ]
    page = console.open(f"/console/find?q={made['id'].upper()}")
    assert page.url.endswith(f"/console/data/projects/{made['id']}")
    assert "De outra loja" in page.text


def test_what_there_is_not_is_404(console: Console, credentials: Json) -> None:
    order = credentials["sample"]["orderId"]
    for path in (
        "nothing",
        f"orders/{UNKNOWN}",
        f"plans/{order}",
        "orders/x",
    ):
        assert 404 == console.open(f"/console/data/{path}").status, path


def test_what_an_overlay_has_taken_away_is_not_there(
    visit: Visit, serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "less.yaml"
    actions = [
        {"target": f"$.paths['/v2/{name}'].get", "remove": True} for name in ("orders", "plans")
    ]
    file.write_text(
        json.dumps(
            {"overlay": "1.0.0", "info": {"title": "less", "version": "1"}, "actions": actions}
        )
    )
    console = visit(serve(overlays=(file,)).url)
    page = console.open("/console/data")
    assert not [link for link in page.links if link.endswith(("/data/orders", "/data/plans"))]
    assert 404 == console.open("/console/data/orders").status
    assert 200 == console.open("/console/data/customers").status


def test_a_record_moves_the_clock_to_what_it_waits_for(
    console: Console, control: httpx2.Client, make_order: Maker
) -> None:
    """A job that the record has left behind is said to change nothing, and offers no move."""
    order = make_order()
    path = f"/console/data/orders/{order['id']}"
    page = console.open(path)
    due = page.form("Forward to it").values["to"]
    control.post(f"/orders/{order['id']}/pay")
    assert not [form for form in console.open(path).forms if form.label == "Forward to it"]
    later = console.send(page, "Forward to it")
    assert due == control.get("/clock").json()["now"]
    assert "in this sandbox" in later.text


def test_a_record_calls_others_by_their_names(
    console: Console, make_order: Maker, api: httpx2.Client
) -> None:
    order = make_order()
    text = console.open(f"/console/data/orders/{order['id']}").text
    plan = next(
        each
        for each in api.get("/v2/plans").json()["plans"]
        if each["amount"] == order["totalAmount"]
    )
    assert f"Plan ID {plan['name']}" in text
    found = api.get("/v2/customers", params={"document": order["customer"]["document"]}).json()[
        "customers"
    ]
    assert f"Customer ID {found[0]['name']}" in text


@pytest.mark.parametrize(
    "text", ["2026-99-99T00:00:00Z", "2026-02-30T00:00:00Z", "٢٠٢٦-11-20T00:00:00Z"]
)
def test_a_text_that_only_looks_like_an_instant_is_shown_as_it_is(
    console: Console, api: httpx2.Client, make_customer: Maker, text: str
) -> None:
    customer = make_customer(name=text)
    path = f"/console/data/customers/{customer['id']}"
    assert 200 == api.put(f"/v2/customers/{customer['id']}", json={"name": f"{text}!"}).status_code
    assert 200 == api.put(f"/v2/customers/{customer['id']}", json={"name": text}).status_code
    for page in (console.open(path), console.open("/console/data/customers")):
        assert 200 == page.status
        assert text in page.text


def test_the_first_and_the_last_instant_are_shown_in_every_zone(
    console: Console, api: httpx2.Client, credentials: Json
) -> None:
    """In Brasília they would be in the years 0 and 10000."""
    first = "0001-01-01T00:00:00Z"
    last = "9999-12-31T23:59:59"
    token = {"Authorization": f"Bearer {credentials['jwt']}"}
    body = {"name": "Old", "scopes": ["orders:read"], "expires_at": first}
    key = api.post("/api-keys", json=body, headers=token).json()["api_key"]
    for path in (
        f"data/api_keys/{key['id']}",
        f"data/orders?created_until={first}",
        f"requests?until={last}",
    ):
        assert 200 == console.open(f"/console/{path}").status


def test_long_records_and_their_events_lead_to_all_of_them(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    """From the record, its first version, its event, what a request changed, and its command."""
    metadata = {f"key_{number}": f"{number:03}" * 160 for number in range(40)}
    made = api.post("/v2/customers", json=customer_body(metadata=metadata))
    ident = made.json()["customer"]["id"]
    event = control.get("/events", params={"resource_id": ident}).json()["events"][0]["id"]
    for place, count, commands in (
        (f"data/customers/{ident}", 2, 0),
        (f"events/{event}", 1, 0),
        (f"requests/{made.headers['x-request-id']}", 3, 1),
    ):
        page = console.open(f"/console/{place}")
        links = [link for link in page.links if "/console/whole/" in link]
        assert (count + commands, count) == (len(links), page.text.count("This is the beginning."))
        for link in links:
            whole = console.follow(page, link).response
            assert 200 == whole.status_code
            assert metadata["key_39"] in whole.text
    assert 404 == console.open("/console/whole/_sandbox/credentials").status
