"""What tools do not do: wrong calls, other people's sandboxes, callers without a key, servers
without the package.
"""

import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client

from stub_server.cli.command import main
from stub_server.tools.mcp.texts import Result

from ..conftest import Serve
from ..journeys.steps import refused
from ..support.live import NO_TLS, Live
from .agent import Agent, facts_of, over_http, over_stdio, shown_call, text_of

KEY = "5f2a0c1e9b7d"
_NOBODY = "00000000-0000-4000-8000-000000000000"
_HOSTILE = (
    "x" * 100_000,
    "\x00" * 1_000,
    "../../_sandbox/reset",
    "‮\ud7ff💥" * 2_000,
    "{{7*7}}",
    "' OR 1=1 --",
)
HEADERS = (
    {"é": "1"},
    {"A": "\r\nB: 1"},
    {"A": "☃"},
    {"Host": "evil.example"},
    {"Content-Length": "5"},
    {"": "1"},
)
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("search_docs", {}),
    ("search_docs", {"query": "a", "limit": "many"}),
    ("read_docs", {"page": "createPixOrdr"}),
    ("read_docs", {"page": "/../../etc/passwd"}),
    ("read_docs", {"page": "/s/default/docs/listOrders"}),
    ("read_docs", {"page": "/_sandbox/inbox/agent"}),
    ("call_api", {}),
    ("call_api", {"operation": "createPixOrdr"}),
    ("call_api", {"operation": "getOrder", "params": {"orderId": _NOBODY}}),
    ("call_api", {"operation": "getOrder", "params": {"orderId": "../pay"}}),
    ("call_api", {"operation": "createPixOrder", "body": {"a": "b" * 100_000}}),
    ("call_api", {"path": "orders"}),
    ("call_api", {"path": "/_sandbox/reset", "method": "POST"}),
    ("call_api", {"path": "/s/default/v2/orders"}),
    ("call_api", {"path": "/v2/../../default/_sandbox/reset", "method": "POST"}),
    ("call_api", {"path": "/v2/%2e%2e/%2e%2e/default/_sandbox/reset", "method": "POST"}),
    *(("call_api", {"path": "/v2/orders", "headers": headers}) for headers in HEADERS),
    ("call_api", {"path": "/console/sandboxes"}),
    ("call_api", {"path": "/v2/orders", "query": {"search": ["a"] * 2_000}}),
    ("call_api", {"operation": "createPixOrder", "body": {"totalAmount": 10**30}}),
    ("call_api", {"operation": "listOrders", "as": "orders:reed"}),
    ("orders", {"action": "pai"}),
    ("orders", {"action": "pay", "ordre": "last"}),
    ("orders", {"action": "pay", "order": _NOBODY}),
    ("subscriptions", {"action": "renew", "subscription": "NOTHING"}),
    ("clock", {"action": "set", "to": "yesterday"}),
    ("customers", {"action": "behaviour", "payment": "fails"}),
    ("webhooks", {"action": "inbox", "delivery": _NOBODY}),
    ("webhooks", {"action": "certify", "webhookId": "file:///etc/passwd"}),
    ("faults", {"action": "add", "preset": "flakey"}),
    ("requests", {"action": "show", "id": "req_nothing"}),
    ("start", {"sandbox": "not a name"}),
    ("fly", {}),
    *(("orders", {"action": "pay", "order": text}) for text in _HOSTILE),
    *(("start", {"sandbox": text}) for text in _HOSTILE[:3]),
]


@pytest.mark.promise("agents-stay-in-their-sandbox")
def test_a_wrong_call_is_told_what_to_do_and_ends_no_session(live: Live) -> None:
    async def work(agent: Agent) -> None:
        await agent("start")
        for tool, arguments in WRONG:
            result = await agent(tool, **arguments)
            assert result.is_error, (tool, arguments, text_of(result))
            assert len(text_of(result)) > 20
            assert "defect" not in text_of(result), (tool, arguments)
        assert "Base URL" in text_of(await agent("start"))

    before = _orders_of_default(live)
    over_http(live.url, work)
    assert before == _orders_of_default(live)


def test_a_long_text_is_refused_before_a_tool_reads_it(live: Live) -> None:
    """A search for it, or a route of it, would hold up others for seconds."""

    async def work(agent: Agent) -> None:
        for tool, argument in (("search_docs", "query"), ("call_api", "operation")):
            result = await agent(tool, **{argument: "/" * 100_000})
            assert "Send at most 20,000." in text_of(result), text_of(result)
        result = await agent("call_api", operation="listOrders", query={"search": "/" * 100_000})
        assert "larger than 65536 bytes" in text_of(result), text_of(result)

    over_http(live.url, work)


def _orders_of_default(live: Live) -> Any:
    answer = httpx2.get(f"{live.url}/_sandbox/steps", verify=NO_TLS).json()
    return answer["pagination"]["total"]


@pytest.mark.promise("agents-stay-in-their-sandbox")
def test_two_sessions_at_once_do_not_see_each_other(live: Live) -> None:
    async def outer(one: Agent) -> None:
        placed = await one("call_api", **shown_call(await one("start")))
        listed = await one("requests", action="list")
        assert "requests, 1 of 1" in text_of(listed), "what start looks at is not among them"
        assert '"user-agent": "agent"' in text_of(await one("requests", action="show"))

        async def inner(other: Agent) -> None:
            seen = await other(
                "call_api", operation="getOrder", params={"orderId": facts_of(placed)["id"]}
            )
            assert facts_of(seen)["code"] == "not_found"
            shown = text_of(await other("requests", action="list"))
            assert "/v2/orders/pix" not in shown

        async with Client(f"{live.url}/_sandbox/mcp") as session:
            await inner(Agent(session))

    over_http(live.url, outer)


def _initialize(version: str = "2025-11-25") -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    parameters = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}


_LIST = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "start", "arguments": {}},
}
_JSON = {"Accept": "application/json, text/event-stream"}


def _post(url: str, body: Any, **headers: str) -> httpx2.Response:
    sent = {**_JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx2.post(url, json=body, headers=sent, verify=NO_TLS)


@pytest.mark.promise("agents-need-key")
def test_the_endpoint_is_closed_as_the_controls_are(serve: Serve) -> None:
    live = serve(admin_key=KEY, scenario="empty")
    url = f"{live.url}/_sandbox/mcp"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X_Sandbox_Control_Key": "wrong"}):
        refused = _post(url, _initialize(), **headers)
        assert (403, "admin_key_required") == (refused.status_code, refused.json()["code"])
    opened = _post(url, _initialize(), Authorization=f"Bearer {KEY}")
    session = {
        "Mcp_Session_Id": opened.headers["mcp-session-id"],
        "Mcp_Protocol_Version": "2025-11-25",
    }
    assert 403 == _post(url, _LIST, **session).status_code
    admin = {"X-Sandbox-Admin-Key": KEY}
    sandboxes = f"{live.url}/_sandbox/sandboxes"
    names = set()
    for _ in range(2):  # what was deleted is made anew, by another name
        begun = _post(url, _LIST, Authorization=f"Bearer {KEY}", **session).json()["result"][
            "structuredContent"
        ]
        names.add(begun["sandbox"])
        assert (
            204
            == httpx2.delete(
                f"{sandboxes}/{begun['sandbox']}", headers=admin, verify=NO_TLS
            ).status_code
        )
    assert 2 == len(names)
    made = httpx2.post(sandboxes, json={"name": "other"}, headers=admin, verify=NO_TLS)
    control_key = made.json()["sandbox"]["credentials"]["control_key"]
    of_other = _post(
        f"{live.url}/s/other/_sandbox/mcp", _LIST, Authorization=f"Bearer {control_key}", **session
    )
    assert 404 == of_other.status_code, "a session belongs to the key that opened it"

    async def work(agent: Agent) -> None:
        assert "Sandbox other of" in text_of(await agent("start"))
        assert "admin_key_required" in text_of(await agent("start", sandbox="another"))
        assert "Sandbox other of" in text_of(await agent("start"))

    over_http(f"{live.url}/s/other", work, {"Authorization": f"Bearer {control_key}"})


def test_a_page_of_elsewhere_and_another_version_are_refused(live: Live) -> None:
    url = f"{live.url}/_sandbox/mcp"
    assert 403 == _post(url, _initialize(), Origin="https://evil.example").status_code
    assert 405 == httpx2.get(url, headers=_JSON, verify=NO_TLS).status_code
    newer = _post(url, _initialize(), Mcp_Protocol_Version="2026-07-28")
    assert (400, True) == (newer.status_code, "2025-11-25" in newer.json()["message"])


@pytest.mark.promise("agents-see-no-key")
def test_a_message_that_hides_a_key_hides_no_other_message(live: Live) -> None:
    async def work(agent: Agent) -> None:
        inbox = f"{live.url}/s/{facts_of(await agent('start'))['sandbox']}/_sandbox/inbox/agent"
        for kind in ("order.paid", f"sk%5Fsandbox%5F{'A' * 30}", f"sk_sandbox_{'B' * 30}"):
            httpx2.post(inbox, json={"type": kind}, verify=NO_TLS)
        seen = await agent("webhooks", action="messages")
        assert ["[redacted]", "[redacted]", "order.paid"] == [
            each["event_type"] for each in facts_of(seen)["messages"]
        ]
        assert (
            "order.paid" in text_of(seen),
            "AAAA" in text_of(seen),
            "BBBB" in text_of(seen),
        ) == (True, False, False)

    over_http(live.url, work)


@pytest.mark.promise("foreign-page-no-private-webhook")
def test_a_page_that_may_use_the_tools_reaches_no_private_address_with_them(serve: Serve) -> None:
    live = serve(cors_origins=("https://app.example",))

    async def work(agent: Agent) -> None:
        body = {"url": "http://127.0.0.1:9/hook", "events": ["*"]}
        made = await agent("call_api", operation="createWebhook", body=body)
        params = {"webhookId": facts_of(made)["webhook"]["id"]}
        assert '"error": "blocked"' in text_of(
            await agent("call_api", operation="sendTestWebhook", params=params)
        )

    over_http(live.url, work, {"Origin": "https://app.example"})


def test_a_client_that_leaves_before_its_body_has_come_is_no_defect(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    address = urlsplit(live.url)
    assert address.hostname is not None
    head = f"POST /_sandbox/mcp HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: application/json\r\n"
    for _ in range(3):
        with socket.create_connection((address.hostname, address.port or 80)) as left:
            left.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode()
            )
    assert 200 == _post(f"{live.url}/_sandbox/mcp", _initialize()).status_code
    assert [] == [each.getMessage() for each in caplog.records if each.exc_info]


@pytest.mark.promise("agent-sessions")
@pytest.mark.parametrize(("place", "most"), [("", 64), ("/s/greedy", 8)])
def test_at_the_limit_the_session_longest_unused_ends(serve: Serve, place: str, most: int) -> None:
    """Also where many begin at once."""
    url = f"{serve(seed=64, scenario='empty').url}{place}/_sandbox/mcp"
    first = _session(_post(url, _initialize()))
    second = _session(_post(url, _initialize()))
    assert 200 == _post(url, _LIST, **first).status_code
    with ThreadPoolExecutor(20) as callers:
        opened = [*callers.map(lambda _: _post(url, _initialize()), range(most - 1))]
    assert {200} == {answer.status_code for answer in opened}
    assert (200, 404) == tuple(_post(url, _LIST, **each).status_code for each in (first, second)), (
        "the one that was used is open"
    )


@pytest.mark.promise("agent-sessions")
def test_a_sandbox_at_its_limit_ends_no_session_of_others(serve: Serve) -> None:
    url = serve(seed=66, scenario="empty").url
    others = f"{url}/_sandbox/mcp"
    greedy = f"{url}/s/greedy/_sandbox/mcp"
    longest_unused = _session(_post(others, _initialize()))
    with ThreadPoolExecutor(20) as callers:
        opened = [*callers.map(lambda place: _post(place, _initialize()), [others] * 55)]
    opened += [_post(greedy, _initialize()) for _ in range(9)]
    assert {200} == {answer.status_code for answer in opened}
    assert 200 == _post(others, _LIST, **longest_unused).status_code


@pytest.mark.promise("agent-sessions")
def test_a_session_that_moves_counts_where_it_works(serve: Serve) -> None:
    url = serve(seed=67, scenario="empty").url
    full = f"{url}/s/full/_sandbox/mcp"
    opened = [_session(_post(full, _initialize())) for _ in range(8)]

    async def work(agent: Agent) -> None:
        assert "Sandbox full of" in text_of(await agent("start", sandbox="full"))
        assert [404] + [200] * 7 == [_post(full, _LIST, **each).status_code for each in opened]

    over_http(url, work)


def _session(opened: httpx2.Response) -> dict[str, str]:
    return {"Mcp_Session_Id": opened.headers["mcp-session-id"]}


def test_without_the_package_endpoint_and_verb_say_how_to_install_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] == "mcp" or name.startswith("stub_server.tools.mcp."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    answer = _post(f"{serve(seed=52, scenario='empty').url}/_sandbox/mcp", _initialize())
    assert (501, True) == (
        answer.status_code,
        "pip install 'membership-sandbox[mcp]'" in answer.json()["message"],
    )
    done = CliRunner().invoke(main, ["mcp", "--server", "http://127.0.0.1:9"])
    assert (2, True) == (done.exit_code, "pip install 'membership-sandbox[mcp]'" in done.output)


@pytest.mark.check
def test_an_unreachable_server_is_named() -> None:
    async def work(agent: Agent) -> None:
        assert "no server answers at http://127.0.0.1:9" in text_of(await agent("start"))

    over_stdio(work, "--server", "http://127.0.0.1:9")


def test_calls_with_one_id_are_answered_side_by_side(live: Live) -> None:
    """The package forgot who had asked first, kept that call for ever, and with it its body."""
    headers = {"Accept": "application/json, text/event-stream"}
    path = f"{live.url}/s/of-one-id/_sandbox/mcp"

    def call(ident: int | str) -> httpx2.Response:
        tool = {"name": "webhooks", "arguments": {"action": "wait", "seconds": 2}}
        body = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": tool}
        return httpx2.post(path, json=body, headers=headers, timeout=30, verify=NO_TLS)

    headers["mcp-session-id"] = call(1).headers["mcp-session-id"]
    for ident in (5, ""):
        with ThreadPoolExecutor(4) as several:
            asked = [several.submit(call, ident) for _ in range(4)]
            assert [(200, ident)] * 4 == [
                (each.result().status_code, each.result().json()["id"]) for each in asked
            ]
    ended = httpx2.delete(path, headers=headers, verify=NO_TLS)
    assert 200 == ended.status_code
    refused(call(5), 404, "session_not_found")


def test_a_long_answer_is_cut_before_it_is_searched_for_secrets() -> None:
    """To search a list of 11 MB held up everybody for a second."""
    text = Result(["é" * 1_000_000], may_be_long=True).text
    assert len(text) < 270_000
    assert text.endswith("ask for less.")
