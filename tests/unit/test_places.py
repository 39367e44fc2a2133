"""Claims about Brazilian places and the warnings about a contact."""

from typing import Any

import pytest

from stub_server.domain import places

MOBILE = {"mobile_phone": {"country_code": "55", "area_code": "11", "number": "987654321"}}
PAULISTA = {
    "line_1": "1374, Avenida Paulista",
    "zip_code": "01310100",
    "city": "São Paulo",
    "state": "SP",
    "country": "BR",
}


def numbers(text: str) -> set[str]:
    found: set[str] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return found


def test_the_states_together_have_exactly_the_dialling_codes_of_anatel() -> None:
    anatel = "11-19 21 22 24 27 28 31-35 37 38 41-49 51 53-55 61-69 71 73 74 75 77 79 81-89 91-99"
    assert numbers(anatel) == places.KNOWN_DDDS
    assert len(places.KNOWN_DDDS) == 67
    assert len(places.DDDS) == 27


def test_the_postal_regions_cover_every_state_and_only_sao_paulo_twice() -> None:
    states = sorted(state for region in places.CEP_REGIONS for state in region)
    assert states == sorted([*places.DDDS, "SP"])


@pytest.mark.parametrize("phones", [MOBILE, {}])
@pytest.mark.parametrize(
    "address", [PAULISTA, {**PAULISTA, "zip_code": "01310-100", "state": " sp "}, {}]
)
def test_a_coherent_or_absent_contact_deserves_no_warning(
    phones: dict[str, Any], address: dict[str, Any]
) -> None:
    assert places.warnings_for(phones, address) == ()


@pytest.mark.parametrize(
    ("change", "warnings"),
    [
        ({"zip_code": "0131010"}, ("cep_malformed",)),
        ({"zip_code": "²" * 8}, ("cep_malformed",)),
        ({"state": "XX"}, ("uf_unknown",)),
        ({"state": "RJ"}, ("ddd_state_mismatch", "cep_state_mismatch")),
        ({"zip_code": "22010000"}, ("cep_state_mismatch",)),
        ({"zip_code": "22010000", "state": "RJ"}, ("ddd_state_mismatch",)),
        ({"zip_code": "22010000", "state": ""}, ("cep_ddd_mismatch",)),
        ({"zip_code": "22010000", "state": "XX"}, ("uf_unknown", "cep_ddd_mismatch")),
        ({"zip_code": "94103", "state": "CA", "country": "US"}, ()),
    ],
)
def test_a_doubtful_address_is_named(change: dict[str, str], warnings: tuple[str, ...]) -> None:
    assert places.warnings_for(MOBILE, {**PAULISTA, **change}) == warnings


@pytest.mark.parametrize(
    ("phone", "warnings"),
    [
        ({"country_code": "55", "area_code": "20", "number": "987654321"}, ("ddd_unknown",)),
        ({"country_code": "1", "area_code": "20", "number": "987654321"}, ()),
        ({"country_code": "55", "area_code": "21", "number": "987654321"}, ("ddd_state_mismatch",)),
        ({"country_code": "1", "number": "4155552671"}, ()),
    ],
)
def test_a_doubtful_phone_is_named(phone: dict[str, str], warnings: tuple[str, ...]) -> None:
    assert places.warnings_for({"mobile_phone": phone}, PAULISTA) == warnings
