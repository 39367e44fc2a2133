"""What programs read: every page as Markdown and short, where to begin, and a way on from every wrong address."""

import re
from collections.abc import Iterator

import httpx2
import pytest

from ..support.contract import document
from ..support.live import NO_TLS, Live

API, CONTROL = document(), document("sandbox.yaml")
OPERATIONS = [*API.operations, *CONTROL.operations]
CODES = API.schema("ErrorCode")["enum"]
NAMES = [*OPERATIONS, *CODES, *API.events]
LINK = re.compile(r"\]\((/[^)#\s]*)(?:#[^)]*)?\)")
JSON = {"Accept": "application/json"}
LONG = {f"/guide/{name}.md" for name in ("architecture", "changelog", "security", "stores", "webhooks")}
MARKDOWN = {"Accept": "text/markdown, text/html, */*"}


@pytest.fixture(scope="module")
def reader(live: Live) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=30) as client:
        yield client


def text(reader: httpx2.Client, path: str, **headers: str) -> str:
    """A page as Markdown."""
    answer = reader.get(path, headers=headers)
    assert (200, "text/markdown; charset=utf-8") == (answer.status_code, answer.headers["content-type"]), path
    return answer.text


def test_every_name_of_the_contract_has_one_page_of_at_most_1200_tokens(reader: httpx2.Client) -> None:
    assert len(NAMES) == len({*NAMES})
    sizes = {name: len(text(reader, f"/docs/{name}.md").encode()) for name in NAMES}
    assert {} == {name: size for name, size in sizes.items() if size > 4_800}


def test_the_page_of_an_operation_has_what_a_call_needs(reader: httpx2.Client, live: Live) -> None:
    for name, (base, contract) in {"createPixOrder": ("", API), "payOrder": ("/_sandbox", CONTROL)}.items():
        operation, page = contract.operations[name], text(reader, f"/docs/{name}.md")
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
    assert [] == [code for code in CODES if "**What to do:**" not in text(reader, f"/docs/{code}.md")]


def test_the_page_of_an_event_shows_its_payload(reader: httpx2.Client) -> None:
    assert [] == [name for name in API.events if f'"type": "{name}"' not in text(reader, f"/docs/{name}.md")]
    html = reader.get("/docs/order.paid", headers={"Accept": "text/html"})
    assert '<a href="payOrder"><code>payOrder</code></a>' in html.text


def test_every_page_of_the_guide_is_markdown_too_whose_links_answer(reader: httpx2.Client) -> None:
    waiting, sizes = {"/guide.md"}, dict[str, int]()
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
    assert text(reader, "/").startswith("# Membership sandbox")  # what `curl` gets, which names nothing
    found = reader.get("/", headers=JSON).json()
    assert f"{reader.base_url}".rstrip("/") == found["base_url"]
    assert 200 == reader.get(found["begin"]).status_code
    assert [] == [page for page in found["guide"] if reader.get(page["address"]).status_code != 200]


def test_llms_txt_follows_its_convention_and_is_short(reader: httpx2.Client) -> None:
    for prefix in ("", "/s/a-sandbox-of-my-own"):
        page = reader.get(f"{prefix}/llms.txt").text
        assert len(page.encode()) <= 6_000
        assert re.match(r"# .+\n\n> .+\n", page)
        assert [] == [link for link in LINK.findall(page) if reader.get(link).status_code != 200]
        assert [] == [link for link in LINK.findall(page) if not link.startswith(prefix)]
    full = reader.get("/llms-full.txt").text
    assert len(full.encode()) <= 60_000
    assert "\n# Call the API\n" in full
    assert "# Error codes" not in full


def test_a_search_answers_programs_in_short_and_understands_portuguese(reader: httpx2.Client) -> None:
    for words in ("refund an order", "estornar um pedido"):
        found = reader.get("/guide", params={"q": words}, headers=JSON).json()
        assert 5 == len(found["results"])
        assert "/guide/payments.md#fail-expire-or-refund-an-order" in [each["address"] for each in found["results"]]
        assert [] == [each for each in found["results"] if not 0 < len(each["text"]) < 900]
    assert 1 == len(reader.get("/guide", params={"q": "pix", "limit": 1}, headers=JSON).json()["results"])


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/docs/createPixOrdr.md", "/docs/createPixOrder"),
        ("/docs/plan_soldout", "/docs/plan_sold_out"),
        ("/guide/paymnts.md", "/guide/payments.md"),
        ("/v2/order", "GET /v2/orders"),
        ("/s/programs/guide/paymnts.md", "/s/programs/guide/payments.md"),
    ],
)
def test_a_wrong_address_names_the_nearest_page_and_where_to_begin(reader: httpx2.Client, path: str, near: str) -> None:
    answer = reader.get(path)
    assert 404 == answer.status_code
    assert f"Did you mean {near}" in answer.text
    assert "/llms.txt" in answer.text
