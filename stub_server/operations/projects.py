"""Projects: the memberships that a merchant runs, their states and their figures."""

from ..contract.formats import end_of_range
from ..contract.lifecycles import Lifecycle
from ..core.clock import iso_or_none
from ..core.problem import Forbidden
from ..core.record import Body, Row
from ..core.slices import Sliced, batched
from ..domain import projects as rules
from ..domain.lifecycle import move
from ..domain.stats import OrderFold, monthly_revenue
from ..engine import closing, resources
from ..engine.tables.store import Store
from ..engine.tables.table import Table
from ..server import lists
from ..server.lists import query_of
from ..server.reply import Reply
from ..server.work import Work
from .shown import shown


async def list_projects(work: Work, query: Body) -> Reply:
    return await lists.listed(
        work, "projects", query_of(work, "projects", query), "Projects retrieved.", in_data=True
    )


def create_project(work: Work, body: Body) -> Reply:
    if work.who.projects is not None:
        message = "An API key that is restricted to projects (allowed_projects) cannot create one."
        raise Forbidden.at("allowed_projects", message, "project_not_allowed", where="header")
    row = work.draft.move(
        rules.new_project(work.draft.new("projects"), body, work.who.identity.subject)
    )
    return shown(work, row, "Project created.").created(work, f"/v2/projects/{row.id}")


def get_project(work: Work, ident: str) -> Reply:
    return shown(work, _open(work, ident), "Project retrieved.")


def update_project(work: Work, ident: str, body: Body) -> Reply:
    """A status in the body takes the same moves as the actions."""
    row = _open(work, ident)
    changed, moved = rules.changed_project(row, body, work.lifecycle("Project"))
    row = resources.change_project(work.draft, changed, moved)
    return shown(work, row, "Project updated.")


async def delete_project(work: Work, ident: str) -> Body:
    store = work.store
    late = await work.in_slices(closing.payable_late(store, "projectId", ident, work.now))
    row = _open(work, ident)
    sets = work.lifecycle("Order").sets
    orders = 0
    for status in {*sets["kept"], *sets["payable"]}:
        orders += store.orders.count("projectId+status", (ident, status))
    rules.check_idle(orders, store.running("projectId", ident), late)
    work.draft.emit_move(row, work.lifecycle("Project").find(row.status, "deleted"))
    resources.clear_project(work.draft, ident)
    work.draft.drop(row)
    return {"error": False, "data": {}, "message": "Project deleted."}


def update_project_status(work: Work, ident: str, body: Body) -> Reply:
    return _move(work, ident, body["status"], body)


def activate_project(work: Work, ident: str, body: Body) -> Reply:
    return _move(work, ident, "active", body)


def suspend_project(work: Work, ident: str, body: Body) -> Reply:
    """It takes no orders, open ones stay payable, and its subscriptions are paused."""
    return _move(work, ident, "suspended", body)


def archive_project(work: Work, ident: str, body: Body) -> Reply:
    """Its pending orders are canceled, and its subscriptions end with their paid periods."""
    return _move(work, ident, "archived", body)


async def get_project_stats(work: Work, ident: str, query: Body) -> Body:
    store = work.store
    archived = _open(work, ident).status == "archived"
    lists.warn_of_empty_range(work, query.get("from"), query.get("to"))
    since, until = end_of_range(query, "from"), end_of_range(query, "to")
    subscriptions = store.subscriptions
    terms = subscriptions.members("active_terms", ident)
    subscribers = {"total": len(subscriptions.members("subscribers", ident))}
    for state in work.lifecycle("Subscription").states:
        subscribers[state] = subscriptions.count("projectId+status", (ident, state))
    now = {
        "subscribers": subscribers,
        # Nothing is renewed in an archived project.
        "mrr": 0.0 if archived else await work.in_slices(monthly_revenue(terms)),
        "plans_count": store.plans.count("projectId", ident),
        "products_count": store.products.count("projectId", ident),
    }
    generated_at = work.now_text
    if since is None and until is None:
        adding = _everything(store, ident, work.lifecycle("Order"))
    else:
        adding = _added_up(store.orders, ident, OrderFold(work.lifecycle("Order"), since, until))
    orders = await work.in_slices(adding)
    stats = {
        "projectId": ident,
        "from": iso_or_none(since),
        "to": iso_or_none(until),
        "orders": orders.orders(),
        "revenue": orders.revenue(),
        "conversion_rate": orders.conversion(),
        **now,
        "top_plans": await work.in_slices(orders.top_plans(store.plans.peek)),
        "generated_at": generated_at,
    }
    return {"error": False, "data": {"stats": stats}, "message": "Project statistics."}


def _added_up(orders: Table, ident: str, fold: OrderFold) -> Sliced[OrderFold]:
    """The orders of a project added up; others are served meanwhile."""
    for record in [orders.rows[key] for key in orders.bucket("projectId", ident)]:
        fold.add(orders.parse(record))
        yield
    return fold


def _everything(store: Store, ident: str, lifecycle: Lifecycle) -> Sliced[OrderFold]:
    """All orders of a project added up, from the sums that the store keeps up to date
    with every write.
    """
    orders, whole = store.orders, OrderFold(lifecycle)
    for state in lifecycle.states:
        whole.states[state] = orders.count("projectId+status", (ident, state))
    whole.paid = sum(whole.states[state] for state in lifecycle.sets["settled"])
    whole.renewals.update(orders.members("renewals", ident))
    whole.gross, whole.refunded = orders.total("gross", ident), orders.total("refunded", ident)
    for few in batched(orders.members("plans", ident).items()):
        for plan, number in few:
            whole.plan_orders[plan] = number
            whole.plan_net[plan] = orders.total("plan_net", plan)
        yield
    return whole


def _open(work: Work, ident: str) -> Row:
    return work.open_allowed("projects", ident, "project")


def _move(work: Work, ident: str, to: str, body: Body) -> Reply:
    row = _open(work, ident)
    moved = move(work.lifecycle("Project"), row.status, to)
    if moved is not None:
        row = resources.change_project(work.draft, row, moved, body.get("reason"))
    return shown(work, row, f"Project {to}.")
