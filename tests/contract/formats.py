"""Strings of the contract's own formats, as strategies."""

from hypothesis import strategies as st

from stub_server.domain.documents import cnpj_with_check_digits, cpf_with_check_digits

_DIGITS = "0123456789"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def documents() -> st.SearchStrategy[str]:
    """The format `document`: CPF with and without punctuation, CNPJ with digits and with letters, passport."""
    stems = st.text(_DIGITS, min_size=9, max_size=9).filter(lambda stem: len(set(stem)) > 1)
    cpfs = stems.map(cpf_with_check_digits)
    masked = cpfs.map(lambda cpf: f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}")
    roots = st.text(_DIGITS + _LETTERS, min_size=8, max_size=8)
    cnpjs = roots.map(lambda root: cnpj_with_check_digits(root + "0001"))
    passports = st.text(_DIGITS + _LETTERS, min_size=5, max_size=20).filter(_is_no_tax_number)
    return st.one_of(cpfs, masked, cnpjs, passports)


def _is_no_tax_number(text: str) -> bool:
    return len(text) != 14 and not (len(text) == 11 and text.isdigit())


def networks() -> st.SearchStrategy[str]:
    """The format `ip-network`: addresses and networks of both families, host bits included."""
    v4, v6 = st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)
    v4_networks = st.builds("{}/{}".format, v4, st.integers(0, 32))
    v6_networks = st.builds("{}/{}".format, v6, st.integers(0, 128))
    return st.one_of(v4, v6, v4_networks, v6_networks)
