"""Every action of the console, sent by a form that no page of this server made for the visitor."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.console import application
from stub_server.console.application import create_console
from stub_server.console.sessions import Sessions
from stub_server.settings import Settings

from ..conftest import Serve
from ..support.console import Console, Form
from ..support.contract import document
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker, customer_body
from .conftest import Visit

pytestmark = pytest.mark.check


def actions(**given: Any) -> Iterator[str]:
    """The paths of all actions.

    `given` are values for their parameters, by `part_parameter` or `parameter`.
    """
    console = create_console(
        document(), document("sandbox.yaml"), Path(), Settings(), Sessions(b"")
    )
    addresses = console.url_map.bind("console")
    for rule in console.url_map.iter_rules():
        if "POST" not in (rule.methods or ()):
            continue
        part = rule.rule.split("/")[2]
        values = {name: given.get(f"{part}_{name}", given.get(name)) for name in rule.arguments}
        for move in ("pay", "expire", "fail") if "move" in values else ("",):
            yield addresses.build(rule.endpoint, values | ({"move": move} if move else {}))


@pytest.fixture
def paths(
    control: httpx2.Client, api: httpx2.Client, make_order: Maker, make_customer: Maker
) -> list[str]:
    """Every action, with ids of records that are there."""
    order = make_order()
    customer = make_customer()
    inbox = str(control.base_url).rstrip("/") + "/inbox/shop"
    hook = api.post("/v2/webhooks", json={"url": inbox, "events": ["*"]}).json()["webhook"]["id"]
    api.post(f"/v2/webhooks/{hook}/test").raise_for_status()
    refused = api.post("/v2/customers", json={"name": "Ana"}).headers["x-request-id"]
    control.post("/snapshots", json={"name": "before"}).raise_for_status()
    control.post(
        "/faults", json={"preset": "flaky", "match": {"path": "/nowhere"}}
    ).raise_for_status()
    found = list(
        actions(
            data_name="customers", data_ident=customer["id"], inboxes_name="shop", requests_ident=refused,
            try_ident="createCustomer", do_ident="createOrder", webhooks_ident=hook, ident=order["id"],
        )
    )  # fmt: skip
    operations = document("sandbox.yaml").operations | document().operations
    called = [ident for ident, each in operations.items() if each.method != "GET"]
    return found + [f"/console/do/{ident}" for ident in called]


def seen(control: httpx2.Client) -> dict[str, Json]:
    """What an action could change."""
    asked = (
        "/steps?limit=1",
        "/clock",
        "/requests?limit=1",
        "/sandboxes?limit=50",
        "/snapshots",
        "/faults",
        "/inbox",
    )
    found = {each: control.get(each).raise_for_status().json() for each in asked}
    del found["/clock"]["offset_seconds"]  # from the machine's clock
    for each in found["/sandboxes?limit=50"]["sandboxes"]:
        del each["last_used_at"]
        # which may have jobs of its own that fall due
        if f"/{each['name']}/" not in str(control.base_url):
            del each["step"], each["now"], each["records"]
    return found


def filled(sandbox: str) -> dict[str, str]:
    """What the forms of all actions would send."""
    return {
        "days": "1", "type": "order.paid", "preset": "flaky", "enabled": "false", "status": "500",
        "scopes": "*", "name": "before", "snapshotName": "before", "to_step": "0", "sandboxName": sandbox,
        "url": "https://shop.example/hooks", "events": "*", "is_active": "false", "event_type": "order.paid",
        "body": json.dumps(customer_body()), "key": "any", "back": "/console/requests",
    }  # fmt: skip


def test_no_action_is_done_by_a_strange_form(
    console: Console,
    control: httpx2.Client,
    paths: list[str],
    live: Live,
    sandbox_name: str,
    visit: Visit,
) -> None:
    """Of another origin, of none, without the token of the visitor, with that of another.

    The same form else acts.
    """
    own = console.open("/console/requests").form("Forget all").values["token"]
    other = visit(live.url).open("/console/requests").form("Forget all").values["token"]
    known = {"token": own}
    strange: list[tuple[str | None, dict[str, str]]] = [
        ("https://evil.example", known),
        ("http://127.0.0.1:1", known),  # any other port of this machine
        ("http://[", known),
        ("null", known),
        (None, known),
        (console.origin, {}),
        (console.origin, {"token": "0" * 64}),
        (console.origin, {"token": "é"}),
        (console.origin, {"token": other}),
    ]
    before = seen(control)
    values = filled(sandbox_name)
    assert len(paths) > 40
    for path in paths:
        for origin, token in strange:
            headers = {} if origin is None else {"Origin": origin}
            answer = console.http.post(console.base + path, data=values | token, headers=headers)
            assert 403 == answer.status_code, (path, origin, token)
    assert before == seen(control)


@pytest.mark.parametrize("move", ["pay", "expire", "fail"])
def test_the_form_of_a_payer_is_of_its_order(
    console: Console, make_order: Maker, move: str
) -> None:
    """Not even the form of another order's page acts on an order."""
    mine = make_order()
    others = make_order()
    forms: dict[str, Form] = {
        order["id"]: console.open(f"/pay/{order['id']}").forms[0] for order in (mine, others)
    }
    address = f"{console.base}/pay/{mine['id']}/{move}"
    for token, status in (
        (forms[others["id"]].values["token"], 403),
        (forms[mine["id"]].values["token"], 200),
    ):
        answer = console.http.post(
            address, data={"token": token}, headers={"Origin": console.origin}
        )
        assert status == answer.status_code


def test_the_same_forms_act_when_a_page_of_this_server_made_them(
    console: Console, control: httpx2.Client, paths: list[str], sandbox_name: str
) -> None:
    """What refuses the strange ones is their strangeness: with origin and token none is."""
    values = filled(sandbox_name) | {
        "token": console.open("/console/requests").form("Forget all").values["token"]
    }
    kept = ("certify", "delete", "leave", "key", "new")  # slow, or they end what the others need
    for path in paths:
        if path.startswith("/pay/") or path.rpartition("/")[2] in kept:
            continue
        answer = httpx2.post(
            console.base + path, data=values, headers={"Origin": console.origin}, cookies=dict(console.http.cookies),
            timeout=30, verify=NO_TLS,
        )  # fmt: skip
        assert answer.status_code not in (403, 500), (path, answer.status_code)


@pytest.mark.parametrize("prefix", ["", "/s/default"])
def test_no_path_leads_to_another_server(live: Live, prefix: str) -> None:
    """The link of a zone leads to the same path, which browsers took for an address."""
    address = f"{live.url}{prefix}/https:example.com"
    answer = httpx2.get(f"{address}?zone=utc", headers={"Accept": "text/html"}, verify=NO_TLS)
    assert 303 == answer.status_code
    assert address == str(answer.url.join(answer.headers["location"]))
    page = httpx2.get(address, headers={"Accept": "text/html"}, verify=NO_TLS)
    assert 404 == page.status_code
    assert 'href="https:' not in page.text


def test_the_pages_are_created_once_for_all_first_requests(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = list[object]()

    def creating(*arguments: Any) -> object:
        created.append(create_console(*arguments))
        return created[-1]

    monkeypatch.setattr(application, "create_console", creating)
    live = serve(seed=67, scenario="empty")
    with ThreadPoolExecutor(8) as callers:
        asked = callers.map(lambda _: httpx2.get(f"{live.url}/guide", verify=NO_TLS), range(8))
    assert [200] * 8 == [answer.status_code for answer in asked]
    assert 1 == len(created)
