"""Claims about boletos: barcode, line and check digits, by codes that others have
published as valid.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_server.core.clock import parse_iso
from stub_server.domain import boleto

PUBLISHED = [
    (
        "23793381286000782713695000063305975520000370000",
        "23799755200003700003381260007827139500006330",
    ),
    (
        "00190000090114971860168524522114675860000102656",
        "00196758600001026560000001149718606852452211",
    ),
]
CENTS, DUE, NUMBERS = st.integers(0, 10**10 - 1), st.integers(0, 10**13), st.integers(0, 2**128)


@pytest.mark.parametrize(("line", "barcode"), PUBLISHED)
def test_the_line_of_a_published_barcode_is_the_published_one(line: str, barcode: str) -> None:
    assert line == boleto.line(barcode)
    assert int(barcode[4]) == boleto.modulo_11(barcode[:4] + barcode[5:])


@pytest.mark.parametrize(
    ("due", "factor"),
    [
        ("2000-07-03T12:00:00Z", "1000"),
        ("2018-07-15T12:00:00Z", "7586"),
        ("2025-02-21T12:00:00Z", "9999"),
        ("2025-02-22T12:00:00Z", "1000"),
        ("2025-02-22T02:59:59Z", "9999"),
        ("2026-11-23T12:00:00Z", "1639"),
        ("2049-10-13T12:00:00Z", "9999"),
        ("2049-10-14T12:00:00Z", "1000"),
    ],
)
def test_the_due_day_is_counted_in_brazil_and_begins_again_at_1000(due: str, factor: str) -> None:
    assert factor == boleto.barcode(1, parse_iso(due), 0)[5:9]


@given(CENTS, DUE, NUMBERS)
def test_every_code_says_its_amount_and_a_bank_that_does_not_exist(
    cents: int, due: int, number: int
) -> None:
    """Line and barcode hold the same digits, and every check digit of both is right."""
    barcode = boleto.barcode(cents, due, number)
    line = boleto.line(barcode)
    assert re.fullmatch("[0-9]{44}", barcode)
    assert re.fullmatch("[0-9]{47}", line)
    assert ("999", "9", cents) == (barcode[:3], barcode[3], int(barcode[9:19]))
    assert number % 10**25 == int(barcode[19:])
    assert barcode == line[:4] + line[32:] + line[4:9] + line[10:20] + line[21:31]
    assert [line[9], line[20], line[31]] == [luhn(line[:9]), luhn(line[10:20]), luhn(line[21:31])]
    assert barcode[4] == weighed(barcode[:4] + barcode[5:])


def luhn(digits: str) -> str:
    """The digit of modulo 10, reckoned another way: what is missing to the next ten
    of Luhn's sum.
    """
    total = 0
    for place, digit in enumerate(digits[::-1]):
        total += sum(map(int, str(int(digit) * (2 - place % 2))))
    return str((10 - total % 10) % 10)


def weighed(digits: str) -> str:
    """The digit of modulo 11, reckoned another way."""
    weights = ([2, 3, 4, 5, 6, 7, 8, 9] * 6)[: len(digits)][::-1]
    rest = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return "1" if rest in (0, 1, 10) else str(11 - rest)
