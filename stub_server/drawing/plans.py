"""The plans of a seeded project: two to four ways to pay for one membership."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from .catalogue import Niche, Prices
from .draw import Weighted, sample
from .prices import lifetime_price, longer_price, monthly_price, printed, reais

MENUS = (
    (("Mensal", "Anual"), 40),
    (("Mensal", "Trimestral", "Anual"), 30),
    (("Mensal", "Anual", "Vitalício"), 15),
    (("Mensal", "Trimestral", "Anual", "Vitalício"), 15),
)
#: Plan name -> interval, interval_count, period of the price table.
PERIODS: dict[str, tuple[str | None, int | None, str]] = {
    "Mensal": ("month", 1, "monthly"),
    "Trimestral": ("month", 3, "quarterly"),
    "Anual": ("year", 1, "yearly"),
    "Vitalício": (None, None, "lifetime"),
}
METHODS = ("pix", "credit_card", "boleto")


@dataclass(frozen=True, slots=True)
class Plan:
    """`fields` are a PlanCreate without projectId."""

    name: str
    fields: dict[str, Any]


def plans(rng: random.Random, prices: Prices, niche: Niche, *, has_trial: bool = False) -> tuple[Plan, ...]:
    """The plans of one project, cheapest first; the monthly one may have a trial, or `has_trial` for sure."""
    monthly = monthly_price(rng, prices, niche.monthly_up_to)
    menu = Weighted(MENUS).draw(rng)
    features = sample(rng, niche.features, 5)
    has_trial |= rng.random() < prices.trial_share
    trial_days = Weighted(prices.trials).draw(rng) if has_trial else 0
    made = []
    for name in menu:
        interval, interval_count, period = PERIODS[name]
        trial = trial_days if period == "monthly" else 0
        if period == "monthly":
            cents = monthly
        elif period == "lifetime":
            cents = lifetime_price(rng, prices, monthly)
        else:
            cents = longer_price(prices, monthly, period)
        bullets = features[:3] if period == "monthly" else list(features)
        if period == "lifetime":
            bullets.append("Acesso vitalício")
        made.append(
            Plan(
                name,
                {
                    "name": name,
                    "description": _description(period, cents, trial),
                    "amount": reais(cents),
                    "currency": "BRL",
                    "billing_type": "recurring" if interval else "one_time",
                    "interval": interval,
                    "interval_count": interval_count,
                    "trial_period_days": trial,
                    "payment_methods": list(METHODS),
                    "features": bullets,
                    "status": "active",
                    "visibility": "public",
                    "metadata": {},
                },
            )
        )
    return tuple(made)


def _description(period: str, cents: int, trial: int) -> str:
    if period == "monthly":
        more = f" {trial} dias a mais no primeiro mês." if trial else ""
        return f"Acesso completo, renovado todo mês.{more} Cancele quando quiser."
    if period == "quarterly":
        return f"Três meses de acesso. Sai por {printed(round(cents / 3))} por mês."
    if period == "yearly":
        return f"Um ano de acesso. Sai por {printed(round(cents / 12))} por mês."
    return "Pagamento único, com acesso vitalício a todo o conteúdo."
