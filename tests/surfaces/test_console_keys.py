"""The page of keys: what is ready, who may do what, tokens of chosen scopes; assumptions."""

from urllib.parse import urljoin

import httpx2

from ..support.console import Console, Page
from ..support.live import NO_TLS
from ..support.make import Json

PAGE = "/console/keys"
ASSUMPTIONS = "/console/assumptions"
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984"


def token_of(console: Console, *scopes: str, **values: str) -> Page:
    """The page after a token of these scopes was made."""
    page = console.open(PAGE)
    form = page.form("Issue a token")
    data = {"token": form.values["token"], "scopes": list(scopes), **values}
    address = urljoin(page.url, form.action)
    return Page(console.http.post(address, data=data, headers={"Origin": console.origin}))


def made(page: Page) -> str:
    """The token that a page shows."""
    assert 201 == page.status, page.text[:1000]
    return (
        page.response.text.partition('id="made"')[2]
        .partition('<pre tabindex="0">')[2]
        .partition("</pre>")[0]
    )


def status(console: Console, token: str, path: str) -> int:
    """What the API answers to a token."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(console.base + path, headers=headers, verify=NO_TLS).status_code


def test_it_shows_what_is_ready(console: Console, credentials: Json) -> None:
    page = console.open(PAGE).response.text
    for name in ("private_key", "public_key", "control_key"):
        assert f'data-copy="{credentials[name]}"' in page, name
    token = page.partition('data-copy="eyJ')[2].partition('"')[0]
    assert 200 == status(console, f"eyJ{token}", "/v2/customers")


def test_it_leads_to_the_section_of_magic_words(console: Console) -> None:
    page = console.open("/console/keys")
    (link,) = {link for link in page.links if "/guide/payments" in link and "#" in link}
    path, _, section = link.partition("#")
    assert f'id="{section}"' in console.follow(page, path).response.text


def test_it_shows_what_each_key_may_do(console: Console, api: httpx2.Client) -> None:
    body = {
        "name": HOSTILE,
        "scopes": ["orders:read", "plans:read", "plans:write"],
        "allowed_ips": ["203.0.113.10"],
    }
    answer = api.post("/api-keys", json=body)
    assert 201 == answer.status_code, answer.text
    page = console.open(PAGE)
    row = page.text[page.text.index(HOSTILE) :]
    assert row.index("Orders read") < row.index("Plans read and write") < row.index("203.0.113.10")
    assert "<script>alert" not in page.response.text
    assert (
        200
        == console.follow(
            page, next(link for link in page.links if "/data/api_keys/" in link)
        ).status
    )


def test_a_token_has_the_chosen_scopes(console: Console, control: httpx2.Client) -> None:
    """It is in no journal."""
    token = made(token_of(console, "orders:read", "customers:read", expires_in="600"))
    assert (200, 403) == (status(console, token, "/v2/orders"), status(console, token, "/v2/plans"))
    assert 200 == status(console, made(token_of(console, "*", "orders:read")), "/v2/plans")
    assert 403 == status(console, made(token_of(console)), "/v2/orders")
    kept = control.get("/requests", params={"control": "true"}).json()["requests"]
    ident = next(each["id"] for each in kept if each["operationId"] == "issueToken")
    assert token not in control.get(f"/requests/{ident}").text


def test_what_is_refused_is_said(console: Console) -> None:
    for values in ({"expires_in": "soon"}, {"expires_in": "0"}, {"merchant_id": HOSTILE}):
        page = token_of(console, "orders:read", **values)
        assert 422 == page.status
        assert "The token was refused:" in page.text
    assert 422 == token_of(console, HOSTILE).status


def test_assumptions_are_found_by_kind_operation_and_text(
    console: Console, control: httpx2.Client
) -> None:
    every = control.get("/assumptions").json()
    assert f"{every['total']:,} entries" in console.open(ASSUMPTIONS).text
    for query, chosen in (
        (
            "kind=contradiction",
            [each for each in every["assumptions"] if each["kind"] == "contradiction"],
        ),
        (
            "operation=createPixOrder",
            [each for each in every["assumptions"] if "createPixOrder" in each["operations"]],
        ),
        (
            "q=chargeback",
            [
                each
                for each in every["assumptions"]
                if "chargeback" in f"{each['id']} {each['text']}".lower()
            ],
        ),
    ):
        page = console.open(f"{ASSUMPTIONS}?{query}")
        assert f"{len(chosen):,} entries" in page.text, query
        assert chosen[0]["id"] in page.text
    page = console.open(f"{ASSUMPTIONS}?kind=operation")
    assert 200 == console.follow(page, next(link for link in page.links if "page=2" in link)).status
    for query in ("page=999", "page=-1", "page=x", "kind=none"):
        assert 200 == console.open(f"{ASSUMPTIONS}?{query}").status
