"""The model's projects, plans, products, customers and keys: what may be made,
changed and deleted.
"""

from typing import Any

from . import model_billing as billing
from . import model_orders as orders
from .model import (
    Customer,
    Key,
    Plan,
    Product,
    Project,
    Verdict,
    World,
    granted,
    members,
    refused,
    unless,
)

MOVES = {
    "draft": ("active", "archived"),
    "active": ("suspended", "archived"),
    "suspended": ("active", "archived"),
    "archived": (),
}
EVENT = {
    "active": "project.activated",
    "suspended": "project.suspended",
    "archived": "project.archived",
}


def project_name_taken(world: World, name: str, beside: Project | None = None) -> bool:
    """Whether another live project has the name, ignoring case."""
    return any(
        found is not beside and found.name.casefold() == name.casefold() for found in world.projects
    )


def may_create_project(world: World, name: str) -> Verdict:
    """Names are unique."""
    return unless({"duplicate_name"} if project_name_taken(world, name) else (), 201)


def may_move(project: Project, to: str) -> Verdict:
    """The four states; a move to the present one is granted and changes nothing."""
    if to == project.status or to in MOVES[project.status]:
        return granted()
    return refused(409, "invalid_state_transition")


def move(world: World, project: Project, to: str) -> None:
    """Change the state.

    What was suspended goes on; an archive cancels what waits and lets what is paid run out.
    """
    if to == project.status:
        return
    suspended = project.suspended
    project.status = to
    project.suspended = world.now if to == "suspended" else None
    world.emit(EVENT[to])
    if to == "archived":
        for order in world.orders_of(project):
            if order.status == "pending":
                orders.end(world, order, "canceled", "order.canceled")
        for found in world.subscriptions:
            if found.plan.project is project and found.running:
                billing.cancel_later(world, found)
    if suspended is not None:
        billing.go_on(world, project, suspended)


def may_update_project(world: World, project: Project, body: dict[str, Any]) -> Verdict:
    """An archived project stays as it is; the state has its own moves."""
    conflicts = set()
    to = body.get("status", project.status)
    if not may_move(project, to).granted:
        conflicts.add("invalid_state_transition")
    if project.status == "archived" and set(body) != {"status"}:
        conflicts.add("project_archived")
    if "name" in body and project_name_taken(world, body["name"], project):
        conflicts.add("duplicate_name")
    return unless(conflicts)


def update_project(world: World, project: Project, body: dict[str, Any]) -> None:
    """Fields first, then the state."""
    before = members(project)
    for name in body.keys() - {"status"}:
        setattr(project, name, body[name])
    if members(project) != before:
        world.emit("project.updated")
    move(world, project, body.get("status", project.status))


def may_delete_project(world: World, project: Project) -> Verdict:
    """Money or members keep it alive."""
    busy = any(
        order.status in ("paid", "disputed", "pending") or orders.payable_late(world, order)
        for order in world.orders_of(project)
    ) or any(found.running for found in world.subscriptions if found.plan.project is project)
    return unless({"project_has_activity"} if busy else ())


def delete_project(world: World, project: Project) -> None:
    """Plans and products go with it, without events of their own."""
    world.projects.remove(project)
    world.plans = [plan for plan in world.plans if plan.project is not project]
    world.products = [product for product in world.products if product.project is not project]
    world.emit("project.deleted")


def plan_name_taken(world: World, project: Project, name: str, beside: Plan | None = None) -> bool:
    """Whether another live plan of the project has the name, ignoring case."""
    plans = (plan for plan in world.plans if plan.project is project and plan is not beside)
    return any(plan.name.casefold() == name.casefold() for plan in plans)


def may_create_plan(world: World, project: Project | None, name: str) -> Verdict:
    """A project that is not archived, and a name that is free in it."""
    if project is None:
        return refused(409, "reference_not_found")
    conflicts = {"project_archived"} if project.status == "archived" else set()
    if plan_name_taken(world, project, name):
        conflicts.add("duplicate_name")
    return unless(conflicts, 201)


def may_update_plan(world: World, plan: Plan, body: dict[str, Any]) -> Verdict:
    """The rhythm stands still under subscribers."""
    conflicts = {"project_archived"} if plan.project.status == "archived" else set()
    if "name" in body and plan_name_taken(world, plan.project, body["name"], plan):
        conflicts.add("duplicate_name")
    unit = None if body.get("billing_type") == "one_time" else body.get("interval", plan.unit)
    if unit != plan.unit and world.subscriptions_of(plan):
        conflicts.add("plan_in_use")
    return unless(conflicts)


def update_plan(world: World, plan: Plan, body: dict[str, Any]) -> None:
    """Replace what is sent."""
    before = members(plan)
    plan.name = body.get("name", plan.name)
    plan.status = body.get("status", plan.status)
    plan.limit = body.get("max_subscribers", plan.limit)
    plan.methods = tuple(body.get("payment_methods", plan.methods))
    if "amount" in body:
        plan.amount = round(body["amount"] * 100)
    plan.trial_days = body.get("trial_period_days", plan.trial_days)
    if body.get("billing_type") == "one_time":
        plan.unit = plan.count = None
    elif "interval" in body:
        plan.unit = body["interval"]
        plan.count = body.get("interval_count", plan.count)
    if not plan.recurring:
        plan.trial_days = 0
    if members(plan) != before:
        world.emit("plan.updated")


def may_delete_plan(world: World, plan: Plan) -> Verdict:
    """Orders that wait and members keep it alive."""
    conflicts = {"project_archived"} if plan.project.status == "archived" else set()
    mine = [order for order in world.orders if order.plan is plan]
    if any(order.status == "pending" or orders.payable_late(world, order) for order in mine):
        conflicts.add("plan_in_use")
    if world.subscriptions_of(plan):
        conflicts.add("plan_in_use")
    return unless(conflicts)


def may_write_product(
    world: World,
    project: Project | None,
    sku: str | None,
    plans: list[Plan | None],
    beside: Product | None = None,
) -> Verdict:
    """A SKU is free in its project, and the plans are the project's own."""
    if project is None or any(plan is None or plan.project is not project for plan in plans):
        return refused(409, "reference_not_found")
    conflicts = {"project_archived"} if project.status == "archived" else set()
    others = (found for found in world.products if found.project is project and found is not beside)
    if sku is not None and any(found.sku == sku for found in others):
        conflicts.add("duplicate_sku")
    return unless(conflicts, 200 if beside else 201)


def may_take_document(world: World, document: str, beside: Customer | None = None) -> Verdict:
    """Documents are unique."""
    holder = world.customer_with(document)
    taken = holder is not None and holder is not beside
    return unless({"duplicate_document"} if taken else (), 200 if beside else 201)


def may_update_key(world: World, key: Key, body: dict[str, Any]) -> Verdict:
    """An expired key comes back only with a new life."""
    expires = body.get("expires_at", key.expires)
    dead = expires is not None and expires <= world.now
    return unless({"api_key_expired"} if body.get("is_active") and dead else ())


def update_customer(world: World, customer: Customer, body: dict[str, Any]) -> None:
    """Replace what is sent."""
    before = members(customer)
    customer.name = body.get("name", customer.name)
    customer.email = body.get("email", customer.email).lower()
    customer.document = body.get("document", customer.document)
    if members(customer) != before:
        world.emit("customer.updated")


def update_key(world: World, key: Key, body: dict[str, Any]) -> None:
    """Replace what is sent."""
    before = key.view(world.now)
    key.expires = body.get("expires_at", key.expires)
    key.active = body.get("is_active", key.active)
    if "name" in body or key.view(world.now) != before:
        world.emit("api_key.updated")


def may_use(world: World, key: Key, scope: str, project: Project | None = None) -> Verdict:
    """What a key is answered: expired before inactive, scope before project.

    What authenticates is counted.
    """
    if key not in world.keys:
        return refused(401, "invalid_token")
    if key.over(world.now):
        return refused(401, "api_key_expired")
    if not key.active:
        return refused(401, "api_key_inactive")
    key.uses += 1
    if scope not in key.scopes:
        return refused(403, "insufficient_scope")
    if project is not None and key.projects and project not in key.projects:
        return refused(403, "project_not_allowed")
    return granted()
