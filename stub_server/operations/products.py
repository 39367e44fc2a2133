"""Products: what a member gets access to."""

from ..calls import reply
from ..calls.call import Call
from ..calls.reply import Reply, listed, query_of
from ..domain import projects as rules
from ..domain.lifecycle import known_ids
from ..engine import resources
from ..kernel.record import Body


def list_products(call: Call, query: Body) -> Reply:
    table = call.store.products
    found = query_of(call, table, query, handled=("planId",))
    if "planId" in query:
        plan_id = query["planId"].lower()
        found.where = lambda row: plan_id in row.public["planIds"]
    return listed(call, table, found, "Products retrieved.", "products")


def create_product(call: Call, body: Body) -> Reply:
    public = rules.new_product(body, call.defaults("Product"), call.now_text)
    project = call.project_named(public["projectId"])
    public["planIds"] = _plans(call, public)
    rules.check_open(project, "projectId")
    ident = public["id"] = call.draft.ids.uuid()
    record = resources.add(call.draft, "products", public)
    return reply.enveloped("Product created.", "product", record.public).created(call, f"/v2/products/{ident}")


def get_product(call: Call, ident: str) -> Reply:
    record = call.find_allowed(call.store.products, ident, "product")
    return reply.enveloped("Product retrieved.", "product", record.public)


def update_product(call: Call, ident: str, body: Body) -> Reply:
    row = call.open_allowed(call.store.products, ident, "product")
    public = row.public | body | {"updatedAt": call.now_text}
    if "planIds" in body:
        public["planIds"] = _plans(call, public)
    rules.check_open(call.project_named(public["projectId"]), "projectId")
    record = resources.change(call.draft, call.store.products, row, public, project=public["projectId"])
    return reply.enveloped("Product updated.", "product", record.public)


def delete_product(call: Call, ident: str) -> Reply:
    row = call.open_allowed(call.store.products, ident, "product")
    rules.check_open(call.project_named(row.public["projectId"]), "projectId")
    call.draft.emit_change(call.store.products, row.record, "deleted", row.public["projectId"])
    call.draft.drop(call.store.products, row)
    return reply.message("Product deleted.")


def _plans(call: Call, public: Body) -> list[str]:
    project = public["projectId"]
    return known_ids("planIds", "plan", public["planIds"], lambda ident: _project_of_plan(call, ident) == project)


def _project_of_plan(call: Call, ident: str) -> str | None:
    plan = call.store.plans.peek(ident)
    return None if plan is None else plan["projectId"]
