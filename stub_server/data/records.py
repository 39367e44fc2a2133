"""What a scenario names: personas and explicit records, created by the engine's rules at their
time.

A record is checked against the contract's requests. It may have members that a request has not:
`id` (a UUID) or `key` (a name that makes one), `created` (a date-time) or `days_ago`, and for an
order `status`. A reference `@name` stands for the record with that key.
"""

from functools import partial
from typing import Any

from ..core.clock import DAY, HOUR, iso, parse_iso
from ..core.ids import named_uuid
from ..core.record import Body
from ..domain import orders as order_rules
from ..domain.customers import as_buyer, buyer, from_buyer
from .lives import Purchase, begin
from .past import Past
from .personas import Story
from .purchases import Fate, cart, count_orders
from .rhythm import moment
from .scenario import Node, ScenarioError, check_request, expand
from .script import Action

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


def plan_records(past: Past) -> None:
    """Plan the catalogue, then personas, who may buy from it, customers and orders.

    Raises ScenarioError.
    """
    root, number = past.scenario.root, 0
    for table in KINDS:
        if table == "customers":
            for name, persona in past.scenario.personas.items():
                _persona(past, name, persona)
        if root.get("records", None):
            for node in root["records"].each(table):
                _record(past, number, table, node)
                number += 1


def _ident(past: Past, kind: str, node: Node, given: str | None, named: str) -> str:
    """The id of a record: the one that the scenario gives, or `named`."""
    ident = named if given is None else given.lower()
    past.claim(ident, node, f"{kind} has the id {ident}")
    return ident


# -- personas


def _persona(past: Past, name: str, persona: Node) -> None:
    node, now = persona["customer"], past.end
    fields = expand(node)
    given = fields.pop("id", None)
    check_request(past.rules.schemas, "CustomerCreate", fields, node)
    rng = past.stream("personas", name)
    try:
        visits = Story(past.offers, now, persona, rng).purchases()
    except ScenarioError as error:
        advice = (
            "list a plan that suits in `projects` (plans of `records` do not count), or raise"
            " `months`"
        )
        raise ScenarioError(f"{error}; {advice}") from None
    first = min((visit.at for visit in visits), default=moment(rng, now - 3 * HOUR, 2 * HOUR))
    ident = _ident(past, "customer", node, given, named_uuid("customer", name))
    past.sandbox.origin.personas[name] = ident
    buyer = as_buyer(past.add_customer(node, ident, fields, first))
    for at, offer, fate, _ in visits:
        _buy_later(past, at, persona, Purchase(cart(rng, offer), buyer, ident, fate), offer.plan)


def _buy_later(past: Past, at: int, node: Node, purchase: Purchase, plan: Body) -> None:
    past.foreseen += count_orders(plan, purchase.fate, at, past.end)
    past.add(at, past.checked, node, begin, past, purchase)


# -- explicit records


def _record(past: Past, number: int, table: str, node: Node) -> None:
    kind, schema, days_before = KINDS[table]
    own = node.value
    key = [past.scenario.name, str(number)]
    if own.get("key") is not None:
        key = str(own["key"]).split("/")
    ident = _ident(past, kind, node, own.get("id"), named_uuid(kind, *key))
    fields = _resolved(expand(node))
    for name in NOT_OF_REQUESTS:
        fields.pop(name, None)
    if kind == "order":
        fields.pop("status", None)
        fields.setdefault("paymentMethod", "pix")
    check_request(past.rules.schemas, schema, fields, node)
    at = past.end - 2 * HOUR
    if days_before:
        at = past.rhythm.start - days_before * DAY
    at = _time(past, node, at)
    if "projectId" in fields:
        fields["projectId"] = fields["projectId"].lower()
        project = past.projects.get(fields["projectId"])
        if project is None:
            raise node.fail("projectId names no project of this scenario")
        _check_older(node, kind, "project", project, at)
    create: dict[str, Action] = {
        "project": past.add_project,
        "plan": past.add_plan,
        "product": past.add_product,
        "customer": past.add_customer,
        "order": partial(_order, past),
    }
    past.checked(node, create[kind], node, ident, fields, at)


def _time(past: Past, node: Node, usual: int) -> int:
    """When a record is created, in ms."""
    created, days_ago = node.value.get("created"), node.value.get("days_ago")
    at = usual
    if created is not None:
        at = parse_iso(created)
    elif days_ago is not None:
        at = past.end - int(days_ago * DAY)
    if not past.begun < at <= past.end:
        allowed = f"must be after {iso(past.begun)} and not after {iso(past.end)}"
        raise node.fail(f"created is {iso(at)}, but {allowed}")
    return at


def _order(past: Past, node: Node, ident: str, fields: Body, at: int) -> None:
    outcome, method = node.get("status", "pending"), fields["paymentMethod"]
    fields["planId"] = fields["planId"].lower()
    plan = order_rules.check_plan(fields["projectId"], past.plans.get(fields["planId"]))
    _check_older(node, "order", "plan", plan, at)
    who = buyer(fields["customer"])
    customer = past.customers.get(who["document"])
    if customer is None:  # as in createPixOrder, who buys becomes one
        named = named_uuid("customer", "of", ident)
        customer = past.add_customer(node, named, from_buyer(who)[0], at)
    _check_older(node, "order", "customer", customer, at)
    fate = Fate(method, outcome)
    _buy_later(past, at, node, Purchase(fields, who, customer["id"], fate, ident), plan)
    past.add(past.end, _check_status, past, node, ident, outcome)


def _check_status(past: Past, node: Node, ident: str, outcome: str) -> None:
    """Check at the end that an order has the status that the scenario gives it."""
    order = past.store.orders.get(ident).public
    if order["status"] != outcome:
        is_now = f"by {order['paymentMethod']} is {order['status']} by now"
        raise node.fail(
            f"an order of {order['createdAt']} {is_now}, not {outcome}: change its days_ago"
        )


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
