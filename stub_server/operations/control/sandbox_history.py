"""The steps that changed a sandbox, and going back."""

from functools import partial
from itertools import islice

from ...core.clock import parse_iso
from ...core.problem import NotFound
from ...core.record import Body
from ...core.slices import filtered
from ...engine.history import check_kept, state_at, step_at, step_before
from ...engine.scheduler import check_not_advancing
from ...engine.step import Step
from ...server import lists
from ...server.layers.access import check_access
from ...server.reply import Reply
from ...server.views import shown, shown_step, versions
from ...server.work import Work


async def list_steps(work: Work, query: Body) -> Reply:
    log = work.sandbox.log
    since = islice(reversed(log), max(0, log.number - query.get("since", 0)))
    found = await work.in_slices(filtered(list(since), partial(_matches, query=query)))
    return lists.listed_here("steps", found, query, shown_step)


async def get_record_history(work: Work, resource: str, ident: str, query: Body) -> Reply:
    if resource not in work.store.tables:
        raise NotFound(
            "There is no such kind of record.",
            advice="GET /_sandbox/steps names the kinds that exist.",
        )
    present = None
    for store in work.sandbox.stores.values():
        present = present or store.tables[resource].find(ident)
    found = await work.in_slices(versions(work.sandbox.log, resource, ident, present))
    if not found:
        raise work.not_found("record")
    return lists.listed_here("versions", found, query, dict)


async def rewind_sandbox(work: Work, body: Body) -> Body:
    sandbox, instant = work.sandbox, None
    check_not_advancing(sandbox)
    if "to_step" in body:
        number = body["to_step"]
        check_kept(sandbox.log, number, "to_step")
    elif "to_request" in body:
        number = step_before(sandbox, body["to_request"])
    else:
        instant = parse_iso(body["to"])
        number = step_at(sandbox, instant, "to")
    sandboxes = work.sandboxes
    name = sandbox.name
    with work.waiting():
        then = await sandboxes.worker.in_line(state_at(sandbox, number, name), name)
    check_access(work)  # its key may have ended meanwhile
    entry, step = sandboxes.go_back(sandbox, then, work.cause, instant, number)
    work.trace.note(step)
    return {"sandbox": shown(work, entry), "undone": step.number - 1 - number}


def _matches(step: Step, query: Body) -> bool:
    if "cause" in query and query["cause"] not in step.cause:
        return False
    if "event_id" in query and query["event_id"] not in [event.id for event in step.events]:
        return False
    if "table" not in query and "resource_id" not in query:
        return True
    for part in step.parts:
        for change in part.changes:
            is_of_table = query.get("table", change.table) == change.table
            if is_of_table and query.get("resource_id", change.id).lower() == change.id:
                return True
    return False
