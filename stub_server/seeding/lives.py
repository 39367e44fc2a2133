"""The life of one purchase up to now: its first order and, when that opens a subscription, every renewal since.

A life follows the jobs of the clock step by step: the renewal order a lead before the period's end, past due at the
end, over when the grace has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from ..domain import subscriptions
from ..domain.calendar import add_interval, grace_ms, lead_ms
from ..kernel.clock import HOUR, MINUTE
from ..kernel.record import Body, moved_from
from .draw import Weighted
from .market import Market, Offer
from .purchases import Order, cart, give_back, place, settle
from .rhythm import bank_morning, moment
from .streams import base36, uuid

#: How a period is followed by the next: paid in time, paid late, not paid any more, or not wanted any more.
RENEWALS = Weighted((("paid", 88.5), ("late", 5.5), ("lapse", 3.5), ("cancel", 2.5)))


class Fate(NamedTuple):
    """What is to happen. `outcome` ends the first order (`partly` is a refund in part); `renewals` are taken in turn,
    the last one for ever; without them luck decides.
    """

    outcome: str
    renewals: Sequence[str] = ()

    def renewal(self, rng: Random, cycle: int) -> str:
        """How the period after this one is paid."""
        if not self.renewals:
            return RENEWALS.draw(rng)
        return self.renewals[min(cycle, len(self.renewals) - 1)]


class Life(NamedTuple):
    """What a purchase has left: its orders, and perhaps a subscription: its public and hidden part, and since when."""

    orders: list[Order]
    subscription: tuple[Body, Body, int] | None


def live(
    market: Market,
    rng: Random,
    offer: Offer,
    customer: Body,
    buyer: Body,
    at: int,
    fate: Fate,
    *,
    method: str = "pix",
    trial: bool = True,
    body: Body | None = None,
    ident: str | None = None,
) -> Life:
    """A purchase at an instant and all that came of it. `customer` is the record, `buyer` the order's copy."""
    order = place(market, rng, body or cart(rng, offer), buyer, customer["id"], at, method=method, ident=ident)
    closed = offer.stopped if offer.archived else None
    paid_at = settle(rng, order, fate.outcome, at, closed)
    if paid_at is None:
        return Life([order], None)
    refunds = fate.outcome in ("refunded", "partly")
    if offer.plan["billing_type"] != "recurring":
        order.pay(rng, paid_at)
        if refunds:
            give_back(rng, order, paid_at, None, part=fate.outcome == "partly")
        return Life([order], None)
    member = _Member(market, rng, offer, order, customer, paid_at, trial)
    before = member.end() - lead_ms(member.interval, member.count)
    back = give_back(rng, order, paid_at, before, part=fate.outcome == "partly") if refunds else None
    if back is not None and fate.outcome == "refunded":
        if member.anchor <= back:
            member.activate()
        member.finish("canceled", back)
    else:
        member.go_on(fate)
    return Life(member.orders, (member.public, member.hidden, paid_at))


class _Member:
    """A subscription under way."""

    def __init__(
        self, market: Market, rng: Random, offer: Offer, order: Order, customer: Body, paid_at: int, trial: bool
    ) -> None:
        self.market, self.rng, self.offer = market, rng, offer
        self.id = uuid(rng)
        self.interval, self.count = offer.plan["interval"], offer.plan["interval_count"]
        order.pay(rng, paid_at, self.id)
        self.orders = [order]
        self.paid_at = paid_at
        self.public, self.hidden = subscriptions.opened(
            ident=self.id,
            code=base36(rng),
            defaults=market.blank,
            plan=offer.plan,
            order=order.public,
            order_hidden=order.hidden,
            customer=customer,
            now=paid_at,
            trial=trial and offer.plan["trial_period_days"] > 0,
        )
        self.anchor: int = self.hidden["anchor"]
        self._tell("subscription.created", paid_at, None)
        if self.public["status"] == "active":
            self._tell("subscription.activated", paid_at, None)

    def _tell(self, name: str, at: int, previous: str | None) -> None:
        if at >= self.market.since:
            project = self.public["projectId"]
            self.market.tell(at, name, "subscriptions", self.public, self.hidden, moved_from(previous), project)

    def end(self) -> int:
        """When the last paid period ends."""
        return add_interval(self.anchor, self.interval, self.count, self.hidden["periods"])

    def activate(self) -> None:
        """The trial is over."""
        if self.public["status"] == "trialing":
            self.public = subscriptions.activated(self.public, self.hidden, self.anchor)
            self._tell("subscription.activated", self.anchor, "trialing")

    def finish(self, status: str, at: int) -> None:
        """Over: canceled or expired."""
        before = self.public["status"]
        self.public = subscriptions.ended(self.public, status, at)
        self.hidden = self.hidden | {"renewal_order": None}
        self._tell(f"subscription.{status}", at, before)

    def go_on(self, fate: Fate) -> None:
        """Period after period until it is over or now is reached."""
        if self.anchor > self.market.now:
            self.market.later(self.anchor, "subscription.activate", self.id)
            return
        self.activate()
        cycle = 0
        while self._period(fate.renewal(self.rng, cycle)):
            cycle += 1

    def _period(self, renewal: str) -> bool:
        """The end of one period and what follows; whether the next one has begun."""
        market, now, stopped = self.market, self.market.now, self.offer.stopped
        end = self.end()
        # Who paid late is asked again at once.
        due = max(subscriptions.renewal_at(self.public, self.hidden), self.paid_at)
        if renewal == "cancel":
            start = max(self.anchor, due - (end - due) * 9)
            wanted = moment(self.rng, start + int((due - start) * self.rng.random()), 6 * HOUR)
            wanted = min(max(wanted, start), due)
            if wanted <= now and not (stopped is not None and wanted >= stopped):
                return self._leave(wanted, end)
            renewal = "paid"
        if stopped is not None and stopped <= due:
            return self._stop(stopped, end)
        if due > now:
            market.later(due, "subscription.renew", self.id)
            market.later(end, "subscription.end", self.id)
            return False
        return self._renew(renewal, due, end)

    def _leave(self, at: int, end: int) -> bool:
        """Nobody wants another period: this one is the last."""
        self.public = subscriptions.ending(self.public, at)
        self._close_at(end, "canceled")
        return False

    def _stop(self, stopped: int, end: int) -> bool:
        """The project sells no more: an archived one lets its members go, a suspended one renews nobody."""
        if self.offer.archived:
            return self._leave(stopped, end)
        now = self.market.now
        if end > now:
            self.market.later(end, "subscription.end", self.id)
            return False
        self._past_due(end)
        self._close_at(end + grace_ms(self.interval, self.count), "expired")
        return False

    def _close_at(self, at: int, status: str) -> None:
        """Over at an instant, or when the clock comes to it."""
        if at <= self.market.now:
            self.finish(status, at)
        else:
            self.market.later(at, "subscription.end" if status == "canceled" else "subscription.expire", self.id)

    def _past_due(self, end: int) -> None:
        self.public = subscriptions.past_due(self.public, end)
        self._tell("subscription.past_due", end, "active")

    def _renew(self, renewal: str, due: int, end: int) -> bool:
        """The renewal order is made and, in time, late or never, paid."""
        rng, now = self.rng, self.market.now
        grace = end + grace_ms(self.interval, self.count)
        order = self._renewal_order(due, grace)
        by_card = order.public["paymentMethod"] == "credit_card"
        if renewal == "late" and not by_card:
            pays = end + HOUR + int((grace - end - 2 * HOUR) * rng.random())
        elif by_card:  # charged without anybody's doing
            pays = due
        elif order.public["paymentMethod"] == "boleto":
            pays = due + int((end - due) * (0.2 + 0.5 * rng.random()))
        else:  # a reminder is read at some hour of the day, and paid soon or on the last day
            share = 0.05 + 0.9 * (rng.random() ** 2 if rng.random() < 0.6 else rng.random())
            wanted = moment(rng, due + int((end - due) * share), min(6 * HOUR, (end - due) // 4))
            pays = min(max(wanted, due + 4 * MINUTE), end - MINUTE)
        if order.public["paymentMethod"] == "boleto":
            pays = min(bank_morning(rng, pays), grace - MINUTE)
        closed = self.offer.stopped if self.offer.archived else None
        unpaid_until = min(now, grace) if renewal == "lapse" else min(now, pays)
        if closed is not None and closed <= unpaid_until:
            return self._archived_under(order, closed, end)
        if renewal == "lapse" or pays > now:
            refused = by_card and pays <= now
            if refused:
                order.close("failed", pays, "card_declined")
            if end > now:
                self._leave_open(order, end, "subscription.end", refused)
                return False
            self._past_due(end)
            if grace > now:
                self._leave_open(order, grace, "subscription.expire", refused)
                return False
            if not refused:
                order.close("expired", grace)
            self.finish("expired", grace)
            return False
        if pays >= end and not by_card:
            self._past_due(end)
        order.pay(rng, pays)
        self.paid_at = pays
        before = self.public["status"]
        self.public, self.hidden = subscriptions.renewed(self.public, self.hidden, pays, order.id)
        self._tell("subscription.renewed", pays, before)
        ended = subscriptions.running_end(self.public, self.hidden)
        if len(self.hidden["paid_by"]) > 1 and ended <= now:
            self.public, self.hidden = subscriptions.rolled(self.public, self.hidden, ended)
        elif len(self.hidden["paid_by"]) > 1:
            self.market.later(ended, "subscription.roll", self.id)
        return True

    def _leave_open(self, order: Order, at: int, job: str, refused: bool) -> None:
        """What comes next is the clock's; the order waits for its payment unless that was refused."""
        if not refused:
            order.wait()
        self.market.later(at, job, self.id)

    def _renewal_order(self, due: int, grace: int) -> Order:
        first = self.orders[0]
        body = subscriptions.renewal_body(self.public, first.public, first.hidden["metadata"])
        order = place(
            self.market,
            self.rng,
            body,
            first.public["customer"],
            self.public["customerId"],
            due,
            method=self.public["paymentMethod"],
            life=grace - due,
            subscription=self.id,
        )
        self.orders.append(order)
        self.public, self.hidden = subscriptions.awaiting(self.public, self.hidden, order.id, due)
        self._tell("subscription.renewal_due", due, "active")
        return order

    def _archived_under(self, order: Order, closed: int, end: int) -> bool:
        """The project is archived while a renewal waits: the order is canceled, the member may stay to the end."""
        order.close("canceled", closed)
        if closed >= end:
            self._past_due(end)
            self.finish("canceled", closed)
            return False
        self.public = subscriptions.ending(self.public, closed)
        self._close_at(end, "canceled")
        return False
