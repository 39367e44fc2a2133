"""The clock that rules expiry, billing and retries: forward only, and everything due on
the way is done.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import merge

from ...core.clock import (
    DAY,
    HOUR,
    LATEST_START,
    MINUTE,
    SECOND,
    iso,
    iso_or_none,
    parse_iso,
    wall_ms,
)
from ...core.problem import Conflict
from ...core.record import Body
from ...core.slices import AT_ONCE, Sliced, collected, filtered
from ...core.timers import Timer
from ...domain.calendar import add_interval
from ...engine.draft import Draft
from ...engine.scheduler import Fired, check_not_advancing, table_of_job
from ...server import lists
from ...server.reply import Reply
from ...server.work import Work
from ...webhooks.advancing import counts, pass_time

_UNITS = {"days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": SECOND}
FIRST = 20  # jobs of each kind that an answer shows
MOST_SHOWN = 5_000  # jobs that one with all of them shows
FARTHEST = 3650 * DAY
PATIENCE = 30.0  # seconds that a call waits for deliveries, without wait_seconds


async def set_clock(work: Work, query: Body, body: Body) -> Body:
    check_not_advancing(work.sandbox)
    if "to" not in body:
        if "frozen" in body:
            _set_frozen(work, body["frozen"])
        return get_clock(work)
    fired, _ = await _jump(work, parse_iso(body["to"]), body)
    jobs = await _jobs(work, fired, query)
    return get_clock(work) | jobs


async def advance_clock(work: Work, query: Body, body: Body) -> Body:
    if "to" in body:
        to = parse_iso(body["to"])
    else:
        to = add_interval(work.now, "month", 1, int(body.get("months", 0)))
        for name, unit in _UNITS.items():
            to += round(body.get(name, 0) * unit)
    check_not_advancing(work.sandbox)
    fired, complete = await _jump(work, to, body)
    return {
        "now": iso(work.sandbox.clock.now),
        **(await _jobs(work, fired, query)),
        "complete": complete,
        "remaining": counts(work.server.courier, work.sandbox)["due"],  # attempts
    }


async def _jobs(work: Work, fired: list[Fired], query: Body) -> Body:
    """The jobs that ran: how many of each kind, and the first of each, or nearly all of them."""
    if "about" in query:
        concerned = await work.in_slices(collected(_concerned(work, query["about"].lower())))
        fired = [job for job in fired if job.subject in concerned]
    counted: Counter[str] = Counter()
    shown: list[Body] = []
    most = MOST_SHOWN if "details" in query else 0
    for job in fired:
        counted[job.job] += 1
        if counted[job.job] <= FIRST or len(shown) < most:
            shown.append(
                {
                    "at": iso(job.at),
                    "job": job.job,
                    "resource": job.subject,
                    "events": list(job.events),
                }
            )
    return {"fired": shown, "counts": dict(sorted(counted.items()))}


def _concerned(work: Work, ident: str) -> Iterator[str]:
    """The ids of a record, and of the subscriptions and orders of a customer, or the
    orders of a subscription.
    """
    yield ident
    for store in work.sandbox.stores.values():
        orders, subscriptions = store.orders, store.subscriptions
        for table, index in (
            (orders, "customerId"),
            (orders, "subscriptionId"),
            (subscriptions, "customerId"),
        ):
            for record in [table.rows[key] for key in table.bucket(index, ident)]:
                yield record.id


async def list_timers(work: Work, query: Body) -> Reply:
    payable, ident = work.lifecycle("Order").sets["payable"], query.get("resource_id", "").lower()

    def would_change(timer: Timer) -> bool:
        """Whether the order that a job would expire or pay still waits for its payment, and the
        subscription that it would renew does not end.
        """
        store = work.sandbox.stores.get(timer.merchant_id)
        if store is None or ident not in ("", timer.subject):  # it may have been undone meanwhile
            return False
        if timer.job == "subscription.renew":
            return not store.subscriptions.is_in(timer.subject, "cancel_at_period_end", (True,))
        if timer.job in ("order.expire", "order.pay"):
            return store.orders.is_in(timer.subject, "status", payable)
        return True

    found = await work.in_slices(filtered(list(work.sandbox.timers.live.values()), would_change))
    found = await work.in_slices(_in_order(found))
    return lists.listed_here("timers", found, query, partial(_shown, work))


def _in_order(timers: Sequence[Timer]) -> Sliced[list[Timer]]:
    """Timers by their time, with pauses."""
    runs = []
    for begin in range(0, len(timers), AT_ONCE):
        runs.append(sorted(timers[begin : begin + AT_ONCE]))
        yield
    return (yield from filtered(merge(*runs), lambda timer: True))


def _shown(work: Work, timer: Timer) -> Body:
    return {
        "due": iso(timer.due),
        "job": timer.job,
        "resource": table_of_job(timer.job),
        "id": timer.subject,
        "held": timer.seq in work.sandbox.timers.on_hold,
    }


async def _jump(work: Work, to: int, body: Body) -> tuple[list[Fired], bool]:
    """The jobs that are done until an instant, and whether the clock has arrived at it.

    A clock that is to stop, or to run, does so from now on.
    """
    if to < work.now:
        message = f"The clock shows {work.now_text} and moves forward only."
        raise Conflict.at(
            "to", message, "clock_moves_forward_only", advice="POST /_sandbox/reset begins again."
        )
    farthest = min(work.now + FARTHEST, LATEST_START)
    if to > farthest:
        message = (
            f"The farthest time is {iso(farthest)}: at most 3650 days from now, and never past the"
            " year 8999."
        )
        raise Conflict.at("to", message, "clock_too_far")
    seconds = body.get("wait_seconds", PATIENCE)
    with work.waiting():
        if "frozen" in body:
            _set_frozen(work, body["frozen"])
        passed = await pass_time(work.server.courier, work.sandbox, to, work.cause, seconds=seconds)
    work.check_there()
    return passed


def _set_frozen(work: Work, frozen: bool) -> None:
    """Stop the clock at the time that it shows, or let it run from there."""
    clock = work.sandbox.clock
    draft = Draft(work.sandbox, work.sandbox.store, work.cause)
    draft.clock = clock.state._replace(frozen=True) if frozen else clock.resumed()
    draft.record()
    if not frozen:
        work.server.courier.look_soon(work.sandbox)


def get_clock(work: Work) -> Body:
    sandbox = work.sandbox
    job, attempt = sandbox.timers.next_job(), sandbox.timers.next_attempt()
    # what is due already is on its way, or held
    if attempt is not None and attempt.due <= sandbox.clock.now:
        attempt = None
    due = min([timer.due for timer in (job, attempt) if timer is not None], default=None)
    return {
        "now": iso(sandbox.clock.now),
        "frozen": sandbox.clock.frozen,
        "offset_seconds": (sandbox.clock.read() - wall_ms()) / 1000,
        "next_due": iso_or_none(due),
        "pending_timers": len(sandbox.timers),
        "complete": not sandbox.status.is_advancing,
        "remaining": counts(work.server.courier, sandbox)["due"],  # attempts
    }
