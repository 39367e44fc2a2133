"""Brazilian places: dialling codes and postal regions of states, and warnings for contacts that do not fit them.

Contacts are not refused: ranges change and people move, so a doubtful one is accepted with warnings.
"""

import re
from collections.abc import Mapping
from typing import Any

_DIALLING = {
    "AC": "68", "AL": "82", "AM": "92 97", "AP": "96", "BA": "71 73 74 75 77", "CE": "85 88", "DF": "61",
    "ES": "27 28", "GO": "61 62 64", "MA": "98 99", "MG": "31 32 33 34 35 37 38", "MS": "67", "MT": "65 66",
    "PA": "91 93 94", "PB": "83", "PE": "81 87", "PI": "86 89", "PR": "41 42 43 44 45 46 47", "RJ": "21 22 24",
    "RN": "84", "RO": "69", "RR": "95", "RS": "51 53 54 55", "SC": "42 47 48 49", "SE": "79",
    "SP": "11 12 13 14 15 16 17 18 19", "TO": "63",
}  # fmt: skip

# State -> its dialling codes (Anatel). PR and SC share 42 and 47 at their border, DF and GO share 61.
DDDS: Mapping[str, frozenset[str]] = {state: frozenset(codes.split()) for state, codes in _DIALLING.items()}

# Every dialling code that is in use.
KNOWN_DDDS: frozenset[str] = frozenset().union(*DDDS.values())

# First digit of a CEP -> the states of that postal region (Correios).
_OF_REGIONS = "SP|SP|RJ ES|MG|BA SE|PE AL PB RN|CE PI MA PA AM AC AP RR|DF GO TO MT MS RO|PR SC|RS"
CEP_REGIONS: tuple[frozenset[str], ...] = tuple(frozenset(states.split()) for states in _OF_REGIONS.split("|"))

_BRAZIL = frozenset(("", "br", "bra", "brasil", "brazil"))
_CEP = re.compile(r"(?:[-. ]*[0-9]){8}[-. ]*").fullmatch


def warnings_for(phones: Mapping[str, Any], address: Mapping[str, str]) -> tuple[str, ...]:
    """The codes of what does not fit in a contact.

    A phone is an object of country_code, area_code and number, or one string such as "+5511987654321". What is absent,
    blank or foreign is not judged; an address without a country counts as Brazilian.
    """
    found = []
    ddds = {ddd for phone in phones.values() if (ddd := _ddd_of(phone))}
    if ddds - KNOWN_DDDS:
        found.append("ddd_unknown")
    ddds &= KNOWN_DDDS
    if (address.get("country") or "").strip().casefold() in _BRAZIL:
        cep, state = (address.get("zip_code") or "").strip(), (address.get("state") or "").strip().upper()
        region = CEP_REGIONS[int(cep.lstrip("-. ")[0])] if _CEP(cep) else None
        if cep and region is None:
            found.append("cep_malformed")
        if state and state not in DDDS:
            found.append("uf_unknown")
        if state in DDDS:
            if ddds - DDDS[state]:
                found.append("ddd_state_mismatch")
            if region and state not in region:
                found.append("cep_state_mismatch")
        elif region and ddds - frozenset().union(*(DDDS[near] for near in region)):
            found.append("cep_ddd_mismatch")
    return tuple(found)


def _ddd_of(phone: Mapping[str, str] | str) -> str:
    """The dialling code of a phone; empty when it has none, is foreign or ambiguous."""
    if not isinstance(phone, str):
        country = _NO_DIGIT.sub("", phone.get("country_code") or "")
        return (phone.get("area_code") or "").strip() if country in ("", "55") else ""
    digits = _NO_DIGIT.sub("", phone)
    if phone.strip().startswith("+") or len(digits) > 11:
        digits = digits[2:] if digits.startswith("55") else ""
    digits = digits.removeprefix("0")
    return digits[:2] if len(digits) in (10, 11) else ""


_NO_DIGIT = re.compile("[^0-9]")
