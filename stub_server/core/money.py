"""Money: converts between reais (JSON numbers, text) and whole cents.

Sums are made in cents, never in floats.
"""

from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache


@lru_cache(maxsize=4096)  # few different prices occur in a shop
def cents(amount: float) -> int:
    """A JSON number of reais -> cents; half a cent is rounded to even."""
    return int((Decimal(repr(amount)) * 100).to_integral_value(ROUND_HALF_EVEN))


def reais(amount: int) -> float:
    """Cents -> the JSON number."""
    return amount / 100


@lru_cache(maxsize=4096)
def text(amount: int) -> str:
    """Cents -> `49.90`."""
    return f"{amount // 100}.{amount % 100:02d}"
