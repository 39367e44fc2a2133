"""What a scenario names: personas and explicit records, created by the engine's rules at their time.

A record is checked against the contract's requests. It may have members that a request has not: `id` (a UUID) or `key`
(a name that makes one), `created` (a date-time) or `days_ago`, and for an order `status`. A reference `@name` stands
for the record with that key.
"""

from collections.abc import Callable
from typing import Any

from ..contract.schema import Schemas
from ..domain import orders as order_rules
from ..domain.customers import as_buyer, from_buyer, new_customer
from ..domain.documents import normalise
from ..domain.lifecycle import known_ids
from ..domain.projects import new_plan, new_product, new_project
from ..domain.subscriptions import CHARGED
from ..drawing.draw import stream
from ..drawing.purchases import PAID, Fate, Offer, cart
from ..drawing.rhythm import moment
from ..engine import resources
from ..kernel.clock import DAY, HOUR, iso, parse_iso
from ..kernel.ids import named_uuid
from ..kernel.problem import Refusal
from ..kernel.record import Body
from ..scenarios.files import Node, check_request, expand
from .merchant import move_project
from .personas import STORIES, Story
from .sales import Sales

#: Table -> the kind of its records, the schema of a request that creates one, and days between it and the first sale.
KINDS = {
    "projects": ("project", "ProjectCreate", 20),
    "plans": ("plan", "PlanCreate", 16),
    "products": ("product", "ProductCreate", 12),
    "customers": ("customer", "CustomerCreate", 8),
    "orders": ("order", "OrderCreate", 0),
}


class Records:
    """Plans what the scenario names. `in_use` are the ids, names and documents that records have.

    A node is the place in the file that an error names. Methods raise ScenarioError.
    """

    def __init__(self, sales: Sales, schemas: Schemas, begun: int) -> None:
        self.sales, self.script, self.scenario, self.schemas = sales, sales.script, sales.scenario, schemas
        self.begun, self.in_use, self.now = begun, sales.buyers.in_use, sales.script.end
        self.defaults = sales.script.sandbox.rules.defaults
        self._created: dict[str, int] = {}  # when each id and document was, in ms
        self._plans: dict[str, Body] = {offer.plan["id"]: offer.plan for offer in sales.planner.offers}
        self._orders: list[tuple[Node, str, str, int]] = []

    def plan(self) -> None:
        """Plan the catalogue, then personas, who may buy from it, customers and orders."""
        root, number = self.scenario.root, 0
        for table in KINDS:
            if table == "customers":
                for name, persona in self.scenario.personas.items():
                    self._persona(name, persona)
            for node in root["records"].each(table) if root.get("records", None) else ():
                self._record(number, table, node)
                number += 1

    def check(self) -> None:
        """Check at the end that every order has the status that the scenario gives it."""
        for node, ident, outcome, at in self._orders:
            order = self.script.store.orders.open(ident)
            if order is None or order.public["status"] != outcome:
                raise node.fail(f"an order of {iso(at)} cannot be {outcome} yet; give it more days_ago")

    def _checked(self, node: Node, action: Callable[..., object], *args: Any) -> None:
        """Call an action; what the rules refuse is an error of the file."""
        try:
            action(*args)
        except Refusal as refusal:
            raise node.fail(refusal.message) from None

    def _later(self, at: int, node: Node, change: Callable[..., object], *args: Any) -> None:
        """Plan a step at an instant."""
        self.script.add(at, self._checked, node, self.script.step, change, *args)

    def _claim(self, name: str, node: Node, what: str) -> None:
        """Use an id, name or document that only one record can have."""
        if name in self.in_use:
            raise node.fail(f"another {what}")
        self.in_use.add(name)

    def _ident(self, kind: str, node: Node, given: str | None, named: str) -> str:
        """The id of a record: the one that the scenario gives, or `named`."""
        ident = named if given is None else given.lower()
        self._claim(ident, node, f"{kind} has the id {ident}")
        return ident

    # -- personas

    def _persona(self, name: str, persona: Node) -> None:
        node, sandbox, story = persona["customer"], self.script.sandbox, persona.value["story"]
        fields = expand(node)
        given = fields.pop("id", None)
        check_request(self.schemas, "CustomerCreate", fields, node)
        rng = stream(sandbox.seed, "personas", name)
        purchases = STORIES[story](Story(self.sales.planner.offers, self.now, persona, rng))
        first = min((at for _, at, _ in purchases), default=moment(rng, self.now - 3 * HOUR, 2 * HOUR))
        ident = sandbox.personas[name] = self._ident("customer", node, given, named_uuid("customer", name))
        public = self._customer(node, ident, fields, first)
        for offer, at, fate in purchases:
            if at < offer.opens:
                raise persona.fail(f"the story {story!r} begins on {iso(at)}, before its plan: raise `months`")
            self.sales.foresee(offer.plan, at, fate)
            self.script.add(at, self._checked, persona, self._buy_of_story, offer, as_buyer(public), ident, fate)

    def _buy_of_story(self, offer: Offer, buyer: Body, customer_id: str, fate: Fate) -> None:
        # PIX takes an account in Brazil; only what is paid once can be left to a card: no story tells of its renewals.
        abroad = buyer["address"].get("country") not in (None, "BR")
        once = fate.outcome == "paid" and offer.plan["interval"] is None and CHARGED in offer.plan["payment_methods"]
        method, shop = CHARGED if abroad and once else "pix", self.sales.shop
        shop.buy(self.script.draft(), cart(shop.luck, offer), buyer, customer_id, method, fate)

    # -- explicit records

    def _record(self, number: int, table: str, node: Node) -> None:
        kind, schema, days_before = KINDS[table]
        fields = _resolved(expand(node))
        names = ("id", "key", "created", "days_ago", "status_now", *(("status",) if kind == "order" else ()))
        own = {name: fields.pop(name) for name in names if name in fields}
        given, key = own.get("id"), own.get("key")
        named = named_uuid(kind, *(str(key).split("/") if key is not None else (self.scenario.name, str(number))))
        ident = self._ident(kind, node, given, named)
        if kind == "order":
            fields.setdefault("paymentMethod", "pix")
        check_request(self.schemas, schema, fields, node)
        usual = self.sales.planner.rhythm.start - days_before * DAY if days_before else self.now - 2 * HOUR
        at = self._created[ident] = self._time(own, usual, node)
        if "projectId" in fields:
            project = fields["projectId"] = fields["projectId"].lower()
            if project not in self.in_use:
                raise node.fail("projectId names no project of this scenario")
            self._check_older(node, kind, project, "project", at)
        self._checked(node, getattr(self, f"_{kind}"), node, ident, fields, at, own)

    def _time(self, own: Body, usual: int, node: Node) -> int:
        """When a record is created, in ms."""
        at = usual
        if "created" in own:
            at = parse_iso(own["created"])
        elif "days_ago" in own:
            at = self.now - int(own["days_ago"] * DAY)
        if not self.begun < at <= self.now:
            allowed = f"must be after {iso(self.begun)} and not after {iso(self.now)}"
            raise node.fail(f"created is {iso(at)}, but {allowed}")
        return at

    def _check_older(self, node: Node, kind: str, ident: str, what: str, at: int) -> None:
        """Check that a record is created after one that it needs."""
        created = self._created.get(ident)
        if created is not None and created > at:
            raise node.fail(f"the {kind} is older than its {what}, which is of {iso(created)}")

    def _project(self, node: Node, ident: str, fields: Body, at: int, own: Body) -> None:
        self._claim(fields["name"].casefold(), node, "project has this name")
        user, status = self.script.store.merchant.user_id, own.get("status_now")
        public, hidden = new_project(fields, self.defaults["Project"], ident, user, iso(at))
        self._later(at, node, resources.add_project, public, hidden)
        if status is not None:
            self._later(max(at, self.now - HOUR), node, move_project, ident, status)

    def _plan(self, node: Node, ident: str, fields: Body, at: int, own: Body) -> None:
        public = self._plans[ident] = new_plan(fields, self.defaults["Plan"], iso(at)) | {"id": ident}
        self._claim(f"{public['projectId']} {public['name'].casefold()}", node, "plan of this project has this name")
        self._later(at, node, resources.add, "plans", public)

    def _product(self, node: Node, ident: str, fields: Body, at: int, own: Body) -> None:
        project, planned = fields["projectId"], self._plans
        fields["planIds"] = known_ids(
            "planIds",
            "plan",
            fields.get("planIds", []),
            lambda ident: planned.get(ident, {}).get("projectId") == project,
        )
        for plan in fields["planIds"]:
            self._check_older(node, "product", plan, "plan", at)
        public = new_product(fields, self.defaults["Product"], iso(at)) | {"id": ident}
        if public["sku"] is not None:
            self._claim(f"{project} sku {public['sku']}", node, "product of this project has this sku")
        self._later(at, node, resources.add, "products", public)

    def _customer(self, node: Node, ident: str, fields: Body, at: int, own: Body | None = None) -> Body:
        public = new_customer(fields, self.defaults["Customer"], iso(at)) | {"id": ident}
        self._claim(public["document"], node, "customer has this document")
        self._created[public["document"]] = at
        self.sales.buyers.named += 1
        self._later(at, node, resources.add, "customers", public)
        return public

    def _order(self, node: Node, ident: str, fields: Body, at: int, own: Body) -> None:
        outcome, method = own.get("status") or "pending", fields["paymentMethod"]
        fields["planId"] = fields["planId"].lower()
        plan = order_rules.check_plan(fields["projectId"], self._plans.get(fields["planId"]))
        if at < parse_iso(plan["createdAt"]):
            raise node.fail(f"the order is older than its plan, which is of {plan['createdAt']}")
        if method == CHARGED and outcome not in ("paid", "failed", "refunded"):
            raise node.fail(f"an order by card is paid or failed at once, never {outcome}")
        if outcome == "pending" and at + order_rules.life(method, at) <= self.now:
            lives = "a PIX can be paid for a day, a boleto until the third banking day"
            raise node.fail(f"the order would have expired: {lives}")
        buyer = order_rules.buyer(fields["customer"])
        document = normalise(buyer["document"])
        self._check_older(node, "order", document, "customer", at)
        if document not in self.in_use:  # whoever buys without being known becomes a customer, as in createPixOrder
            self._customer(node, named_uuid("customer", "of", ident), from_buyer(buyer)[0], at)
        fate = Fate(outcome, (PAID,))
        self.sales.foresee(plan, at, fate)
        self._orders.append((node, ident, outcome, at))
        self.script.add(at, self._checked, node, self._buy, fields, buyer, fate, ident)

    def _buy(self, body: Body, buyer: Body, fate: Fate, ident: str) -> None:
        customer = self.script.store.customers.holder("document", normalise(buyer["document"]))
        assert customer is not None  # planned before the order
        self.sales.shop.buy(self.script.draft(), body, buyer, customer, body["paymentMethod"], fate, ident)


def _resolved(fields: Body) -> Body:
    """The fields of a record with ids in place of references `@name`."""

    def ident(reference: Any, kind: str) -> Any:
        is_name = isinstance(reference, str) and reference.startswith("@")
        return named_uuid(kind, *reference[1:].split("/")) if is_name else reference

    named: Body = {
        name: ident(fields[name], name.removesuffix("Id")) for name in ("projectId", "planId") if name in fields
    }
    if isinstance(fields.get("planIds"), list):
        named["planIds"] = [ident(reference, "plan") for reference in fields["planIds"]]
    return fields | named
