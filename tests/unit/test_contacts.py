"""An order's flat telephones and address as a customer's: exact, or left out and named."""

import pytest

from stub_server.domain.customers import from_buyer

ANA = {
    "name": "Ana",
    "email": "a@example.com",
    "document": "AB123",
    "document_type": "passport",
    "type": "individual",
}


def from_flat(
    phones: dict[str, str], address: dict[str, str]
) -> tuple[object, object, tuple[str, ...]]:
    """What a customer gets of an order's telephones and address, and the warnings."""
    customer, left_out = from_buyer(ANA | {"phones": phones, "address": address})
    return customer["phones"], customer["address"], left_out


@pytest.mark.parametrize(
    ("text", "area_code", "number"),
    [
        ("+5511987654321", "11", "987654321"),
        ("+551133334444", "11", "33334444"),
        ("11987654321", "11", "987654321"),
        ("1133334444", "11", "33334444"),
        ("+55 (11) 98765-4321", "11", "987654321"),
        ("(55) 3222-1111", "55", "32221111"),
    ],
)
def test_a_brazilian_telephone_is_taken_apart(text: str, area_code: str, number: str) -> None:
    """Written with the country's code or without it, a landline as a mobile; 55 is also an area in
    the south.
    """
    phones, _, left_out = from_flat({"mobile_phone": text}, {})
    assert phones == {
        "mobile_phone": {"country_code": "55", "area_code": area_code, "number": number}
    }
    assert left_out == ()


@pytest.mark.parametrize(
    ("text", "country_code", "number"),
    [
        ("+12125550100", "1", "2125550100"),
        ("+351912345678", "351", "912345678"),
        ("+49 (151) 1234-5678", "49", "15112345678"),
        ("+431234567890123", "43", "1234567890123"),
    ],
)
def test_a_telephone_of_another_country_has_its_country_code(
    text: str, country_code: str, number: str
) -> None:
    """Where its area code ends cannot be told."""
    assert from_flat({"mobile_phone": text}, {})[0] == {
        "mobile_phone": {"country_code": country_code, "number": number}
    }


@pytest.mark.parametrize(
    "text", ["+4312345678901234", "+123", "vizinha", "", "987654321", "+55119876543210", "+551"]
)
def test_what_cannot_be_taken_apart_is_left_out_and_named(text: str) -> None:
    """One that does not fit takes the others with it."""
    found = from_flat({"home_phone": "+551133334444", "mobile_phone": text}, {})
    assert found == ({}, {}, ("customer_phones_not_copied",))


@pytest.mark.parametrize(
    "address", [{"line_1": "a" * 257}, {"country": "Brasil"}, {"bairro": "Batel"}]
)
def test_an_address_that_a_customer_could_not_have_is_left_out_and_named(
    address: dict[str, str],
) -> None:
    assert from_flat({}, address) == ({}, {}, ("customer_address_not_copied",))


def test_an_address_that_fits_is_copied_whole() -> None:
    address = {"line_1": "1374, Avenida Paulista", "zip_code": "01310100", "country": "BR"}
    assert from_flat({}, address) == ({}, address, ())
