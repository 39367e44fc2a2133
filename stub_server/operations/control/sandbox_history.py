"""The steps that changed a sandbox, and going back."""

from itertools import chain, islice

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Page, Reply
from ...calls.views import parts_of, shown, shown_step, shown_version, versions
from ...contract.formats import date_time_ms
from ...engine.history import check_kept, rewind, step_at, step_before
from ...engine.scheduler import check_standing
from ...engine.step import Step
from ...kernel.problem import NotFound
from ...kernel.record import Body


def list_steps(call: Call, query: Body) -> Reply:
    """200 with a page of steps, newest first."""
    log = call.sandbox.log
    page, limit, since = query["page"], query["limit"], query.get("since", 0)
    table, ident, cause = query.get("table"), query.get("resource_id"), query.get("cause")
    event = query.get("event_id")
    newer = islice(reversed(log), max(0, min(len(log), log.number - since)))
    first = (page - 1) * limit
    if table is None and ident is None and cause is None and event is None:
        total = max(0, min(len(log), log.number - since))
        chosen = list(islice(newer, first, first + limit)) if first < total else []
    else:
        matching = [step for step in newer if _matches(step, table, ident and ident.lower(), cause, event)]
        total, chosen = len(matching), matching[first : first + limit]
    return reply.value({"steps": [shown_step(step) for step in chosen], "pagination": Page(page, limit, total).body()})


def get_record_history(call: Call, resource: str, ident: str, query: Body) -> Reply:
    """200 with a page of the versions of a record, of any merchant of the sandbox."""
    if resource not in call.store.tables:
        raise NotFound("There is no such kind of record.", advice="GET /_sandbox/steps names those that there are.")
    tables = (store.tables[resource] for store in call.sandbox.stores.values())
    present = next(filter(None, (table.find(ident) for table in tables)), None)
    found = versions(call.sandbox.log, resource, ident, present)
    if not found:
        raise call.not_found("record")
    page, limit = query["page"], query["limit"]
    chosen = found[(page - 1) * limit : page * limit]
    return reply.value(
        {"versions": [shown_version(each) for each in chosen], "pagination": Page(page, limit, len(found)).body()}
    )


async def rewind_sandbox(call: Call, body: Body) -> Reply:
    """200 with the sandbox as it was, and how many steps that undid."""
    sandbox, instant = call.sandbox, None
    check_standing(sandbox)
    if "to_step" in body:
        number = body["to_step"]
        check_kept(sandbox.log, number, "to_step")
    elif "to_request" in body:
        number = step_before(sandbox, body["to_request"], "to_request")
    else:
        instant = date_time_ms(body["to"])
        number = step_at(sandbox, instant, "to")
    entry, (step, undone) = await call.server.sandboxes.go_back(sandbox, rewind(sandbox, number, call.cause, instant))
    call.note(step)
    return reply.value({"sandbox": shown(call, entry), "undone": undone})


def _matches(step: Step, table: str | None, ident: str | None, cause: str | None, event: str | None) -> bool:
    if cause is not None and cause not in step.cause:
        return False
    if event is not None and all(raised.id != event for raised in step.events):
        return False
    if table is None and ident is None:
        return True
    return any(
        (table is None or name == table) and (ident is None or record.id == ident)
        for name, record in chain.from_iterable(
            chain(((put[0], put[1]) for put in part.puts), part.drops) for part in parts_of(step)
        )
    )
