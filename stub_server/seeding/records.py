"""Explicit records of a scenario: held against the contract's requests, then against the rules, then written.

A record may have members that a request has not: `id` (a UUID) or `key` (a name that makes one), `created` (a
date-time) or `days_ago`, and for an order `status`. A reference `@name` stands for the record with that key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.formats import date_time_ms, is_date_time, is_uuid
from ..domain import orders as order_rules
from ..domain.customers import from_flat, new_customer
from ..domain.documents import normalise
from ..domain.plans import new_plan
from ..domain.products import known_plans, new_product
from ..domain.projects import new_project
from ..kernel.clock import DAY, HOUR, iso
from ..kernel.ids import named_uuid
from ..kernel.problem import Refusal
from ..kernel.record import Body
from ..kernel.text import fold
from .lives import Fate, live
from .market import Offer
from .requests import Requests, expand
from .sales import Sales
from .scenario import RecordSpec, ScenarioError
from .streams import stream

_KINDS = {"projects": "project", "plans": "plan", "products": "product", "customers": "customer", "orders": "order"}
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
    """Writes the explicit records of one scenario."""

    def __init__(
        self, sales: Sales, requests: Requests, blanks: Mapping[str, Body], seed: int, start: int, scenario: str
    ) -> None:
        self.sales, self.store, self.requests, self.blanks = sales, sales.store, requests, blanks
        self.seed, self.start, self.scenario = seed, start, scenario
        self.now = sales.market.now

    def write(self, number: int, spec: RecordSpec) -> None:
        """Check and write one. Raises ScenarioError."""
        kind = _KINDS[spec.table]
        fields = _resolved(expand(spec.fields))
        own = {name: fields.pop(name) for name in _OWN if name in fields}
        outcome = fields.pop("status", None) if spec.table == "orders" else None
        ident = self._ident(kind, own, spec, number)
        if spec.table == "orders":
            fields.setdefault("paymentMethod", "pix")
        self.requests.check(_REQUESTS[spec.table], fields, lambda reason: _error(spec, reason))
        at = self._created(own, spec)
        try:
            getattr(self, f"_{kind}")(spec, ident, fields, at, own, outcome)
        except Refusal as refusal:
            raise _error(spec, refusal.message) from None

    def _ident(self, kind: str, own: Body, spec: RecordSpec, number: int) -> str:
        given = own.get("id")
        if given is not None and (not isinstance(given, str) or not is_uuid(given)):
            raise _error(spec, f"id must be a UUID, not {given!r}")
        key = own.get("key")
        named = named_uuid(kind, *(str(key).split("/") if key is not None else (self.scenario, str(number))))
        ident = given.lower() if given is not None else named
        if self.store.tables[spec.table].find(ident) is not None:
            raise _error(spec, f"another {kind} has the id {ident}")
        return ident

    def _created(self, own: Body, spec: RecordSpec) -> int:
        order = list(_KINDS).index(spec.table)
        at = self.start - (20 - 4 * order) * DAY if order < 4 else self.now - 2 * HOUR
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
        begun = date_time_ms(self.store.merchant.created_at)
        if not begun < at <= self.now:
            raise _error(spec, f"created is {iso(at)}, but must be after {iso(begun)} and not after {iso(self.now)}")
        return at

    # -- one kind each

    def _project(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        if self.store.projects.holder("name", fold(fields["name"])) is not None:
            raise _error(spec, "another project has this name")
        public, hidden = new_project(fields, self.blanks["Project"], ident, self.store.merchant.user_id, iso(at))
        status = own.get("status_now")
        if status is not None:
            if status not in ("draft", "active", "suspended", "archived"):
                raise _error(spec, f"status_now {status!r} is no status of a project")
            public["status"] = status
        self.store.add("projects", ident, public, hidden)

    def _plan(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        project = self.store.projects.find(fields["projectId"].lower())
        if project is None:
            raise _error(spec, "projectId names no project of this scenario")
        public = new_plan(fields, self.blanks["Plan"], iso(at)) | {"id": ident}
        if self.store.plans.holder("name", (public["projectId"], fold(public["name"]))) is not None:
            raise _error(spec, "another plan of this project has this name")
        self.store.add("plans", ident, public, {})
        self.sales.offers.append(self.offer(public))

    def offer(self, plan: Body) -> Offer:
        """An explicit plan as it is sold: on its own, never by the crowd."""
        row = self.store.projects.open(plan["projectId"])
        assert row is not None
        return Offer(row.public, plan, 0.0, date_time_ms(plan["createdAt"]), self.now, None, False, (), ())

    def _product(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        project_id = fields["projectId"].lower()
        if self.store.projects.find(project_id) is None:
            raise _error(spec, "projectId names no project of this scenario")
        fields["planIds"] = known_plans(fields.get("planIds", []), project_id, self._project_of)
        public = new_product(fields, self.blanks["Product"], iso(at)) | {"id": ident}
        if public["sku"] is not None and self.store.products.holder("sku", (project_id, public["sku"])) is not None:
            raise _error(spec, "another product of this project has this sku")
        self.store.add("products", ident, public, {})

    def _project_of(self, plan_id: str) -> str | None:
        plan = self.store.plans.open(plan_id)
        return None if plan is None else plan.public["projectId"]

    def _customer(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, _: Any) -> None:
        public = new_customer(fields, self.sales.buyers.blank, iso(at)) | {"id": ident}
        if self.store.customers.holder("document", public["document"]) is not None:
            raise _error(spec, "another customer has this document")
        self.sales.buyers.add(public, at)

    def _order(self, spec: RecordSpec, ident: str, fields: Body, at: int, own: Body, outcome: Any) -> None:
        outcome = outcome or "pending"
        if outcome not in _OUTCOMES:
            raise _error(spec, f"status {outcome!r} is not one of {', '.join(_OUTCOMES)}")
        project_id, plan_id = fields["projectId"].lower(), fields["planId"].lower()
        if self.store.projects.find(project_id) is None:
            raise _error(spec, "projectId names no project of this scenario")
        row = self.store.plans.open(plan_id)
        plan = order_rules.check_plan(project_id, row and row.public)
        if at < date_time_ms(plan["createdAt"]):
            raise _error(spec, f"the order is older than its plan, which is of {plan['createdAt']}")
        if outcome == "pending" and at <= self.now - order_rules.LIFE[fields["paymentMethod"]]:
            raise _error(spec, "the order would have expired: PIX and card can be paid for a day, a boleto for three")
        buyer = order_rules.buyer(fields["customer"])
        customer = self._buyer(buyer, at, ident, spec)
        rng = stream(self.seed, "records", ident)
        life = live(
            self.sales.market, rng, self.offer(plan), customer, buyer, at, Fate(outcome, ("paid",)),
            method=fields["paymentMethod"], body=fields | {"projectId": project_id, "planId": plan["id"]}, ident=ident,
        )  # fmt: skip
        if life.orders[0].public["status"] != outcome:
            raise _error(spec, f"an order of {iso(at)} cannot be {outcome} yet; give it more days_ago")
        self.sales.keep(life)

    def _buyer(self, buyer: Body, at: int, order_id: str, spec: RecordSpec) -> Body:
        """The customer with the buyer's document, or a new one made of the order as createPixOrder makes it."""
        document = normalise(buyer["document"])
        holder = self.store.customers.holder("document", document)
        if holder is not None:
            row = self.store.customers.open(holder)
            assert row is not None
            if date_time_ms(row.public["createdAt"]) > at:
                raise _error(spec, f"the order is older than its customer, who is of {row.public['createdAt']}")
            return row.public
        phones, address, _ = from_flat(buyer["phones"], buyer["address"])
        body = {name: buyer[name] for name in ("name", "email", "document", "document_type", "type")}
        ident = named_uuid("customer", "of", order_id)
        public = new_customer(body | {"phones": phones, "address": address}, self.sales.buyers.blank, iso(at)) | {
            "id": ident
        }
        self.sales.buyers.add(public, at)
        return public


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
    return ScenarioError(str(spec.node.fail(reason)))
