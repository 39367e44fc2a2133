"""What becomes of an order, whoever brings it about: an operation, the control surface, the clock or a magic value.

Each step answers the whole change: the order, the subscription it moves, their events and timers. Nothing is written
here; the caller applies the change.
"""

from typing import NamedTuple

from ..domain import orders, payments, subscriptions
from ..domain.lifecycle import move
from ..domain.payments import Payer
from ..kernel.clock import SECOND, iso
from ..kernel.record import Body, Change, Row, moved_from
from ..sandbox import Sandbox
from ..store.memory import Store


class World(NamedTuple):
    """Where a step happens."""

    sandbox: Sandbox
    store: Store

    @property
    def now(self) -> int:
        """The sandbox's time in ms."""
        return self.sandbox.clock.now


def place(
    world: World, body: Body, customer: Body, customer_id: str, method: str, subscription_id: str | None, life: int
) -> tuple[Change, str]:
    """A new order with the timers that end or pay it, and its id."""
    sandbox, store = world
    ids, now = sandbox.ids, world.now
    code = ids.code()
    while store.orders.holder("code", code) is not None:
        code = ids.code()
    magic = orders.magic_of(customer["email"])
    outcome = orders.NOTHING if magic is None else orders.MAGIC[magic]
    expires = now + (life if outcome.life is None else outcome.life)
    ident = ids.uuid()
    names = (ident, code, ids.uuid())
    seller = (store.merchant.name, store.merchant.city, sandbox.rules.base_url)
    public, hidden = orders.new_order(
        names, body, customer, customer_id, method, seller, now, expires, outcome.fails, subscription_id
    )
    change = Change().create("orders", ident, public, hidden)
    _tell_order(change, "order.created", ident, hidden, None)
    if public["status"] == "failed":
        _tell_order(change, "order.payment_failed", ident, hidden, None)
        return change, ident
    if method == "pix" or outcome.life is not None:
        change.at(expires, "order.expire", ident)
    for job, delay in outcome.jobs:
        change.at(now + delay, job, ident)
    if magic is None and sandbox.rules.autopay is not None and method == "pix":
        change.at(now + sandbox.rules.autopay * SECOND, "order.pay", ident)
    return change, ident


def pay(
    world: World, row: Row, payer: Payer | None = None, paid_at: int | None = None, amount: int | None = None
) -> Change:
    """The order is paid, and opens or renews a subscription of its plan. Raises Conflict.

    `amount` (cents) and `paid_at` (ms) are the order's total and now unless the payment says otherwise.
    """
    payments.check_payable(row.public, amount, paid_at, world.now)
    ids = world.sandbox.ids
    payer = payer or payer_of(world, row)
    public, hidden = payments.paid(row.public, row.hidden, payer, ids.alnum(11), paid_at or world.now, world.now)
    effects = Change()
    if hidden["renewal"]:
        _renew(world, effects, row)
    else:
        subscription_id = _open(world, effects, public, hidden)
        if subscription_id is not None:
            hidden = hidden | {"subscriptionId": subscription_id}
    change = Change().update("orders", row, public, hidden)
    _tell_order(change, "order.paid", row.id, hidden, "pending")
    return change + effects


def payer_of(world: World, row: Row, sent: Body | None = None) -> Payer:
    """Who pays: what was said of him, the order's customer for the rest, a bank out of the seeded stream."""
    sent = sent or {}
    customer, banks = row.public["customer"], world.sandbox.rules.banks
    # The order's own transaction decides the bank: asking twice gives the same one.
    ispb, bank = banks[int(row.public["last_transaction"]["id"][:8], 16) % len(banks)]
    if "bank" in sent:
        ispb = next((code for code, name in banks if name == sent["bank"]), ispb)
    return Payer(
        sent.get("name", customer["name"]), sent.get("document", customer["document"]), ispb, sent.get("bank", bank)
    )


def _open(world: World, change: Change, order: Body, hidden: Body) -> str | None:
    """The first payment on a recurring plan opens a subscription."""
    sandbox, store = world
    plan = store.plans.open(hidden["planId"])
    customer = store.customers.open(hidden["customerId"])
    if plan is None or customer is None or plan.public["billing_type"] != "recurring":
        return None
    first = store.subscriptions.count("customerId+planId", (customer.id, plan.id)) == 0
    code = sandbox.ids.code()
    while store.subscriptions.holder("code", code) is not None:
        code = sandbox.ids.code()
    ident = sandbox.ids.uuid()
    public, kept = subscriptions.opened(
        ident=ident,
        code=code,
        blank=dict(sandbox.rules.blanks["Subscription"]),
        plan=plan.public,
        order=order,
        order_hidden=hidden,
        customer=customer.public,
        now=world.now,
        trial=first and plan.public["trial_period_days"] > 0,
    )
    change.create("subscriptions", ident, public, kept)
    tell_subscription(change, "subscription.created", public, None)
    if public["status"] == "active":
        tell_subscription(change, "subscription.activated", public, None)
        schedule(change, ident, public, kept)
    else:
        change.at(kept["anchor"], "subscription.activate", ident)
    return ident


def _renew(world: World, change: Change, order: Row) -> None:
    subscription = world.store.subscriptions.open(order.hidden["subscriptionId"])
    if subscription is None or subscription.hidden["renewal_order"] != order.id:
        return  # it ended meanwhile: the money came late, and there is nothing to extend
    public, hidden = subscriptions.renewed(subscription.public, subscription.hidden, world.now)
    change.update("subscriptions", subscription, public, hidden)
    tell_subscription(change, "subscription.renewed", public, subscription.public["status"])
    schedule(change, subscription.id, public, hidden)


def schedule(change: Change, ident: str, public: Body, hidden: Body) -> None:
    """The timers of a paid period: the renewal order before its end, and the end itself."""
    change.at(subscriptions.renewal_at(public, hidden), "subscription.renew", ident)
    change.at(subscriptions.period_end(public, hidden), "subscription.end", ident)


def fail(world: World, row: Row, code: str) -> Change:
    """The payment is refused. Raises Conflict."""
    return _close(world, row, "failed", "order.payment_failed", orders.failure(code))


def expire(world: World, row: Row) -> Change:
    """The order's time is over. Raises Conflict."""
    return _close(world, row, "expired", "order.expired", {"status": "expired", "success": "false"})


def cancel(world: World, row: Row) -> Change:
    """Nobody wants the order any more. Raises Conflict."""
    return _close(world, row, "canceled", "order.canceled", {"status": "canceled", "success": "false"})


def _close(world: World, row: Row, status: str, event: str, transaction: dict[str, str]) -> Change:
    change = Change()
    if move(world.sandbox.rules.lifecycles["Order"], row.public["status"], status) is None:
        return change
    public = orders.closed(row.public, status, iso(world.now), transaction)
    if status == "expired" and "expires_at" in row.public["last_transaction"]:
        # Expired by hand: the code ends now, so that expires_at and updatedAt agree.
        public["last_transaction"] = public["last_transaction"] | {"expires_at": public["updatedAt"]}
    change.update("orders", row, public)
    return _tell_order(change, event, row.id, row.hidden, row.public["status"])


def refund(world: World, row: Row, amount: int | None) -> Change:
    """Money back, in full or part (cents); a full refund of the first order ends its subscription. Raises Conflict."""
    lifecycle = world.sandbox.rules.lifecycles["Order"]
    public, hidden, full = payments.refunded(
        row.public, row.hidden, amount, world.sandbox.ids.uuid(), world.now, lifecycle
    )
    change = Change().update("orders", row, public, hidden)
    type_ = "order.refunded" if full else "order.partially_refunded"
    _tell_order(change, type_, row.id, hidden, "paid")
    if full and hidden["subscriptionId"] is not None and not hidden["renewal"]:
        subscription = world.store.subscriptions.open(hidden["subscriptionId"])
        if subscription is not None and subscription.public["status"] in subscriptions.LIVE:
            change = change + cancel_subscription(world, subscription)
    return change


def cancel_subscription(world: World, row: Row) -> Change:
    """The subscription is over now. Raises Conflict. An open renewal order stays payable, and extends nothing."""
    return end_subscription(world, row, "canceled")


def expire_subscription(world: World, row: Row) -> Change:
    """The grace is over: an open renewal order, however it would be paid, expires with the subscription."""
    order_id = row.hidden["renewal_order"]
    order = None if order_id is None else world.store.orders.open(order_id)
    if order is None or order.public["status"] != "pending":
        return end_subscription(world, row, "expired")
    return expire(world, order) + end_subscription(world, row, "expired")


def end_subscription(world: World, row: Row, status: str) -> Change:
    """Over: canceled or expired. Raises Conflict."""
    change = Change()
    if move(world.sandbox.rules.lifecycles["Subscription"], row.public["status"], status) is None:
        return change
    public = subscriptions.ended(row.public, status, world.now)
    change.update("subscriptions", row, public, row.hidden | {"renewal_order": None})
    return tell_subscription(change, f"subscription.{status}", public, row.public["status"])


def renewal_order(world: World, row: Row) -> tuple[Change, str]:
    """The order of a subscription's next period, and its id; its PIX lives until the grace is over."""
    store = world.store
    first = store.orders.open(row.public["orderId"])
    assert first is not None
    life = max(0, subscriptions.grace_end(row.public, row.hidden) - world.now)
    body = subscriptions.renewal_body(row.public, first.public, first.hidden["metadata"])
    change, ident = place(
        world, body, first.public["customer"], row.public["customerId"], row.public["paymentMethod"], row.id, life
    )
    public, hidden = subscriptions.awaiting(row.public, row.hidden, ident, world.now)
    return change.update("subscriptions", row, public, hidden), ident


def tell_subscription(change: Change, type_: str, public: Body, previous: str | None) -> Change:
    """Add an event of a subscription."""
    return change.emit(type_, "subscriptions", public["id"], moved_from(previous), public["projectId"])


def _tell_order(change: Change, type_: str, ident: str, hidden: Body, previous: str | None) -> Change:
    return change.emit(type_, "orders", ident, orders.beside(previous), hidden["projectId"])
