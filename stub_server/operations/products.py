"""Products: what a member gets access to."""

from functools import partial

from ..calls import reply
from ..calls.call import Call
from ..calls.reply import Reply, list_reply, listed, page_of, query_of
from ..domain import products as rules
from ..domain.projects import check_open
from ..engine import resources
from ..kernel.problem import reference_not_found
from ..kernel.record import Body, Row


def list_products(call: Call, query: Body) -> Reply:
    """200 with a page of products."""
    table, message, member = call.store.products, "Products retrieved.", "products"
    if "planId" not in query:
        return list_reply(call, table, query, message, member)
    plan_id = query["planId"].lower()
    found = query_of(call, table, query, handled=("planId",))
    project_id = _project_of_plan(call, plan_id)
    # A plan unlocks products of its own project only.
    if project_id is None or found.equal.setdefault("projectId", project_id) != project_id:
        found.ids = ()
    found.where = lambda row: plan_id in row.public["planIds"]
    rows, page = page_of(call, table, found)
    return listed(message, member, rows, page)


def create_product(call: Call, body: Body) -> Reply:
    """201 with the product; 409 for an unknown or archived project, an unknown plan, or a SKU that is taken."""
    store = call.store
    public = rules.new_product(body, call.defaults("Product"), call.now_text)
    call.allow_project(public["projectId"])
    project = store.projects.open(public["projectId"])
    if project is None:
        raise reference_not_found("projectId", "project")
    public["planIds"] = _plans(call, public)
    check_open(project.public, "projectId")
    ident = public["id"] = call.draft.ids.uuid()
    record = resources.add_product(call.draft, public)
    answer = reply.enveloped("Product created.", "product", record.public, 201)
    return answer.located(f"{call.prefix}/v2/products/{ident}")


def get_product(call: Call, ident: str) -> Reply:
    """200 with the product."""
    table = call.store.products
    record = call.find(table, ident, "product")
    if call.who.projects is not None:
        call.allow_project(table.parse(record).public["projectId"])
    return reply.enveloped("Product retrieved.", "product", record.public)


def update_product(call: Call, ident: str, body: Body) -> Reply:
    """200 with the product as it is now; 409 for an unknown plan, and when the SKU is taken."""
    row = _allowed(call, ident)
    public = rules.changed_product(row.public, body, call.now_text)
    if "planIds" in body:
        public["planIds"] = _plans(call, public)
    _check_project_open(call, row)
    record = resources.change(call.draft, call.store.products, row, public, project=public["projectId"])
    return reply.enveloped("Product updated.", "product", record.public)


def delete_product(call: Call, ident: str) -> Reply:
    """200; no other record refers to a product."""
    row = _allowed(call, ident)
    _check_project_open(call, row)
    call.draft.emit_change(call.store.products, row.record, "deleted", row.public["projectId"])
    call.draft.drop(call.store.products, row)
    return reply.message("Product deleted.")


def _allowed(call: Call, ident: str) -> Row:
    """The product. Raises Missing or Forbidden."""
    row = call.open(call.store.products, ident, "product")
    call.allow_project(row.public["projectId"])
    return row


def _check_project_open(call: Call, row: Row) -> None:
    project = call.store.projects.open(row.public["projectId"])
    assert project is not None
    check_open(project.public, "projectId")


def _plans(call: Call, public: Body) -> list[str]:
    of_plan = partial(_project_of_plan, call)
    return rules.known_plans(public["planIds"], public["projectId"], of_plan)


def _project_of_plan(call: Call, ident: str) -> str | None:
    row = call.store.plans.open(ident)
    return None if row is None else row.public["projectId"]
