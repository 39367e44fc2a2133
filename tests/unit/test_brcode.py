"""Claims about the BR Code and the end-to-end id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_server.domain import brcode

TXID = "9d36b84fc70b478fb95c12729b90ca25"
GOLDEN = (
    "00020101021226800014br.gov.bcb.pix2558pix.sandbox.example/qr/v2/9d36b84fc70b478fb95c12729b90ca25520400005303986540549.905802BR5921ACADEMIA"
    " VIVA SANDBOX6009SAO PAULO62070503***63048DB9"
)
AMOUNTS = st.integers(1, 10**12 - 1)
TXIDS = st.from_regex(r"[0-9A-Za-z]{26,35}", fullmatch=True)


def golden() -> str:
    return brcode.encode(4990, TXID, "Academia Viva", "São Paulo")


def test_the_golden_code_is_written_to_the_letter() -> None:
    assert golden() == GOLDEN


@pytest.mark.check
@given(AMOUNTS, TXIDS, st.text(), st.text())
def test_what_is_written_is_read_back(amount: int, txid: str, name: str, city: str) -> None:
    code = brcode.encode(amount, txid, name, city)
    assert brcode.amount_of(code) == amount
    receiver = brcode.merchant_name(name)
    town = brcode.capitals(city, 15) or "BRASIL"
    assert f"59{len(receiver):02}{receiver}60{len(town):02}{town}62070503***6304" in code
    assert code.isascii()
    assert brcode.encode(amount, txid, receiver, town) == code


@pytest.mark.parametrize(
    ("text", "limit", "folded"),
    [
        ("São Paulo", 15, "SAO PAULO"),
        ("Straße", 15, "STRASSE"),
        (" a\tb \n c\x00d ", 15, "A B C D"),
        ("São José dos Campos", 15, "SAO JOSE DOS CA"),
        ("São José dos Reis", 13, "SAO JOSE DOS"),
        ("日本", 15, ""),
    ],
)
def test_folding_gives_ascii_capitals(text: str, limit: int, folded: str) -> None:
    assert brcode.capitals(text, limit) == folded


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Academia Viva", "ACADEMIA VIVA SANDBOX"),
        ("Academia Viva Sandbox", "ACADEMIA VIVA SANDBOX"),
        ("Escola de Música do Recife", "ESCOLA DE MUSICA SANDBOX"),
        ("", "SANDBOX"),
        ("Sandbox", "SANDBOX"),
        ("日本", "SANDBOX"),
    ],
)
def test_the_receiver_always_ends_in_sandbox(text: str, name: str) -> None:
    assert brcode.merchant_name(text) == name


def test_an_end_to_end_id_names_bank_and_utc_minute() -> None:
    assert (
        brcode.end_to_end_id("60701190", "2026-11-20T14:32:59.999Z", "a8Kq3ZtR0wB")
        == "E60701190202611201432a8Kq3ZtR0wB"
    )
