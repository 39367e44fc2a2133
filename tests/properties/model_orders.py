"""The model's orders: when one may be placed, paid, failed, canceled and returned, and what follows
from that.
"""

from datetime import UTC, datetime

from ..support.banking import boleto_due
from . import model_billing as billing
from .model import (
    Buyer,
    Customer,
    Order,
    Plan,
    Project,
    Subscription,
    Verdict,
    World,
    granted,
    refused,
    unless,
)
from .moments import DAY, SECOND

LATE = 30 * DAY
REFUND_WINDOW = 90 * DAY
DISPUTE_WINDOW = {"pix": 80 * DAY, "credit_card": 120 * DAY}
PAY_AFTER = {
    "succeed_immediately": SECOND,
    "succeed_with_delay": 180 * SECOND,
    "refund_after_payment": SECOND,
}
REFUND_AFTER = {"refund_after_payment": 60 * SECOND}
SHORT_LIFE = {"expire_immediately": 0, "expire_with_delay": 180 * SECOND}
PROMPT = (None, "succeed_immediately", "refund_after_payment")
"""The magic values, and none, under which a buyer's card is charged as the order is made."""
MAGIC = ("fail_immediately", "fill_never", *PAY_AFTER, *SHORT_LIFE)
ONLY_PIX = (
    "insufficient_funds",
    "payer_limit_exceeded",
    "payer_account_blocked",
    "payer_bank_unavailable",
)
FAILURES = {
    "pix": (*ONLY_PIX, "rejected_by_payer", "suspected_fraud", "provider_unavailable"),
    "credit_card": (
        "card_declined",
        "card_limit_exceeded",
        "card_expired",
        "suspected_fraud",
        "provider_unavailable",
    ),
    "boleto": ("boleto_not_registered", "provider_unavailable"),
}


def magic_of(email: str) -> str | None:
    """The outcome an address asks for."""
    return next((token for token in MAGIC if token in email), None)


def seats(world: World, plan: Plan) -> set[Customer]:
    """Who holds a seat: members (of a plan that is sold once, those who have paid), and whose order
    can be paid.
    """
    mine = [order for order in world.orders if order.plan is plan]
    waiting = {
        order.customer for order in mine if order.status == "pending" and order.renews is None
    }
    return waiting | members(world, plan)


def members(world: World, plan: Plan) -> set[Customer]:
    """Who counts as a subscriber."""
    if plan.recurring:
        return {found.customer for found in world.subscriptions_of(plan)}
    return {
        order.customer
        for order in world.orders
        if order.plan is plan and order.status in ("paid", "disputed")
    }


def may_place(world: World, project: Project | None, plan: Plan | None, document: str) -> Verdict:
    """createOrder and createPixOrder."""
    if project is None or plan is None or plan.project is not project:
        return refused(409, "reference_not_found")
    conflicts = set()
    if project.status != "active":
        conflicts.add("project_not_active")
    customer = world.customer_with(document)
    if plan.status != "active":
        if customer is None or world.subscription_of(plan, customer) is None:
            conflicts.add("plan_not_active")
        else:
            world.reached.add("inactive, but not for its subscribers (T2)")
    if plan.limit is not None and len(taken := seats(world, plan)) >= plan.limit:
        if world.customer_with(document) not in taken:
            conflicts.add("plan_sold_out")
            if len(members(world, plan)) < plan.limit:
                world.reached.add("seat held by an open order (O36)")
        else:
            world.reached.add("sold out, but not for its holders (O36)")
    return unless(conflicts, 201)


def warnings(world: World, plan: Plan, document: str, total: int, items: int) -> set[str]:
    """What an order is accepted with, but warned of; all in cents.

    A subscriber has the price of the subscription.
    """
    customer = world.customer_with(document)
    held = None if customer is None else world.subscription_of(plan, customer)
    price = plan.amount if held is None else held.amount
    if price != plan.amount:
        world.reached.add("ordered at the old price (T8)")
    found = {"amount_mismatch"} if items != total else set()
    return found | ({"price_mismatch"} if items != price else set())


def differs(world: World, buyer: Buyer) -> set[str]:
    """What is warned of a buyer who is known by the document with another name or address."""
    known = world.customer_with(buyer.document)
    return (
        {"customer_differs"}
        if known and (known.name, known.email) != (buyer.name, buyer.email)
        else set()
    )


def end_of(method: str, now: int) -> int:
    """Until when a buyer's order can be paid."""
    if method != "boleto":
        return now + DAY
    return round(boleto_due(datetime.fromtimestamp(now / 1000, UTC)).timestamp() * 1000)


def place(world: World, plan: Plan, buyer: Buyer, method: str, total: int) -> Order:
    """Place an order; a buyer who is not known becomes a customer, and the project's webhooks hear
    of it.
    """
    customer = world.customer_with(buyer.document)
    if customer is None:
        customer = Customer(None, buyer.name, buyer.email, buyer.document)
        world.customers.append(customer)
        world.emit("customer.created")
        world.newcomers[plan.project.id] += 1
    order = add(world, plan, customer, buyer, method, total, end_of(method, world.now))
    if method == "boleto":
        order.due = end_of(method, world.now)
    if method == "credit_card" and order.magic in PROMPT:
        world.reached.add("card paid as it was ordered (T7)")
        pay(world, order)
    return order


def add(
    world: World,
    plan: Plan,
    customer: Customer,
    buyer: Buyer,
    method: str,
    total: int,
    expires: int,
    renews: Subscription | None = None,
) -> Order:
    """A new order, whoever made it; a magic address decides over renewals too, and takes money back
    once in a row.
    """
    magic = magic_of(buyer.email)
    if magic in REFUND_AFTER and renews is not None and renews.last.status == "refunded":
        world.reached.add("money taken back once")
        magic = None
    if magic in SHORT_LIFE:
        expires = world.now + SHORT_LIFE[magic]
    order = Order(None, plan.project, plan, customer, buyer, method, total, world.now, expires)
    order.magic = magic
    order.updated = world.now
    order.renews = order.subscription = renews
    world.orders.append(order)
    world.emit("order.created")
    if magic == "fail_immediately":
        end(world, order, "failed", "order.payment_failed")
    return order


def may_pay(world: World, order: Order, *, late: bool = False) -> Verdict:
    """Only what waits can be paid, and once; a boleto also late."""
    if order.status == "paid":
        return refused(409, "order_already_paid")
    if late and payable_late(world, order):
        world.reached.add("boleto paid late (T10)")
        return granted()
    return granted() if order.status == "pending" else refused(409, "order_not_payable")


def pay(world: World, order: Order) -> None:
    """The money arrives."""
    order.status, order.payment, order.paid, order.updated = "paid", "paid", world.now, world.now
    world.emit("order.paid")
    billing.order_paid(world, order)


def may_end(order: Order, status: str) -> Verdict:
    """Failing, expiring or canceling: only what waits, and again without effect."""
    if order.status in ("pending", status):
        return granted()
    return refused(409, "invalid_state_transition", "order_not_payable")


def may_fail(order: Order, code: str | None) -> Verdict:
    """As any end, and for a reason that the method knows."""
    verdict = may_end(order, "failed")
    if code is None or code in FAILURES[order.method]:
        return verdict
    return refused(409, "failure_code_not_applicable", *verdict.codes)


def end(world: World, order: Order, status: str, event: str) -> None:
    """An order that will not be paid."""
    order.status = order.payment = status
    order.updated = world.now
    if status == "expired":
        order.expires = world.now
    world.emit(event)


def may_refund(world: World, order: Order, amount: int | None) -> Verdict:
    """Not more than was paid, and for ninety days."""
    if order.status != "paid" or order.paid is None:
        return refused(409, "order_not_refundable")
    conflicts = set()
    if world.now - order.paid > REFUND_WINDOW:
        conflicts.add("refund_window_closed")
    if amount is not None and amount > order.earned:
        conflicts.add("refund_exceeds_amount")
    return unless(conflicts)


def refund(world: World, order: Order, amount: int | None) -> None:
    """Money goes back; what the order paid for follows when all of it does."""
    order.refunded += order.earned if amount is None else amount
    order.updated = world.now
    if order.refunded < order.total:
        order.payment = "partially_refunded"
        world.emit("order.partially_refunded")
        return
    order.status = order.payment = "refunded"
    world.emit("order.refunded")
    billing.order_refunded(world, order)


def may_dispute(world: World, order: Order, amount: int | None) -> Verdict:
    """What is paid, but by no boleto, not too long ago, and not more than is left."""
    conflicts = set()
    if order.status != "paid" or order.paid is None or order.method == "boleto":
        return refused(409, "invalid_state_transition")
    if world.now - order.paid > DISPUTE_WINDOW[order.method]:
        conflicts.add("dispute_window_closed")
    if amount is not None and amount > order.earned:
        conflicts.add("refund_exceeds_amount")
    return unless(conflicts)


def payable_late(world: World, order: Order) -> bool:
    """Whether a boleto that has expired can still be paid."""
    return (
        order.status == "expired" and order.method == "boleto" and world.now <= order.expires + LATE
    )


def dispute(world: World, order: Order, amount: int | None) -> None:
    """The payer takes the money back; it is not decided yet."""
    order.disputed = order.earned if amount is None else amount
    order.status = "disputed"
    order.payment = "disputed"
    order.updated = world.now
    world.emit("order.disputed")
    billing.hold(world, order)


def may_resolve(order: Order) -> Verdict:
    """Only a dispute."""
    return granted() if order.status == "disputed" else refused(409, "invalid_state_transition")


def resolve(world: World, order: Order, *, won: bool) -> None:
    """It is decided: all is as before, or what was disputed goes back."""
    order.status = "paid"
    if won:
        order.payment = "partially_refunded" if order.refunded else "paid"
        order.updated = world.now
        world.emit("order.dispute_won")
    else:
        refund(world, order, order.disputed)
    world.reached.add(f"dispute {'won' if won else 'lost'}")
    billing.release(world, order)


def paid_at(order: Order) -> int | None:
    """When a magic address will have paid."""
    delay = PAY_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay


def refunded_at(order: Order) -> int | None:
    """When a magic address will have its money back."""
    delay = REFUND_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay
