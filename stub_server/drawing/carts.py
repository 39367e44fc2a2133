"""Draws what a first order is for."""

from __future__ import annotations

from random import Random
from typing import Any

from ..kernel.money import cents
from ..kernel.record import Body
from .draw import pick
from .market import Offer

BUMP, COUPON = 0.12, 0.03
DISCOUNTS = (10, 10, 15, 20)
COUPONS = ("BEMVINDO", "AMIGO", "SEMANA")


def cart(rng: Random, offer: Offer) -> Body:
    """The plan, total and items of a first order: sometimes with an extra item, sometimes with a coupon."""
    plan, project = offer.plan, offer.project
    price = cents(plan["amount"])
    metadata: dict[str, Any] = {"utm_source": pick(rng, offer.sources)} if offer.sources else {}
    extras: list[Body] = []
    luck = rng.random()
    if luck < BUMP and offer.bumps:
        title, amount = pick(rng, offer.bumps)
        extras.append({"description": title, "quantity": 1, "amount": amount})
    elif luck > 1 - COUPON * 2 and plan["interval"] in (None, "year"):  # the discount is for the first payment only
        percent = pick(rng, DISCOUNTS)
        price -= price * percent // 100
        metadata["coupon"] = f"{pick(rng, COUPONS)}{percent}"
    items = [{"description": f"{project['name']}: {plan['name']}", "quantity": 1, "amount": price / 100}, *extras]
    return {
        "projectId": project["id"],
        "planId": plan["id"],
        "totalAmount": (price + sum([cents(extra["amount"]) for extra in extras])) / 100,
        "items": items,
        "metadata": metadata,
    }
