"""What projects, plans, orders and subscriptions of one merchant are, as the design of the domain
says.

It knows what a life of `player.py` makes. Where the design leaves open which of several reasons
refuses a request, each may. `Open` is raised where it does not say what follows: the life ends
there.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

DAY = timedelta(days=1)
BRASILIA = timedelta(hours=-3)
RUNNING = ("trialing", "active", "past_due")
MOVES = {
    "draft": ("active", "archived"),
    "active": ("suspended", "archived"),
    "suspended": ("active", "archived"),
    "archived": (),
}
WINDOWS = {"pix": 80 * DAY, "credit_card": 120 * DAY}


class Refused(Exception):
    """The request is refused with one of these codes."""

    def __init__(self, *codes: str) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


class Open(Exception):
    """The design does not say what follows."""


@dataclass(eq=False)
class Project:
    status: str
    suspended_at: datetime | None = None
    id: str = ""


@dataclass(eq=False)
class Plan:
    project: Project
    name: str
    amount: int
    interval: str | None
    count: int
    trial: int
    methods: tuple[str, ...]
    most: int | None
    status: str = "active"
    id: str = ""

    def after(self, anchor: datetime, periods: int) -> datetime:
        """The instant so many periods after an anchor, on the calendar of Brasília; months end on
        their last day.
        """
        number = periods * self.count
        if self.interval in ("day", "week"):
            return anchor + number * (DAY if self.interval == "day" else 7 * DAY)
        local = anchor + BRASILIA
        months = local.year * 12 + local.month - 1 + number * (12 if self.interval == "year" else 1)
        year, month = months // 12, months % 12 + 1
        return (
            local.replace(year=year, month=month, day=min(local.day, monthrange(year, month)[1]))
            - BRASILIA
        )


@dataclass(eq=False)
class Order:
    plan: Plan
    customer: str
    method: str
    amount: int
    created_at: datetime
    expires_at: datetime | None
    status: str = "pending"
    paid_at: datetime | None = None
    refunded: int = 0
    bills: "Subscription | None" = None  # whose renewal it is
    subscription: "Subscription | None" = None
    period: int = 0  # which one it paid
    id: str = ""

    def expire(self) -> None:
        self.status = "expired"


@dataclass(eq=False)
class Subscription:
    plan: Plan
    customer: str
    first: Order
    amount: int
    method: str
    started_at: datetime
    anchor: datetime  # from which periods are counted
    status: str
    periods: int = 1  # that are paid
    shift: timedelta = timedelta()
    cancels: bool = False
    is_billed: bool = False  # for the period after those that are paid
    orders: list[Order] = field(default_factory=list)

    @property
    def end(self) -> datetime:
        return self.plan.after(self.anchor, self.periods) + self.shift

    @property
    def start_of_last(self) -> datetime:
        return self.plan.after(self.anchor, self.periods - 1) + self.shift

    @property
    def grace(self) -> datetime:
        return self.end + min(7 * DAY, self.end - self.start_of_last)

    @property
    def bill(self) -> Order | None:
        return next(
            (each for each in self.orders if each.bills is self and each.status == "pending"), None
        )


class Model:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.projects: list[Project] = []
        self.plans: list[Plan] = []
        self.orders: list[Order] = []
        self.subscriptions: list[Subscription] = []

    # -- projects and plans

    def create_project(self, status: str) -> Project:
        self.projects.append(Project(status))
        return self.projects[-1]

    def move(self, project: Project, status: str) -> None:
        if status == project.status:
            return
        if status not in MOVES[project.status]:
            raise Refused("invalid_state_transition")
        if project.status == "suspended":
            self._resume_timers(project)
        if status == "suspended":
            project.suspended_at = self.now
        project.status = status
        if status == "archived":
            for order in [
                each
                for each in self.orders
                if each.plan.project is project and each.status == "pending"
            ]:
                order.status = "canceled"
            for subscription in self._running(lambda each: each.plan.project is project):
                self.cancel(subscription, at_period_end=True)

    def _resume_timers(self, project: Project) -> None:
        assert project.suspended_at is not None
        for each in self._running(lambda each: each.plan.project is project):
            waited = self.now - max(project.suspended_at, each.started_at)
            each.shift += waited
            if each.bill is not None and each.bill.expires_at is not None:
                each.bill.expires_at += waited

    def create_plan(self, plan: Plan) -> Plan:
        if plan.project.status == "archived":
            raise Refused("project_archived")
        if any(each.name == plan.name and each.project is plan.project for each in self.plans):
            raise Refused("duplicate_name")
        self.plans.append(plan)
        return plan

    def update_plan(
        self, plan: Plan, amount: int | None, status: str | None, count: int | None
    ) -> None:
        if plan.project.status == "archived":
            raise Refused("project_archived")
        if (
            count is not None
            and count != plan.count
            and any(self._running(lambda each: each.plan is plan))
        ):
            raise Refused("plan_in_use")
        plan.amount = plan.amount if amount is None else amount
        plan.status = plan.status if status is None else status
        if count is not None and count != plan.count:
            if any(each.plan is plan for each in self.subscriptions):
                raise Open
            plan.count = count

    def delete_plan(self, plan: Plan) -> None:
        codes = ["plan_in_use"] if self._is_in_use(plan) else []
        if plan.project.status == "archived":
            codes.append("project_archived")
        if codes:
            raise Refused(*codes)
        self.plans.remove(plan)

    def _is_in_use(self, plan: Plan) -> bool:
        open_orders = [
            each for each in self.orders if each.plan is plan and each.status == "pending"
        ]
        late_boletos = [
            each for each in self.orders if each.plan is plan and self._may_be_late(each)
        ]
        return bool(open_orders or late_boletos) or any(
            self._running(lambda each: each.plan is plan)
        )

    def _may_be_late(self, order: Order) -> bool:
        if order.method != "boleto" or order.status != "expired" or order.expires_at is None:
            return False
        return self.now <= order.expires_at + 30 * DAY

    def delete_project(self, project: Project) -> None:
        plans = [each for each in self.plans if each.project is project]
        sold = [
            each
            for each in self.orders
            if each.plan.project is project and each.status in ("paid", "pending")
        ]
        if (
            sold
            or any(map(self._is_in_use, plans))
            or any(self._running(lambda each: each.plan.project is project))
        ):
            raise Refused("project_has_activity")
        if any(each.plan.project is project for each in self.orders):
            raise Open
        for plan in plans:
            self.plans.remove(plan)
        self.projects.remove(project)

    # -- orders

    def order(self, plan: Plan, customer: str, method: str, amount: int) -> Order:
        codes = []
        known = self._subscription_of(plan, customer)
        if plan.project.status == "archived":
            codes.append("project_archived")
        if plan.project.status != "active":
            codes.append("project_not_active")
        if plan.status == "inactive" and known is None:
            codes.append("plan_not_active")
        if known is None and self._is_sold_out(plan, customer):
            codes.append("plan_sold_out")
        if codes:
            raise Refused(*codes)
        # a boleto's is a banking day, which its answer tells
        expires_at = self.now + DAY if method == "pix" else None
        order = Order(plan, customer, method, amount, self.now, expires_at)
        self.orders.append(order)
        if method == "credit_card":
            self._paid(order)
        return order

    def _is_sold_out(self, plan: Plan, customer: str) -> bool:
        if plan.most is None:
            return False
        if plan.interval is None:
            taken = {
                each.customer
                for each in self.orders
                if each.plan is plan and each.status in ("paid", "disputed")
            }
        else:
            taken = {each.customer for each in self._running(lambda each: each.plan is plan)}
        taken |= {
            each.customer
            for each in self.orders
            if each.plan is plan and each.status == "pending" and not each.bills
        }
        return customer not in taken and len(taken) >= plan.most

    def pay(self, order: Order, *, late: bool) -> None:
        if order.status == "paid":
            raise Refused("order_already_paid")
        is_late = late and self._may_be_late(order)
        if order.status != "pending" and not is_late:
            raise Refused("order_not_payable", "order_already_paid")
        self._paid(order)

    def _paid(self, order: Order) -> None:
        order.status, order.paid_at = "paid", self.now
        if order.plan.interval is None:
            return
        known = self._subscription_of(order.plan, order.customer)
        if known is not None:
            self._renew(known, order)
            return
        if order.plan.project.status == "archived":
            raise Open
        before = [
            each
            for each in self.subscriptions
            if (each.plan, each.customer) == (order.plan, order.customer)
        ]
        trial = timedelta(days=0 if before else order.plan.trial)
        status = "trialing" if trial else "active"
        opened = Subscription(
            order.plan,
            order.customer,
            order,
            order.plan.amount,
            order.method,
            self.now,
            self.now + trial,
            status,
        )
        order.subscription, order.period = opened, 1
        opened.orders.append(order)
        self.subscriptions.append(opened)

    def _renew(self, subscription: Subscription, order: Order) -> None:
        if subscription.shift:
            raise Open  # months of the moved calendar
        if order not in subscription.orders:
            subscription.orders.append(order)
        if subscription.bill is not None:
            subscription.bill.status = "canceled"
        subscription.periods += 1
        order.subscription, order.period = subscription, subscription.periods
        subscription.method, subscription.is_billed, subscription.cancels = (
            order.method,
            False,
            False,
        )
        if subscription.status == "past_due":
            subscription.status = "active"

    def end_order(self, order: Order, status: str) -> None:
        """By the controls `fail`, `expire` and `cancel`."""
        if order.status == status:
            return  # a move to the present state
        if order.status != "pending":
            raise Refused("*")
        order.status = status
        if status == "expired":
            order.expires_at = self.now

    def refund(self, order: Order, amount: int | None) -> None:
        if order.status != "paid" or order.paid_at is None:
            raise Refused("order_not_refundable")
        left = order.amount - order.refunded
        codes = ["refund_exceeds_amount"] if (amount or 0) > left else []
        if self.now > order.paid_at + 90 * DAY:
            codes.append("refund_window_closed")
        if codes:
            raise Refused(*codes)
        order.refunded += left if amount is None else amount
        if order.refunded == order.amount:
            order.status = "refunded"
            self._take_back(order)

    def _take_back(self, order: Order) -> None:
        subscription = order.subscription
        if subscription is None or subscription.status not in RUNNING:
            return
        project, running = subscription.plan.project, subscription.periods
        now = (
            self.now
            if project.status != "suspended"
            else max(project.suspended_at or self.now, subscription.started_at)
        )
        while (
            running > 1
            and subscription.plan.after(subscription.anchor, running - 1) + subscription.shift > now
        ):
            running -= 1
        if order.period > running:
            # a period that lies ahead is taken off: whether it is billed at once is another
            # question
            raise Open
        if order.period == running and subscription.status == "past_due":
            # its period has run out: whether it is the running one until the grace ends is not said
            raise Open
        if order.period == running:
            self.cancel(subscription, at_period_end=False)

    def dispute(self, order: Order) -> None:
        if order.status != "paid" or order.paid_at is None or order.method not in WINDOWS:
            raise Refused("*")
        if self.now > order.paid_at + WINDOWS[order.method]:
            raise Refused("dispute_window_closed")
        order.status = "disputed"

    def resolve(self, order: Order, outcome: str) -> None:
        """At the instant of the dispute: what it holds up has not come."""
        order.status = "paid"
        if outcome == "lost":
            order.refunded, order.status = order.amount, "refunded"
            self._take_back(order)

    # -- subscriptions

    def cancel(self, subscription: Subscription, *, at_period_end: bool) -> None:
        if subscription.status == "canceled":
            return  # a move to the present state
        if subscription.status not in RUNNING:
            raise Refused("invalid_state_transition")
        if subscription.bill is not None:
            subscription.bill.status = "canceled"
        if at_period_end and subscription.status != "past_due":
            subscription.cancels = True
        else:
            subscription.status = "canceled"

    def resume(self, subscription: Subscription) -> None:
        codes = []
        if subscription.status not in RUNNING or not subscription.cancels:
            codes.append("invalid_state_transition")
        if subscription.plan.project.status == "archived":
            codes.append("project_archived")
        if codes:
            raise Refused(*codes)
        if subscription.plan.project.status != "active":
            raise Open
        subscription.cancels, subscription.is_billed = False, False

    def _running(self, wanted: Callable[[Subscription], bool]) -> Iterator[Subscription]:
        return iter(
            [each for each in self.subscriptions if each.status in RUNNING and wanted(each)]
        )

    def _subscription_of(self, plan: Plan, customer: str) -> Subscription | None:
        return next(
            self._running(lambda each: each.plan is plan and each.customer == customer), None
        )

    # -- the clock

    def advance(self, by: timedelta) -> None:
        self._until(self.now + by)

    def settle(self) -> None:
        """What is due at once after a change is done with it: a renewal whose lead has
        begun is billed.
        """
        self._until(self.now)

    def _until(self, until: datetime) -> None:
        while True:
            due = [each for each in self._due() if each[0] <= until]
            if not due:
                break
            at, act = min(due, key=lambda each: each[0])
            self.now = max(self.now, at)
            act()
        self.now = until

    def _due(self) -> Iterator[tuple[datetime, Callable[[], None]]]:
        for order in self.orders:
            if order.status == "pending" and order.bills is None and order.expires_at is not None:
                yield order.expires_at, order.expire
        for each in self._running(lambda each: each.plan.project.status != "suspended"):
            yield self._next(each)

    def _next(self, each: Subscription) -> tuple[datetime, Callable[[], None]]:
        """What happens next to a subscription."""
        if each.status == "trialing" and not (each.anchor + each.shift >= each.end):
            begins = each.anchor + each.shift
            lead = self._lead(each)
            if begins <= lead or each.cancels or each.is_billed:
                return begins, lambda: setattr(each, "status", "active")
        if each.cancels:
            return each.end, lambda: setattr(each, "status", "canceled")
        if each.status == "past_due":
            return each.grace, lambda: self._expire(each)
        if each.is_billed:
            return each.end, lambda: setattr(each, "status", "past_due")
        return self._lead(each), lambda: self._bill(each)

    def _lead(self, each: Subscription) -> datetime:
        if each.method == "credit_card":
            return each.end
        return each.end - min(3 * DAY, (each.end - each.start_of_last) / 2)

    def _bill(self, each: Subscription) -> None:
        """Make the renewal order; the sandbox's cards pay at once."""
        if each.plan.project.status == "archived":
            raise Open
        order = Order(
            each.plan, each.customer, each.method, each.amount, self.now, each.grace, bills=each
        )
        self.orders.append(order)
        each.orders.append(order)
        each.is_billed = True
        if each.method == "credit_card":
            self._paid(order)

    def _expire(self, each: Subscription) -> None:
        if each.bill is not None:
            each.bill.expire()
        each.status = "expired"

    # -- figures

    def figures(self, project: Project) -> dict[str, int]:
        orders = [each for each in self.orders if each.plan.project is project]
        subscriptions = [each for each in self.subscriptions if each.plan.project is project]
        paid = [each for each in orders if each.paid_at is not None]
        return {
            "plans_count": sum(each.project is project for each in self.plans),
            "orders_count": len(orders),
            "total_revenue": sum(each.amount - each.refunded for each in paid),
            "total_subscribers": len({each.customer for each in subscriptions}),
            "active_subscribers": len(
                {each.customer for each in subscriptions if each.status in RUNNING}
            ),
        }
