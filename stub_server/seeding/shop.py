"""What becomes of an order: its buyer pays, regrets, renews and leaves, and the engine does what follows from that."""

from random import Random

from ..domain import orders as order_rules
from ..domain.calendar import add_interval, lead_ms
from ..domain.subscriptions import CHARGED
from ..drawing import purchases
from ..drawing.draw import pick
from ..drawing.purchases import ANY, CANCEL, LAPSE, LATE, PAID, PAYING, Fate
from ..drawing.rhythm import bank_morning, moment, office_hour, office_hour_before, pay_delay, refund_delay
from ..engine import billing
from ..engine.draft import Draft
from ..engine.step import Step
from ..kernel.clock import DAY, HOUR, MINUTE, parse_iso
from ..kernel.record import Body, Record
from .script import Script

PARTS = (20, 30, 30, 50)  # percent of a payment that is given back in part
STEADY = Fate("paid")
REFUSED = "provider_unavailable"  # a PIX or boleto whose charge is not even opened


class Shop:
    """Acts for everybody who has ordered, by the fate of the order. `members` are the fates by subscription id."""

    def __init__(self, script: Script, luck: Random) -> None:
        self.script, self.store, self.luck = script, script.store, luck
        self.members: dict[str, Fate] = {}

    # -- orders

    def buy(
        self,
        draft: Draft,
        body: Body,
        buyer: Body,
        customer_id: str,
        method: str,
        fate: Fate,
        ident: str | None = None,
        below: int = DAY,
    ) -> Record:
        """Place an order, record the draft, and plan what the fate says; a PIX is paid in less than `below` ms.

        Raises Conflict for what nobody can buy at this instant, as createOrder does.
        """
        project, plan = self.store.projects.peek(body["projectId"]), self.store.plans.peek(body["planId"])
        assert project is not None  # both were created before
        assert plan is not None
        renews = billing.running_of(draft, customer_id, plan["id"]) is not None
        sold_out = self.store.is_sold_out(plan, customer_id)
        order_rules.check_buyable(project, plan, method, sold_out=sold_out, renews=renews)
        outcome, refused = fate.outcome, None
        if outcome == "failed":
            refused = purchases.REFUSALS.draw(self.luck) if method == CHARGED else REFUSED
        record = billing.buy(draft, body, buyer, customer_id, method, ident, refused)
        rng, at, add, ident = self.luck, self.script.now, self.script.add, record.id
        step = draft.record()
        if outcome in PAYING:
            if method == CHARGED:
                self._has_paid(step, ident, fate, method)
            else:
                add(self._pays(record, method, below), self.pay, ident, fate)
        elif outcome == "canceled":
            add(moment(rng, at + 8 * HOUR, 8 * HOUR - 5 * MINUTE), self.script.step, self.cancel, ident)
        return record

    def _pays(self, record: Record, method: str, below: int) -> int:
        """When a PIX or a boleto is paid."""
        rng, at = self.luck, self.script.now
        if method == "pix":
            return at + pay_delay(rng, below)
        ends = order_rules.expires_at(self.store.orders.parse(record).public)
        clears = bank_morning(rng, at + DAY + int(rng.random() * DAY))
        return clears if clears < ends else min(bank_morning(rng, at), ends - MINUTE)

    def pay(self, ident: str, fate: Fate = STEADY) -> None:
        """Pay an order, if it can still be paid."""
        draft = self.script.draft()
        row = draft.open(self.store.orders, ident)
        if row is not None and billing.is_payable(draft, row):
            billing.pay(draft, row)
            self._has_paid(draft.record(), ident, fate, row.public["paymentMethod"])

    def _has_paid(self, step: Step | None, ident: str, fate: Fate, method: str) -> None:
        """After the step that paid an order: plan a refund, and what becomes of a subscription that it opened."""
        puts = step.puts if step else ()
        joined = next((record for table, record, before in puts if table == "subscriptions" and before is None), None)
        if fate.outcome in ("refunded", "partly"):
            self.script.add(self._regrets(joined), self.script.step, self.refund, ident, fate.outcome == "partly")
        if joined is not None:
            self.join(joined, fate)
            if method == CHARGED:
                self._plan_charge(joined.id, 0)

    def cancel(self, draft: Draft, ident: str) -> None:
        """Cancel an order, if it can still be paid."""
        row = draft.open(self.store.orders, ident)
        if row is not None and billing.is_payable(draft, row):
            billing.cancel(draft, row)

    def _regrets(self, joined: Record | None) -> int:
        """When a payment is refunded: one to seven days later, and before the next one is due."""
        rng, paid = self.luck, self.script.now
        wanted = paid + refund_delay(rng)
        at = office_hour(rng, wanted)
        if at - paid > 7 * DAY:
            at = office_hour_before(rng, wanted)
        if at - paid < DAY:
            at = office_hour(rng, wanted + DAY)
        if joined is not None:
            ends = parse_iso(self.store.subscriptions.parse(joined).public["next_billing_at"])
            if at > paid + (ends - paid) * 2 // 5:
                at = paid + (ends - paid) // 3
        return at

    def refund(self, draft: Draft, ident: str, part: bool) -> None:
        """Give an order's money back, in full or in part."""
        row = draft.open(self.store.orders, ident)
        if row is not None and row.public["status"] in draft.states("Order", "refundable"):
            amount = max(1, row.hidden["paid_cents"] * pick(self.luck, PARTS) // 100) if part else None
            billing.refund(draft, row, amount)

    # -- memberships

    def join(self, record: Record, fate: Fate) -> None:
        """Keep the fate of a new subscription, and plan when its member cancels it, if the fate says so."""
        if fate.renewals == (ANY,):
            return
        self.members[record.id] = fate
        if CANCEL in fate.renewals:
            public = self.store.subscriptions.parse(record).public
            anchor = parse_iso(public["trial_end"] or public["current_period_start"])
            period, rhythm = fate.renewals.index(CANCEL), (public["interval"], public["interval_count"])
            start, end = add_interval(anchor, *rhythm, period), add_interval(anchor, *rhythm, period + 1)
            last = end - lead_ms(*rhythm) - HOUR
            wanted = moment(self.luck, start + int((last - start) * 0.9 * self.luck.random()), 6 * HOUR)
            self.script.add(min(max(wanted, start + MINUTE), last), self.script.step, self.leave, record.id)

    def leave(self, draft: Draft, ident: str) -> None:
        """Cancel a subscription at the end of its period."""
        row = draft.open(self.store.subscriptions, ident)
        if row is None or not billing.is_running(draft, row) or row.public["cancel_at_period_end"]:
            return
        if row.public["status"] == "active":
            billing.end_later(draft, row)
        else:  # what is owed is paid first
            self.script.add(self.script.now + 3 * DAY, self.script.step, self.leave, ident)

    def after_job(self, step: Step) -> None:
        """If the clock has created a renewal order: plan whether its payment is in time, late or never."""
        record = next((new for table, new, before in step.puts if table == "orders" and before is None), None)
        if record is None:
            return
        subscription = next(changed for table, changed, _ in step.puts if table == "subscriptions")
        public = self.store.subscriptions.parse(subscription).public
        if public["paymentMethod"] == CHARGED:
            self._charged(record, subscription.id, public["cycle"])
            return
        renewal = self.members.get(subscription.id, STEADY).renewal(public["cycle"])
        if renewal == ANY:
            renewal = LATE if self.luck.random() < purchases.LATE_SHARE else PAID
        if renewal != LAPSE:
            self.script.add(self._pays_renewal(record, public, late=renewal == LATE), self.pay, record.id)

    def _charged(self, order: Record, ident: str, cycle: int) -> None:
        """After the clock has charged a card: one that was declined may be accepted at the next attempt."""
        if self.store.orders.parse(order).public["status"] != "failed":
            self._plan_charge(ident, cycle)
        elif self.members.get(ident, STEADY).renewal(cycle) != LAPSE and self.luck.random() < purchases.RECOVERED:
            self.script.sandbox.declining.pop(ident, None)

    def _plan_charge(self, ident: str, cycle: int) -> None:
        """Decide whether a member's card is declined when the next period is charged."""
        renewal = self.members.get(ident, STEADY).renewal(cycle)
        if renewal == LAPSE or (renewal == ANY and self.luck.random() < purchases.DECLINED):
            self.script.sandbox.declining[ident] = purchases.REFUSALS_OF_MEMBERS.draw(self.luck)

    def _pays_renewal(self, record: Record, subscription: Body, *, late: bool) -> int:
        """When a renewal order is paid by PIX or boleto: before the period ends, or `late`, in the grace after it."""
        rng, now = self.luck, self.script.now
        end = parse_iso(subscription["current_period_end"])
        slip = subscription["paymentMethod"] == "boleto"
        if late or slip or end <= now:
            grace = order_rules.expires_at(self.store.orders.parse(record).public)
        if late or end <= now:
            first = max(now, end) + HOUR
            pays = moment(rng, first + int(max(0, grace - first - HOUR) * rng.random()), 6 * HOUR)
            pays = min(max(pays, first), max(first, grace - MINUTE))
        elif slip:
            pays = now + int((end - now) * (0.2 + 0.5 * rng.random()))
        else:
            share = 0.05 + 0.9 * (rng.random() ** 2 if rng.random() < 0.6 else rng.random())
            wanted = moment(rng, now + int((end - now) * share), min(6 * HOUR, (end - now) // 4))
            return min(max(wanted, now + 4 * MINUTE), end - MINUTE)
        return min(bank_morning(rng, pays), grace - MINUTE) if slip else pays
