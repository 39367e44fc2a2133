"""Explicit records of a scenario: checked against the contract's requests, then created by the engine's rules.

A record may have members that a request has not: `id` (a UUID) or `key` (a name that makes one), `created` (a
date-time) or `days_ago`, and for an order `status`. A reference `@name` stands for the record with that key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.formats import date_time_ms, is_date_time, is_uuid
from ..domain import orders as order_rules
from ..domain.customers import from_buyer, new_customer
from ..domain.documents import normalise
from ..domain.projects import known_plans, new_plan, new_product, new_project
from ..domain.subscriptions import CHARGED
from ..drawing.purchases import PAID, Fate, Offer
from ..engine import resources
from ..kernel.clock import DAY, HOUR, iso
from ..kernel.ids import named_uuid
from ..kernel.problem import Refusal
from ..kernel.record import Body
from ..scenarios.requests import RequestSchemas, expand
from ..scenarios.scenario import RecordSpec
from .merchant import move_project
from .sales import Sales

#: Table -> the kind of its records, the schema of a request that creates one, and days between it and the first sale.
KINDS = {
    "projects": ("project", "ProjectCreate", 20),
    "plans": ("plan", "PlanCreate", 16),
    "products": ("product", "ProductCreate", 12),
    "customers": ("customer", "CustomerCreate", 8),
    "orders": ("order", "OrderCreate", 0),
}
_OUTCOMES = ("pending", "paid", "expired", "canceled", "failed", "refunded")


class Records:
    """Plans the explicit records of one scenario. `in_use` are the ids, names and documents that records have."""

    def __init__(self, sales: Sales, requests: RequestSchemas, begun: int, scenario: str) -> None:
        self.sales, self.script, self.requests = sales, sales.script, requests
        self.begun, self.scenario, self.in_use, self.now = begun, scenario, sales.buyers.in_use, sales.script.end
        self.defaults = sales.script.sandbox.rules.defaults
        self._created: dict[str, int] = {}  # when each id and document was, in ms
        self._plans: dict[str, Body] = {offer.plan["id"]: offer.plan for offer in sales.offers}
        self._orders: list[tuple[RecordSpec, str, str, int]] = []

    def plan(self, number: int, spec: RecordSpec) -> None:
        """Check one, and have it created at its time. Raises ScenarioError."""
        kind, schema, _ = KINDS[spec.table]
        fields = _resolved(expand(spec.fields))
        names = ("id", "key", "created", "days_ago", "status_now", *(("status",) if kind == "order" else ()))
        own = {name: fields.pop(name) for name in names if name in fields}
        ident = self._ident(kind, own, spec, number)
        if kind == "order":
            fields.setdefault("paymentMethod", "pix")
        self.requests.check(schema, fields, spec.node.fail)
        at = self._created[ident] = self._time(own, spec)
        self._careful(spec, getattr(self, f"_{kind}"), spec, ident, fields, at, own)

    def check(self) -> None:
        """Whether every order has the status that it was to have. Raises ScenarioError."""
        for spec, ident, outcome, at in self._orders:
            order = self.script.store.orders.open(ident)
            if order is None or order.public["status"] != outcome:
                raise spec.node.fail(f"an order of {iso(at)} cannot be {outcome} yet; give it more days_ago")

    def _careful(self, spec: RecordSpec, action: Callable[..., None], *args: Any) -> None:
        """Do something; what the rules refuse is the scenario's fault."""
        try:
            action(*args)
        except Refusal as refusal:
            raise spec.node.fail(refusal.message) from None

    def _later(self, at: int, spec: RecordSpec, change: Callable[..., object], *args: Any) -> None:
        """Record a step at its time."""
        self.script.add(at, self._careful, spec, self.script.step, change, *args)

    def _claim(self, name: str, spec: RecordSpec, what: str) -> None:
        """Use an id, name or document that only one record can have."""
        if name in self.in_use:
            raise spec.node.fail(f"another {what}")
        self.in_use.add(name)

    def _ident(self, kind: str, own: Body, spec: RecordSpec, number: int) -> str:
        given, key = own.get("id"), own.get("key")
        if given is not None and (not isinstance(given, str) or not is_uuid(given)):
            raise spec.node.fail(f"id must be a UUID, not {given!r}")
        named = named_uuid(kind, *(str(key).split("/") if key is not None else (self.scenario, str(number))))
        ident = given.lower() if given is not None else named
        self._claim(ident, spec, f"{kind} has the id {ident}")
        return ident

    def _time(self, own: Body, spec: RecordSpec) -> int:
        """When a record is created, in ms."""
        days_before = KINDS[spec.table][2]
        at = self.sales.rhythm.start - days_before * DAY if days_before else self.now - 2 * HOUR
        if "created" in own:
            text = own["created"]
            if not isinstance(text, str) or not is_date_time(text):
                raise spec.node.fail(f"created must be a date-time such as 2026-11-20T14:32:05Z, not {text!r}")
            at = date_time_ms(text)
        elif "days_ago" in own:
            days = own["days_ago"]
            if isinstance(days, bool) or not isinstance(days, (int, float)) or days < 0:
                raise spec.node.fail(f"days_ago must be a number from 0, not {days!r}")
            at = self.now - int(days * DAY)
        if not self.begun < at <= self.now:
            allowed = f"must be after {iso(self.begun)} and not after {iso(self.now)}"
            raise spec.node.fail(f"created is {iso(at)}, but {allowed}")
        return at

    def _check_older(self, spec: RecordSpec, ident: str, what: str, at: int) -> None:
        """A record is created after those that it needs."""
        created = self._created.get(ident)
        if created is not None and created > at:
            raise spec.node.fail(f"the {KINDS[spec.table][0]} is older than its {what}, which is of {iso(created)}")

    def _project_id(self, spec: RecordSpec, fields: Body, at: int) -> str:
        """The id of the project that a plan, product or order names."""
        project: str = fields["projectId"].lower()
        if project not in self.in_use:
            raise spec.node.fail("projectId names no project of this scenario")
        self._check_older(spec, project, "project", at)
        return project

    # -- one kind each

    def _project(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body) -> None:
        self._claim(fields["name"].casefold(), spec, "project has this name")
        user, status = self.script.store.merchant.user_id, own.get("status_now")
        public, hidden = new_project(fields, self.defaults["Project"], ident, user, iso(at))
        if status not in (None, "draft", "active", "suspended", "archived"):
            raise spec.node.fail(f"status_now {status!r} is no status of a project")
        self._later(at, spec, resources.add_project, public, hidden)
        if status is not None:
            self._later(max(at, self.now - HOUR), spec, move_project, ident, status)

    def _plan(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body) -> None:
        project = self._project_id(spec, fields, at)
        public = self._plans[ident] = new_plan(fields, self.defaults["Plan"], iso(at)) | {"id": ident}
        self._claim(f"{project} {public['name'].casefold()}", spec, "plan of this project has this name")
        self._later(at, spec, resources.add_plan, public)

    def _product(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body) -> None:
        project = self._project_id(spec, fields, at)
        planned = self._plans
        fields["planIds"] = known_plans(
            fields.get("planIds", []), project, lambda plan_id: planned.get(plan_id, {}).get("projectId")
        )
        for plan in fields["planIds"]:
            self._check_older(spec, plan, "plan", at)
        public = new_product(fields, self.defaults["Product"], iso(at)) | {"id": ident}
        if public["sku"] is not None:
            self._claim(f"{project} sku {public['sku']}", spec, "product of this project has this sku")
        self._later(at, spec, resources.add_product, public)

    def _customer(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body) -> None:
        public = new_customer(fields, self.defaults["Customer"], iso(at)) | {"id": ident}
        self._claim(public["document"], spec, "customer has this document")
        self._add_customer(spec, public, at)

    def _add_customer(self, spec: RecordSpec, public: Body, at: int) -> None:
        self._created[public["document"]] = at
        self.sales.buyers.named += 1
        self._later(at, spec, resources.add_customer, public)

    def _order(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body) -> None:
        outcome, method = own.get("status") or "pending", fields["paymentMethod"]
        if outcome not in _OUTCOMES:
            raise spec.node.fail(f"status {outcome!r} is not one of {', '.join(_OUTCOMES)}")
        project, plan_id = self._project_id(spec, fields, at), fields["planId"].lower()
        plan = order_rules.check_plan(project, self._plans.get(plan_id))
        if at < date_time_ms(plan["createdAt"]):
            raise spec.node.fail(f"the order is older than its plan, which is of {plan['createdAt']}")
        if method == CHARGED and outcome not in ("paid", "failed", "refunded"):
            raise spec.node.fail(f"an order by card is paid or failed at once, never {outcome}")
        if outcome == "pending" and at + order_rules.life(method, at) <= self.now:
            lives = "a PIX can be paid for a day, a boleto until the third banking day"
            raise spec.node.fail(f"the order would have expired: {lives}")
        buyer = order_rules.buyer(fields["customer"])
        document = normalise(buyer["document"])
        self._check_older(spec, document, "customer", at)
        if document not in self.in_use:  # whoever buys without being known becomes a customer, as in createPixOrder
            self.in_use.add(document)
            public = new_customer(from_buyer(buyer)[0], self.defaults["Customer"], iso(at))
            self._add_customer(spec, public | {"id": named_uuid("customer", "of", ident)}, at)
        fate = Fate(outcome, (PAID,))
        self.sales.foresee(Offer({}, plan, 0.0, at, self.now, None, (), ()), at, fate)
        self._orders.append((spec, ident, outcome, at))
        body = fields | {"projectId": project, "planId": plan_id}
        self.script.add(at, self._careful, spec, self._buy, body, buyer, fate, ident)

    def _buy(self, body: Body, buyer: Body, fate: Fate, ident: str) -> None:
        customer = self.script.store.customers.holder("document", normalise(buyer["document"]))
        assert customer is not None  # planned before the order
        self.sales.shop.buy(self.script.draft(), body, buyer, customer, body["paymentMethod"], fate, ident)


def _resolved(fields: Body) -> Body:
    """References by name as ids."""
    for member, kind in (("projectId", "project"), ("planId", "plan")):
        if isinstance(fields.get(member), str):
            fields[member] = _reference(fields[member], kind)
    if isinstance(fields.get("planIds"), list):
        fields["planIds"] = [_reference(i, "plan") if isinstance(i, str) else i for i in fields["planIds"]]
    return fields


def _reference(text: str, kind: str) -> str:
    return named_uuid(kind, *text[1:].split("/")) if text.startswith("@") else text
