"""What becomes of an order: its buyer pays, regrets, renews and leaves, and the engine does what
follows from that.

A life is a generator: it acts, and yields the instant at which it acts again. What happens in it
was drawn before, as the fate of the purchase.
"""

from collections.abc import Iterator
from itertools import count

from ..core.clock import DAY, HOUR, MINUTE, parse_iso
from ..core.record import Row
from ..domain import orders as order_rules
from ..domain.calendar import add_interval, lead_ms
from ..domain.subscriptions import ATTEMPTS, CHARGED
from ..engine import billing, closing, ordering, renewals
from ..engine.draft import Draft
from .purchases import CANCEL, DISPUTED, LAPSE, LATE, PAID, PAYING, Fate, Purchase, pays_at
from .rhythm import bank_morning, moment, office_hour, refund_hour
from .script import Action, Script
from .tables import pick

REFUSED = "provider_unavailable"  # a PIX or boleto whose charge is not even opened


def begin(script: Script, purchase: Purchase) -> None:
    """Have somebody buy now, and live from then on. Raises Conflict."""
    script.follow(live(script, script.draft(), purchase))


def live(script: Script, draft: Draft, purchase: Purchase) -> Iterator[int]:
    """Place an order, record the draft, and do what the fate says.

    Raises Conflict for what nobody can buy at this instant, as createOrder does.
    """
    fate = purchase.fate
    order = _place(script, draft, purchase).id
    draft.record()
    if fate.outcome == "canceled":
        yield moment(script.rng, script.now + 8 * HOUR, 8 * HOUR - 5 * MINUTE)
        _act(script, order, "payable", closing.cancel)
    if fate.outcome not in PAYING:
        return
    if fate.method != CHARGED:
        yield pays_at(script.rng, fate.method, script.now, script.end)
        _act(script, order, "payable", billing.pay)
    opened = _opened_by(script, order)
    if fate.outcome in DISPUTED:
        yield from _disputed(script, order, fate.outcome)
    elif fate.outcome != "paid":
        yield _regrets(script, opened)
        amount = _part_of(script, order) if fate.outcome == "partly" else None
        _act(script, order, "refundable", billing.refund, amount)
    if opened is not None and fate.outcome not in ("refunded", "lost"):
        yield from _stay(script, opened, fate)


def _act(script: Script, ident: str, states: str, act: Action, *asked: object) -> None:
    """Do something to an order now, if it is in one of the states of a set."""
    draft = script.draft()
    row = draft.get("orders", ident)
    if draft.is_in(row, states):
        act(draft, row, *asked)
    draft.record()


def _opened_by(script: Script, ident: str) -> Row | None:
    """The subscription that an order has opened."""
    hidden = script.store.orders.get(ident).hidden
    if hidden["subscriptionId"] is None or hidden["renewal"]:
        return None
    return script.store.subscriptions.get(hidden["subscriptionId"])


# -- the first order


def _place(script: Script, draft: Draft, purchase: Purchase) -> Row:
    fate, customer_id = purchase.fate, purchase.customer_id
    body = purchase.body | {"paymentMethod": fate.method}
    store = draft.store
    project, plan = store.projects.peek(body["projectId"]), store.plans.peek(body["planId"])
    assert project is not None
    assert plan is not None
    renews = store.running_of(customer_id, plan["id"]) is not None
    order_rules.check_buyable(
        project, plan, fate.method, sold_out=store.is_sold_out(plan, customer_id), renews=renews
    )
    refused = None
    if fate.outcome == "failed":
        refused = pick(script.rng, "habits", "refusals") if fate.method == CHARGED else REFUSED
    new = order_rules.NewOrder(
        body, purchase.buyer, customer_id, fate.method, ident=purchase.ident, refused=refused
    )
    return ordering.buy(draft, new)


def _regrets(script: Script, opened: Row | None) -> int:
    """When a payment is refunded: within a week, and before the next one is due."""
    now = script.now
    at = refund_hour(script.rng, now)
    if opened is not None:
        period = parse_iso(opened["next_billing_at"]) - now
        at = min(at, now + period // 3)
    return at


def _part_of(script: Script, ident: str) -> int:
    """Some of what was paid for an order, in cents."""
    paid: int = script.store.orders.get(ident).hidden["paid_cents"]
    return max(1, paid * int(pick(script.rng, "habits", "parts")) // 100)


def _disputed(script: Script, ident: str, outcome: str) -> Iterator[int]:
    """Take the payment back: in the last day, or some days after it, to be won or lost in the
    days after that.
    """
    ends = {"won": renewals.win, "lost": renewals.lose}
    yield script.now + 3 * DAY if outcome in ends else script.end - 20 * HOUR
    _act(script, ident, "kept", renewals.dispute, None, "fraud")
    if outcome in ends:
        yield office_hour(script.rng, script.now + 6 * DAY)
        _act(script, ident, "kept", ends[outcome])


# -- the membership


def _stay(script: Script, opened: Row, fate: Fate) -> Iterator[int]:
    """Pay the bill of each period, or do not, or leave before it comes."""
    public = opened.public
    rhythm = (public["interval"], public["interval_count"])
    anchor = start = parse_iso(public["trial_end"] or public["current_period_start"])
    is_charged = public["paymentMethod"] == CHARGED
    for cycle in count():
        end = add_interval(anchor, *rhythm, cycle + 1)
        bill, billed = fate.bill(cycle), end - lead_ms(*rhythm)
        if start > script.end:
            return
        if bill == CANCEL:
            last, rng = billed - HOUR, script.rng
            wanted = moment(rng, start + int((last - start) * 0.9 * rng.random()), 6 * HOUR)
            # not before the card that was late is charged
            yield min(max(wanted, start + MINUTE, script.now + 2 * MINUTE), last)
            script.step(_leave, opened.id)
            return
        if is_charged:
            yield from _charged(script, opened.id, bill, end)
        else:
            yield from _billed(script, opened.id, bill, billed, end)
        if bill == LAPSE:
            return
        start = end


def _charged(script: Script, ident: str, bill: str, end: int) -> Iterator[int]:
    """The clock charges a card; all that happens before is that it will be declined."""
    if bill == PAID:
        return
    yield end - MINUTE
    script.sandbox.origin.declining[ident] = pick(script.rng, "habits", "refusals_of_members")
    if bill == LATE:
        yield end + ATTEMPTS[0] - MINUTE
        script.sandbox.origin.declining.pop(ident)


def _billed(script: Script, ident: str, bill: str, at: int, end: int) -> Iterator[int]:
    """The clock places an order before the period ends, for the member to pay by
    PIX or boleto.
    """
    yield at
    row = script.store.subscriptions.get(ident)
    order = row["renewal_order"]
    if row["ended_at"] is not None:  # its last order was canceled with it
        return
    if order is not None and bill != LAPSE:
        yield _pays_bill(script, order, end, late=bill == LATE)
        _act(script, order, "payable", billing.pay)


def _pays_bill(script: Script, ident: str, end: int, *, late: bool) -> int:
    """When a renewal order is paid: before the period ends, or `late`, in the
    grace after it.
    """
    rng, begins, limit = script.rng, script.now, end
    order = script.store.orders.get(ident)
    grace = order_rules.expires_at(order)
    if late or end <= begins:
        begins, limit = max(begins, end) + HOUR, grace
    wanted = begins + int((limit - begins) * (0.05 + 0.9 * rng.random() ** 1.5))
    pays = moment(rng, wanted, min(6 * HOUR, (limit - begins) // 4))
    if order["paymentMethod"] == "boleto":
        pays, limit = bank_morning(rng, pays), grace
    return min(max(pays, begins + 4 * MINUTE), limit - MINUTE)


def _leave(draft: Draft, ident: str) -> None:
    """Cancel a subscription at the end of its period."""
    row = draft.get("subscriptions", ident)
    if row.status == "active" and not row["cancel_at_period_end"]:
        billing.end_later(draft, row)
