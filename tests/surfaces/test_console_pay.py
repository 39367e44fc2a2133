"""The page of a payer: what it shows, what it does, and that it does nothing else."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO

import httpx2
import pytest
import yaml

from stub_server.cli.request_log import RequestLog
from stub_server.console.pay_pages import outward
from stub_server.core.shipped import data_dir

from ..support.console import Console, Page
from ..support.contract import document
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import Json, Maker, make_order, make_plan, order_body

ADMIN = "an admin key of the tests"
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984" + "x" * 80


@pytest.fixture
def payer(live: Live, sandbox_name: str, credentials: Json) -> Iterator[Console]:
    """A browser in the test's sandbox."""
    with closing(Console(live.url, sandbox_name)) as browser:
        yield browser


def paid(payer: Console, order: Json, label: str = "Já paguei") -> Page:
    """The page after a click on a button."""
    return payer.send(payer.open(f"/pay/{order['id']}"), label)


def test_it_shows_what_is_paid_and_how(payer: Console, make_order: Maker) -> None:
    items = [
        {"description": "Plano", "quantity": 1, "amount": 49.9},
        {"description": "Meia", "quantity": 2, "amount": 5},
    ]
    order = make_order(totalAmount=59.9, items=items)
    page = payer.open(f"/pay/{order['id']}")
    assert 200 == page.status
    shown = page.text.replace("\u00a0", " ")
    for text in ("nenhum dinheiro é movimentado", "R$ 59,90", "R$ 49,90", "2 × R$ 5,00", "R$ 10,00", order["code"],
                 order["last_transaction"]["qr_code"], "Expira em 24:00:00"):  # fmt: skip
        assert text in shown, text
    picture = (
        page.response.text.partition('class="qr" src="')[2].partition('"')[0].replace("&amp;", "&")
    )
    drawn = payer.http.get(str(httpx2.URL(page.url).join(picture)))
    assert (200, "image/svg+xml") == (drawn.status_code, drawn.headers["content-type"])
    assert "set-cookie" not in page.response.headers
    assert "no-store" == page.response.headers["cache-control"]


def test_it_speaks_portuguese_and_english_to_whom_asks_for_it(
    payer: Console, make_order: Maker
) -> None:
    """By the browser's languages or by a click; the page says in which language it is."""
    order = make_order()
    of_languages = {"": "pt-BR", "de-DE": "pt-BR", "pt-BR,en;q=0.8": "pt-BR", "en-US,en": "en"}
    for asked, lang in of_languages.items():
        page = payer.open(f"/pay/{order['id']}", **{"Accept-Language": asked})
        assert f'<html lang="{lang}">' in page.response.text
        assert ("Copy code" if lang == "en" else "Copiar código") in page.text
    english = payer.follow(payer.open(f"/pay/{order['id']}"), "?lang=en")
    assert "Pay with PIX" in english.text
    paid = payer.send(english, "I have paid")
    assert "Thank you." in paid.text
    assert (
        "Obrigado."
        in payer.follow(paid, next(link for link in paid.links if link.endswith("lang=pt"))).text
    )
    assert "nonsense" not in payer.open(f"/pay/{order['id']}?lang=nonsense").response.text


def test_both_languages_say_the_same_things() -> None:
    texts = yaml.safe_load(
        (data_dir("fixtures") / "console" / "pay.yaml").read_text(encoding="utf-8")
    )
    assert texts["pt"].keys() == texts["en"].keys()
    assert texts["pt"]["failures"].keys() == set(
        document("sandbox.yaml").schema("SandboxFailure")["properties"]["code"]["enum"]
    )


def test_a_boleto_is_paid_by_its_line(
    payer: Console, api: httpx2.Client, control: httpx2.Client
) -> None:
    """In the groups that banks print, and still when it has expired."""
    plan = make_plan(api, payment_methods=["boleto"])
    body = order_body(plan["projectId"], plan["id"], paymentMethod="boleto")
    order = api.post("/v2/orders", json=body).json()
    line = order["last_transaction"]["line"]
    page = payer.open(f"/pay/{order['id']}")
    digits = page.response.text.partition("<code>")[2].partition("</code>")[0]
    assert (line, [5, 5, 5, 6, 5, 6, 1, 14]) == (
        digits.replace(".", "").replace(" ", ""), [len(each) for each in digits.replace(".", " ").split()]
    )  # fmt: skip
    assert "Expirado" in payer.send(page, "Deixar expirar").text
    late = paid(payer, order, "Paguei com atraso")
    assert "Pago" in late.text
    assert "paid" == control.get(f"/orders/{order['id']}").json()["order"]["status"]


@pytest.mark.parametrize(
    ("label", "status", "title", "link"),
    [("Já paguei", "paid", "Obrigado.", "success"), ("Deixar expirar", "expired", "Expirado", "cancel"),
     ("Recusar o pagamento", "failed", "Pagamento recusado", "cancel")],
)  # fmt: skip
def test_it_pays_expires_and_fails(
    payer: Console,
    make_order: Maker,
    control: httpx2.Client,
    label: str,
    status: str,
    title: str,
    link: str,
) -> None:
    """Then the shop is a link away; nobody is led there."""
    order = make_order(
        success_url="https://shop.example/success", cancel_url="https://shop.example/cancel"
    )
    page = paid(payer, order, label)
    assert (200, f"{payer.base}/pay/{order['id']}") == (page.status, page.url)
    assert title in page.text
    assert f"https://shop.example/{link}" in page.links
    assert status == control.get(f"/orders/{order['id']}").json()["order"]["status"]
    assert not page.forms


def test_a_move_that_came_too_late_is_refused_in_words(
    payer: Console, make_order: Maker, control: httpx2.Client
) -> None:
    order = make_order()
    page = payer.open(f"/pay/{order['id']}")
    assert 200 == control.post(f"/orders/{order['id']}/cancel").status_code
    refused = payer.send(page, "Já paguei")
    assert 409 == refused.status
    assert "Cancelado" in refused.text


def test_it_links_to_pages_of_the_web_alone() -> None:
    assert "https://shop.example/?a=b" == outward("https://shop.example/?a=b")
    for address in (
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://shop.example/",
        "https:x",
        "http://[",
        "",
        None,
    ):
        assert outward(address) is None, address


def test_hostile_data_is_text(payer: Console, make_order: Maker) -> None:
    order = make_order(items=[{"description": HOSTILE, "quantity": 1, "amount": 49.9}])
    page = payer.open(f"/pay/{order['id']}")
    assert HOSTILE in page.text
    assert "<script>alert" not in page.response.text


def test_wrong_addresses_close_no_page(payer: Console, make_order: Maker) -> None:
    order = make_order()
    for number in range(12):
        wrong = "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55" if number % 2 else f"<b>{number}"
        page = payer.open(f"/pay/{wrong}")
        assert (404, True) == (page.status, "Pedido não encontrado" in page.text)
    assert 200 == payer.open(f"/pay/{order['id']}").status


def test_other_paths_are_nothing(payer: Console, make_order: Maker) -> None:
    order = make_order()
    ident = order["id"]
    assert f"{payer.base}/pay/{ident}" == payer.open(f"/pay/{ident}/pay").url
    for path in ("/pay/", f"/pay/{ident}/refund", f"/pay/{ident}/pay/x", f"/pay/{ident}%2Frefund"):
        assert 404 == payer.open(path).status, path
    headers = {"Origin": payer.origin}
    for move in ("refund", "cancel", "dispute", "dispute/resolve"):
        assert payer.http.post(f"{payer.base}/pay/{ident}/{move}", headers=headers).status_code in (
            404,
            405,
        ), move


def test_it_is_open_where_the_control_surface_is_closed() -> None:
    """To a server without an admin key that others reach, and by a name that the user allowed."""
    for changes, host in (
        ({"host": "0.0.0.0"}, None),  # noqa: S104 - a setting: it listens on loopback
        ({"allow_hosts": ("shop.example",)}, "shop.example"),
    ):
        with running(replace(FROZEN, secret=b"x" * 32, **changes)) as server:
            sandbox = server.app.server.sandboxes.default
            token = {"Authorization": f"Bearer {server.app.server.ready_token(sandbox)}"}
            with httpx2.Client(base_url=server.url, headers=token, verify=NO_TLS) as api:
                order = make_order(api)
            named = {} if host is None else {"Host": host}
            address = f"{server.url}/pay/{order['id']}"
            key = server.app.server.sandboxes.pay_key(sandbox, order["id"])
            assert 200 == httpx2.get(f"{address}?k={key}", headers=named, verify=NO_TLS).status_code
            assert 404 == httpx2.get(address, headers=named, verify=NO_TLS).status_code
            refused = httpx2.get(
                f"{server.url}/_sandbox/orders/{order['id']}", headers=named, verify=NO_TLS
            )
            assert 403 == refused.status_code


def test_the_page_of_the_order_leads_there(payer: Console, make_order: Maker) -> None:
    order = make_order()
    page = payer.open(f"/console/data/orders/{order['id']}")
    link = next(each for each in page.links if "/pay/" in each)
    assert (200, f"{payer.base}/pay/{order['id']}") == (
        payer.follow(page, link).status,
        payer.follow(page, link).url,
    )


def test_the_control_and_the_terminal_say_where(
    live: Live, sandbox_name: str, make_order: Maker, control: httpx2.Client, api: httpx2.Client
) -> None:
    stream = StringIO()
    log = RequestLog("requests", stream, live.url)
    live.app.server.listeners.append(log)
    try:
        order = make_order()
        control.get("/clock")  # answered after the request before it was told
    finally:
        live.app.server.listeners.remove(log)
    log.flush()
    shown = control.get(f"/orders/{order['id']}").json()
    address = f"{live.url}/s/{sandbox_name}/pay/{order['id']}"
    assert address == shown["pay_url"]
    assert f" pay: {address}\n" in stream.getvalue()
    assert (
        shown["shop"]
        == api.get(f"/v2/projects/{shown['projectId']}").json()["data"]["project"]["name"]
    )
