"""An id in a path that has not the form of one names nothing: 404, never 400 or 500."""

import pytest

from ..support.refusal import refused
from ..support.wire import Door

WRONG = {
    "word": "abc",
    "number": "42",
    "huge number": "9" * 5_000,
    "without hyphens": "0b1f6c1e6a0e4f0b9a536a3f3c1c9b55",
    "in braces": "%7B0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55%7D",
    "urn": "urn:uuid:0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55",
    "short": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b5",
    "long": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b555",
    "not hexadecimal": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b5g",
    "hyphens elsewhere": "0b1f6c1e6-a0e-4f0b-9a53-6a3f3c1c9b55",
    "newline at the end": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55%0A",
    "space at the end": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55%20",
    "NUL at the end": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55%00",
    "Arabic digits": "%D9%A0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55",
    "not UTF-8": "%FF%FE",
    "percent": "%25",
    "null": "null",
    "undefined": "undefined",
    "dots": "..",
    "template": "%7BcustomerId%7D",
    "quote": "'%20OR%20'1'='1",
    "script": "%3Cscript%3Ealert(1)%3C%2Fscript%3E".replace("%2F", "%5C"),
    "nil with letters": "00000000-0000-0000-0000-00000000000z",
    "very long": "a" * 20_000,
}
RESOURCES = ["customers", "orders", "projects", "plans", "products", "webhooks"]


@pytest.mark.parametrize("spelling", WRONG)
def test_a_malformed_customer_id_is_404(door: Door, spelling: str) -> None:
    body = refused(door.ask("GET", f"/v2/customers/{WRONG[spelling]}"), 404, "not_found")
    assert len(body["message"]) < 300


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_malformed_id_is_404_in_every_group(door: Door, resource: str) -> None:
    refused(door.ask("GET", f"/v2/{resource}/not-an-id"), 404, "not_found")


def test_a_malformed_id_of_a_change_is_404_once_the_body_is_right(door: Door) -> None:
    refused(door.ask("PUT", "/v2/customers/abc", b'{"name": "Ana"}'), 404, "not_found")
    refused(door.ask("PUT", "/v2/customers/abc", b'{"name": 1}'), 422, "validation_error")


@pytest.mark.parametrize(
    "key", ["x", "pk_", "pk_short", "sk_sandbox_000000000000000000000000", "pk_sandbox_%20%20%20%20%20"]
)
def test_a_malformed_public_key_is_an_unknown_merchant(door: Door, key: str) -> None:
    """The same answer as for a well-formed key that nobody has: no oracle."""
    refused(door.ask("GET", f"/api-keys/merchant/{key}"), 404, "merchant_not_found")
    refused(door.ask("GET", "/api-keys/merchant/pk_sandbox_000000000000000000000000"), 404, "merchant_not_found")


def test_an_id_in_capitals_is_the_same_id_and_comes_back_in_small_letters(door: Door, customer_id: str) -> None:
    answer = door.ask("GET", f"/v2/customers/{customer_id.upper()}")
    assert answer.status == 200
    assert answer.json()["customer"]["id"] == customer_id
