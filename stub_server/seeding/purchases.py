"""One order of the seeded past: placed, and then paid, refunded, or not paid, by the same rules as live ones."""

from __future__ import annotations

from random import Random
from typing import Any

from ..domain import orders, payments
from ..domain.payments import Payer
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.money import cents
from ..kernel.record import Body
from .draw import Weighted, pick
from .market import Market, Offer
from .rhythm import bank_morning, card_delay_ms, is_night, moment, office_hour, pay_delay_ms, refund_delay_ms
from .streams import base36, base62, uuid

BUMP, COUPON = 0.12, 0.03
DISCOUNTS = (10, 10, 15, 20)
COUPONS = ("BEMVINDO", "AMIGO", "SEMANA")
PARTS = (20, 30, 30, 50)  # percent of a payment that is given back in part
FAILURES = Weighted(
    (
        ("insufficient_funds", 50),
        ("payer_limit_exceeded", 20),
        ("payer_bank_unavailable", 15),
        ("rejected_by_payer", 10),
        ("payer_account_blocked", 5),
    )
)


class Order:
    """An order under way: its parts now, and what it has been."""

    __slots__ = ("at", "hidden", "id", "market", "public")

    def __init__(self, market: Market, public: Body, hidden: Body, at: int) -> None:
        """`at` is when it is placed, in ms."""
        self.market, self.public, self.hidden, self.id, self.at = market, public, hidden, public["id"], at
        if at >= market.since:
            self._tell("order.created", at, None)

    def _tell(self, type_: str, at: int, previous: str | None) -> None:
        beside = orders.beside(previous)
        self.market.tell(at, type_, "orders", self.public, self.hidden, beside, self.hidden["projectId"])

    def pay(self, rng: Random, at: int, subscription: str | None = None) -> None:
        """Paid; the first payment of a recurring plan names the subscription that it opens."""
        customer = self.public["customer"]
        ispb, bank = self.market.bank_of(customer["document"])
        payer = Payer(customer["name"], customer["document"], ispb, bank)
        self.public, self.hidden = payments.paid(self.public, self.hidden, payer, base62(rng), at, at)
        if subscription is not None:
            self.hidden["subscriptionId"] = subscription
        if at >= self.market.since:
            self._tell("order.paid", at, "pending")

    def refund(self, rng: Random, at: int, amount: int | None = None) -> None:
        """Given back, in full or in part (cents)."""
        self.public, self.hidden, full = payments.refunded(
            self.public, self.hidden, amount, uuid(rng), at, self.market.orders
        )
        self._tell("order.refunded" if full else "order.partially_refunded", at, "paid")

    def close(self, status: str, at: int, failure: str | None = None) -> None:
        """Never paid: expired, canceled or failed."""
        seen = orders.failure(failure) if failure else {"status": status, "success": "false"}
        self.public = orders.closed(self.public, status, iso(at), seen)
        self._tell("order.payment_failed" if failure else f"order.{status}", at, "pending")

    def wait(self) -> None:
        """Still pending: the clock will end it."""
        self.market.later(orders.expires_at(self.public), "order.expire", self.id)


def place(
    market: Market,
    rng: Random,
    body: Body,
    buyer: Body,
    customer_id: str,
    at: int,
    *,
    method: str = "pix",
    life: int | None = None,
    subscription: str | None = None,
    ident: str | None = None,
) -> Order:
    """A new order at an instant."""
    drawn, code, transaction = uuid(rng), base36(rng), uuid(rng)
    names = (ident or drawn, code, transaction)
    public, hidden = orders.new_order(
        names,
        body,
        buyer,
        customer_id,
        method,
        market.seller,
        at,
        at + (life or orders.LIFE[method]),
        subscription_id=subscription,
    )
    return Order(market, public, hidden, at)


def cart(rng: Random, offer: Offer) -> Body:
    """What a first purchase asks for: the plan, sometimes with an extra, sometimes with a coupon."""
    plan, project = offer.plan, offer.project
    price = cents(plan["amount"])
    metadata: dict[str, Any] = {"utm_source": pick(rng, offer.sources)} if offer.sources else {}
    extras: list[Body] = []
    luck = rng.random()
    if luck < BUMP and offer.bumps:
        title, amount = pick(rng, offer.bumps)
        extras.append({"description": title, "quantity": 1, "amount": amount})
    elif luck > 1 - COUPON * 2 and plan["interval"] in (None, "year"):  # it is for the first payment alone
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


def settle(rng: Random, order: Order, outcome: str, at: int, stopped: int | None) -> int | None:
    """Bring a first order to its outcome as far as time allows; answers when it was paid, if it was.

    `stopped` is when its project was archived, which cancels what is pending. The payment itself is left to the
    caller, who knows what it opens.
    """
    now = order.market.now
    method = order.public["paymentMethod"]
    if method == "boleto":
        delay = bank_morning(rng, at + DAY + int(rng.random() * DAY)) - at
    else:
        delay = card_delay_ms(rng) if method == "credit_card" else pay_delay_ms(rng)
    if outcome == "expired":
        happens = orders.expires_at(order.public)
    elif outcome == "canceled":
        happens = moment(rng, at + 8 * HOUR, 8 * HOUR - 5 * MINUTE)
    else:
        happens = at + delay
    if stopped is not None and at <= stopped < happens and stopped <= now:
        order.close("canceled", stopped)
        return None
    if happens > now or outcome == "pending":
        order.wait()
        return None
    if outcome in ("expired", "canceled"):
        order.close(outcome, happens)
    elif outcome == "failed":
        order.close("failed", happens, "card_declined" if method == "credit_card" else _refusal(rng, happens))
    else:
        return happens
    return None


def _refusal(rng: Random, at: int) -> str:
    """Why a PIX payment is refused; the Central Bank's lower limits are those of the night."""
    code = FAILURES.draw(rng)
    return "insufficient_funds" if code == "payer_limit_exceeded" and not is_night(at) else code


def give_back(rng: Random, order: Order, paid_at: int, before: int | None, *, part: bool = False) -> int | None:
    """A refund one to seven days after the payment and before an instant; answers when, if it has happened yet."""
    regretted = paid_at + refund_delay_ms(rng)
    at = office_hour(rng, regretted)
    if not DAY <= at - paid_at <= 7 * DAY:
        at = regretted
    if before is not None and at >= before:
        at = paid_at + (before - paid_at) // 2
    if at > order.market.now:
        return None
    order.refund(rng, at, max(1, order.hidden["paid_cents"] * pick(rng, PARTS) // 100) if part else None)
    return at
