"""What a scenario names: personas and explicit records, created by the engine's rules at their
time.

A record is checked against the contract's requests. It may have members that a request has not:
`id` (a UUID) or `key` (a name that makes one), `created` (a date-time) or `days_ago`, and for an
order `status`. A reference `@name` stands for the record with that key.
"""

from typing import Any

from ..core.clock import DAY, HOUR, iso, parse_iso
from ..core.ids import named_uuid
from ..core.record import Body
from ..domain import orders as order_rules
from ..domain.customers import as_buyer, buyer, changed_customer, from_buyer
from ..domain.lifecycle import known_ids
from ..engine import resources
from .crowd import Crowd
from .lives import Purchase
from .merchant import Merchant
from .personas import Story
from .provider import stream
from .purchases import Fate, cart
from .rhythm import moment
from .scenario import Node, ScenarioError, check_request, expand

# Table -> the kind of its records, the schema of a request that creates one, and days between it
# and the first sale.
KINDS = {
    "projects": ("project", "ProjectCreate", 20),
    "plans": ("plan", "PlanCreate", 16),
    "products": ("product", "ProductCreate", 12),
    "customers": ("customer", "CustomerCreate", 8),
    "orders": ("order", "OrderCreate", 0),
}
NOT_OF_REQUESTS = ("id", "key", "created", "days_ago")


class Records:
    """Plans what the scenario names. A node is the place in the file that an error names.

    Methods raise ScenarioError.
    """

    def __init__(self, merchant: Merchant, crowd: Crowd) -> None:
        self.merchant, self.crowd = merchant, crowd
        self.script, self.scenario = merchant.script, crowd.scenario
        self.begun, self.now = merchant.begun, merchant.now
        self._customers: dict[str, Body] = {}  # by document

    def plan(self) -> None:
        """Plan the catalogue, then personas, who may buy from it, customers and orders."""
        root, number = self.scenario.root, 0
        for table in KINDS:
            if table == "customers":
                for name, persona in self.scenario.personas.items():
                    self._persona(name, persona)
            if root.get("records", None):
                for node in root["records"].each(table):
                    self._record(number, table, node)
                    number += 1

    def _check_status(self, node: Node, ident: str, outcome: str) -> None:
        """Check at the end that an order has the status that the scenario gives it."""
        order = self.script.store.orders.get(ident).public
        if order["status"] != outcome:
            is_now = f"by {order['paymentMethod']} is {order['status']} by now"
            raise node.fail(
                f"an order of {order['createdAt']} {is_now}, not {outcome}: change its days_ago"
            )

    def _ident(self, kind: str, node: Node, given: str | None, named: str) -> str:
        """The id of a record: the one that the scenario gives, or `named`."""
        ident = named if given is None else given.lower()
        self.merchant.claim(ident, node, f"{kind} has the id {ident}")
        return ident

    # -- personas

    def _persona(self, name: str, persona: Node) -> None:
        node, sandbox, crowd = persona["customer"], self.script.sandbox, self.crowd
        fields = expand(node)
        given = fields.pop("id", None)
        check_request(self.merchant.rules.schemas, "CustomerCreate", fields, node)
        rng = stream(sandbox.origin.seed, "personas", name)
        try:
            visits = Story(crowd.offers, self.now, persona, rng).purchases()
        except ScenarioError as error:
            advice = (
                "list a plan that suits in `projects` (plans of `records` do not count), or raise"
                " `months`"
            )
            raise ScenarioError(f"{error}; {advice}") from None
        first = min(
            (visit.at for visit in visits), default=moment(rng, self.now - 3 * HOUR, 2 * HOUR)
        )
        ident = sandbox.origin.personas[name] = self._ident(
            "customer", node, given, named_uuid("customer", name)
        )
        buyer = as_buyer(self._customer(node, ident, fields, first))
        for at, offer, fate, _ in visits:
            self._buy_later(at, persona, Purchase(cart(rng, offer), buyer, ident, fate), offer.plan)

    def _buy_later(self, at: int, node: Node, purchase: Purchase, plan: Body) -> None:
        self.crowd.foresee(plan, at, purchase.fate)
        self.script.add(at, self.merchant.checked, node, self.crowd.lives.begin, purchase)

    # -- explicit records

    def _record(self, number: int, table: str, node: Node) -> None:
        kind, schema, days_before = KINDS[table]
        own = node.value
        key = [self.scenario.name, str(number)]
        if own.get("key") is not None:
            key = str(own["key"]).split("/")
        ident = self._ident(kind, node, own.get("id"), named_uuid(kind, *key))
        fields = _resolved(expand(node))
        for name in NOT_OF_REQUESTS:
            fields.pop(name, None)
        if kind == "order":
            fields.pop("status", None)
            fields.setdefault("paymentMethod", "pix")
        check_request(self.merchant.rules.schemas, schema, fields, node)
        at = self.now - 2 * HOUR
        if days_before:
            at = self.crowd.rhythm.start - days_before * DAY
        at = self._time(node, at)
        if "projectId" in fields:
            fields["projectId"] = fields["projectId"].lower()
            project = self.merchant.projects.get(fields["projectId"])
            if project is None:
                raise node.fail("projectId names no project of this scenario")
            _check_older(node, kind, "project", project, at)
        create = {
            "project": self.merchant.add_project,
            "plan": self.merchant.add_plan,
            "product": self._product,
            "customer": self._customer,
            "order": self._order,
        }
        self.merchant.checked(node, create[kind], node, ident, fields, at)

    def _time(self, node: Node, usual: int) -> int:
        """When a record is created, in ms."""
        created, days_ago = node.value.get("created"), node.value.get("days_ago")
        at = usual
        if created is not None:
            at = parse_iso(created)
        elif days_ago is not None:
            at = self.now - int(days_ago * DAY)
        if not self.begun < at <= self.now:
            allowed = f"must be after {iso(self.begun)} and not after {iso(self.now)}"
            raise node.fail(f"created is {iso(at)}, but {allowed}")
        return at

    def _product(self, node: Node, ident: str, fields: Body, at: int) -> None:
        plans, project = self.merchant.plans, fields["projectId"]
        of_project = {ident for ident, plan in plans.items() if plan["projectId"] == project}
        fields["planIds"] = known_ids(
            "planIds", "plan", fields.get("planIds", []), of_project.__contains__
        )
        self.merchant.add_product(node, ident, fields, at)

    def _customer(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        public = changed_customer(self.merchant.rules.new("Customer", ident, at), fields)
        self.merchant.claim(public["document"], node, "customer has this document")
        self._customers[public["document"]] = public
        self.crowd.named += 1
        self.merchant.later(at, node, resources.add, "customers", public)
        return public

    def _order(self, node: Node, ident: str, fields: Body, at: int) -> None:
        outcome, method = node.get("status", "pending"), fields["paymentMethod"]
        fields["planId"] = fields["planId"].lower()
        plan = order_rules.check_plan(
            fields["projectId"], self.merchant.plans.get(fields["planId"])
        )
        _check_older(node, "order", "plan", plan, at)
        who = buyer(fields["customer"])
        customer = self._customers.get(who["document"])
        if customer is None:  # as in createPixOrder, who buys becomes one
            customer = self._customer(
                node, named_uuid("customer", "of", ident), from_buyer(who)[0], at
            )
        _check_older(node, "order", "customer", customer, at)
        self._buy_later(
            at, node, Purchase(fields, who, customer["id"], Fate(method, outcome), ident), plan
        )
        self.script.add(self.now, self._check_status, node, ident, outcome)


def _check_older(node: Node, kind: str, what: str, needed: Body, at: int) -> None:
    """Check that a record is created after one that it needs. Raises ScenarioError."""
    if at < parse_iso(needed["createdAt"]):
        raise node.fail(f"the {kind} is older than its {what}, which is of {needed['createdAt']}")


def _resolved(fields: Body) -> Body:
    """The fields of a record with ids in place of references `@name`."""
    for name in ("projectId", "planId"):
        if name in fields:
            fields[name] = _referred(fields[name], name.removesuffix("Id"))
    if isinstance(fields.get("planIds"), list):
        fields["planIds"] = [_referred(reference, "plan") for reference in fields["planIds"]]
    return fields


def _referred(reference: Any, kind: str) -> Any:
    if isinstance(reference, str) and reference.startswith("@"):
        return named_uuid(kind, *reference[1:].split("/"))
    return reference
