"""Trying an operation: the form on its page, what it sends, what it shows, and the
code beside it.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from time import sleep

import httpx2
import pytest

from ..conftest import Serve
from ..support.console import Console
from ..support.contract import document
from ..support.live import Live
from ..support.make import Json
from .conftest import Visit

pytestmark = pytest.mark.check

KEY = "not-for-everybody"
HOSTILE = '"><script>alert(1)</script>\u202e\U0001f984\x00'
API = document()
CONTROL = document("sandbox.yaml")


def test_the_page_of_an_operation_sends_its_example(console: Console, credentials: Json) -> None:
    """With the ids of the sandbox; the answer leads to its request in the console."""
    page = console.open("/docs/createPixOrder")
    form = page.form("Body")
    assert credentials["private_key"] in form.values["authorization"]
    answered = console.send(page, "Body")
    assert (200, True) == (answered.status, "Answer 201" in answered.text)
    leads = next(link for link in answered.links if "console/requests/req_" in link)
    assert "POST /v2/orders/pix" in console.follow(answered, leads).text


def test_the_form_is_sent_as_it_was_written(console: Console) -> None:
    """Broken JSON and other values too; what was written stays in the form."""
    page = console.open("/console/try/createPixOrder")
    broken = console.send(page, "Body", body="{")
    assert "malformed_json" in broken.text
    assert "{" == broken.form("Body").values["body"]
    assert "Answer 401" in console.send(page, "Body", authorization="").text
    found = console.open("/console/try/listOrders")
    assert "Answer 200" in console.send(found, "limit", **{"query.limit": "1"}).text
    assert "Answer 422" in console.send(found, "limit", **{"query.limit": "many"}).text


def test_an_answer_is_shown_whole_or_leads_to_all_of_it(
    console: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    """64 KiB of JSON are shown, and text as far as its last line."""
    form = console.open("/console/try/listOrders")
    short = console.send(form, "limit", **{"query.limit": "15"})
    assert "This is the beginning." not in short.text
    last = api.get("/v2/orders?limit=15").json()["orders"][-1]["id"]
    assert last in short.response.text
    long = console.send(form, "limit", **{"query.limit": "100"})
    assert "This is the beginning." in long.text
    (link,) = [link for link in long.links if "/console/whole/" in link]
    assert 100 == len(console.follow(long, link).response.json()["orders"])
    metrics = console.send(console.open("/console/try/getMetrics"), "Send")
    assert "This is the beginning." not in metrics.text
    assert control.get("/metrics").text.split()[-2] in metrics.text


def test_a_control_is_tried_like_an_operation(console: Console, control: httpx2.Client) -> None:
    before = control.get("/clock").json()["now"]
    answered = console.send(console.open("/docs/advanceClock"), "Body", body='{"hours": 2}')
    assert "Answer 200" in answered.text
    assert before != control.get("/clock").json()["now"]


def test_the_code_alone_sends_nothing(console: Console, control: httpx2.Client) -> None:
    page = console.open("/console/try/createCustomer")
    shown = console.send(page, "Body", body='{"name": "Ana Só"}', only="code")
    assert "json={'name': 'Ana Só'}" in shown.text
    assert 'body: JSON.stringify({"name": "Ana Só"})' in shown.text
    assert [] == control.get("/requests").json()["requests"]


def test_hostile_values_are_text(console: Console) -> None:
    page = console.open("/console/try/getOrder")
    told = console.send(page, "orderId", **{"path.orderId": HOSTILE, "authorization": HOSTILE})
    assert 200 == told.status
    assert "<script>alert" not in told.response.text
    assert "&lt;script&gt;alert" in told.response.text
    told = console.send(console.open("/console/try/createCustomer"), "Body", body=HOSTILE * 100)
    assert "<script>alert" not in told.response.text


def test_every_operation_has_a_form_or_says_why_not(console: Console) -> None:
    pages = {
        ident: console.open(f"/console/try/{ident}")
        for ident in (*API.operations, *CONTROL.operations)
    }
    assert {200} == {page.status for page in pages.values()}
    shut = {
        ident
        for ident, page in pages.items()
        if not any("Show its code" in form.label for form in page.forms)
    }
    assert {"importSandbox", "postToInbox", "followSandbox"} == shut


@pytest.mark.parametrize(
    "body", ["[" * 700 + "]" * 700, "[1e999]", "[NaN]", "1", '{"a": ' * 300 + "1" + "}" * 300]
)
def test_a_body_that_no_literal_has_is_sent_as_text(console: Console, body: str) -> None:
    told = console.send(console.open("/console/try/createCustomer"), "Body", body=body)
    assert (200, True) == (told.status, "Answer 4" in told.text)


@pytest.mark.parametrize("ident", ["nothing", "../docs", "a/b", "%00"])
def test_there_is_no_form_for_what_is_no_operation(console: Console, ident: str) -> None:
    assert 404 == console.open(f"/console/try/{ident}").status


@pytest.mark.promise("trying-needs-key")
def test_with_an_admin_key_trying_asks_for_it(serve: Serve, visit: Visit) -> None:
    """The page of the operation stays open, and shows nobody more than the contract's example."""
    server = serve(admin_key=KEY)
    console = visit(server.url)
    page = console.open("/docs/listOrders")
    assert (200, []) == (page.status, [form for form in page.forms if form.method == "POST"])
    asked = console.follow(page, next(link for link in page.links if "console/try/" in link))
    assert (403, True) == (asked.status, "asks for a key" in asked.text)
    tried = console.send(asked, "key", key=KEY)
    assert "Answer 200" in console.send(tried, "limit").text
    control = console.open("/console/try/getClock")
    answered = console.send(control, "Send")
    assert "Answer 200" in answered.text
    assert 'os.environ["STUB_ADMIN_KEY"]' in answered.text
    assert KEY not in answered.response.text


def test_the_code_of_a_form_is_the_call_that_it_sends(
    console: Console, control: httpx2.Client
) -> None:
    """Python's is run with another client of the same interface."""
    page = console.open("/console/try/createCustomer")
    body = json.dumps(
        {"name": "Ana \N{GRINNING FACE}", "tags": [], "ok": True, "none": None, "n": 1.5}
    )
    sent = {"authorization": "Bearer x", "header.Idempotency-Key": "b-c", "body": body}
    text = console.send(page, "Body", only="code", **sent).response.text
    shown = re.findall(r'<div class="command"><pre[^>]*>(.*?)</pre>', text, re.DOTALL)
    curl, python, typescript = map(unescape, shown[:3])
    code = python.replace("httpx", "httpx2").replace(
        "print(answer.status_code, answer.text)", "print(answer.request.content)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(body) == json.loads(eval(ran.stdout))  # noqa: S307 - the bytes that it printed
    assert "-h 'idempotency-key: b-c'" in curl.lower()
    assert '    "Idempotency-Key": "b-c",' in typescript
    kept = control.get("/requests").json()["requests"][0]
    assert ("/v2/customers", 401) == (kept["path"], kept["status"])


@pytest.mark.promise("waiting-forms-hold-up-nobody")
def test_forms_that_wait_in_one_sandbox_hold_up_no_other(
    visit: Visit, console: Console, live: Live, sandbox_name: str, control: httpx2.Client
) -> None:
    """Each answer takes as long as its caller wishes, and all of them had four threads together."""
    other = visit(live.url, f"{sandbox_name}-other")
    # the sandbox is made
    assert 200 == other.http.get(f"{other.base}/_sandbox/credentials").status_code
    theirs = other.open("/console/try/listOrders")
    control.post("/faults", json={"then": {"delay_ms": 4_000}})
    page = console.open("/console/try/listOrders")
    with ThreadPoolExecutor(8) as crowd:
        slow = [crowd.submit(console.send, page, "limit") for _ in range(8)]
        while control.get("/faults").json()["faults"][0]["hits"] < 4:
            sleep(0.01)
        assert "Answer 200" in other.send(theirs, "limit").text
        assert not any(each.done() for each in slow)
