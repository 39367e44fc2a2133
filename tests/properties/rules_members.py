"""What a sequence may do to members: they pay again, stand still with a project, move, and get
money back.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_billing as billing
from . import model_catalogue as catalogue
from . import model_orders as orders
from . import model_periods as periods
from .bench import DOCUMENTS, Bench, pick
from .client import agree
from .model import RUNNING, Customer, Json, Plan, Project, Subscription, granted
from .moments import DAY, HOUR
from .rules_sales import buyer, control, dispute, pay, place, resolve

NUMBER = st.integers(0, 5)
ADDRESSES = (
    *("ana", "ana", "fail_immediately", "fill_never", "expire_with_delay", "succeed_immediately"),
    "refund_after_payment",
)


def pay_again(bench: Bench, found: Subscription, method: int) -> None:
    """The member buys the plan once more, with an address of no meaning."""
    plan = found.plan
    order = place(
        bench,
        plan,
        buyer(found.customer.document),
        plan.methods[method % len(plan.methods)],
        plan.amount,
    )
    if order is not None:
        pay(bench, order)


def move(bench: Bench, project: Project, verb: str) -> None:
    """Suspend, activate or archive."""
    to = {"suspend": "suspended", "activate": "active", "archive": "archived"}[verb]
    verdict = catalogue.may_move(project, to)
    reply = bench.hold(bench.client.ask("POST", f"/v2/projects/{project.id}/{verb}"), verdict)
    bench.touched = project
    if reply.granted:
        catalogue.move(bench.world, project, to)
        bench.settle()


def change_customer(bench: Bench, customer: Customer, body: Json) -> None:
    """updateCustomer with what cannot be refused."""
    reply = bench.client.ask("PUT", f"/v2/customers/{customer.id}", body)
    bench.hold(reply, catalogue.may_take_document(bench.world, customer.document, customer))
    if reply.granted:
        catalogue.update_customer(bench.world, customer, body)
        agree("customer", customer.view(), reply.body["customer"])


class MemberRules:
    """Mixed into the machine."""

    bench: Bench

    def _member(self, number: int, *states: str) -> Subscription | None:
        """A running membership, in one of the states if there is one."""
        running = [found for found in self.bench.world.subscriptions if found.running]
        return pick([found for found in running if found.status in states] or running, number)

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(
        number=NUMBER,
        state=st.sampled_from((*RUNNING, "past_due")),
        method=NUMBER,
        times=st.integers(1, 2),
    )
    def pay_once_more(self, number: int, state: str, method: int, times: int) -> None:
        """Buying a plan again renews the membership, whatever its state."""
        found = self._member(number, state)
        if found is None:
            return
        if state == "past_due" and found.status == "active" and not found.stopped and number % 2:
            self.bench.advance(max(self.bench.world.now, periods.paid_until(found)))
        for _ in range(times):
            pay_again(self.bench, found, method)

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(
        number=NUMBER,
        before=st.sampled_from((-5 * DAY, -HOUR, HOUR, DAY)),
        over=st.sampled_from((-HOUR, 1, HOUR, 2 * DAY, 8 * DAY, 40 * DAY)),
        meanwhile=st.sampled_from((None, None, "pay", "cancel")),
        then=st.sampled_from((None, "pay", "pay", "again", "wait")),
    )
    def stand_still(
        self, number: int, before: int, over: int, meanwhile: str | None, then: str | None
    ) -> None:
        """A project is suspended over an end, before it or in the grace after it, and
        activated again.
        """
        bench = self.bench
        found = self._member(number, "active", "trialing")
        if found is None or found.plan.project.status != "active":
            return
        project = found.plan.project
        end = (
            found.trial[1]
            if found.status == "trialing" and found.trial
            else periods.paid_until(found)
        )
        bench.advance(max(bench.world.now, end + before))
        move(bench, project, "suspend")
        bench.advance(max(bench.world.now, end + over))
        bill = found.renewal
        if meanwhile == "pay" and bill is not None and bill.status == "pending":
            pay(bench, bill)
        elif meanwhile == "cancel" and bill is not None and bill.status == "pending":
            bench.hold(control(bench, bill, "cancel"), orders.may_end(bill, "canceled"))
            orders.end(bench.world, bill, "canceled", "order.canceled")
        move(bench, project, "activate")
        bill = found.renewal
        if then == "pay" and bill is not None and bill.status == "pending":
            bench.advance(bench.world.now + HOUR)
            if bill.status == "pending":
                pay(bench, bill)
        elif then == "again" and found.running:
            pay_again(bench, found, number)
        elif then == "wait" and found.status == "past_due":
            bench.advance(periods.grace_end(found))

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(
        number=NUMBER,
        before=st.sampled_from((-5 * DAY, -HOUR, HOUR, DAY)),
        over=st.sampled_from((-HOUR, 1, HOUR, 2 * DAY, 8 * DAY, 40 * DAY)),
        meanwhile=st.sampled_from((None, None, "pay", "again", "suspend")),
        won=st.sampled_from((True, True, False)),
        part=st.booleans(),
    )
    def dispute_over_an_end(
        self, number: int, before: int, over: int, meanwhile: str | None, won: bool, part: bool
    ) -> None:
        """The order of a period is disputed over the period's end, before it or in the
        grace after it.
        """
        bench = self.bench
        found = self._member(number, "active", "trialing")
        if found is None:
            return
        end = periods.paid_until(found)
        bench.advance(max(bench.world.now, end + before))
        order = found.paid[-1]
        dispute(bench, order, order.earned // 2 if part and order.earned > 1 else None)
        bench.advance(max(bench.world.now, end + over))
        bill = found.renewal
        if meanwhile == "pay" and bill is not None and bill.status == "pending":
            pay(bench, bill)
        elif meanwhile == "again" and found.running:
            pay_again(bench, found, number)
        elif meanwhile == "suspend" and found.plan.project.status == "active":
            move(bench, found.plan.project, "suspend")
            bench.advance(bench.world.now + DAY)
        resolve(bench, order, won=won)
        if found.plan.project.status == "suspended":
            move(bench, found.plan.project, "activate")

    @precondition(
        lambda self: any(found.status == "active" for found in self.bench.world.subscriptions)
    )
    @rule(number=NUMBER, times=st.integers(1, 3), beside=st.sampled_from((-1, 0, HOUR)))
    def renew_early(self, number: int, times: int, beside: int) -> None:
        """Periods are paid ahead, and the old end passes."""
        bench = self.bench
        found = self._member(number, "active")
        if found is None or found.status != "active" or found.waits:
            return
        end = periods.boundary(found, periods.running_period(found, bench.world.now) + 1)
        for _ in range(times):
            reply = bench.client.ask("POST", f"/_sandbox/subscriptions/{found.id}/renew")
            verdict = billing.may_renew(found)
            bench.hold(reply, verdict)
            if not reply.granted:
                return
            billing.renew(bench.world, found)
            bench.settle()
            agree(
                f"renew {found.id}",
                periods.view(found, bench.world.now),
                reply.body["subscription"],
            )
        bench.advance(max(bench.world.now, end + beside))

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(
        number=NUMBER,
        which=st.sampled_from(("running", "future", "future", "older")),
        parts=st.booleans(),
    )
    def return_a_period(self, number: int, which: str, parts: bool) -> None:
        """All the money of the period that runs, of one to come or of one long over, at once or in
        two parts.
        """
        bench = self.bench
        now = self.bench.world.now
        paid = []
        for found in bench.world.subscriptions:
            if found.running:
                mine = [
                    order
                    for order in bench.world.orders
                    if order.subscription is found and order.paid is not None
                ]
                paid += [order for order in mine if periods.place_of(found, order, now) == which]
        order = pick(
            [order for order in paid if orders.may_refund(bench.world, order, None).granted], number
        )
        if order is None:
            return
        halves = (order.earned // 2, order.earned - order.earned // 2)
        for amount in halves if parts and halves[0] else (None,):
            body = None if amount is None else {"amount": amount / 100}
            reply = bench.hold(
                control(bench, order, "refund", body), orders.may_refund(bench.world, order, amount)
            )
            orders.refund(bench.world, order, amount)
            bench.compare_order(order, reply.body["order"])
        bench.settle()
        bench.touched = order.project

    @precondition(lambda self: self.bench.world.subscriptions)
    @rule(
        number=NUMBER, address=st.sampled_from(ADDRESSES), rename=st.booleans(), lives=st.booleans()
    )
    def change_address(self, number: int, address: str, rename: bool, lives: bool) -> None:
        """A member gets another name or an address that decides over the next bill, which
        then comes.
        """
        bench = self.bench
        found = self._member(number, "active")
        if found is None:
            return
        body: Json = {"email": f"{address}.{number}@Example.com"}
        if rename:
            body["name"] = bench.name("Cliente")
        change_customer(bench, found.customer, body)
        if lives and found.status == "active" and not found.stopped:
            card = found.method == periods.CARD
            bench.advance(max(bench.world.now, periods.billed_at(found) + (0 if card else HOUR)))

    @rule(
        number=NUMBER,
        document=st.sampled_from(DOCUMENTS),
        method=st.sampled_from(("boleto", "boleto", "pix")),
        wait=st.sampled_from((0, DAY, 31 * DAY)),
        then=st.sampled_from((None, "suspend", "archive")),
    )
    def pay_late(
        self, number: int, document: str, method: str, wait: int, then: str | None
    ) -> None:
        """Pay what has expired: a boleto for thirty days, whatever became of its project;
        by PIX never.
        """
        bench = self.bench
        selling = [
            plan for plan in bench.world.plans if plan.project.status == plan.status == "active"
        ]
        plan = pick(selling, number)
        if plan is None:
            return
        every: Json = {"payment_methods": ["pix", "credit_card", "boleto"]}
        bench.hold(bench.client.ask("PUT", f"/v2/plans/{plan.id}", every), granted())
        catalogue.update_plan(bench.world, plan, every)
        order = place(bench, plan, buyer(document), method, plan.amount)
        if order is None or order.status != "pending":
            return
        bench.advance(order.expires + wait)
        if then is not None:
            move(bench, order.project, then)
        pay(bench, order, late=True)

    @precondition(lambda self: any(plan.limit is not None for plan in self.bench.world.plans))
    @rule(
        number=NUMBER,
        documents=st.lists(st.sampled_from(DOCUMENTS), min_size=2, max_size=4),
        pays=st.booleans(),
    )
    def fill_seats(self, number: int, documents: list[str], pays: bool) -> None:
        """Orders that nobody has paid yet hold the seats of a small plan."""
        bench = self.bench
        small = [plan for plan in bench.world.plans if plan.limit is not None]
        open_now = [plan for plan in small if plan.project.status == plan.status == "active"]
        plan: Plan | None = pick(open_now or small, number)
        assert plan is not None
        for document in documents:
            order = place(bench, plan, buyer(document), plan.methods[0], plan.amount)
            if pays and order is not None:
                pay(bench, order)
                pays = False
