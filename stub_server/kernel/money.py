"""Money: reais with two decimals outside, whole cents inside, never a sum of floats."""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

_CENT = Decimal("0.01")


def cents(amount: float) -> int:
    """A JSON number of reais -> cents, half a cent to the even side."""
    return int((Decimal(repr(amount)) * 100).to_integral_value(ROUND_HALF_EVEN))


def reais(amount: int) -> float:
    """Cents -> the JSON number."""
    return amount / 100


def text(amount: int) -> str:
    """Cents -> `49.90`."""
    return f"{amount // 100}.{amount % 100:02d}"


def items_cents(items: Iterable[dict[str, Any]]) -> int:
    """What order items add up to: each amount x quantity, rounded half even to the cent."""
    total = Decimal(0)
    for item in items:
        line = Decimal(repr(item["amount"]))
        if item["quantity"] != 1:
            line *= Decimal(repr(item["quantity"]))
        total += line.quantize(_CENT, ROUND_HALF_EVEN) if abs(line) < 10**20 else line
    return int(total * 100)
