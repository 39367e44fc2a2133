"""What programs read: every page as Markdown and short, where to begin, and a way on from every
wrong address.
"""

import base64
import hmac
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from ..support.contract import document
from ..support.live import NO_TLS, Live

API = document()
CONTROL = document("sandbox.yaml")
OPERATIONS = [*API.operations, *CONTROL.operations]
CODES = API.schema("ErrorCode")["enum"]
NAMES = [*OPERATIONS, *CODES, *API.events]
LINK = re.compile(r"\]\((/[^)#\s]*)(?:#[^)]*)?\)")
JSON = {"Accept": "application/json"}
LONG = {"/guide/security.md"}
"""A list of promises."""
MARKDOWN = {"Accept": "text/markdown, text/html, */*"}


@pytest.fixture(scope="module")
def reader(live: Live) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=30) as client:
        yield client


def text(reader: httpx2.Client, path: str, **headers: str) -> str:
    """A page as Markdown."""
    answer = reader.get(path, headers=headers)
    assert (200, "text/markdown; charset=utf-8") == (
        answer.status_code,
        answer.headers["content-type"],
    ), path
    return answer.text


def test_every_name_of_the_contract_has_one_page_of_at_most_1200_tokens(
    reader: httpx2.Client,
) -> None:
    assert len(NAMES) == len({*NAMES})
    sizes = {name: len(text(reader, f"/docs/{name}.md").encode()) for name in NAMES}
    assert {} == {name: size for name, size in sizes.items() if size > 4_800}


def test_the_page_of_an_operation_has_what_a_call_needs(reader: httpx2.Client, live: Live) -> None:
    for name, (base, contract) in {
        "createPixOrder": ("", API),
        "payOrder": ("/_sandbox", CONTROL),
    }.items():
        operation = contract.operations[name]
        page = text(reader, f"/docs/{name}.md")
        assert f"`{operation.method} {base}{operation.path}` at `{live.url}`" in page
        body = contract.resolve(operation.body or {})
        assert [] == [member for member in body["properties"] if f"- `{member}` (" not in page]
        assert f"curl -sS -X POST {live.url}{base}/" in page
        assert [] == [event for event in operation.emits if event not in page]
        assert "_sandbox_" not in page.replace("/_sandbox_", "")  # it shows no key
    assert "- 409: `plan_not_active`, `plan_sold_out`" in text(reader, "/docs/createPixOrder.md")


def test_the_page_of_an_error_code_says_what_to_do_and_shows_one(reader: httpx2.Client) -> None:
    page = text(reader, "/docs/plan_sold_out.md")
    assert "status 409" in page
    assert "**What to do:** Raise `max_subscribers`" in page
    assert '"code": "plan_sold_out"' in page
    # which no operation answers
    assert '"code": "route_not_found"' in text(reader, "/docs/route_not_found.md")
    assert [] == [
        code for code in CODES if "**What to do:**" not in text(reader, f"/docs/{code}.md")
    ]


def test_the_page_of_an_event_shows_its_payload(reader: httpx2.Client) -> None:
    assert [] == [
        name for name in API.events if f'"type": "{name}"' not in text(reader, f"/docs/{name}.md")
    ]
    html = reader.get("/docs/order.paid", headers={"Accept": "text/html"})
    assert '<a href="payOrder"><code>payOrder</code></a>' in html.text


def test_every_page_of_the_guide_is_markdown_too_whose_links_answer(reader: httpx2.Client) -> None:
    waiting = {"/guide.md"}
    sizes = dict[str, int]()
    while waiting:
        path = waiting.pop()
        page = text(reader, path)
        sizes[path] = len(page.encode())
        waiting |= {link for link in LINK.findall(page) if link.startswith("/guide")} - sizes.keys()
    assert len(sizes) > 20
    assert {} == {path: size for path, size in sizes.items() if size > 10_000 and path not in LONG}


def test_a_page_is_what_accept_names(reader: httpx2.Client) -> None:
    for path in ("/", "/guide", "/guide/api", "/docs/createPixOrder", "/docs/plan_sold_out"):
        assert text(reader, path, **MARKDOWN).startswith("# ")
        browser = reader.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert "text/html; charset=utf-8" == browser.headers["content-type"]
        assert "Accept" in browser.headers["vary"].split(", ")
        assert path == "/" or text(reader, f"{path}.md") == text(reader, path, **MARKDOWN)
    # what `curl` gets, which names nothing
    assert text(reader, "/").startswith("# Membership sandbox")
    assert text(reader, "/", **JSON).startswith("# Membership sandbox")


def test_llms_txt_follows_its_convention_and_is_short(reader: httpx2.Client) -> None:
    for prefix in ("", "/s/a-sandbox-of-my-own"):
        page = reader.get(f"{prefix}/llms.txt").text
        assert len(page.encode()) <= 6_000
        assert re.match(r"# .+\n\n> .+\n", page)
        links = re.findall(r"\]\(([^)]+)\)", page)
        assert len(links) > 25
        assert [] == [link for link in links if reader.get(f"{prefix}/{link}").status_code != 200]
    full = reader.get("/llms-full.txt").text
    assert len(full.encode()) <= 60_000
    titles = (
        "Call the API",
        "Orders, payments and subscriptions",
        "Webhooks",
        "Retry safely",
    )
    assert [] == [title for title in titles if f"# {title}\n" not in full]
    assert "# Error codes" not in full


def test_every_call_of_llms_txt_has_a_path_that_exists(reader: httpx2.Client, live: Live) -> None:
    calls = re.findall(rf"curl .*?{re.escape(live.url)}(/[^ '\"?]+)", reader.get("/llms.txt").text)
    assert len(calls) >= 8
    assert [] == [path for path in calls if reader.options(path).status_code != 204]


def test_a_search_answers_programs_in_short_and_understands_portuguese(
    reader: httpx2.Client,
) -> None:
    for words in ("refund an order", "estornar um pedido"):
        found = reader.get("/guide", params={"q": words}, headers=JSON).json()
        assert 5 == len(found["results"])
        assert "/guide/payments.md#fail-expire-or-refund-an-order" in [
            each["address"] for each in found["results"]
        ]
        assert [] == [each for each in found["results"] if not 0 < len(each["text"]) < 900]
    assert 1 == len(
        reader.get("/guide", params={"q": "pix", "limit": 1}, headers=JSON).json()["results"]
    )
    found = reader.get("/guide", params={"q": "api= me= pick"}, headers=JSON).json()
    shown = [each["text"] for each in found["results"]]
    assert [] == [text for text in shown if "http://127.0.0.1:4600" in text] != shown


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/docs/createPixOrdr.md", "/docs/createPixOrder"),
        ("/docs/plan_soldout", "/docs/plan_sold_out"),
        ("/guide/paymnts.md", "/guide/payments.md"),
        ("/guide/browser.md", "/guide/api.md#call-it-from-a-browser-cors"),
        ("/v2/order", "GET /v2/orders"),
        ("/s/programs/guide/paymnts.md", "/s/programs/guide/payments.md"),
    ],
)
def test_a_wrong_address_names_the_nearest_page_and_where_to_begin(
    reader: httpx2.Client, path: str, near: str
) -> None:
    answer = reader.get(path)
    assert 404 == answer.status_code
    found = answer.json()
    assert answer.headers["x-request-id"] == found["request_id"]
    assert ("route_not_found", True, []) == (found["code"], found["error"], found["details"])
    assert f"Did you mean {near}" in found["message"]
    assert "/llms.txt" in found["message"]


class Agent:
    """Somebody who knows the address alone: asks for it, and pastes the calls that it shows."""

    def __init__(self, base: str) -> None:
        self.calls = 0
        self.read = 0
        page = self.ask(f"curl -s {base}")
        self.known: dict[str, str] = {}
        (block,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.shown = [
            "curl " + call.strip() for call in re.split(r"^curl ", block, flags=re.MULTILINE)[1:]
        ]

    def ask(self, command: str) -> str:
        """What a command prints."""
        ran = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True
        )
        self.calls += 1
        self.read += len(ran.stdout.encode())
        return ran.stdout

    def paste(self, part: str) -> Any:
        """The answer to the call that has this path, with what is known in place of what
        stands in capitals.
        """
        (call,) = [call for call in self.shown if part in call]
        for name, value in self.known.items():
            call = re.sub(rf"\b{name}\b", value, call)
        return json.loads(self.ask(call))

    @property
    def tokens(self) -> int:
        return self.read // 4

    def begin(self) -> None:
        """Read the credentials."""
        me = self.paste("/_sandbox/credentials")
        ids = {"PROJECT_ID": me["sample"]["projectId"], "PLAN_ID": me["sample"]["planId"]}
        self.known = {"TOKEN": me["jwt"], **ids}


@pytest.fixture
def agent(live: Live, sandbox_name: str) -> Agent:
    return Agent(f"{live.url}/s/{sandbox_name}/")


def test_an_agent_with_the_address_alone_has_a_paid_order_in_four_calls(agent: Agent) -> None:
    agent.begin()
    agent.known["ORDER_ID"] = agent.paste("/v2/orders/pix")["id"]
    assert "paid" == agent.paste("/pay")["order"]["status"]
    assert (4, True) == (agent.calls, agent.tokens <= 3_000)


def test_an_agent_with_the_address_alone_has_a_verified_webhook_in_eight_calls(
    agent: Agent,
) -> None:
    """Verified by the inbox, and by the rule that the page tells."""
    agent.begin()
    key = agent.paste("/v2/webhooks")["webhook"]["signing_key"]
    agent.known["ORDER_ID"] = agent.paste("/v2/orders/pix")["id"]
    agent.paste("/pay")
    agent.paste("/webhooks/drain")
    (message,) = agent.paste("/inbox/mine   #")["messages"]
    assert agent.calls <= 8
    assert agent.tokens <= 8_000
    assert ("order.paid", True) == (message["event_type"], message["verified"])
    sent = message["headers"]
    signed = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.{message['body']}".encode()
    digest = hmac.digest(base64.b64decode(key.removeprefix("whsec_")), signed, "sha256")
    assert f"v1,{base64.b64encode(digest).decode()}" in sent["webhook-signature"].split()
