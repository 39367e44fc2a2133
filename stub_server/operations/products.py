"""Products: what a member gets access to."""

from ..core.record import Body, Row
from ..domain import projects as rules
from ..domain.lifecycle import known_ids
from ..engine import resources
from ..server import reply
from ..server.lists import listed, query_of
from ..server.reply import Reply
from ..server.work import Work
from .shown import shown


async def list_products(work: Work, query: Body) -> Reply:
    found = query_of(work, "products", query, handled=("planId",))
    if "planId" in query:
        found.only("plans", query["planId"].lower())
    return await listed(work, "products", found, "Products retrieved.")


def create_product(work: Work, body: Body) -> Reply:
    product = rules.new_product(work.draft.new("products"), body)
    project = work.project_named(product["projectId"])
    product = _with_plans(work, product)
    rules.check_open(project, "projectId")
    row = resources.add(work.draft, product)
    return shown(work, row, "Product created.").created(work, f"/v2/products/{row.id}")


def get_product(work: Work, ident: str) -> Reply:
    return reply.enveloped(
        "Product retrieved.", "product", work.find_allowed("products", ident, "product").public
    )


def update_product(work: Work, ident: str, body: Body) -> Reply:
    product = work.open_allowed("products", ident, "product").changed(body)
    if "planIds" in body:
        product = _with_plans(work, product)
    rules.check_open(work.project_named(product["projectId"]), "projectId")
    return shown(work, resources.change(work.draft, product), "Product updated.")


def delete_product(work: Work, ident: str) -> Reply:
    row = work.open_allowed("products", ident, "product")
    rules.check_open(work.project_named(row["projectId"]), "projectId")
    work.draft.emit_change(row, "deleted")
    work.draft.drop(row)
    return reply.message("Product deleted.")


def _with_plans(work: Work, product: Row) -> Row:
    def is_of_project(ident: str) -> bool:
        return bool((work.store.plans.peek(ident) or {}).get("projectId") == product["projectId"])

    plans = known_ids("planIds", "plan", product["planIds"], is_of_project)
    return product.changed({"planIds": plans})
