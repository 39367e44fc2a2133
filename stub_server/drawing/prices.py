"""Prices of plans: a monthly price from the ladder, and longer periods rounded to prices that shops use."""

from __future__ import annotations

import random

from .catalogue import Prices
from .draw import Weighted


def monthly_price(rng: random.Random, prices: Prices, up_to: int) -> int:
    """Cents, at most `up_to`."""
    return Weighted((cents, weight) for cents, weight in prices.monthly if cents <= up_to).draw(rng)


def longer_price(prices: Prices, monthly: int, period: str) -> int:
    """Cents of a `quarterly` or `yearly` plan beside one that costs `monthly` cents."""
    return snap(prices, monthly * prices.multiples[period])


def lifetime_price(rng: random.Random, prices: Prices, monthly: int) -> int:
    """Cents of a one-time plan; never less than a year's worth of months, nor more than two and a half years' worth."""
    floor = monthly * prices.multiples["lifetime"]
    options = [(cents, weight) for cents, weight in prices.lifetime if floor <= cents <= 2.5 * floor]
    return Weighted(options).draw(rng) if options else snap(prices, floor)


def snap(prices: Prices, wanted: float) -> int:
    """The printed price nearest to `wanted` cents; a price of the ladder if one is close enough."""
    ladder = min(prices.ladder, key=lambda cents: abs(cents - wanted))
    if abs(ladder - wanted) <= wanted * prices.ladder_pull:
        return ladder
    ending = next((ending for ending in prices.endings if wanted < ending.below), prices.endings[-1])
    base = int(wanted) // ending.step
    points = [step * ending.step + value for step in (base - 1, base, base + 1) for value in ending.values]
    return min((point for point in points if point > 0), key=lambda cents: (abs(cents - wanted), cents))


def reais(cents: int) -> float:
    """The JSON number of an amount."""
    return cents / 100


def printed(cents: int) -> str:
    """As Brazilians print it: 123456 -> "R$ 1.234,56"."""
    whole = f"{cents // 100:,}".replace(",", ".")
    return f"R$ {whole},{cents % 100:02d}"
