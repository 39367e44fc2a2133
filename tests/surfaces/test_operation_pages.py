"""The page of each operation: what it takes and answers by the served contract, and a
call that works.
"""

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.contract.document import Document
from stub_server.server import server

from ..conftest import Serve
from ..support.contract import document
from ..support.explained import pasted
from ..support.live import NO_TLS, Live

pytestmark = pytest.mark.check

API = document()
CONTROL = document("sandbox.yaml")
EVERY = [("api", name) for name in API.operations] + [
    ("control", name) for name in CONTROL.operations
]
ENDLESS = {"followSandbox"}
STATEFUL = {
    "payPixCode": [404],  # the example's code is of no order
    "resumeSubscription": [409],  # the example is not to be canceled
    "verifyRequests": [409],  # such requests were not made
}
NAME = re.compile(
    r'<code class="name"><span>([^<]*)</span>([^<]+)</code>(\s*<strong class="required">)?'
)
COMMAND = re.compile(r'<pre id="curl"[^>]*>(.*?)</pre>', re.DOTALL)
BLANK = re.compile(r"Replace <code>")
OVERLAY = """\
overlay: 1.0.0
info: { title: What a page shows, version: "1" }
actions:
  - target: $.components.schemas['CustomerCreate','Customer'].properties
    update:
      nickname: { type: string, minLength: 2, maxLength: 5, description: "<script>alert('field')</script>" }
      family: { $ref: "#/components/schemas/Family" }
      points: { type: number, minimum: 0, exclusiveMinimum: true }
  - target: $.components.schemas
    update:
      Family:
        type: object
        properties:
          surname: { type: string }
          parents: { type: array, items: { $ref: "#/components/schemas/Family" } }
  - target: $.paths['/v2/customers'].post
    update: { description: "<script>alert(1)</script> Use `GET` & `listCustomers`." }
  - target: $.paths
    update:
      /v2/coupons:
        get:
          operationId: listCoupons
          tags: [Coupons]
          security: [{ bearer: [] }]
          x-scopes: ["orders:read"]
          responses: { "200": { description: Coupons. }, "499": { description: Gone. } }
"""


def page(base: str, ident: str, **headers: str) -> str:
    """The page of an operation."""
    answer = httpx2.get(f"{base}/docs/{ident}", headers=headers, verify=NO_TLS, timeout=30)
    assert (200, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    return answer.text


FILES = """\
overlay: 1.0.0
info: { title: Files, version: "1" }
actions:
  - target: $.paths['/v2/customers'].post.requestBody.content['application/json']
    remove: true
  - target: $.paths['/v2/customers'].post.requestBody.content
    update: { "text/csv'; reboot; '": { schema: { type: string, format: binary } } }
  - target: $.paths
    update:
      "/v2/x;reboot;":
        get:
          operationId: getPicture
          tags: [Pictures]
          security: []
          responses: { "200": { description: One., content: { image/png: { schema: { type: string } } } } }
"""


def words(html: str) -> str:
    """What a reader sees of it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def command(html: str) -> str:
    """The call that it shows."""
    found = COMMAND.search(html)
    assert found is not None
    return unescape(found[1])


def fields(
    contract: Document, node: Any, above: str = "", opened: tuple[str, ...] = ()
) -> Iterator[tuple[str, bool]]:
    """Every field of a body by its dotted name, and whether it is required: of
    alternatives, in all objects.
    """
    while "$ref" in node:
        if node["$ref"] in opened:
            return
        opened = (*opened, node["$ref"])
        node = contract.resolve(node)
    for name, inner in node.get("properties", {}).items():
        yield above + name, name in node.get("required", ())
        yield from fields(contract, inner, f"{above}{name}.", opened)
    if isinstance(node.get("items"), dict):
        yield from fields(contract, node["items"], f"{above.removesuffix('.')}[].", opened)
    if isinstance(node.get("additionalProperties"), dict):
        yield from fields(contract, node["additionalProperties"], f"{above}*.", opened)
    parts = [contract.resolve(part) for part in (*node.get("oneOf", ()), *node.get("anyOf", ()))]
    others = [part.get("required", ()) for part in parts if "properties" in part]
    for part in parts:
        for name, is_required in fields(contract, part, above, opened):
            is_inner = "." in name.removeprefix(above)
            yield (
                name,
                is_required
                and (is_inner or all(name.removeprefix(above) in each for each in others)),
            )


@pytest.mark.parametrize(("surface", "name"), EVERY)
@pytest.mark.matrix
def test_every_operation_has_a_page_with_all_that_the_contract_says(
    live: Live, surface: str, name: str
) -> None:
    contract = {"api": API, "control": CONTROL}[surface]
    operation = contract.operations[name]
    html = page(live.url, name)
    text = words(html)
    assert (
        f"{operation.method}"
        f" {'/_sandbox' if contract is CONTROL else ''}{operation.path.rstrip('/')}" in text
    )
    assert [] == [scope for scope in operation.scopes if scope not in text]
    assert [] == [event for event in operation.emits if event not in text]
    named = {
        unescape(above + name): bool(required)
        for above, name, required in NAME.findall(html.partition('aria-label="Answers"')[0])
    }
    taken = {(p.name, p.required) for p in operation.parameters}
    if operation.body is not None:
        taken |= set(fields(contract, operation.body))
    assert set() == taken - named.items()
    for parameter in operation.parameters:
        allowed = [
            value
            for value in contract.resolve(parameter.schema).get("enum", ())
            if value is not None
        ]
        assert [] == [value for value in allowed if f"<code>{value}</code>" not in html]
    sections = dict(
        zip(
            *[iter(re.split(r'<section class="card answer" id="([0-9]+)">', html)[1:])] * 2,
            strict=True,
        )
    )
    assert [str(status) for status in sorted(operation.responses)] == list(sections)
    for status, answer in operation.responses.items():
        section = sections[str(status)].partition("</section>")[0]
        assert set(answer.codes) == set(re.findall(r'docs/(\w+)">\1</a>', section))
        raw = contract.resolve(operation.raw["responses"][str(status)])
        shown = [
            name for media in raw.get("content", {}).values() for name in media.get("examples", ())
        ]
        told = re.findall(
            r"<dt>(?:<a [^>]*>)?(\w+)" if status >= 400 else r"<summary>Example <code>(\w+)",
            section,
        )
        assert set(shown) <= set(told)


def test_every_call_that_a_page_of_the_api_shows_works(
    live: Live, sandbox_name: str, tmp_path: Path
) -> None:
    """One after the other, in the order of the contract: each is pasted as its page has
    it at that moment.
    """
    base = f"{live.url}/s/{sandbox_name}"
    statuses = {name: pasted(command(page(base, name)), tmp_path) for name in API.operations}
    assert {} == {name: status for name, status in statuses.items() if status >= [300]}


@pytest.mark.turn
def test_every_call_that_a_page_of_a_control_shows_works(serve: Serve, tmp_path: Path) -> None:
    """Each in a fresh sandbox, unless it says what is to be put in.

    What needs another state is refused for that.
    """
    base = serve(seed=7).url
    statuses = {}
    for name in sorted(CONTROL.operations.keys() - ENDLESS):
        httpx2.post(f"{base}/_sandbox/reset", verify=NO_TLS, timeout=30).raise_for_status()
        html = page(base, name)
        if not BLANK.search(html):
            statuses[name] = pasted(command(html), tmp_path)
        httpx2.delete(f"{base}/_sandbox/sandboxes/alice", verify=NO_TLS, timeout=30)
    assert STATEFUL == {name: status for name, status in statuses.items() if status >= [300]}
    assert len(statuses) > 40


@pytest.mark.promise("key-on-operation-pages")
@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({}, {"Origin": "https://elsewhere.example"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
        ({}, {"Host": "elsewhere.example"}),
        ({"admin_key": "not-for-everybody"}, {}),
        # the test's server listens on loopback all the same
        ({"host": "0.0.0.0"}, {}),  # noqa: S104 - a setting: it listens on loopback
    ],
    ids=["origin", "embedded", "host", "admin-key", "public"],
)
def test_a_key_is_shown_to_those_alone_who_may_read_the_credentials(
    serve: Serve, settings: dict[str, str], headers: dict[str, str]
) -> None:
    """Others are told where to put their own; no cache keeps a page."""
    server = serve(allow_hosts=("elsewhere.example",), **settings)
    closed = httpx2.get(f"{server.url}/_sandbox/credentials", headers=headers, verify=NO_TLS)
    assert 403 == closed.status_code
    for ident in ("listOrders", "createApiKey", "payOrder"):
        html = page(server.url, ident, **headers)
        assert [] == re.findall(r"Bearer (?:sk|pk|ey)\w+", html)
        assert ("Bearer TOKEN" in command(html)) is (ident in API.operations)
    assert ('"X-Sandbox-Admin-Key: $STUB_ADMIN_KEY"' in command(html)) is ("admin_key" in settings)
    told = httpx2.get(f"{server.url}/docs/listOrders", verify=NO_TLS)
    assert "no-store" == told.headers["cache-control"]


def test_whoever_has_the_admin_key_is_shown_a_key(serve: Serve) -> None:
    server = serve(allow_hosts=("elsewhere.example",), admin_key="not-for-everybody")
    shown = command(page(server.url, "listOrders", **{"X-Sandbox-Admin-Key": "not-for-everybody"}))
    assert "Bearer sk_" in shown


@pytest.fixture(scope="module")
def overlaid(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Live:
    file = tmp_path_factory.mktemp("overlay") / "overlay.yaml"
    file.write_text(OVERLAY, encoding="utf-8")
    return serve(overlays=(file,))


def test_a_page_shows_what_an_overlay_has_changed(overlaid: Live, live: Live) -> None:
    """What the server checks."""
    html = page(overlaid.url, "createCustomer")
    assert "nickname" not in words(page(live.url, "createCustomer"))
    assert "nickname assumed text of 2 to 5 characters" in words(html)
    assert "number above 0" in words(html)
    assert "None" not in words(html)
    assert '<a href="../docs/listCustomers"><code>listCustomers</code></a>' in html


def test_a_page_says_every_limit_of_a_value(live: Live) -> None:
    shown = words(page(live.url, "createOrder"))
    assert "number from 0.01 to 999999.99, in steps of 0.01" in shown
    assert "e-mail address of at most 254 characters" in shown
    assert "of 1 to 50 entries, all different" in words(page(live.url, "createApiKey"))


@pytest.mark.promise("contract-text-is-text")
def test_names_of_a_contract_are_words_of_a_shell(serve: Serve, tmp_path: Path) -> None:
    """Whoever wrote the overlay runs nothing where a call is pasted."""
    file = tmp_path / "files.yaml"
    file.write_text(FILES, encoding="utf-8")
    url = serve(overlays=(file,)).url
    upload = shlex.split(command(page(url, "createCustomer")))
    assert ["-H", "Content-Type: text/csv'; reboot; '", "--data-binary", "@FILE"] == upload[-4:]
    assert ["-o", "x;reboot;"] == shlex.split(command(page(url, "getPicture")))[-2:]


@pytest.mark.promise("contract-text-is-text")
def test_html_in_a_contract_is_text(overlaid: Live) -> None:
    html = page(overlaid.url, "createCustomer")
    assert "<script>" not in html
    assert "<script>alert(1)</script> Use GET & listCustomers ." in words(html)
    assert "<script>alert('field')</script>" in words(html)


def test_a_page_says_when_too_many_read_the_contract(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a defect to a stranger."""
    monkeypatch.setattr(server, "FOR_ANYBODY", 0)
    answer = httpx2.get(f"{live.url}/docs/createOrder", verify=NO_TLS)
    assert (429, True) == (answer.status_code, "waiting, which is the maximum" in answer.text)
