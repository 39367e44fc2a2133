"""The clock that rules expiry, billing and retries: forward only, and everything due on the way is done."""

from types import MappingProxyType

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...contract.formats import date_time_ms
from ...engine.scheduler import Fired, advance
from ...kernel.clock import DAY, HOUR, LATEST_START, MINUTE, SECOND, iso
from ...kernel.problem import Conflict, detail
from ...kernel.record import Body

_UNITS = MappingProxyType({"days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": SECOND})
FARTHEST = 3650 * DAY


def get_clock(call: Call) -> Reply:
    """200 with the clock."""
    return reply.value(_clock(call))


def set_clock(call: Call, body: Body) -> Reply:
    """200 with the clock after the jump."""
    to = date_time_ms(body["to"])
    _check(call, to)
    advance(call.sandbox, to, call.cause)
    return reply.value(_clock(call))


def advance_clock(call: Call, body: Body) -> Reply:
    """200 with the jobs that were done on the way."""
    if "to" in body:
        return _jump(call, date_time_ms(body["to"]))
    return _jump(call, call.now + sum(round(body.get(name, 0) * unit) for name, unit in _UNITS.items()))


def freeze_clock(call: Call, body: Body | None) -> Reply:
    """200 with the clock standing still, now or at a later instant."""
    if body and "at" in body:
        _check(call, date_time_ms(body["at"]))
        advance(call.sandbox, date_time_ms(body["at"]), call.cause)
    call.draft.clock = call.sandbox.clock.stopped()
    call.record()
    return reply.value(_clock(call))


def resume_clock(call: Call) -> Reply:
    """200 with the clock running on from where it stands."""
    call.draft.clock = call.sandbox.clock.resumed()
    call.record()
    return reply.value(_clock(call))


def _jump(call: Call, to: int) -> Reply:
    _check(call, to)
    fired = advance(call.sandbox, to, call.cause)
    return reply.value({"now": iso(call.sandbox.clock.now), "fired": [_fired(job) for job in fired]})


def _fired(job: Fired) -> Body:
    return {"at": iso(job.at), "job": job.job, "resource": job.subject, "events": list(job.events)}


def _check(call: Call, to: int) -> None:
    if to < call.now:
        message = f"The clock stands at {call.now_text} and moves forward only. POST /_sandbox/reset begins anew."
        raise Conflict(message, code="clock_moves_forward_only", details=[_where(message, "clock_moves_forward_only")])
    farthest = min(call.now + FARTHEST, LATEST_START)
    if to > farthest:
        message = f"One step reaches to {iso(farthest)}: at most 3650 days from now, and never past the year 8999."
        raise Conflict(message, code="clock_too_far", details=[_where(message, "clock_too_far")])


def _where(message: str, code: str) -> dict[str, str]:
    return detail("to", code, message)


def _clock(call: Call) -> Body:
    sandbox = call.sandbox
    due = sandbox.timers.next_due()
    return {
        "now": iso(sandbox.clock.now),
        "frozen": sandbox.clock.frozen,
        "offset_seconds": sandbox.clock.offset / 1000,
        "next_due": None if due is None else iso(due),
        "pending_timers": len(sandbox.timers),
    }
