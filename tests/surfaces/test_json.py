"""What counts as JSON, and which JSON value counts as which type: strictly RFC 8259 in UTF-8,
strictly the contract.
"""

import pytest

from ..support.make import customer_body
from ..support.refusal import fields, refused, says
from ..support.wire import Door

UNPARSABLE = {
    "nothing closed": b'{"name": "Ana"',
    "single quotes": b"{'name': 'Ana'}",
    "trailing comma": b'{"name": "Ana",}',
    "comment": b'{"name": "Ana"} // x',
    "two values": b"{}{}",
    "blanks only": b" \r\n\t ",
    "byte order mark": b'\xef\xbb\xbf{"name": "Ana"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "Latin-1": '{"name": "São"}'.encode("latin-1"),
    "UTF-16": '{"name": "Ana"}'.encode("utf-16"),
    "overlong UTF-8": b'{"name": "\xc0\xaf"}',
    "surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "lone surrogate": rb'{"name": "\ud800"}',
    "lone low surrogate": rb'{"name": "\udc00x"}',
    "bad escape": rb'{"name": "\x41"}',
    "raw newline": b'{"name": "A\nB"}',
    "raw NUL": b'{"name": "A\x00B"}',
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": Infinity}',
    "-Infinity": b'{"name": -Infinity}',
    "1e400": b'{"name": 1e400}',
    "leading zero": b'{"name": 01}',
    "plus sign": b'{"name": +1}',
    "hexadecimal": b'{"name": 0x10}',
    "bare dot": b'{"name": 1.}',
    "bare word": b"undefined",
    "python": b'{"name": None}',
    "33 levels": b'{"name":' + b"[" * 32 + b"]" * 32 + b"}",
    "1,000 levels": b'{"name":' + b"[" * 1_000 + b"]" * 1_000 + b"}",
    "10,000 levels": b"[" * 10_000 + b"]" * 10_000,
    "10,000 objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "10,000 never closed": b"[" * 10_000,
}


@pytest.mark.parametrize("what", UNPARSABLE)
def test_what_cannot_be_parsed_is_400(door: Door, customer_id: str, what: str) -> None:
    refused(
        door.ask("PUT", f"/v2/customers/{customer_id}", UNPARSABLE[what]), 400, "malformed_json"
    )


@pytest.mark.parametrize(
    ("body", "byte", "value"), [(b'{"a": "\xe9"}', 8, "0xE9"), (b"\x1f\x8b\x08", 2, "0x8B")]
)
def test_a_body_that_is_not_utf_8_is_told_so(
    door: Door, customer_id: str, body: bytes, byte: int, value: str
) -> None:
    answer = refused(door.ask("PUT", f"/v2/customers/{customer_id}", body), 400, "malformed_json")
    assert says(answer["message"], "UTF-8", byte, value)


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f600",
        "e\u0301",
        "\u00e9",
        "\u202e",
        "\ufeff",
        "\uffff",
        " x ",
        "a\nb",
        "<b>",
        "\x7f",
        "\u2028",
    ],
)
def test_text_is_stored_as_sent(door: Door, customer_id: str, text: str) -> None:
    """No trimming, no normalisation: the two spellings of an accented letter stay two."""
    answer = door.send("PUT", f"/v2/customers/{customer_id}", {"name": text})
    assert (200, text) == (answer.status, answer.json()["customer"]["name"])
    assert door.ask("GET", f"/v2/customers/{customer_id}").json()["customer"]["name"] == text


@pytest.mark.parametrize("digits", [310, 5_000, 500_000])
def test_a_number_that_no_reader_can_hold_is_400(door: Door, digits: int) -> None:
    refused(
        door.ask("POST", "/v2/plans", b'{"amount": ' + b"9" * digits + b"}"), 400, "malformed_json"
    )


def test_every_violation_is_told_at_once_with_its_path(door: Door) -> None:
    body = customer_body(
        name="",
        email="no",
        document="11111111111",
        type="robot",
        phones={"mobile_phone": {"country_code": "55", "area_code": "1", "number": 9}, "home": {}},
        address={"country": "Brasil", "planet": "Terra"},
        metadata={"a": 1},
        extra=True,
    )
    assert fields(refused(door.send("POST", "/v2/customers", body), 422, "validation_error")) == {
        "name": "min",
        "email": "format",
        "document": "invalid_document",
        "type": "enum",
        "phones.mobile_phone.area_code": "format",
        "phones.mobile_phone.number": "type",
        "phones.home.country_code": "required",
        "phones.home.number": "required",
        "address.country": "format",
        "address.planet": "unknown_field",
        "metadata.a": "type",
        "extra": "unknown_field",
    }
