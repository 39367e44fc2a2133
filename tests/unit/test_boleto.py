"""Claims about boletos: barcode, line and check digits, by codes that others have
published as valid.
"""

import pytest

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


@pytest.mark.parametrize(("line", "barcode"), PUBLISHED)
def test_the_line_of_a_published_barcode_is_the_published_one(line: str, barcode: str) -> None:
    assert line == boleto.line(barcode)
    assert int(barcode[4]) == boleto.modulo_11(barcode[:4] + barcode[5:])


@pytest.mark.parametrize("digits", ["0", "6"])
def test_a_check_digit_of_ten_or_eleven_is_one(digits: str) -> None:
    assert 1 == boleto.modulo_11(digits)


@pytest.mark.parametrize(
    ("due", "factor"),
    [
        ("2000-07-03T12:00:00Z", "1000"),
        ("2025-02-21T12:00:00Z", "9999"),
        ("2025-02-22T12:00:00Z", "1000"),
        ("2025-02-22T02:59:59Z", "9999"),
        ("2049-10-13T12:00:00Z", "9999"),
        ("2049-10-14T12:00:00Z", "1000"),
    ],
)
def test_the_due_day_is_counted_in_brazil_and_begins_again_at_1000(due: str, factor: str) -> None:
    assert factor == boleto.barcode(1, parse_iso(due), 0)[5:9]
