"""Plans: what a buyer pays for."""

from ..calls import reply
from ..calls.call import Call
from ..calls.reply import Reply, list_reply
from ..domain import projects as rules
from ..engine import billing, resources
from ..kernel.record import Body, Row


def list_plans(call: Call, query: Body) -> Reply:
    return list_reply(call, call.store.plans, query, "Plans retrieved.", "plans")


def create_plan(call: Call, body: Body) -> Reply:
    store = call.store
    public = rules.new_plan(body, call.defaults("Plan"), call.now_text)
    call.warn(*rules.plan_warnings(body))
    rules.check_open(call.project_named(public["projectId"]), "projectId")
    ident = public["id"] = call.draft.ids.uuid()
    record = resources.add(call.draft, "plans", public)
    shown = store.shown(store.plans, record)
    return reply.enveloped("Plan created.", "plan", shown).created(call, f"/v2/plans/{ident}")


def get_plan(call: Call, ident: str) -> Reply:
    table = call.store.plans
    return reply.enveloped("Plan retrieved.", "plan", call.store.shown(table, call.find_allowed(table, ident, "plan")))


def update_plan(call: Call, ident: str, body: Body) -> Reply:
    store = call.store
    row = _changeable(call, ident)
    public = rules.changed_plan(row.public, body, store.running("planId", ident), call.now_text)
    record = resources.change(call.draft, store.plans, row, public, project=public["projectId"])
    call.warn(*rules.plan_warnings(row.public | body))
    return reply.enveloped("Plan updated.", "plan", call.store.shown(store.plans, record))


def delete_plan(call: Call, ident: str) -> Reply:
    """Products lose its id without an event."""
    store = call.store
    row = _changeable(call, ident)
    running = store.running("planId", ident)
    payable = call.lifecycle("Order").sets["payable"]
    pending = sum(store.orders.count("planId+status", (ident, status)) for status in payable)
    rules.check_unused(running, pending, billing.payable_late(call.draft, "planId", ident))
    project_id = row.public["projectId"]
    call.draft.emit_change(store.plans, row.record, "deleted", project_id)
    call.draft.drop(store.plans, row)
    for product in store.products.rows_of("projectId", project_id):
        if ident in product.public["planIds"]:
            left = [plan_id for plan_id in product.public["planIds"] if plan_id != ident]
            after = product.public | {"planIds": left, "updatedAt": call.now_text}
            call.draft.update(store.products, product, after)
    return reply.message("Plan deleted.")


def _changeable(call: Call, ident: str) -> Row:
    """The plan. Raises NotFound, Forbidden, or Conflict if its project is archived."""
    row = call.open_allowed(call.store.plans, ident, "plan")
    rules.check_open(call.project_named(row.public["projectId"]), "projectId")
    return row
