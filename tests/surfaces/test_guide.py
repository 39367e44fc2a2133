"""The guide: every page and link of it answers, and its search finds what people ask for."""

import gc
import re
import sqlite3
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest

from stub_server.console.guide.guide import Guide

from ..support.contract import document
from ..support.live import NO_TLS, Live
from ..support.processes import ROOT

_LINK = re.compile(r'(?:href|src)="([^"]+)"')
_RESULT = re.compile(r'<article>\s*<h2><a href="([^"]+)">')
API = document()
CONTROL = document("sandbox.yaml")
OPERATIONS = API.operations.keys() | CONTROL.operations.keys()
NAMES = [*OPERATIONS, *API.schema("ErrorCode")["enum"], *API.events]


@pytest.fixture(scope="module")
def reader(live: Live) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=30) as client:
        yield client


def results(reader: httpx2.Client, query: str) -> list[str]:
    """The paths that a search answers, best first."""
    answer = reader.get("/guide", params={"q": query})
    assert 200 == answer.status_code
    return [urljoin("/guide", unescape(link)) for link in _RESULT.findall(answer.text)]


def test_every_link_of_every_page_answers_and_every_anchor_is_there(reader: httpx2.Client) -> None:
    """The pages that lead to each other from the index; an operation's page is one of
    the contract.
    """
    texts = {}
    waiting = {"/guide": "the start"}
    linked = {}
    while waiting:
        path, where = waiting.popitem()
        answer = reader.get(path)
        assert 200 == answer.status_code, f"{path}, linked by {where}"
        texts[path] = (
            answer.text
            if path.startswith("/guide") and answer.headers["content-type"][:4] == "text"
            else ""
        )
        for link in map(unescape, _LINK.findall(texts[path])):
            address = urljoin(path, link)
            if address.startswith("/docs/"):
                assert address.removeprefix("/docs/") in NAMES, f"{address}, linked by {path}"
            elif address.startswith("/guide"):
                if "?" in address:  # the other zone of the clock
                    continue
                linked[address] = path
                if (target := address.partition("#")[0]) not in texts:
                    waiting[target] = path
    assert 30 < sum(map(bool, texts.values()))
    lost = {
        f"{address}, linked by {where}"
        for address, where in linked.items()
        if not has_anchor(address, texts)
    }
    assert set() == lost


def has_anchor(address: str, texts: dict[str, str]) -> bool:
    """Whether the page of an address has its fragment."""
    path, _, place = address.partition("#")
    return not place or f' id="{place}"' in texts[path]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("how do I get a token", "/guide/api#get-a-token"),
        ("limit an api key to some scopes", "/guide/api#create-an-api-key-with-fewer-scopes"),
        ("blocked by CORS", "/guide/api#call-it-from-a-browser-cors"),
        ("sort and filter a list", "/guide/api#read-a-list-page-sort-filter"),
        ("idempotency key", "/guide/api#repeat-a-request-safely-idempotency-key"),
        ("find an order whose answer was lost", "/guide/retry#find-an-order-whose-answer-was-lost"),
        ("refund an order", "/guide/payments#fail-expire-or-refund-an-order"),
        ("card declined", "/guide/payments#make-a-card-or-a-payment-fail"),
        ("chargeback", "/guide/payments#dispute-a-payment"),
        ("fail_immediately", "/guide/payments#choose-by-e-mail-address"),
        ("move the clock by a month", "/guide/time#move-the-clock"),
        ("undo the last request", "/guide/time#go-back"),
        ("empty scenario", "/guide/time#choose-the-data"),
        ("make a request fail with 503", "/guide/faults#one-request"),
        ("flaky", "/guide/faults#presets-and-the-shell"),
        ("why was a request refused", "/guide/journal#why-was-a-request-refused"),
        ("plan_sold_out", "/docs/plan_sold_out"),
        ("verify the signature of a webhook", "/guide/webhooks#verify-a-signature"),
        ("webhook retries", "/guide/webhooks#retries-duplicates-and-order"),
        ("forward webhooks to localhost", "/guide/webhooks#forward-events-to-localhost"),
        ("order.paid", "/docs/order.paid"),
        ("orders:read", "/guide/api#create-an-api-key-with-fewer-scopes"),
        ("createPixOrder", "/docs/createPixOrder"),
        ("payOrder", "/docs/payOrder"),
        ("list plans", "/docs/listPlans"),
        ("create order", "/docs/createOrder"),
        ("truncate_body", "/docs/createFault"),
        ("--store", "/guide/reference/settings#--store"),
        ("STUB_MAX_CONNECTIONS", "/guide/reference/settings#--max-connections"),
        ("stub-server fork", "/guide/reference/commands#stub-server-fork"),
        ("sandbox_factory", "/guide/reference/pytest#fixtures"),
        ("github actions", "/guide/ci#github-actions"),
        ("playwright workers", "/guide/ci#a-sandbox-for-each-worker"),
        ("exit codes", "/guide/ci#exit-codes"),
        ("replay a recording", "/guide/files#record-and-replay-requests"),
        ("docker", "/guide/teams#docker"),
        ("back up the store", "/guide/stores#back-up"),
        ("prometheus", "/guide/stores#metrics"),
        ("typed client", "/guide/typescript#generate-a-client"),
        ("compare with the real backend", "/guide/verify"),
        ("correct the contract", "/guide/overlays"),
    ],
)
def test_a_search_finds_what_is_asked_for(reader: httpx2.Client, query: str, answer: str) -> None:
    """Among the first five results, as whoever asks would see it."""
    assert answer in results(reader, query)[:5]


ASKED = {
    "reembolso": "/guide/payments#fail-expire-or-refund-an-order",
    "como faço um estorno": "/guide/payments#fail-expire-or-refund-an-order",
    "cobrança recusada": "/guide/payments#make-a-card-or-a-payment-fail",
    "cartão recusado": "/guide/payments#make-a-card-or-a-payment-fail",
    "contestação": "/guide/payments#dispute-a-payment",
    "chargeback": "/guide/payments#dispute-a-payment",
    "idempotência": "/guide/api#repeat-a-request-safely-idempotency-key",
    "resend": "/guide/webhooks#redeliver",
    "reenviar webhook": "/guide/webhooks#redeliver",
    "ngrok": "/guide/webhooks#forward-events-to-localhost",
    "túnel para localhost": "/guide/webhooks#forward-events-to-localhost",
    "signing secret": "/guide/webhooks#verify-a-signature",
    "verificar assinatura": "/guide/webhooks#verify-a-signature",
    "rotate the webhook secret": "/guide/webhooks#rotate-the-signing-key",
    "time zone": "/guide/console#read-times-in-your-time-zone",
    "fuso horário": "/guide/console#read-times-in-your-time-zone",
    "avançar o relógio": "/guide/time#move-the-clock",
    "adiantar um mês": "/guide/payments#see-next-months-renewal-today",
    "renovação": "/guide/payments#see-next-months-renewal-today",
    "desfazer": "/guide/console#undo-and-reset",
    "voltar no tempo": "/guide/time#go-back",
    "resetar": "/guide/time#reset-between-tests",
    "reset": "/guide/time#reset-between-tests",
    "cliente inadimplente": "/guide/time#add-somebody-in-a-state",
    "past due customer": "/guide/time#add-somebody-in-a-state",
    "simular erro 503": "/guide/faults#one-request",
    "servidor lento": "/guide/faults#all-requests-of-a-kind",
    "pagar com pix": "/guide/payments#pay-a-pix-order",
    "autenticação": "/guide/api#get-a-token",
    "login": "/guide/api#get-a-token",
    "chave de api": "/guide/api#create-an-api-key-with-fewer-scopes",
    "CORS": "/guide/api#call-it-from-a-browser-cors",
    "paginação": "/guide/api#read-a-list-page-sort-filter",
    "typed client": "/guide/typescript#generate-a-client",
    "sdk typescript": "/guide/typescript#generate-a-client",
    "docker compose": "/guide/teams#docker",
    "um servidor para a equipe": "/guide/teams",
    "backup": "/guide/stores#back-up",
    "por que a requisição foi recusada": "/guide/journal#why-was-a-request-refused",
    "comparar com o backend real": "/guide/verify",
}
"""Forty questions of people, in Portuguese and in English, with the section that answers each."""


def test_forty_questions_are_answered_by_the_first_three(reader: httpx2.Client) -> None:
    assert 40 == len(ASKED)
    found = {question: results(reader, question)[:3] for question in ASKED}
    assert {} == {
        question: three for question, three in found.items() if ASKED[question] not in three
    }


def test_a_sandbox_of_its_own_has_the_guide_and_creates_nothing(reader: httpx2.Client) -> None:
    answer = reader.get("/s/guide-reader/guide/reference/errors")
    assert 200 == answer.status_code
    assert 'href="../../guide/api#handle-errors"' in answer.text
    assert 404 == reader.get("/_sandbox/sandboxes/guide-reader").status_code


def test_pasted_commands_call_the_server_and_the_sandbox_of_the_page(
    reader: httpx2.Client, live: Live
) -> None:
    assert f"$ api={live.url}\n" in reader.get("/guide/payments").text
    of_a_sandbox = "/s/guide-reader/guide"
    assert f"$ api={live.url}/s/guide-reader\n" in reader.get(f"{of_a_sandbox}/payments").text
    assert f"{live.url}/s/worker-3<" in reader.get(f"{of_a_sandbox}/ci").text
    # the default of an option
    assert "http://127.0.0.1:4600" in reader.get("/guide/reference/commands").text


def test_a_file_is_sent_once_and_no_page_is_compressed(reader: httpx2.Client) -> None:
    """A page may show a key."""
    sheet = reader.get("/static/console.css")
    again = reader.get("/static/console.css", headers={"If-None-Match": sheet.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    for path in ("/guide/api", "/docs/listOrders", "/console/keys"):
        page = reader.get(path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in page.headers


def test_the_guide_needs_nothing_from_elsewhere(reader: httpx2.Client) -> None:
    answer = reader.get("/guide/api")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert "image/webp" == reader.get("/guide/pictures/pay.webp").headers["content-type"]
    assert 'href="../../docs/payOrder"' in reader.get("/guide/reference/events").text


def test_a_guide_that_is_gone_has_closed_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 warns of a connection that nobody closed, in the tests of whoever makes one."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    assert Guide(ROOT, []).search("refund", 1, 10)
    gc.collect()
    (index,) = made
    with pytest.raises(sqlite3.ProgrammingError):
        index.execute("SELECT 1")
