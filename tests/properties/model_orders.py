"""The model's orders: when one may be placed, paid, failed, canceled and returned, and what follows from that."""

from . import model_billing as billing
from .model import Customer, Order, Plan, Project, Verdict, World, granted, refused, unless
from .moments import DAY, SECOND

PIX_LIFE = DAY
REFUND_WINDOW = 90 * DAY
PAY_AFTER = {"succeed_immediately": SECOND, "succeed_with_delay": 180 * SECOND, "refund_after_payment": SECOND}
REFUND_AFTER = {"refund_after_payment": 60 * SECOND}
LIFE = {"expire_immediately": 0, "expire_with_delay": 180 * SECOND}
MAGIC = ("fail_immediately", "fill_never", *PAY_AFTER, *LIFE)


def magic_of(email: str) -> str | None:
    """The outcome an address asks for."""
    return next((token for token in MAGIC if token in email), None)


def may_place(world: World, project: Project | None, plan: Plan | None, method: str) -> Verdict:
    """createOrder and createPixOrder."""
    if project is None or plan is None or plan.project is not project:
        return refused(404, "reference_not_found")
    conflicts = set()
    if project.status != "active":
        conflicts.add("project_not_active")
    if plan.status != "active":
        conflicts.add("plan_not_active")
    if plan.limit is not None and len(world.subscriptions_of(plan)) >= plan.limit:
        conflicts.add("plan_sold_out")
    if method not in plan.methods:
        conflicts.add("payment_method_not_allowed")
    return unless(conflicts, 201)


def place(world: World, plan: Plan, document: str, email: str, name: str, method: str, total: int) -> Order:
    """Place an order; a buyer who is not known becomes a customer."""
    customer = world.customer_with(document)
    if customer is None:
        customer = Customer(None, name, email.lower(), document)
        world.customers.append(customer)
        world.emit("customer.created")
    return add(world, plan, customer, document, email, method, total, None)


def add(
    world: World,
    plan: Plan,
    customer: Customer,
    document: str,
    email: str,
    method: str,
    total: int,
    expires: int | None,
) -> Order:
    """A new order, whoever made it."""
    magic = magic_of(email)
    if method == "pix" and (expires is None or magic in LIFE):  # a magic address decides over renewals too
        expires = world.now + LIFE.get(magic or "", PIX_LIFE)
    order = Order(None, plan.project, plan, customer, document, email, method, total, world.now, expires)
    order.magic, order.updated = magic, world.now
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


def end(world: World, order: Order, status: str, event: str) -> None:
    """An order that will not be paid."""
    order.status = order.payment = status
    order.updated = world.now
    if status == "expired":
        order.expires = None if order.method != "pix" else world.now
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
    """Money goes back. The subscription that the order opened ends when all of it does."""
    order.refunded += order.earned if amount is None else amount
    order.updated = world.now
    if order.refunded < order.total:
        order.payment = "partial_refunded"
        world.emit("order.partially_refunded")
        return
    order.status = order.payment = "refunded"
    world.emit("order.refunded")
    opened = order.subscription
    if opened is not None and opened.first is order and opened.running:
        billing.cancel(world, opened)


def paid_at(order: Order) -> int | None:
    """When a magic address will have paid."""
    delay = PAY_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay


def refunded_at(order: Order) -> int | None:
    """When a magic address will have its money back."""
    delay = REFUND_AFTER.get(order.magic or "")
    return None if delay is None else order.created + delay


def expires_at(order: Order) -> int | None:
    """When the order expires; what is not paid by PIX waits for ever, or as long as a magic address says."""
    if order.expires is not None:
        return order.expires
    life = LIFE.get(order.magic or "")
    return None if life is None else order.created + life
