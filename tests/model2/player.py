"""Random lives, played with the second model and a server: what the one refuses, and how
the other answers.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import httpx2

from ..support.refusals import foreseen
from .model import DAY, Model, Open, Order, Plan, Refused

CUSTOMERS = ("52998224725", "11144477735", "91357000170", "21844730654")
SPANS = (
    timedelta(hours=1),
    timedelta(hours=25),
    3 * DAY,
    7 * DAY,
    8 * DAY,
    28 * DAY,
    31 * DAY,
    95 * DAY,
)
ACTS = 60  # of a life
WEIGHTS = {
    "project": 2, "move": 3, "delete_project": 1, "plan": 4, "change_plan": 3, "delete_plan": 1, "order": 14, "pay": 16,
    "end_order": 4, "refund": 4, "dispute": 3, "cancel": 3, "resume": 2, "advance": 12,
}  # fmt: skip


class Mismatch(AssertionError):
    """The server does otherwise than the model."""


@dataclass
class Tally:
    acts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    open: int = 0
    mismatches: list[str] = field(default_factory=list)


class Life:
    """One life in a sandbox whose clock is frozen."""

    def __init__(
        self, api: httpx2.Client, control: httpx2.Client, random: Random, tally: Tally
    ) -> None:
        self.api, self.control, self.random, self.tally = api, control, random, tally
        shown = control.get("/clock").json()["now"]
        self.model = Model(datetime.fromisoformat(shown).replace(tzinfo=None))
        self.told: list[str] = []

    def play(self, acts: int = ACTS) -> None:
        """Act until the end, or until the design says no more, and compare everything."""
        try:
            self.project()
            self.plan()
            for _ in range(acts):
                (name,) = self.random.choices([*WEIGHTS], [*WEIGHTS.values()])
                self.tally.acts[name] += 1
                getattr(self, name)()
            self.compare()
        except Open:
            self.tally.open += 1
        except Mismatch as error:
            self.tally.mismatches.append("\n  ".join([str(error), *self.told[-12:]]))

    def act(
        self, told: str, change: Callable[[], Any], method: str, path: str, body: Any
    ) -> tuple[Any, Any]:
        """Change the model and ask the server: what the model made, and the body of the answer;
        None where refused, by the model or by a row of the table of refusals.
        """
        self.told.append(f"{self.model.now.isoformat()} {told}")
        known = foreseen(lambda shown: self.api.get(shown).json(), method, path, body)
        answer = self.api.request(method, path, json=body)
        shown = answer.json()
        code = shown.get("code") if answer.is_error else None
        self.told[-1] += f" -> {answer.status_code} {code or ''}"
        if code in known:
            self.tally.refusals[str(code)] += 1
            return None, None
        expected = Refused(*known) if known else None
        made = None
        try:
            made = change()
            self.model.settle()
        except Refused as refused:
            expected = refused
        if expected is None and answer.is_success:
            return made, shown
        if (
            expected is None
            or answer.status_code != 409
            or (expected.codes != ("*",) and code not in expected.codes)
        ):
            raise Mismatch(
                f"{told}: expected {expected or 'success'}, but {answer.status_code} {code}"
                f" {shown.get('message')}"
            )
        self.tally.refusals[str(code)] += 1
        return None, None

    # -- acts

    def project(self) -> None:
        status = self.random.choice(["active", "active", "active", "draft"])
        name = f"Projeto {len(self.told)}"
        body = {"name": name, "status": status}
        made, answer = self.act(
            f"project {status}",
            lambda: self.model.create_project(status),
            "POST",
            "/v2/projects",
            body,
        )
        if answer is not None:
            made.id = answer["data"]["project"]["id"]

    def move(self) -> None:
        project = self.random.choice(self.model.projects) if self.model.projects else None
        if project is None:
            return
        status = self.random.choice(
            ["active", "active", "active", "suspended", "archived", "draft"]
        )
        if status == "archived" and self.random.random() < 0.7:
            return
        self.act(
            f"move {project.status} to {status}",
            lambda: self.model.move(project, status),
            "PATCH",
            f"/v2/projects/{project.id}/status",
            {"status": status},
        )

    def delete_project(self) -> None:
        if len(self.model.projects) < 2:
            return
        project = self.random.choice(self.model.projects)
        self.act(
            "delete project",
            lambda: self.model.delete_project(project),
            "DELETE",
            f"/v2/projects/{project.id}",
            None,
        )

    def plan(self) -> None:
        if not self.model.projects:
            return
        choose = self.random.choice
        project = choose(self.model.projects)
        interval = choose(["month", "month", "month", "week", "day", "year", None])
        methods = (
            ("pix", "credit_card", "boleto")
            if interval is None
            else choose([("pix",), ("pix", "credit_card")])
        )
        plan = Plan(
            project=project,
            name=f"Plano {choose(range(40))}",
            amount=choose(range(500, 20_000)),
            interval=interval,
            count=1 if interval is None else choose([1, 1, 2, 3]),
            trial=0 if interval is None else choose([0, 0, 0, 7, 30]),
            methods=methods,
            most=choose([None, None, None, 1, 2]),
        )
        body = {
            "projectId": project.id, "name": plan.name, "amount": plan.amount / 100, "payment_methods": methods,
            "billing_type": "one_time" if interval is None else "recurring", "max_subscribers": plan.most,
            "trial_period_days": plan.trial,
        }  # fmt: skip
        if interval is not None:
            body |= {"interval": interval, "interval_count": plan.count}
        _, answer = self.act(
            f"plan {body}",
            lambda: self.model.create_plan(plan),
            "POST",
            "/v2/plans",
            body,
        )
        if answer is not None:
            plan.id = answer["plan"]["id"]

    def change_plan(self) -> None:
        plan = self._plan()
        if plan is None:
            return
        amount = self.random.choice([None, self.random.randrange(500, 20_000)])
        status = self.random.choice(["active", "inactive"])
        count = (
            None
            if plan.interval is None
            else self.random.choice([None, plan.count, plan.count + 1])
        )
        wanted = {
            "amount": None if amount is None else amount / 100,
            "status": status,
            "interval_count": count,
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        self.act(
            f"change plan {body}",
            lambda: self.model.update_plan(plan, amount, status, count),
            "PUT",
            f"/v2/plans/{plan.id}",
            body,
        )

    def delete_plan(self) -> None:
        plan = self._plan()
        if plan is not None:
            self.act(
                "delete plan",
                lambda: self.model.delete_plan(plan),
                "DELETE",
                f"/v2/plans/{plan.id}",
                None,
            )

    def order(self) -> None:
        plan = self._plan()
        if plan is None:
            return
        document, method = (
            self.random.choice(CUSTOMERS),
            self.random.choice([*plan.methods, *plan.methods, "boleto"]),
        )
        if method == "boleto" and plan.interval is not None and "boleto" in plan.methods:
            return
        body = {
            "projectId": plan.project.id, "planId": plan.id, "paymentMethod": method, "totalAmount": plan.amount / 100,
            "items": [{"description": plan.name, "quantity": 1, "amount": plan.amount / 100}],
            "customer": {"name": "Cliente", "email": f"c{document}@example.com", "document": document},
        }  # fmt: skip
        path = "/v2/orders/pix" if method == "pix" and self.random.random() < 0.5 else "/v2/orders"
        made, answer = self.act(
            f"order {plan.name} by {document} {method}",
            lambda: self.model.order(plan, document, method, plan.amount),
            "POST",
            path,
            body,
        )
        if answer is None:
            return
        made.id = answer["id"]
        if method == "boleto":
            made.expires_at = datetime.fromisoformat(
                answer["last_transaction"]["expires_at"]
            ).replace(tzinfo=None)
            local = made.expires_at - timedelta(hours=3)
            if local.weekday() > 4 or (local.hour, local.minute, local.second) != (23, 59, 59):
                raise Mismatch(f"A boleto is due at {local}")
        self.equal("status of a new order", made.status, answer["status"])

    def pay(self) -> None:
        order = self._order()
        if order is None:
            return
        late = order.status == "expired"
        self.act(
            f"pay {order.status} {order.method} {order.id}",
            lambda: self.model.pay(order, late=late),
            "POST",
            f"/_sandbox/orders/{order.id}/pay",
            {"late": True} if late else {},
        )

    def end_order(self) -> None:
        order, act = self._order(), self.random.choice(["fail", "expire", "cancel"])
        if order is None:
            return
        status = {"fail": "failed", "expire": "expired", "cancel": "canceled"}[act]
        self.act(
            f"{act} {order.status} {order.id}",
            lambda: self.model.end_order(order, status),
            "POST",
            f"/_sandbox/orders/{order.id}/{act}",
            {},
        )

    def refund(self) -> None:
        order = self._order("paid")
        if order is None:
            return
        amount = self.random.choice(
            [None, None, order.amount // 3 or 1, order.amount, order.amount + 1]
        )
        self.act(
            f"refund {amount} of {order.status} {order.method} {order.id}",
            lambda: self.model.refund(order, amount),
            "POST",
            f"/_sandbox/orders/{order.id}/refund",
            {} if amount is None else {"amount": amount / 100},
        )

    def dispute(self) -> None:
        order, outcome = self._order("paid"), self.random.choice(["won", "lost"])
        if order is None or order.refunded:
            return
        _, opened = self.act(
            f"dispute {order.status} {order.method} {order.id}",
            lambda: self.model.dispute(order),
            "POST",
            f"/_sandbox/orders/{order.id}/dispute",
            {},
        )
        if opened is not None:
            self.equal("a disputed order", "disputed", opened["order"]["status"])
            self.act(
                f"resolve {outcome} {order.id}",
                lambda: self.model.resolve(order, outcome),
                "POST",
                f"/_sandbox/orders/{order.id}/dispute/resolve",
                {"outcome": outcome},
            )

    def cancel(self) -> None:
        self._subscribed("cancel", lambda each, later: self.model.cancel(each, at_period_end=later))

    def resume(self) -> None:
        self._subscribed("resume", lambda each, _: self.model.resume(each))

    def _subscribed(self, name: str, change: Callable[[Any, bool], None]) -> None:
        if not self.model.subscriptions:
            return
        each, later = self.random.choice(self.model.subscriptions), self.random.random() < 0.7
        ident = self._shown(each)["id"]
        if name == "cancel" and each.cancels:
            return  # whether it is refused or repeated is left open
        body = {"at_period_end": later} if name == "cancel" else {}
        self.act(
            f"{name} {each.status} {body}",
            lambda: change(each, later),
            "POST",
            f"/_sandbox/subscriptions/{ident}/{name}",
            body,
        )

    def advance(self) -> None:
        span = self.random.choice(SPANS)
        seconds = int(span.total_seconds())
        self.act(
            f"advance {span}",
            lambda: self.model.advance(span),
            "POST",
            "/_sandbox/clock/advance",
            {"seconds": seconds},
        )
        self.compare()

    # -- comparing

    def compare(self) -> None:
        """Everything of this life: orders, subscriptions and figures."""
        self.tally.states.update(f"Order {each.status}" for each in self.model.orders)
        self.tally.states.update(f"Subscription {each.status}" for each in self.model.subscriptions)
        for plan in {each.plan for each in self.model.orders}:
            self._compare_orders(plan)
        for each in self.model.subscriptions:
            shown = self._shown(each)
            self.equal(f"state of the subscription {shown['id']}", each.status, shown["status"])
            if each.status in ("active", "past_due") and not each.shift:
                ends = datetime.fromisoformat(shown["current_period_end"]).replace(tzinfo=None)
                self.equal(f"end of the period of {shown['id']}", each.end, ends)
            if each.status != "canceled" and each.status != "expired":
                self.equal(
                    f"cancellation of {shown['id']}", each.cancels, shown["cancel_at_period_end"]
                )
        for project in self.model.projects:
            shown = self.api.get(f"/v2/projects/{project.id}").json()["data"]["project"]
            self.equal("state of the project", project.status, shown["status"])
            figures = {name: shown[name] for name in self.model.figures(project)}
            figures["total_revenue"] = round(figures["total_revenue"] * 100)
            self.equal(f"figures of {project.id}", self.model.figures(project), figures)

    def _compare_orders(self, plan: Plan) -> None:
        listed: list[Any] = []
        for page in count(1):
            query: dict[str, str | int] = {
                "planId": plan.id,
                "limit": 100,
                "page": page,
                "sort": "createdAt",
            }
            answer = self.api.get("/v2/orders", params=query).json()
            listed += answer["orders"]
            if not answer["pagination"]["has_next"]:
                break
        known = [each for each in self.model.orders if each.plan is plan]
        by_id = {each.id: each for each in known}
        for shown in [each for each in listed if each["id"] not in by_id]:
            created = datetime.fromisoformat(shown["createdAt"]).replace(tzinfo=None)
            fits = [
                e
                for e in known
                if not e.id
                and (e.customer, e.created_at) == (shown["customer"]["document"], created)
            ]
            if not fits:
                raise Mismatch(
                    f"The server made an order at {created} for {shown['customer']['document']}:"
                    f" {shown['status']}"
                )
            fits[0].id = shown["id"]
            by_id[shown["id"]] = fits[0]
        for missing in [each for each in known if not each.id]:
            raise Mismatch(
                f"The server made no order at {missing.created_at} for {missing.customer}"
                f" ({missing.status})"
            )
        for shown in listed:
            expected = by_id[shown["id"]]
            self.equal(f"state of the order {shown['id']}", expected.status, shown["status"])
            self.equal(
                f"amount of the order {shown['id']}",
                expected.amount,
                round(shown["totalAmount"] * 100),
            )

    def _shown(self, subscription: Any) -> Any:
        found = self.api.get("/v2/subscriptions", params={"orderId": subscription.first.id}).json()[
            "subscriptions"
        ]
        if not found:
            raise Mismatch(f"The order {subscription.first.id} opened no subscription")
        return found[0]

    def equal(self, what: str, expected: Any, found: Any) -> None:
        if expected != found:
            raise Mismatch(f"{what}: the model has {expected}, the server {found}")

    # -- choosing

    def _plan(self) -> Plan | None:
        return self.random.choice(self.model.plans) if self.model.plans else None

    def _order(self, status: str = "pending") -> Order | None:
        known = [each for each in self.model.orders if each.id]
        wanted = [each for each in known if each.status == status]
        chosen = wanted if wanted and self.random.random() < 0.8 else known
        return self.random.choice(chosen) if chosen else None
