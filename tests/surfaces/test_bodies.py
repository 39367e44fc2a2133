"""How a body arrives: media type, charset, framing, size, and whether it must be there at all."""

import gzip

import pytest

from ..support.refusal import fields, refused, says
from ..support.wire import Door, exchange

MIB = 1_048_576


@pytest.fixture
def path(customer_id: str) -> str:
    """A path that takes PUT with a required body."""
    return f"/v2/customers/{customer_id}"


BODY = b'{"name": "Marina Duarte"}'


@pytest.mark.parametrize(
    "media",
    [
        "application/json", "Application/JSON", "APPLICATION/JSON", "application/json;charset=utf-8",
        "application/json; charset=UTF-8", 'application/json; charset="utf-8"', "application/json ; charset=utf8",
        "application/json;", "application/json; profile=x", "  application/json  ",
    ],
)  # fmt: skip
def test_json_is_json_in_every_spelling_of_its_media_type(
    door: Door, path: str, media: str
) -> None:
    assert door.ask("PUT", path, BODY, media=media).status == 200


@pytest.mark.parametrize(
    "media",
    [
        "text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/jsonx", "application/json-patch+json", "application/merge-patch+json", "text/json", "json", "*/*",
        "application/json, text/plain", "", " ", ";", "application/json; charset=foo",
        "application/json;charset=latin-1",
        "application/json; charset=utf-16", "a" * 8_000,
    ],
)  # fmt: skip
def test_what_is_not_json_in_utf_8_is_415(door: Door, path: str, media: str) -> None:
    refused(door.ask("PUT", path, BODY, media=media), 415, "unsupported_media_type")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "GZIP", "gzip, identity", "x"])
@pytest.mark.parametrize("body", [BODY, gzip.compress(BODY)], ids=["plain", "compressed"])
def test_a_body_that_is_said_to_be_compressed_is_415(
    door: Door, path: str, coding: str, body: bytes
) -> None:
    answer = refused(
        door.ask("PUT", path, body, headers=[("Content-Encoding", coding)]),
        415,
        "unsupported_media_type",
    )
    assert says(answer["message"], "Content-Encoding")


@pytest.mark.parametrize("media", ["application/json", None])
def test_a_required_body_that_is_absent_is_422(door: Door, path: str, media: str | None) -> None:
    """Whether its length is said to be zero or nothing is said at all."""
    for body in (b"", None):
        answer = door.ask("PUT", path, body, media=media)
        assert fields(refused(answer, 422, "validation_error")) == {"body": "required"}


def metadata_of(size: int) -> bytes:
    """A valid change of exactly this many bytes: blanks between the tokens fill it up."""
    head = b'{"name": "Marina Duarte"'
    return head + b" " * (size - len(head) - 1) + b"}"


def test_a_body_of_one_mebibyte_is_read(door: Door, path: str) -> None:
    assert door.ask("PUT", path, metadata_of(MIB)).status == 200


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(
    door: Door, path: str
) -> None:
    request = (
        f"PUT {door.prefix}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer"
        f" {door.token}\r\nContent-Type: application/json\r\nContent-Length:"
        " 999999999999\r\nConnection: close\r\n\r\n"
    )
    refused(exchange(door.port, "PUT", request.encode()), 413, "payload_too_large")


@pytest.fixture(scope="module")
def suspend(door: Door) -> str:
    """The path of an operation with an optional body, which may be repeated: to the state one is in
    is no move.
    """
    made = door.send(
        "POST", "/v2/projects", {"name": "Clube dos corpos opcionais", "status": "active"}
    )
    assert made.status == 201, made.body
    return f"/v2/projects/{made.json()['data']['project']['id']}/suspend"


@pytest.mark.parametrize("media", [None, "application/json", "application/json; charset=utf-8"])
@pytest.mark.parametrize(
    "body", [None, b"", b"{}", b'{"reason": null}', b'{"reason": "Revis\xc3\xa3o"}']
)
def test_an_optional_body_may_be_absent_empty_or_there(
    door: Door, suspend: str, media: str | None, body: bytes | None
) -> None:
    answer = door.ask(
        "POST",
        suspend,
        body,
        media=media,
        headers=[("Content-Type", media)] if media and body is None else [],
    )
    if body and media is None:
        refused(answer, 415, "unsupported_media_type")
    else:
        assert answer.status == 200, answer.body


@pytest.mark.promise("body-values")
@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * 500_000 + b"1]",
        b'{"items":[' + b"[]," * 30_000 + b"[]]}",
        b'{"a":{' + b'"b":1,' * 9 + b'"c":[' + b"0," * 20_001 + b"0]}}",
        b"[" + (b"[" * 28 + b"]" * 28 + b",") * 9_000 + b"1]",
    ],
    ids=["list", "lists", "inside", "few commas"],
)
def test_a_body_of_very_many_values_is_refused_before_it_is_judged(door: Door, body: bytes) -> None:
    """To hold half a million values to a schema, and to say them back, took a second of
    everybody's time.
    """
    told = refused(door.ask("POST", "/v2/orders/pix", body), 422, "validation_error")
    assert says(told["message"], "20,000")
    assert len(told["details"]) == 1
