"""The model's orders: when one may be placed, paid, failed, canceled and returned, and what follows from that."""

from . import model_billing as billing
from .model import Buyer, Customer, Order, Plan, Project, Subscription, Verdict, World, granted, refused, unless
from .moments import DAY, SECOND

LIFE = {"pix": DAY, "boleto": 3 * DAY, "credit_card": DAY}
REFUND_WINDOW = 90 * DAY
PAY_AFTER = {"succeed_immediately": SECOND, "succeed_with_delay": 180 * SECOND, "refund_after_payment": SECOND}
REFUND_AFTER = {"refund_after_payment": 60 * SECOND}
SHORT_LIFE = {"expire_immediately": 0, "expire_with_delay": 180 * SECOND}
MAGIC = ("fail_immediately", "fill_never", *PAY_AFTER, *SHORT_LIFE)
ONLY_PIX = ("insufficient_funds", "payer_limit_exceeded", "payer_account_blocked", "payer_bank_unavailable")
FAILURES = {
    "pix": (*ONLY_PIX, "rejected_by_payer", "suspected_fraud", "provider_unavailable"),
    "credit_card": ("card_declined", "card_limit_exceeded", "card_expired", "suspected_fraud", "provider_unavailable"),
    "boleto": ("boleto_not_registered", "provider_unavailable"),
}


def magic_of(email: str) -> str | None:
    """The outcome an address asks for."""
    return next((token for token in MAGIC if token in email), None)


def seats(world: World, plan: Plan) -> set[Customer]:
    """Who holds a seat: members (of a plan that is sold once, those who have paid), and whose order can be paid."""
    mine = [order for order in world.orders if order.plan is plan]
    waiting = {order.customer for order in mine if order.status == "pending" and order.renews is None}
    return waiting | members(world, plan)


def members(world: World, plan: Plan) -> set[Customer]:
    """Who counts as a subscriber."""
    if plan.recurring:
        return {found.customer for found in world.subscriptions_of(plan)}
    return {order.customer for order in world.orders if order.plan is plan and order.status == "paid"}


def may_place(world: World, project: Project | None, plan: Plan | None, method: str, document: str) -> Verdict:
    """createOrder and createPixOrder."""
    if project is None or plan is None or plan.project is not project:
        return refused(404, "reference_not_found")
    conflicts = set()
    if project.status != "active":
        conflicts.add("project_not_active")
    if plan.status != "active":
        conflicts.add("plan_not_active")
    if plan.limit is not None and len(taken := seats(world, plan)) >= plan.limit:
        if world.customer_with(document) not in taken:
            conflicts.add("plan_sold_out")
            if len(members(world, plan)) < plan.limit:
                world.reached.add("seat held by an open order (O36)")
        else:
            world.reached.add("sold out, but not for its holders (O36)")
    if method not in plan.methods:
        conflicts.add("payment_method_not_allowed")
    return unless(conflicts, 201)


def warnings(plan: Plan, total: int, items: int) -> set[str]:
    """What an order is accepted with, but warned of; all in cents."""
    found = {"amount_mismatch"} if items != total else set()
    return found | ({"price_mismatch"} if items != plan.amount else set())


def place(world: World, plan: Plan, buyer: Buyer, method: str, total: int) -> Order:
    """Place an order; a buyer who is not known becomes a customer, and the project's webhooks hear of it."""
    customer = world.customer_with(buyer.document)
    if customer is None:
        customer = Customer(None, buyer.name, buyer.email, buyer.document)
        world.customers.append(customer)
        world.emit("customer.created")
        world.newcomers[plan.project.id] += 1
    return add(world, plan, customer, buyer, method, total, world.now + LIFE[method])


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
    """A new order, whoever made it; a magic address decides over renewals too, and takes money back once in a row."""
    magic = magic_of(buyer.email)
    if magic in REFUND_AFTER and renews is not None and renews.last.status == "refunded":
        world.reached.add("money taken back once")
        magic = None
    if magic in SHORT_LIFE:
        expires = world.now + SHORT_LIFE[magic]
    order = Order(None, plan.project, plan, customer, buyer, method, total, world.now, expires)
    order.magic, order.updated = magic, world.now
    order.renews = order.subscription = renews
    world.orders.append(order)
    world.emit("order.created")
    if magic == "fail_immediately":
        end(world, order, "failed", "order.payment_failed")
    return order


def may_pay(order: Order) -> Verdict:
    """Only what waits can be paid, and once."""
    if order.status == "paid":
        return refused(409, "order_already_paid")
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


def paid_at(order: Order) -> int | None:
    """When a magic address will have paid."""
    delay = PAY_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay


def refunded_at(order: Order) -> int | None:
    """When a magic address will have its money back."""
    delay = REFUND_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay
