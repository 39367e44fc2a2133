"""Claims about CPF, CNPJ and passport."""

import pytest

from stub_server.domain import documents
from stub_server.domain.cpf import cpf_with_check_digits


@pytest.mark.parametrize(
    ("stem", "digits"),
    [("529982247", "25"), ("111444777", "35"), ("347126958", "46"), ("218447306", "54")],
)
def test_cpf_check_digits_follow_the_golden_vectors(stem: str, digits: str) -> None:
    assert cpf_with_check_digits(stem) == stem + digits
    assert documents.kind(stem + digits) == "cpf"


@pytest.mark.parametrize(
    ("stem", "digits"),
    [
        ("112223330001", "81"),
        ("482915370001", "84"),
        ("12ABC34501DE", "35"),
        ("7K2MB8X40001", "90"),
    ],
)
def test_cnpj_check_digits_follow_the_golden_vectors(stem: str, digits: str) -> None:
    assert documents.cnpj_with_check_digits(stem) == stem + digits
    assert documents.kind(stem + digits) == "cnpj"


@pytest.mark.parametrize("digit", "0123456789")
def test_equal_digits_are_no_document_although_they_pass_modulo_eleven(digit: str) -> None:
    assert documents.kind(digit * 11) is None
    assert documents.kind(digit * 14) is None
    with pytest.raises(ValueError, match="No valid CPF"):
        cpf_with_check_digits(digit * 9)


@pytest.mark.parametrize(
    ("masked", "plain"),
    [
        ("529.982.247-25", "52998224725"),
        ("11.222.333/0001-81", "11222333000181"),
        ("12.abc.345/01de-35", "12ABC34501DE35"),
        ("fx-123456", "FX123456"),
    ],
)
def test_a_mask_is_stripped_and_letters_become_capitals(masked: str, plain: str) -> None:
    assert documents.normalise(masked) == plain
    assert documents.is_document(masked) is True


@pytest.mark.parametrize(
    "text",
    [
        "\u0131abcd",
        "\u017fabcd",
        "\u0665\u0662\u0669\u0669\u0668\u0662\u0662\u0664\u0667\u0662\u0665",
        "529\u2010982\u2010247\u201025",
        "52998224725\n",
    ],
)
def test_letters_digits_and_dashes_outside_ascii_are_never_taken_for_ascii(text: str) -> None:
    assert documents.is_document(text) is False
    assert documents.is_document_unchecked(text) is False


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ABCD", None),
        ("ABCDE", "passport"),
        ("1234567890", None),
        ("12345678901", None),
        ("12ABC34501DE36", None),
        ("A" * 9, "passport"),
        ("A" * 10, None),
        ("", None),
    ],
)
def test_the_unmasked_form_alone_decides_what_a_document_is(text: str, kind: str | None) -> None:
    assert documents.kind(text) == kind
