"""Brazilian places: dialling codes and postal regions of states, and warnings for contacts that do
not fit them.

Contacts are not refused: ranges change and people move, so a doubtful one is accepted with
warnings.
"""

import re
from collections.abc import Iterator, Mapping

_DIALLING = {
    "AC": "68",
    "AL": "82",
    "AM": "92 97",
    "AP": "96",
    "BA": "71 73 74 75 77",
    "CE": "85 88",
    "DF": "61",
    "ES": "27 28",
    "GO": "61 62 64",
    "MA": "98 99",
    "MG": "31 32 33 34 35 37 38",
    "MS": "67",
    "MT": "65 66",
    "PA": "91 93 94",
    "PB": "83",
    "PE": "81 87",
    "PI": "86 89",
    "PR": "41 42 43 44 45 46 47",
    "RJ": "21 22 24",
    "RN": "84",
    "RO": "69",
    "RR": "95",
    "RS": "51 53 54 55",
    "SC": "42 47 48 49",
    "SE": "79",
    "SP": "11 12 13 14 15 16 17 18 19",
    "TO": "63",
}

# State -> its dialling codes (Anatel). PR and SC share 42 and 47 at their border, DF and GO share
# 61.
DDDS: Mapping[str, frozenset[str]] = {
    state: frozenset(codes.split()) for state, codes in _DIALLING.items()
}

# Every dialling code that is in use.
KNOWN_DDDS: frozenset[str] = frozenset().union(*DDDS.values())

# First digit of a CEP -> the states of that postal region (Correios).
_OF_REGIONS = "SP|SP|RJ ES|MG|BA SE|PE AL PB RN|CE PI MA PA AM AC AP RR|DF GO TO MT MS RO|PR SC|RS"
CEP_REGIONS: tuple[frozenset[str], ...] = tuple(
    frozenset(states.split()) for states in _OF_REGIONS.split("|")
)

_CEP = re.compile(r"(?:[-. ]*[0-9]){8}[-. ]*").fullmatch


def warnings_for(
    phones: Mapping[str, Mapping[str, str]], address: Mapping[str, str]
) -> tuple[str, ...]:
    """The codes of what does not fit in a customer's telephones and address.

    What is absent, blank or foreign is not judged; an address without a country counts as
    Brazilian.
    """
    brazilian = [phone for phone in phones.values() if phone.get("country_code") in (None, "55")]
    ddds = {phone["area_code"] for phone in brazilian if "area_code" in phone}
    found = []
    if ddds - KNOWN_DDDS:
        found.append("ddd_unknown")
    if (address.get("country") or "BR") == "BR":
        found += _of_address(address, ddds & KNOWN_DDDS)
    return tuple(found)


def _of_address(address: Mapping[str, str], ddds: set[str]) -> Iterator[str]:
    """The codes of what does not fit in a Brazilian address, and with known dialling codes."""
    cep = (address.get("zip_code") or "").strip()
    state = (address.get("state") or "").strip().upper()
    region = frozenset[str]()
    if _CEP(cep):
        region = CEP_REGIONS[int(cep.lstrip("-. ")[0])]
    elif cep:
        yield "cep_malformed"
    if state in DDDS:
        if ddds - DDDS[state]:
            yield "ddd_state_mismatch"
        if region and state not in region:
            yield "cep_state_mismatch"
        return
    if state:
        yield "uf_unknown"
    if region and ddds.difference(*map(DDDS.__getitem__, region)):
        yield "cep_ddd_mismatch"
