"""Explicit records of a scenario: held against the contract's requests, then lived by the engine's rules.

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
from ..domain.plans import new_plan
from ..domain.products import known_plans, new_product
from ..domain.projects import new_project
from ..domain.subscriptions import CHARGED
from ..drawing.fates import PAID, Fate
from ..drawing.market import Offer
from ..kernel.clock import DAY, HOUR, iso
from ..kernel.ids import named_uuid
from ..kernel.problem import Refusal
from ..kernel.record import Body
from ..scenarios.requests import RequestSchemas, expand
from ..scenarios.scenario import RecordSpec, ScenarioError
from .personas import enter
from .projects import Merchant
from .sales import Sales

KINDS = {"projects": "project", "plans": "plan", "products": "product", "customers": "customer", "orders": "order"}
_REQUESTS = {
    "projects": "ProjectCreate",
    "plans": "PlanCreate",
    "products": "ProductCreate",
    "customers": "CustomerCreate",
    "orders": "OrderCreate",
}
_OUTCOMES = ("pending", "paid", "expired", "canceled", "failed", "refunded")
_OWN = ("id", "key", "created", "days_ago", "status_now")


class Records:
    """Plans the explicit records of one scenario. `taken` are ids and documents that have been given away."""

    def __init__(
        self, sales: Sales, merchant: Merchant, requests: RequestSchemas, begun: int, scenario: str, taken: set[str]
    ) -> None:
        self.sales, self.script, self.requests, self.merchant = sales, sales.script, requests, merchant
        self.begun, self.scenario, self.taken, self.now = begun, scenario, taken, sales.script.end
        self.defaults = sales.script.sandbox.rules.defaults
        self._made: dict[str, int] = {}
        self._plans: dict[str, Body] = {offer.plan["id"]: offer.plan for offer in merchant.offers}
        self._ends: list[tuple[RecordSpec, str, str, int]] = []

    def plan(self, number: int, spec: RecordSpec) -> None:
        """Check one, and have it made at its time. Raises ScenarioError."""
        kind = KINDS[spec.table]
        fields = _resolved(expand(spec.fields))
        own = {name: fields.pop(name) for name in _OWN if name in fields}
        outcome = fields.pop("status", None) if spec.table == "orders" else None
        ident = self._ident(kind, own, spec, number)
        if spec.table == "orders":
            fields.setdefault("paymentMethod", "pix")
        self.requests.check(_REQUESTS[spec.table], fields, lambda reason: _error(spec, reason))
        at = self._created(own, spec)
        self._made[ident] = at
        try:
            getattr(self, f"_{kind}")(spec, ident, fields, at, own, outcome)
        except Refusal as refusal:
            raise _error(spec, refusal.message) from None

    def check(self) -> None:
        """Whether every order has become what it was to be. Raises ScenarioError."""
        for spec, ident, outcome, at in self._ends:
            order = self.script.store.orders.open(ident)
            if order is None or order.public["status"] != outcome:
                raise _error(spec, f"an order of {iso(at)} cannot be {outcome} yet; give it more days_ago")

    def _later(self, at: int, spec: RecordSpec, action: Callable[..., None], *args: Any) -> None:
        """Do something at its time; what the rules refuse then is the scenario's fault."""

        def careful() -> None:
            try:
                action(*args)
            except Refusal as refusal:
                raise _error(spec, refusal.message) from None

        self.script.add(at, careful)

    def _ident(self, kind: str, own: Body, spec: RecordSpec, number: int) -> str:
        given = own.get("id")
        if given is not None and (not isinstance(given, str) or not is_uuid(given)):
            raise _error(spec, f"id must be a UUID, not {given!r}")
        key = own.get("key")
        named = named_uuid(kind, *(str(key).split("/") if key is not None else (self.scenario, str(number))))
        ident = given.lower() if given is not None else named
        if ident in self.taken:
            raise _error(spec, f"another {kind} has the id {ident}")
        self.taken.add(ident)
        return ident

    def _created(self, own: Body, spec: RecordSpec) -> int:
        order = list(KINDS).index(spec.table)
        at = self.sales.rhythm.start - (20 - 4 * order) * DAY if order < 4 else self.now - 2 * HOUR
        if "created" in own:
            text = own["created"]
            if not isinstance(text, str) or not is_date_time(text):
                raise _error(spec, f"created must be a date-time such as 2026-11-20T14:32:05Z, not {text!r}")
            at = date_time_ms(text)
        elif "days_ago" in own:
            days = own["days_ago"]
            if isinstance(days, bool) or not isinstance(days, (int, float)) or days < 0:
                raise _error(spec, f"days_ago must be a number from 0, not {days!r}")
            at = self.now - int(days * DAY)
        if not self.begun < at <= self.now:
            raise _error(
                spec, f"created is {iso(at)}, but must be after {iso(self.begun)} and not after {iso(self.now)}"
            )
        return at

    def _check_older(self, spec: RecordSpec, ident: str, what: str, at: int) -> None:
        """A record is made after those that it needs."""
        made = self._made.get(ident)
        if made is not None and made > at:
            raise _error(spec, f"the {KINDS[spec.table]} is older than its {what}, which is of {iso(made)}")

    # -- one kind each

    def _project(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        name = fields["name"].casefold()
        if name in self.taken:
            raise _error(spec, "another project has this name")
        self.taken.add(name)
        user = self.script.store.merchant.user_id
        public, hidden = new_project(fields, self.defaults["Project"], ident, user, iso(at))
        status = own.get("status_now")
        if status is not None and status not in ("draft", "active", "suspended", "archived"):
            raise _error(spec, f"status_now {status!r} is no status of a project")
        self._later(at, spec, self.merchant.open_project, public, hidden)
        if status is not None:
            self._later(max(at, self.now - HOUR), spec, self.merchant.move_project, ident, status)

    def _plan(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        project = fields["projectId"].lower()
        if project not in self.taken:
            raise _error(spec, "projectId names no project of this scenario")
        self._check_older(spec, project, "project", at)
        public = new_plan(fields, self.defaults["Plan"], iso(at)) | {"id": ident}
        name = f"{project} {public['name'].casefold()}"
        if name in self.taken:
            raise _error(spec, "another plan of this project has this name")
        self.taken.add(name)
        self._plans[ident] = public
        self._later(at, spec, self.merchant.add_plan, public)

    def _product(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        project = fields["projectId"].lower()
        if project not in self.taken:
            raise _error(spec, "projectId names no project of this scenario")
        self._check_older(spec, project, "project", at)
        fields["planIds"] = known_plans(fields.get("planIds", []), project, self._project_of)
        for plan in fields["planIds"]:
            self._check_older(spec, plan, "plan", at)
        public = new_product(fields, self.defaults["Product"], iso(at)) | {"id": ident}
        sku = f"{project} sku {public['sku']}"
        if public["sku"] is not None and sku in self.taken:
            raise _error(spec, "another product of this project has this sku")
        self.taken.add(sku)
        self._later(at, spec, self.merchant.add_product, public)

    def _project_of(self, plan_id: str) -> str | None:
        plan = self._plans.get(plan_id)
        return None if plan is None else plan["projectId"]

    def _customer(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        public = new_customer(fields, self.sales.buyers.defaults, iso(at)) | {"id": ident}
        if public["document"] in self.taken:
            raise _error(spec, "another customer has this document")
        self.taken.add(public["document"])
        self._made[public["document"]] = at
        self.sales.buyers.named += 1
        self._later(at, spec, enter, self.script, public)

    def _order(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, outcome: Any) -> None:
        outcome = outcome or "pending"
        if outcome not in _OUTCOMES:
            raise _error(spec, f"status {outcome!r} is not one of {', '.join(_OUTCOMES)}")
        project, plan_id = fields["projectId"].lower(), fields["planId"].lower()
        if project not in self.taken:
            raise _error(spec, "projectId names no project of this scenario")
        plan = order_rules.check_plan(project, self._plans.get(plan_id))
        if at < date_time_ms(plan["createdAt"]):
            raise _error(spec, f"the order is older than its plan, which is of {plan['createdAt']}")
        if fields["paymentMethod"] == CHARGED and outcome not in ("paid", "failed", "refunded"):
            raise _error(spec, f"an order by card is paid or failed at once, never {outcome}")
        if outcome == "pending" and at + order_rules.life(fields["paymentMethod"], at) <= self.now:
            lives = "a PIX can be paid for a day, a boleto until the third banking day"
            raise _error(spec, f"the order would have expired: {lives}")
        buyer = order_rules.buyer(fields["customer"])
        document = normalise(buyer["document"])
        self._check_older(spec, document, "customer", at)
        if document not in self.taken:
            self.taken.add(document)
            self._made[document] = at
            self.sales.buyers.named += 1
            self._later(at, spec, enter, self.script, self._customer_of(buyer, ident, at))
        fate = Fate(outcome, (PAID,))
        self.sales.foresee(Offer({}, plan, 0.0, at, self.now, None, (), ()), at, fate)
        self._ends.append((spec, ident, outcome, at))
        body = fields | {"projectId": project, "planId": plan_id}
        self._later(at, spec, self._buy, body, buyer, document, fate, ident)

    def _customer_of(self, buyer: Body, order_id: str, at: int) -> Body:
        """Who buys without being known becomes a customer as createPixOrder makes one."""
        body, _ = from_buyer(buyer)
        public = new_customer(body, self.sales.buyers.defaults, iso(at))
        return public | {"id": named_uuid("customer", "of", order_id)}

    def _buy(self, body: Body, buyer: Body, document: str, fate: Fate, ident: str) -> None:
        shop = self.sales.shop
        customer = self.script.store.customers.holder("document", document)
        assert customer is not None  # planned before the order
        shop.buy(shop.draft(), body, buyer, customer, body["paymentMethod"], fate, ident)


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


def _error(spec: RecordSpec, reason: str) -> ScenarioError:
    return spec.node.fail(reason)
