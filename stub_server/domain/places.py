"""Brazilian places: dialling codes and postal regions of states, and warnings for contacts that do not fit them.

Contacts are not refused: ranges change and people move, so a doubtful one is accepted with warnings.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

_DIALLING = {
    "AC": "68", "AL": "82", "AM": "92 97", "AP": "96", "BA": "71 73 74 75 77", "CE": "85 88", "DF": "61",
    "ES": "27 28", "GO": "61 62 64", "MA": "98 99", "MG": "31 32 33 34 35 37 38", "MS": "67", "MT": "65 66",
    "PA": "91 93 94", "PB": "83", "PE": "81 87", "PI": "86 89", "PR": "41 42 43 44 45 46 47", "RJ": "21 22 24",
    "RN": "84", "RO": "69", "RR": "95", "RS": "51 53 54 55", "SC": "42 47 48 49", "SE": "79",
    "SP": "11 12 13 14 15 16 17 18 19", "TO": "63",
}  # fmt: skip

#: State -> its dialling codes (Anatel). PR and SC share 42 and 47 at their border, DF and GO share 61.
DDDS: Mapping[str, frozenset[str]] = {state: frozenset(codes.split()) for state, codes in _DIALLING.items()}

#: Every dialling code that is in use.
KNOWN_DDDS: frozenset[str] = frozenset().union(*DDDS.values())

#: First digit of a CEP -> the states of that postal region (Correios).
_OF_REGIONS = "SP|SP|RJ ES|MG|BA SE|PE AL PB RN|CE PI MA PA AM AC AP RR|DF GO TO MT MS RO|PR SC|RS"
CEP_REGIONS: tuple[frozenset[str], ...] = tuple(frozenset(states.split()) for states in _OF_REGIONS.split("|"))

#: Every warning that warnings_for can give, in the order in which it gives them.
WARNINGS = (
    "ddd_unknown", "cep_malformed", "uf_unknown", "ddd_state_mismatch", "cep_state_mismatch", "cep_ddd_mismatch",
)  # fmt: skip

_BRAZIL = frozenset(("", "br", "bra", "brasil", "brazil"))
_CEP_MARKS = MappingProxyType({ord(mark): None for mark in "-. "})


def warnings_for(phones: Mapping[str, Any] | None, address: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The codes of WARNINGS that apply to a contact. Takes any value and never raises.

    A phone is an object of country_code, area_code and number, or one string such as "+5511987654321". What is absent,
    blank or foreign is not judged; an address without a country counts as Brazilian.
    """
    found: set[str] = set()
    ddds = set(_ddds(phones))
    if ddds - KNOWN_DDDS:
        found.add("ddd_unknown")
    ddds &= KNOWN_DDDS
    place = address if isinstance(address, dict) else {}
    if _text(place.get("country")).casefold() not in _BRAZIL:
        return _in_order(found)

    cep, state = _text(place.get("zip_code")), _text(place.get("state")).upper()
    region = _region(cep)
    if cep and region is None:
        found.add("cep_malformed")
    if state and state not in DDDS:
        found.add("uf_unknown")
    if state in DDDS:
        if ddds - DDDS[state]:
            found.add("ddd_state_mismatch")
        if region and state not in region:
            found.add("cep_state_mismatch")
    elif region and ddds - frozenset().union(*(DDDS[near] for near in region)):
        found.add("cep_ddd_mismatch")
    return _in_order(found)


def _in_order(found: set[str]) -> tuple[str, ...]:
    return tuple(code for code in WARNINGS if code in found)


def _region(cep: str) -> frozenset[str] | None:
    digits = cep.translate(_CEP_MARKS)
    return CEP_REGIONS[int(digits[0])] if len(digits) == 8 and _is_digits(digits) else None


def _ddds(phones: object) -> Iterator[str]:
    if not isinstance(phones, dict):
        return
    for phone in phones.values():
        if isinstance(phone, dict):
            if _digits(_text(phone.get("country_code"))) in ("", "55") and (area := _text(phone.get("area_code"))):
                yield area
        elif ddd := _ddd_of(_text(phone)):
            yield ddd


def _ddd_of(phone: str) -> str:
    """The dialling code of a phone written as one text; empty when it has none, is foreign or ambiguous."""
    digits = _digits(phone)
    if phone.startswith("+") or len(digits) > 11:
        digits = digits[2:] if digits.startswith("55") else ""
    digits = digits.removeprefix("0")
    return digits[:2] if len(digits) in (10, 11) else ""


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _digits(text: str) -> str:
    return text if _is_digits(text) else "".join([character for character in text if "0" <= character <= "9"])


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
