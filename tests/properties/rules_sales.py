"""What a sequence may do to orders."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_orders as orders
from .bench import DOCUMENTS, UNKNOWN, Bench, pick
from .client import Reply, agree
from .model import Buyer, Json, Order, Plan, Project, refused
from .moments import DAY, HOUR

NUMBER = st.integers(0, 5)
READABLE = ("customers", "projects", "plans", "products", "orders")
CODES = sorted({code for codes in orders.FAILURES.values() for code in codes})
METHODS = st.sampled_from(("pix", "pix", "pix", "credit_card", "boleto"))


def buyer(document: str, email: str = "rosa@example.com", zip_code: str | None = None) -> Buyer:
    """Somebody who buys."""
    return Buyer("Rosa Lima", email, document, zip_code)


def order_body(
    project_id: str, plan_id: str, who: Buyer, method: str, cents: int, *, odd: bool = False
) -> Json:
    """What createOrder takes; `odd` writes mask and capitals, and items that miss the
    total by a cent.
    """
    customer: Json = {"name": who.name, "email": who.email, "document": who.document}
    if odd:
        customer |= {
            "email": who.email.replace("rosa", "Rosa").replace("@e", "@E"),
            "document": masked(who.document),
        }
    if who.zip_code is not None:
        customer["address"] = {
            "zip_code": f"{who.zip_code[:5]}-{who.zip_code[5:]}" if odd else who.zip_code
        }
    return {
        "projectId": project_id,
        "planId": plan_id,
        "paymentMethod": method,
        "totalAmount": cents / 100,
        "items": [{"description": "Plano", "quantity": 1, "amount": (cents - odd) / 100}],
        "customer": customer,
    }


def masked(document: str) -> str:
    """A CPF as people write it."""
    return f"{document[:3]}.{document[3:6]}.{document[6:9]}-{document[9:]}"


def place(
    bench: Bench, plan: Plan, who: Buyer, method: str, cents: int, *, odd: bool = False
) -> Order | None:
    """createOrder or createPixOrder, granted or refused; answers the model's order."""
    world = bench.world
    here = plan if plan in world.plans else None
    project = plan.project if plan.project in world.projects else None
    verdict = orders.may_place(world, project, here, who.document)
    differs = orders.differs(world, who)
    body = order_body(plan.project.id, plan.id, who, method, cents, odd=odd)
    path = "/v2/orders/pix" if method == "pix" and cents % 2 else "/v2/orders"
    reply = bench.hold(bench.client.ask("POST", path, body), verdict)
    if not reply.granted:
        return None
    bench.warned(reply, orders.warnings(world, plan, who.document, cents, cents - odd) | differs)
    return placed(bench, plan, who, body, reply)


def placed(bench: Bench, plan: Plan, who: Buyer, body: Json, reply: Reply) -> Order:
    """Take an order that was granted into the model."""
    cents = round(body["totalAmount"] * 100)
    order = orders.place(bench.world, plan, who, body["paymentMethod"], cents)
    order.id = reply.body["id"]
    if order.customer.id is None:
        order.customer.id = bench.inspect(reply.body["id"])["customerId"]
    bench.compare_order(order, reply.body)
    bench.touched = plan.project
    bench.settle()
    return order


def control(bench: Bench, order: Order, verb: str, body: Json | None = None) -> Reply:
    """A move of the control surface."""
    return bench.client.ask("POST", f"/_sandbox/orders/{order.id}/{verb}", body)


def pay(bench: Bench, order: Order, *, late: bool = False) -> None:
    """Pay, granted or refused."""
    verdict = orders.may_pay(bench.world, order, late=late)
    reply = bench.hold(control(bench, order, "pay", {"late": True} if late else None), verdict)
    if reply.granted:
        orders.pay(bench.world, order)
        bench.compare_order(order, reply.body["order"])
        bench.settle()
    bench.touched = order.project


def dispute(bench: Bench, order: Order, amount: int | None = None) -> None:
    """Dispute, granted or refused."""
    verdict = orders.may_dispute(bench.world, order, amount)
    reply = bench.hold(
        control(bench, order, "dispute", None if amount is None else {"amount": amount / 100}),
        verdict,
    )
    if reply.granted:
        orders.dispute(bench.world, order, amount)
        bench.compare_order(order, reply.body["order"])
        bench.settle()
    bench.touched = order.project


def resolve(bench: Bench, order: Order, *, won: bool) -> None:
    """Resolve, granted or refused."""
    verdict = orders.may_resolve(order)
    body: Json = {"outcome": "won" if won else "lost"}
    reply = bench.hold(control(bench, order, "dispute/resolve", body), verdict)
    if reply.granted:
        orders.resolve(bench.world, order, won=won)
        bench.compare_order(order, reply.body["order"])
        bench.settle()
    bench.touched = order.project


def preferred(items: list[Order], status: str, number: int) -> Order | None:
    """One in the state nearly always, any other at times."""
    fitting = [order for order in items if order.status == status]
    return pick(fitting, number) if fitting and number else pick(items, number)


class OrderRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(
        number=NUMBER,
        document=st.sampled_from(DOCUMENTS),
        magic=st.sampled_from((None, None, *orders.MAGIC)),
        method=METHODS,
        cents=st.integers(2, 99_999_999),
        zip_code=st.sampled_from((None, "01310100")),
        odd=st.booleans(),
    )
    def place_order(
        self,
        number: int,
        document: str,
        magic: str | None,
        method: str,
        cents: int,
        zip_code: str | None,
        odd: bool,
    ) -> None:
        """Any method, total and magic address, written as people write."""
        plan = pick(self.bench.world.plans, number)
        if plan is not None:
            who = buyer(document, f"{magic or 'rosa'}@example.com", zip_code)
            place(self.bench, plan, who, method, cents, odd=odd)

    @rule(
        number=NUMBER,
        document=st.sampled_from(DOCUMENTS),
        magic=st.sampled_from((None, None, "succeed_immediately")),
    )
    def buy(self, number: int, document: str, magic: str | None) -> None:
        """Place an order and let it be paid."""
        selling = [
            plan
            for plan in self.bench.world.plans
            if plan.project.status == plan.status == "active"
        ]
        plan = pick(selling, number)
        if plan is None:
            return
        who = buyer(document, f"{magic or 'rosa'}@example.com")
        order = place(self.bench, plan, who, plan.methods[0], plan.amount)
        if order is not None and magic is None:
            pay(self.bench, order)

    @rule(number=NUMBER, other=NUMBER, path=st.sampled_from((None, *READABLE)))
    def ask_astray(self, number: int, other: int, path: str | None) -> None:
        """What does not exist, or a plan that is not of this project."""
        world = self.bench.world
        if path is not None:
            self.bench.hold(
                self.bench.client.get(f"/v2/{path}/{UNKNOWN}"), refused(404, "not_found")
            )
            return
        plan = pick(world.plans, number)
        project = pick(world.projects, other)
        if plan is None or plan.project is project:
            plan = Plan(UNKNOWN, project or Project(UNKNOWN, "", "active"), "", 1, None, None)
        body = order_body(
            project.id if project else UNKNOWN, plan.id, buyer(DOCUMENTS[0]), "pix", 100
        )
        self.bench.hold(
            self.bench.client.ask("POST", "/v2/orders/pix", body),
            refused(409, "reference_not_found"),
        )

    @precondition(lambda self: self.bench.world.orders)
    @rule(number=NUMBER)
    def pay_order(self, number: int) -> None:
        """Pay what waits, at times what does not."""
        order = preferred(self.bench.world.orders, "pending", number)
        assert order is not None
        pay(self.bench, order, late=bool(number % 2))

    @precondition(lambda self: self.bench.world.orders)
    @rule(
        number=NUMBER,
        verb=st.sampled_from(("fail", "fail", "expire", "cancel")),
        code=st.sampled_from((None, *CODES)),
    )
    def end_order(self, number: int, verb: str, code: str | None) -> None:
        """End what waits, at times what does not; a failure has a reason, at times that
        of another method.
        """
        order = preferred(self.bench.world.orders, "pending", number)
        assert order is not None
        status, event = {
            "fail": ("failed", "order.payment_failed"),
            "expire": ("expired", "order.expired"),
            "cancel": ("canceled", "order.canceled"),
        }[verb]
        body: Json | None = None
        verdict = orders.may_end(order, status)
        # what has failed keeps its reason
        if verb == "fail" and code is not None and order.status != "failed":
            body = {"code": code}
            verdict = orders.may_fail(order, code)
        reply = self.bench.hold(control(self.bench, order, verb, body), verdict)
        if reply.granted:
            if order.status != status:
                order.failure = None if body is None else body["code"]
                orders.end(self.bench.world, order, status, event)
            self.bench.compare_order(order, reply.body["order"])
        self.bench.touched = order.project

    @precondition(lambda self: self.bench.world.orders)
    @rule(number=NUMBER, share=st.sampled_from((None, None, 0.1, 0.5, 1.0, 1.5)))
    def refund_order(self, number: int, share: float | None) -> None:
        """All, a part, or more than there is."""
        order = preferred(self.bench.world.orders, "paid", number)
        assert order is not None
        amount = None if share is None else min(max(1, round(order.earned * share)), 99_999_999)
        verdict = orders.may_refund(self.bench.world, order, amount)
        body = None if amount is None else {"amount": amount / 100}
        reply = self.bench.hold(control(self.bench, order, "refund", body), verdict)
        if reply.granted:
            orders.refund(self.bench.world, order, amount)
            self.bench.compare_order(order, reply.body["order"])
            self.bench.settle()
        self.bench.touched = order.project

    @precondition(lambda self: self.bench.world.orders)
    @rule(number=NUMBER, share=st.sampled_from((None, None, 0.5, 1.0, 1.5)), again=st.booleans())
    def dispute_order(self, number: int, share: float | None, again: bool) -> None:
        """All, a part, or more than there is; at times of what is disputed already."""
        order = preferred(
            self.bench.world.orders, "disputed" if again and number > 3 else "paid", number
        )
        assert order is not None
        amount = None if share is None else min(max(1, round(order.earned * share)), 99_999_999)
        dispute(self.bench, order, amount)

    @precondition(lambda self: self.bench.world.orders)
    @rule(number=NUMBER, won=st.booleans())
    def resolve_dispute(self, number: int, won: bool) -> None:
        """End one, at times where there is none."""
        order = preferred(self.bench.world.orders, "disputed", number)
        assert order is not None
        resolve(self.bench, order, won=won)

    @rule(number=NUMBER, other=st.booleans(), leap=st.sampled_from((0, HOUR, 25 * HOUR)))
    def repeat_order(self, number: int, other: bool, leap: int) -> None:
        """The same key again: the same answer and one effect, until a day has passed."""
        bench = self.bench
        plan = pick(bench.world.plans, number)
        who = buyer(DOCUMENTS[0])
        if plan is None:
            return
        idem = bench.name("repeat").replace(" ", "-")
        body = order_body(plan.project.id, plan.id, who, "pix", 1990)
        first = self._ordered(plan, who, body, idem)
        if not first.granted:
            return
        if leap:
            bench.advance(bench.world.now + leap)
        if leap > DAY:
            self._ordered(plan, who, body, idem)
            return
        again = bench.client.ask("POST", "/v2/orders/pix", body, idem=idem)
        agree("repeated order", (201, first.body), (again.status, again.body))
        agree("Idempotent-Replayed", "true", again.headers.get("Idempotent-Replayed"))
        if other:
            changed = body | {"totalAmount": 19.91}
            reply = bench.client.ask("POST", "/v2/orders/pix", changed, idem=idem)
            bench.hold(reply, refused(409, "idempotency_key_reused"))

    def _ordered(self, plan: Plan, who: Buyer, body: Json, idem: str) -> Reply:
        """createPixOrder with a key that stands for no order, granted or refused."""
        bench = self.bench
        verdict = orders.may_place(bench.world, plan.project, plan, who.document)
        reply = bench.hold(bench.client.ask("POST", "/v2/orders/pix", body, idem=idem), verdict)
        if reply.granted:
            placed(bench, plan, who, body, reply)
        return reply
