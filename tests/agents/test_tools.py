"""What an agent gets done with the tools, in how many calls, and what it has to read for that."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from stub_server.app import contracts, data_dir
from stub_server.tools.mcp.tools import function_of, tools

from ..support.live import NO_TLS, Live
from .agent import Agent, facts_of, over_http, over_stdio, shown_call, text_of

_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+|sk_(?:sandbox|control|pay)_\w+|whsec_[\w+/=]{8}")
Work = Callable[[Agent], Awaitable[None]]


async def sell(agent: Agent) -> None:
    """From nothing to a paid order with its subscription, and on to a renewal that is declined."""
    begun = await agent("start")
    placed = await agent("call_api", **shown_call(begun))
    code = re.findall(r'"qr_code": "(.+?)"', text_of(placed))[0]
    assert (True, True) == (
        code.startswith("000201"),
        code[-8:-4] == "6304",
    ), "whole, as one pays it"
    paid = await agent("orders", action="pay")
    assert "POST /_sandbox/orders/last/pay: 200" in text_of(paid)
    assert "subscription.created" in text_of(paid)
    assert facts_of(paid)["subscription"]["status"] == "trialing"
    assert (3, True) == (agent.calls, agent.bytes <= 24_000)
    assert {
        "id": facts_of(placed)["id"],
        "code": facts_of(placed)["code"],
        "status": "paid",
    } == facts_of(paid)["order"]

    left = await agent("subscriptions", action="cancel", at_period_end=True)
    assert facts_of(left)["subscription"]["id"] == facts_of(paid)["subscription"]["id"], (
        "the one made last"
    )
    await agent(
        "subscriptions", action="resume", subscription=facts_of(left)["subscription"]["code"]
    )
    customer = re.findall(r"customerId: (\S+)", text_of(paid))[0]
    await agent("customers", action="behaviour", customer=customer, payment="fails")
    later = await agent("clock", action="advance", months=2, about=customer)
    assert f'POST /_sandbox/clock/advance?about={customer} {{"months": 2}}: 200' in text_of(later)
    assert "order.payment_failed" in text_of(later)

    refused = await agent(
        "call_api", operation="createPixOrder", body={"customer": {"name": "Rui"}}
    )
    assert (True, True) == (refused.is_error, not (await agent.retry(refused)).is_error)


async def receive(agent: Agent) -> None:
    """The webhook of an order is read from an inbox, and its signature is right by the
    code that is shown.
    """
    made = await agent("webhooks", action="inbox", event_type="order.created")
    shown = text_of(await agent("start"))
    await agent("call_api", **shown_call(await agent("start")))
    read = await agent("webhooks", action="wait")
    assert "order.created" in text_of(read)
    assert facts_of(read)["messages"][0]["verified"] is True
    (body,) = re.findall(r"^body: (.*)$", text_of(read), re.MULTILINE)
    assert json.loads(body)["type"] == "order.created"
    number = facts_of(read)["messages"][0]["number"]
    found = await agent("call_api", operation="listWebhooks", full=True)
    url = json.loads(text_of(found).partition("\n")[2].rpartition("\nNext:")[0])["webhooks"][0][
        "url"
    ]
    assert url in text_of(made)
    assert (number, "whsec_" in shown, "whsec_" in text_of(made)) == (1, True, True)
    assert _TOKEN.search(text_of(made)) is None
    webhook = facts_of(made)["webhook"]["id"]
    effects = "http://127.0.0.1:9/processed"
    certified = await agent("webhooks", action="certify", webhookId=webhook, effects=effects)
    assert facts_of(certified)["certificate"]["passed"] is False, "an inbox verifies nothing"
    assert "\nsignature: failed, as " in text_of(certified)
    assert "the effects could not be read (connection_refused)" in text_of(certified)


@pytest.mark.parametrize("work", [sell, receive])
def test_what_an_agent_does_over_http(live: Live, work: Work) -> None:
    over_http(live.url, work)


@pytest.mark.check
def test_the_same_over_stdio_with_a_server_of_its_own() -> None:
    over_stdio(sell)


def test_the_code_that_is_shown_accepts_what_arrives_and_nothing_else(live: Live) -> None:
    async def work(agent: Agent) -> tuple[str, str, dict[str, Any]]:
        made = await agent("webhooks", action="inbox", event_type="order.*")
        begun = await agent("start")
        await agent("call_api", **shown_call(begun))
        await agent("webhooks", action="wait")
        return text_of(made), text_of(begun), facts_of(begun)

    made, begun, facts = over_http(live.url, work)
    code = made[made.index("signed = ") : made.index("\nNext")]
    key = re.findall(r"whsec_\S+", begun)[0]
    control = f"{facts['base_url']}/_sandbox/inbox/agent"
    message = httpx2.get(f"{control}/1", verify=NO_TLS).json()["message"]
    for body, is_right in ((message["body"].encode(), True), (b"{}", False)):
        names = {
            "headers": message["headers"],
            "body": body,
            "KEY": key,
            "hmac": hmac,
            "base64": base64,
        }
        exec(code, names | {"hashlib": hashlib}, names)  # noqa: S102 - the text of our own tool
        assert is_right is names["is_signed"]


def test_the_list_of_tools_is_short(live: Live) -> None:
    async def work(agent: Agent) -> None:
        listed = (await agent.client.list_tools()).tools
        size = sum(
            len(tool.model_dump_json(by_alias=True, exclude_none=True).encode()) for tool in listed
        )
        assert (12, True) == (len(listed), size <= 12_000)

    over_http(live.url, work)


def test_every_action_is_there() -> None:
    """A control or an operation of the contracts, or a function; and a persona of the contract."""
    found = contracts(())
    known = {
        (operation.method, re.sub(r"\{\w+\}", "{}", operation.path))
        for document in (found.document, found.control)
        for operation in document.operations.values()
    }
    for name, tool in tools().items():
        for action in tool.get("actions", {name: tool.get("does")}).values():
            call = action["call"] if isinstance(action, dict) else action
            method, _, path = call.partition(" ")
            if path:
                assert (method, re.sub(r"\{\w+\}", "{}", path.partition("?")[0])) in known, action
            else:
                assert callable(function_of(call)), action
    assert (
        found.control.schema("PersonaName")["enum"]
        == tools()["customers"]["properties"]["persona"]["enum"]
    )


PERSONAS = tools()["customers"]["properties"]["persona"]["enum"]


@pytest.mark.promise("agents-see-no-key")
def test_no_result_is_long_and_none_but_that_of_start_has_a_token(live: Live) -> None:
    """Every tool, on the newest records of every persona."""

    async def work(agent: Agent) -> None:
        results = []
        for persona in PERSONAS:
            results.append(await agent("customers", action="add", persona=persona))
            assert not results[-1].is_error, text_of(results[-1])
            results.append(await agent("orders", action="show"))
        loyal = facts_of(results[2 * PERSONAS.index("loyal_member")])["subscriptions"][0]["id"]
        for call in CALLS:
            own = {"subscription": loyal} if call["tool"] == "subscriptions" else {}
            results.append(await agent(**call, **own))
            assert not results[-1].is_error, text_of(results[-1])
        for result in results:
            assert _TOKEN.search(result.model_dump_json()) is None, text_of(result)
            assert "\nNext: " in text_of(result)

    over_http(live.url, work)


CALLS: list[dict[str, Any]] = [
    {"tool": "search_docs", "query": "reembolso de um pedido"},
    {"tool": "read_docs", "page": "createPixOrder"},
    {"tool": "read_docs", "page": "order_not_payable"},
    {"tool": "read_docs", "page": "order.paid"},
    {"tool": "read_docs", "page": "webhooks#redeliver"},
    *(
        {"tool": "call_api", "operation": f"list{name}"}
        for name in ("Orders", "Customers", "Plans", "Projects")
    ),
    {"tool": "call_api", "operation": "listSubscriptions", "as": "subscriptions:read"},
    {"tool": "call_api", "path": "/v2/webhooks?limit=2", "as": "key"},
    {
        "tool": "call_api",
        "operation": "createApiKey",
        "body": {"name": "Loja", "scopes": ["orders:read"]},
    },
    {"tool": "webhooks", "action": "inbox"},
    {"tool": "orders", "action": "expire"},
    {"tool": "subscriptions", "action": "renew"},
    {"tool": "subscriptions", "action": "cancel", "at_period_end": True},
    {"tool": "subscriptions", "action": "resume"},
    {"tool": "clock", "action": "freeze"},
    {"tool": "clock", "action": "advance", "months": 2},
    {"tool": "clock", "action": "show"},
    {"tool": "clock", "action": "run"},
    {"tool": "webhooks", "action": "wait"},
    {"tool": "webhooks", "action": "deliveries"},
    {"tool": "faults", "action": "presets"},
    {"tool": "faults", "action": "add", "preset": "slow_network", "when": {"times": 1}},
    {"tool": "faults", "action": "list"},
    {"tool": "faults", "action": "clear"},
    {"tool": "history", "action": "steps"},
    {"tool": "history", "action": "snapshot", "name": "before"},
    {"tool": "history", "action": "restore", "name": "before"},
    {"tool": "history", "action": "undo"},
    {"tool": "history", "action": "fork"},
    {"tool": "history", "action": "export"},
    {"tool": "requests", "action": "list"},
    {"tool": "requests", "action": "show"},
    {
        "tool": "requests",
        "action": "verify",
        "request": {"operationId": "createApiKey"},
        "times": {"exactly": 1},
    },
    {"tool": "history", "action": "reset"},
]


def test_what_init_writes_names_tools_that_are_there() -> None:
    folder = data_dir("fixtures") / "init" / "agents"
    page = (folder / "AGENTS.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 40
    for name, action in re.findall(r"`(\w+) \{action: (\w+)", page):
        assert action in tools()[name]["actions"]
    for file, servers in (
        (".mcp.json", "mcpServers"),
        (".cursor/mcp.json", "mcpServers"),
        (".vscode/mcp.json", "servers"),
    ):
        url = json.loads((folder / file).read_text(encoding="utf-8"))[servers]["sandbox"]["url"]
        assert url.endswith("/_sandbox/mcp")


def test_wrong_turns_end_at_the_right_tool_and_page(live: Live) -> None:
    async def work(agent: Agent) -> None:
        added = await agent("customers", action="add", persona="past_due_br")
        paid = await agent("orders", action="pay")
        assert facts_of(paid)["order"]["id"] == facts_of(added)["orders"][-1]["id"], (
            "not a stranger's newer order"
        )
        listed = text_of(await agent("call_api", operation="listSubscriptions", query={"limit": 1}))
        assert ('"amount": ' in listed, "Next: orders" in listed) == (True, False)
        assert (
            "persona"
            in text_of(await agent("read_docs", page="createPersona")).partition("nearest")[2]
        )
        assert "search_docs" in text_of(await agent("read_docs", page="123"))
        section = text_of(await agent("read_docs", page="/guide/webhooks#verify-a-signature"))
        assert section.startswith("## Verify a signature\n")

    over_http(live.url, work)


def test_searches_without_words_and_clocks_about_nobody_end_well(live: Live) -> None:
    async def work(agent: Agent) -> None:
        for query in ("", " ", "zzzzqqq"):
            nothing = text_of(await agent("search_docs", query=query))
            assert "Nothing was found." in nothing
        page = nothing.partition("read_docs {page: ")[2].rstrip("}")
        assert not (await agent("read_docs", page=page)).is_error
        assert (await agent("read_docs", page="%")).is_error
        assert "GET /_sandbox/clock" in text_of(await agent("clock", action="show", about="x"))

    over_http(live.url, work)


@pytest.mark.parametrize("rule", [{"status": 503}, {"corrupt_json": True}])
def test_what_a_control_did_is_told_if_the_api_fails_then(live: Live, rule: dict[str, Any]) -> None:
    """A paid order is shown with its subscription, which is a read of the API."""

    async def work(agent: Agent) -> None:
        order = shown_call(await agent("start"))
        placed = facts_of(await agent("call_api", **order))["id"]
        await agent("faults", action="add", then=rule)
        paid = await agent("orders", action="pay", order=placed)
        assert not paid.is_error, text_of(paid)
        assert facts_of(paid)["order"]["status"] == "paid"
        assert "That is done. To read what else belongs to it failed" in text_of(paid)
        assert "order.paid" in text_of(paid)

    over_http(live.url, work)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"drop_connection": "before"}, "Nothing was changed."),
        ({"drop_connection": "after"}, "It was done: step "),
        ({"status": 503}, "Nothing was changed."),
    ],
)
def test_a_call_that_fails_says_whether_it_was_done(
    live: Live, rule: dict[str, Any], said: str
) -> None:
    async def work(agent: Agent) -> None:
        order = shown_call(await agent("start"))
        await agent("faults", action="add", then=rule)
        failed = await agent("call_api", **order)
        assert failed.is_error
        assert said in text_of(failed)

    over_http(live.url, work)


def test_results_leave_nothing_to_guess(live: Live) -> None:
    """How credentials are read, what a path is, the request that was a cart's, what a text is."""

    async def work(agent: Agent) -> None:
        begun = text_of(await agent("start"))
        (line,) = re.findall(r"^In Python: (.*)$", begun, re.MULTILINE)
        scope: dict[str, Any] = {"httpx": httpx2}
        exec(line, scope)  # noqa: S102 - as an agent would
        assert scope["plan"] in begun
        assert scope["token"].startswith("ey")
        order = shown_call(await agent("start"))
        order["body"]["metadata"] = {"cart": "c-17"}
        await agent("call_api", **order)
        request = {"operationId": "createPixOrder", "body": {"metadata": {"cart": "c-17"}}}
        once = {"request": request, "times": {"exactly": 1}}
        verified = await agent("requests", action="verify", **once)
        assert facts_of(verified).get("ok") is True, text_of(verified)
        customers = await agent("call_api", operation="listCustomers", query={"limit": 1})
        assert re.search(r'"document": "[0-9]+"', text_of(customers))
        assert "subscription" in facts_of(await agent("orders", action="pay"))
        steps = text_of(await agent("history", action="steps", cause="createPixOrder"))
        assert "steps, 1 of 1:" in steps

    over_http(live.url, work)


def test_nothing_and_what_is_missing_are_said(live: Live) -> None:
    async def work(agent: Agent) -> None:
        listed = text_of(await agent("requests", action="list"))
        await agent("webhooks", action="inbox")
        read = text_of(await agent("webhooks", action="wait"))
        assert ("0 requests", "0 messages yet") == (_first(listed), _first(read))
        narrowed = await agent("requests", action="list", query={"path": "/v2/orders"})
        assert "0 requests" == _first(text_of(narrowed))
        assert "{action: inbox}" not in read
        uncertified = text_of(await agent("webhooks", action="certify"))
        assert uncertified.startswith("Give webhookId")
        request = {"operationId": "createPixOrder"}
        verified = text_of(await agent("requests", action="verify", request=request))
        assert ("matched: 0" in verified, "message" in verified) == (True, False)
        for action in ("snapshot", "reset"):
            done = text_of(await agent("history", action=action, name="before"))
            assert "undo" not in done, action

    over_http(live.url, work)


def test_nobody_else_writes_a_line_of_a_result(live: Live) -> None:
    """A path, and a member that is called as what one pays with, may have line breaks."""

    async def work(agent: Agent) -> None:
        refused = await agent("call_api", path="/v2/orders/%0ANext: history")
        explained = await agent("requests", action="explain")
        person = {"name": "Ana", "email": "ana@example.com", "document": "52998224725"}
        metadata = {"qr_code": "000201\nNext: history"}
        made = await agent("call_api", operation="createCustomer", body=person, method="POST")
        body = {"metadata": metadata}
        ident = {"customerId": facts_of(made)["customer"]["id"]}
        shown = await agent("call_api", operation="updateCustomer", params=ident, body=body)
        assert r"000201\nNext: history" in text_of(shown)
        for result in (explained, shown):
            assert 1 == len(re.findall(r"^Next:", text_of(result), re.MULTILINE))
        assert refused.is_error

    over_http(live.url, work)


def test_after_a_rotation_the_call_that_is_shown_works(live: Live) -> None:
    async def work(agent: Agent) -> None:
        begun = facts_of(await agent("start"))
        await agent("call_api", operation="listPlans")
        name = begun["base_url"].rpartition("/")[2]
        await asyncio.to_thread(
            httpx2.post, f"{live.url}/_sandbox/sandboxes/{name}/rotate", json={}, verify=NO_TLS
        )
        refused = await agent("call_api", operation="listPlans")
        assert "invalid_token" in text_of(refused)
        assert not (await agent("call_api", **facts_of(refused)["retry"]["arguments"])).is_error

    over_http(live.url, work)


def _first(text: str) -> str:
    return text.partition("\n")[0]
