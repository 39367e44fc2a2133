"""What a scenario names: personas and explicit records, created by the engine's rules at their
time.

A record is checked against the contract's requests. It may have members that a request has not:
`id` (a UUID) or `key` (a name that makes one), `created` (a date-time) or `days_ago`, and for an
order `status`. A reference `@name` stands for the record with that key.
"""

from typing import Any

from ..core.clock import DAY, HOUR, iso, parse_iso
from ..core.ids import named_uuid
from ..core.record import Body, without
from ..domain import orders as order_rules
from ..domain.customers import buyer, from_buyer
from .lives import begin
from .past import Past
from .personas import first_seen, visits_of
from .purchases import Fate, Purchase, count_orders
from .scenario import Node, ScenarioError, check_request, expand

DAYS_BEFORE = {"projects": 20, "plans": 16, "products": 12, "customers": 8}  # the first sale
REFERRING = {"projectId": "project", "planId": "plan", "planIds": "plan"}


def plan_records(past: Past) -> None:
    """Plan the catalogue, then personas, who may buy from it, customers and orders.

    Raises ScenarioError.
    """
    root, number = past.scenario.root, 0
    for table in (*DAYS_BEFORE, "orders"):
        if table == "customers":
            for name, persona in past.scenario.personas.items():
                past.checked(persona["customer"], _persona, past, name, persona)
        if root.get("records", None):
            for node in root["records"].each(table):
                past.checked(node, _record, past, number, table, node)
                number += 1


# -- personas


def _persona(past: Past, name: str, persona: Node) -> None:
    node, rng = persona["customer"], past.stream("personas", name)
    fields = expand(node)
    given = fields.pop("id", None) or named_uuid("customer", name)
    check_request(past.rules.schemas, "CustomerCreate", fields, node)
    try:
        visits = visits_of(persona, past.offers, past.end, rng)
    except ScenarioError as error:
        advice = (
            "list a plan that suits in `projects` (plans of `records` do not count), or raise"
            " `months`"
        )
        raise ScenarioError(f"{error}; {advice}") from None
    ident = past.sandbox.origin.personas[name] = given.lower()
    customer = past.create("customers", node, ident, fields, first_seen(visits, past.end, rng))
    for visit in visits:
        _buy_later(past, persona, visit.at, visit.purchase(rng, customer))


def _buy_later(past: Past, node: Node, at: int, purchase: Purchase) -> None:
    plan = past.planned["plans"][purchase.body["planId"]]
    past.foreseen += count_orders(plan, purchase.fate, at, past.end)
    past.add(at, past.checked, node, begin, past, purchase)


# -- explicit records


def _record(past: Past, number: int, table: str, node: Node) -> None:
    kind = table.removesuffix("s")
    fields = without(expand(node), "id", "key", "created", "days_ago")
    key = node.get("key", f"{past.scenario.name}/{number}")
    ident = node.get("id", named_uuid(kind, *str(key).split("/"))).lower()
    for name in REFERRING.keys() & fields.keys():
        fields[name] = _referred(fields[name], REFERRING[name])
    if kind == "order":
        fields.pop("status", None)
        fields.setdefault("paymentMethod", "pix")
    check_request(past.rules.schemas, f"{kind.title()}Create", fields, node)
    at = _time(past, node, table)
    if "projectId" in fields:
        project = past.planned["projects"].get(fields["projectId"].lower())
        if project is None:
            raise node.fail("projectId names no project of this scenario")
        _check_older(node, "project", project, at)
    if kind == "order":
        _order(past, node, ident, fields, at)
    else:
        past.create(table, node, ident, fields, at)


def _time(past: Past, node: Node, table: str) -> int:
    """When a record is created, in ms."""
    at = past.end - 2 * HOUR
    if "created" in node.value:
        at = parse_iso(node.value["created"])
    elif "days_ago" in node.value:
        at = past.end - int(node.value["days_ago"] * DAY)
    elif table in DAYS_BEFORE:
        at = past.rhythm.start - DAYS_BEFORE[table] * DAY
    if not past.begun < at <= past.end:
        allowed = f"must be after {iso(past.begun)} and not after {iso(past.end)}"
        raise node.fail(f"created is {iso(at)}, but {allowed}")
    return at


def _order(past: Past, node: Node, ident: str, fields: Body, at: int) -> None:
    past.claim(ident, node, "order has this key or id")
    outcome = node.get("status", "pending")
    for name in ("projectId", "planId"):
        fields[name] = fields[name].lower()
    plan = past.planned["plans"].get(fields["planId"])
    _check_older(node, "plan", order_rules.check_plan(fields["projectId"], plan), at)
    who = buyer(fields["customer"])
    customer = past.planned["customers"].get(who["document"])
    if customer is None:  # as in createPixOrder, who buys becomes one
        customer = past.create(
            "customers", node, named_uuid("customer", "of", ident), from_buyer(who)[0], at
        )
    _check_older(node, "customer", customer, at)
    fate = Fate(fields["paymentMethod"], outcome)
    _buy_later(past, node, at, Purchase(fields, who, customer["id"], fate, ident))
    past.add(past.end, _check_status, past, node, ident, outcome)


def _check_status(past: Past, node: Node, ident: str, outcome: str) -> None:
    """Check at the end that an order has the status that the scenario gives it."""
    order = past.store.orders.get(ident).public
    if order["status"] != outcome:
        is_now = f"by {order['paymentMethod']} is {order['status']} by now"
        raise node.fail(
            f"an order of {order['createdAt']} {is_now}, not {outcome}: change its days_ago"
        )


def _check_older(node: Node, what: str, needed: Body, at: int) -> None:
    """Check that a record is created after one that it needs. Raises ScenarioError."""
    if at < parse_iso(needed["createdAt"]):
        raise node.fail(f"it is older than its {what}, which is of {needed['createdAt']}")


def _referred(value: Any, kind: str) -> Any:
    """A value of a record with ids in place of references `@key`."""
    if isinstance(value, list):
        return [_referred(each, kind) for each in value]
    if isinstance(value, str) and value.startswith("@"):
        return named_uuid(kind, *value[1:].split("/"))
    return value
