"""Money: converts between reais (JSON numbers, text) and whole cents. Sums are made in cents, never in floats."""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any

_CENT = Decimal("0.01")
_EXACT, _REAIS = 10**15, 10**13  # below this, floats of any two amounts in whole cents differ


@lru_cache(maxsize=4096)  # few different prices occur in a shop
def cents(amount: float) -> int:
    """A JSON number of reais -> cents; half a cent is rounded to even."""
    near = round(amount * 100)
    if near / 100 == amount and -_EXACT < near < _EXACT:  # at most two decimals: nothing to round
        return near
    return int((Decimal(repr(amount)) * 100).to_integral_value(ROUND_HALF_EVEN))


def reais(amount: int) -> float:
    """Cents -> the JSON number."""
    return amount / 100


@lru_cache(maxsize=4096)
def text(amount: int) -> str:
    """Cents -> `49.90`."""
    return f"{amount // 100}.{amount % 100:02d}"


def items_cents(items: Iterable[dict[str, Any]]) -> int:
    """The total of order items in cents: each amount x quantity, rounded half to even."""
    whole, fractions = 0, None
    for item in items:
        amount, quantity = item["amount"], item["quantity"]
        near = round(amount * 100) if abs(amount) < _REAIS else 0
        if near / 100 == amount and type(quantity) is int:
            whole += near * quantity
            continue
        line = Decimal(repr(amount))
        if quantity != 1:
            line *= Decimal(repr(quantity))
        line = line.quantize(_CENT, ROUND_HALF_EVEN) if abs(line) < 10**20 else line
        fractions = line if fractions is None else fractions + line
    return whole if fractions is None else whole + int(fractions * 100)
