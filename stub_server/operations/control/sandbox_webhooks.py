"""What waits to be delivered: wait until it is, and send what is held back."""

from ...core.clock import iso
from ...core.problem import Unavailable
from ...core.record import Body
from ...engine.scheduler import do_due
from ...server.work import Work
from ...webhooks.advancing import counts, drained

PATIENCE = 30.0  # seconds that a call waits for deliveries, without wait_seconds


async def drain_webhooks(work: Work, body: Body) -> Body:
    """`complete` says whether nothing is due any more, or the time is over."""
    released = await _release_deliveries(work) if body.get("held") else 0
    sandbox, courier = work.sandbox, work.server.courier
    courier.look_soon(sandbox)
    with work.waiting():
        complete = await drained(courier, sandbox, body.get("wait_seconds", PATIENCE))
    work.check_there()
    await do_due(sandbox, work.sandboxes.worker)
    return {
        "now": iso(sandbox.clock.now),
        "complete": complete,
        "released": released,
        "deliveries": counts(courier, sandbox),
    }


async def _release_deliveries(work: Work) -> int:
    """Make the deliveries due that are held back. Returns how many are due then and wait for no
    earlier one.
    """
    sandbox, held = work.sandbox, work.sandbox.status.held_before
    released = len(sandbox.timers.on_hold) + sandbox.timers.attempts_due(sandbox.clock.now)
    sandbox.status.held_before = 0
    try:
        await work.sandboxes.persistence.store_row(sandbox)
    except Unavailable:
        sandbox.status.held_before = held
        raise
    sandbox.timers.put_back(sandbox.timers.on_hold)
    return released
