"""The clock that rules expiry, billing and retries: forward only, and everything due on the way is done."""

from collections.abc import Callable, Generator
from heapq import merge
from itertools import islice
from types import MappingProxyType

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...delivery.advancing import counts, pass_time
from ...domain.calendar import add_interval
from ...engine.draft import Draft
from ...engine.scheduler import Fired, check_not_advancing, table_of_job
from ...kernel.clock import DAY, HOUR, LATEST_START, MINUTE, SECOND, iso, parse_iso
from ...kernel.problem import Conflict
from ...kernel.record import Body
from ...kernel.timers import Timer

_UNITS = MappingProxyType({"days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": SECOND})
FARTHEST = 3650 * DAY
_AT_ONCE = 2_000  # timers that are sorted in one slice
PATIENCE = 30.0  # seconds that a call waits for deliveries, without wait_seconds


def get_clock(call: Call) -> Reply:
    return reply.value(_clock(call))


async def set_clock(call: Call, body: Body) -> Reply:
    def stand_still_or_run() -> None:
        if "frozen" in body:
            _set_frozen(call, frozen=body["frozen"])

    if "to" in body:
        await _jump(call, parse_iso(body["to"]), body, stand_still_or_run)
    else:
        check_not_advancing(call.sandbox)
        stand_still_or_run()
    return reply.value(_clock(call))


async def advance_clock(call: Call, body: Body) -> Reply:
    if "to" in body:
        to = parse_iso(body["to"])
    else:
        to = add_interval(call.now, "month", 1, int(body.get("months", 0)))
        to += sum(round(body.get(name, 0) * unit) for name, unit in _UNITS.items())
    fired, complete = await _jump(call, to, body)
    return reply.value(
        {
            "now": iso(call.sandbox.clock.now),
            "fired": [
                {"at": iso(job.at), "job": job.job, "resource": job.subject, "events": list(job.events)}
                for job in fired
            ],
            "complete": complete,
            "remaining": counts(call.server.courier, call.sandbox)["due"],  # attempts
        }
    )


async def list_timers(call: Call, query: Body) -> Reply:
    """Others are served while the timers are sorted."""
    timers = call.sandbox.timers
    found = list(timers.live.values())
    if "resource_id" in query:
        ident = query["resource_id"].lower()
        found = [timer for timer in found if timer[4] == ident]
    page, limit = query["page"], query["limit"]
    chosen = await call.server.sandboxes.worker.in_slices(_due_first(found, (page - 1) * limit, page * limit))
    shown = [
        {"due": iso(due), "job": job, "resource": table_of_job(job), "id": subject, "held": number in timers.on_hold}
        for due, number, job, _, subject in chosen
    ]
    return reply.value({"timers": shown, "pagination": reply.pagination(page, limit, len(found))})


def _due_first(timers: list[Timer], start: int, stop: int) -> Generator[None, None, list[Timer]]:
    """The timers from one place to another, in the order of time."""
    runs = []
    for first in range(0, len(timers), _AT_ONCE):
        runs.append(sorted(timers[first : first + _AT_ONCE]))
        yield
    ordered, chosen = merge(*runs), []
    for place, timer in enumerate(islice(ordered, stop)):
        if place >= start:
            chosen.append(timer)
        if place % _AT_ONCE == 0:
            yield
    return chosen


async def _jump(call: Call, to: int, body: Body, then: Callable[[], object] | None = None) -> tuple[list[Fired], bool]:
    check_not_advancing(call.sandbox)
    if to < call.now:
        message = f"The clock shows {call.now_text} and moves forward only."
        raise Conflict.at("to", message, "clock_moves_forward_only", advice="POST /_sandbox/reset begins again.")
    farthest = min(call.now + FARTHEST, LATEST_START)
    if to > farthest:
        message = f"The farthest time is {iso(farthest)}: at most 3650 days from now, and never past the year 8999."
        raise Conflict.at("to", message, "clock_too_far")
    seconds = body.get("wait_seconds", PATIENCE)
    with call.server.waiting.take(call.sandbox.name):
        passed = await pass_time(call.server.courier, call.sandbox, to, call.cause, seconds, then)
    call.check_there()
    return passed


def _set_frozen(call: Call, *, frozen: bool) -> None:
    """Stop the clock at the time that it shows, or let it run from there."""
    clock = call.sandbox.clock
    draft = Draft(call.sandbox, call.sandbox.store, call.cause)
    draft.clock = clock.state._replace(frozen=True) if frozen else clock.resumed()
    draft.record()
    if not frozen:
        call.server.courier.look_soon(call.sandbox)


def _clock(call: Call) -> Body:
    sandbox = call.sandbox
    timers, attempt = sandbox.timers, sandbox.timers.next_attempt()
    dues = [due for due in (timers.next_due(),) if due is not None]
    if attempt is not None and attempt > sandbox.clock.now:  # what is due already is on its way, or held
        dues.append(attempt)
    return {
        "now": iso(sandbox.clock.now),
        "frozen": sandbox.clock.frozen,
        "offset_seconds": (sandbox.clock.read() - sandbox.clock.wall()) / 1000,
        "next_due": iso(min(dues)) if dues else None,
        "pending_timers": len(timers),
        "complete": not sandbox.is_advancing,
        "remaining": counts(call.server.courier, sandbox)["due"],  # attempts
    }
