"""Plans: what a buyer pays for."""

from ..core.record import Body, Row
from ..domain import projects as rules
from ..engine import closing, resources
from ..server import reply
from ..server.lists import list_reply
from ..server.reply import Reply
from ..server.work import Work
from .shown import shown


async def list_plans(work: Work, query: Body) -> Reply:
    return await list_reply(work, "plans", query, "Plans retrieved.")


def create_plan(work: Work, body: Body) -> Reply:
    plan = rules.new_plan(work.draft.new("plans"), body)
    work.trace.warn(rules.plan_warnings(body))
    rules.check_open(work.project_named(plan["projectId"]), "projectId")
    row = resources.add(work.draft, plan)
    return shown(work, row, "Plan created.").created(work, f"/v2/plans/{row.id}")


def get_plan(work: Work, ident: str) -> Reply:
    record = work.find_allowed("plans", ident, "plan")
    return reply.enveloped("Plan retrieved.", "plan", work.store.shown("plans", record))


def update_plan(work: Work, ident: str, body: Body) -> Reply:
    row = _changeable(work, ident)
    changed = resources.change(
        work.draft, rules.changed_plan(row, body, work.store.running("planId", ident))
    )
    work.trace.warn(rules.plan_warnings(row.public | body))
    return shown(work, changed, "Plan updated.")


async def delete_plan(work: Work, ident: str) -> Reply:
    """Products lose its id without an event."""
    store = work.store
    late = await work.in_slices(closing.payable_late(store, "planId", ident, work.now))
    row = _changeable(work, ident)
    running = store.running("planId", ident)
    payable = work.lifecycle("Order").sets["payable"]
    pending = sum(store.orders.count("planId+status", (ident, status)) for status in payable)
    rules.check_unused(running, pending, late)
    work.draft.emit_change(row, "deleted")
    work.draft.drop(row)
    resources.clear_plan(work.draft, ident)
    return reply.message("Plan deleted.")


def _changeable(work: Work, ident: str) -> Row:
    """The plan. Raises NotFound, Forbidden, or Conflict if its project is archived."""
    row = work.open_allowed("plans", ident, "plan")
    rules.check_open(work.project_named(row["projectId"]), "projectId")
    return row
