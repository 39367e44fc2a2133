"""Formats are checked, not just named: uuid, date-time, uri, email, document, ip-network."""

from typing import Any

import pytest

from ..support.make import customer_body, fresh_cpf, order_body
from ..support.refusal import fields, refused
from ..support.wire import Door

NOBODY = "00000000-0000-4000-8000-000000000000"


def codes(door: Door, method: str, path: str, body: dict[str, Any]) -> dict[str, str]:
    """What the schema says against a body."""
    return fields(refused(door.send(method, path, body), 422, "validation_error"))


@pytest.mark.parametrize(
    "email",
    [
        "a@b.co",
        "marina.duarte+x@example.com",
        "o'neil@example.org",
        "a_b-c@sub.example.net",
        "A@EXAMPLE.COM",
    ],
)
def test_an_email_is_taken(door: Door, email: str) -> None:
    answer = door.send("POST", "/v2/customers", customer_body(email=email))
    assert (201, email.lower()) == (answer.status, answer.json()["customer"]["email"])


@pytest.mark.parametrize(
    "email",
    [
        "",
        "a",
        "a b@c.co",
        "a@b..co",
        ".a@b.co",
        "a@-b.co",
        "a@b.co\n",
        "a@b c.co",
        "a@b.co,c@d.co",
        "a@" + "b" * 250 + ".co",
    ],
)
def test_what_is_no_email_is_refused(door: Door, email: str) -> None:
    assert set(codes(door, "POST", "/v2/customers", customer_body(email=email))) == {"email"}


def test_a_new_document_has_its_own_types(door: Door) -> None:
    """Without them in the request, both are inferred anew; with them they must agree with
    the new document.
    """
    made = door.send(
        "POST", "/v2/customers", customer_body(document="AB987651", email="a@b.co")
    ).json()["customer"]
    path = f"/v2/customers/{made['id']}"
    changed = door.send("PUT", path, {"document": "11.444.777/0001-61"}).json()["customer"]
    assert ("cnpj", "company") == (changed["document_type"], changed["type"])
    for body in (
        {"document": "AB987652", "type": "company"},
        {"document": "52998224725", "document_type": "passport"},
        {"type": "individual"},
        {"document_type": "cpf"},
    ):
        refused(door.send("PUT", path, body), 409, "document_type_conflict")
    changed = door.send("PUT", path, {"document": "AB987652"}).json()["customer"]
    assert ("passport", "individual") == (changed["document_type"], changed["type"])


@pytest.mark.parametrize(
    "uuid",
    [
        "",
        "abc",
        "0b1f6c1e6a0e4f0b9a536a3f3c1c9b55",
        f"{{{NOBODY}}}",
        f"{NOBODY}\n",
        f" {NOBODY}",
        NOBODY.replace("8", "g"),
        "٠" + NOBODY[1:],
    ],
)
def test_what_is_no_uuid_is_refused(door: Door, uuid: str) -> None:
    assert codes(door, "POST", "/v2/orders/pix", order_body(uuid, NOBODY)) == {
        "projectId": "format"
    }


@pytest.mark.parametrize(
    "instant",
    [
        "2026-12-31T23:59:59Z",
        "2027-01-01T00:00:00.123456789-03:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999Z",
        "2028-02-29t00:00:00z",
    ],
)
def test_a_date_time_is_taken_and_shown_in_utc(door: Door, instant: str) -> None:
    answer = door.send(
        "POST", "/api-keys", {"name": "Relógio", "scopes": ["orders:read"], "expires_at": instant}
    )
    assert answer.status == 201, answer.body
    shown = answer.json()["api_key"]["expires_at"]
    assert (24, "Z") == (len(shown), shown[-1])


FIRST = "0001-01-01T00:00:00.000Z"
LAST = "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "instant",
    [
        "",
        "2026-12-31",
        "2026-12-31T23:59:59",
        "2026-12-31 23:59:59Z",
        "2026-02-29T00:00:00Z",
        "2026-12-31T23:59:59.Z",
        "2026-12-31T23:59:59+24:00",
        "2016-12-31T23:58:60Z",
        "2016-12-31T23:59:60+01:00",
        "٢٠٢٦-12-31T23:59:59Z",
        "2026-12-31T23:59:59Z\n",
    ],
)
def test_what_is_no_date_time_is_refused(door: Door, instant: str) -> None:
    body = {"name": "Relógio", "scopes": ["orders:read"], "expires_at": instant}
    assert codes(door, "POST", "/api-keys", body) == {"expires_at": "format"}


@pytest.mark.parametrize(
    "network",
    [
        "203.0.113.7",
        "203.0.113.0/24",
        "203.0.113.7/24",
        "0.0.0.0/0",
        "2001:db8::1",
        "2001:db8::/32",
        "::1",
    ],
)
def test_an_address_or_network_is_taken(door: Door, network: str) -> None:
    answer = door.send(
        "POST", "/api-keys", {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": [network]}
    )
    assert (201, [network]) == (answer.status, answer.json()["api_key"]["allowed_ips"])


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://127.0.0.1:3000/ok?x=1#y",
        "https://example.com/caf%C3%A9",
        "https://user@example.com/",
    ],
)
def test_a_url_is_taken(door: Door, url: str) -> None:
    refused(
        door.send("POST", "/v2/orders/pix", order_body(NOBODY, NOBODY, success_url=url)),
        409,
        "reference_not_found",
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "javascript:alert(1)",
        "https://",
        "https:// x",
        "http:example.com",
        "https://example.com\n",
        "https://ex<ample>.com",
        "https://example.com/%zz",
    ],
)
def test_what_is_no_url_is_refused(door: Door, url: str) -> None:
    assert set(
        codes(door, "POST", "/v2/orders/pix", order_body(NOBODY, NOBODY, success_url=url))
    ) == {"success_url"}


PHONE = "phones.mobile_phone."


@pytest.mark.parametrize(
    ("phone", "wrong"),
    [
        ({"country_code": "1", "area_code": "212", "number": "5550100"}, {}),
        ({"country_code": "65", "number": "6123"}, {}),
        ({"country_code": "354", "area_code": "12345", "number": "12345678901234"}, {}),
        ({"country_code": "65", "number": "123"}, {PHONE + "number": "format"}),
        (
            {"country_code": "1", "area_code": "123456", "number": "5550100"},
            {PHONE + "area_code": "format"},
        ),
        ({"country_code": "55", "number": "987654321"}, {PHONE + "area_code": "required"}),
        (
            {"country_code": "55", "area_code": "212", "number": "987654321"},
            {PHONE + "area_code": "format"},
        ),
        (
            {"country_code": "55", "area_code": "11", "number": "1234567"},
            {PHONE + "number": "format"},
        ),
    ],
)
def test_only_brazilian_telephones_have_the_brazilian_form(
    door: Door, phone: dict[str, str], wrong: dict[str, str]
) -> None:
    body = customer_body(document=fresh_cpf(), phones={"mobile_phone": phone})
    if wrong:
        assert codes(door, "POST", "/v2/customers", body) == wrong
    else:
        made = door.send("POST", "/v2/customers", body)
        assert {"mobile_phone": phone} == made.json()["customer"]["phones"]
        assert made.header("x-sandbox-warnings") is None
