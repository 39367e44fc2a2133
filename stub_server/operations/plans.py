"""Plans: what a buyer pays for."""

from ..domain import plans as rules
from ..domain.products import without_plan
from ..domain.projects import check_open
from ..kernel.problem import reference_missing
from ..kernel.record import Body, Change, Row
from . import reply
from .call import Call
from .listing import list_reply, shown
from .reply import Reply


def list_plans(call: Call, query: Body) -> Reply:
    """200 with a page of plans."""
    return list_reply(call, call.store.plans, query, "Plans retrieved.", "plans")


def create_plan(call: Call, body: Body) -> Reply:
    """201 with the plan; 404 for an unknown project, 409 when it is archived or the name is taken."""
    store = call.store
    public = rules.new_plan(body, call.blank("Plan"), call.now_text)
    call.allow_project(public["projectId"])
    project = store.projects.open(public["projectId"])
    if project is None:
        raise reference_missing("projectId", "project")
    check_open(project.public, "projectId")
    rules.check_name(store.plans.holder("name", (project.id, public["name"].casefold())), None)
    ident = public["id"] = call.sandbox.ids.uuid()
    change = Change().create("plans", ident, public, {})
    change.emit("plan.created", "plans", ident, project=project.id)
    record = call.apply(change)[ident]
    answer = reply.enveloped("Plan created.", "plan", shown(call, store.plans, record), 201)
    return answer.located(f"{call.prefix}/v2/plans/{ident}")


def get_plan(call: Call, ident: str) -> Reply:
    """200 with the plan and its present number of subscribers."""
    table = call.store.plans
    record = call.find(table, ident, "plan")
    if call.who.projects is not None:
        call.allow_project(table.parse(record).public["projectId"])
    return reply.enveloped("Plan retrieved.", "plan", shown(call, table, record))


def update_plan(call: Call, ident: str, body: Body) -> Reply:
    """200 with the plan as it is now; 409 when running subscriptions fix its price and rhythm."""
    store = call.store
    row = _changeable(call, ident)
    public = rules.changed_plan(row.public, body, store.running("planId", ident), call.now_text)
    rules.check_name(store.plans.holder("name", (public["projectId"], public["name"].casefold())), ident)
    change = Change().update("plans", row, public)
    change.emit("plan.updated", "plans", ident, project=public["projectId"])
    record = call.apply(change)[ident]
    return reply.enveloped("Plan updated.", "plan", shown(call, store.plans, record))


def delete_plan(call: Call, ident: str) -> Reply:
    """200; 409 while somebody pays by the plan. Products lose it from their planIds without an event of their own."""
    store = call.store
    row = _changeable(call, ident)
    running = store.running("planId", ident)
    rules.check_unused(running, store.orders.count("planId+status", (ident, "pending")))
    project_id = row.public["projectId"]
    last = store.shown(store.plans, row.record)
    change = Change().drop("plans", row)
    for product in store.products.rows_of("projectId", project_id):
        left = without_plan(product.public, ident, call.now_text)
        if left is not None:
            change.update("products", product, left)
    change.emit("plan.deleted", "plans", ident, project=project_id, last=last)
    call.apply(change)
    return reply.message("Plan deleted.")


def _changeable(call: Call, ident: str) -> Row:
    """The plan, if it exists, the caller may touch it and its project is not archived."""
    row = call.open(call.store.plans, ident, "plan")
    call.allow_project(row.public["projectId"])
    project = call.store.projects.open(row.public["projectId"])
    assert project is not None
    check_open(project.public, "projectId")
    return row
