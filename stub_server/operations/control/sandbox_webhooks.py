"""What waits to be delivered: wait until it is, and send what is held back."""

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...delivery.advancing import count_kept_back, counts, drained
from ...engine.scheduler import do_due
from ...kernel.clock import iso
from ...kernel.problem import Unavailable
from ...kernel.record import Body

PATIENCE = 30.0  # seconds that a call waits for deliveries, without wait_seconds


async def drain_webhooks(call: Call, body: Body | None) -> Reply:
    """`complete` says whether nothing is due any more, or the time is over."""
    asked = body or {}
    released = await _release_deliveries(call) if asked.get("held") else 0
    sandbox, courier = call.sandbox, call.server.courier
    courier.look_soon(sandbox)
    with call.server.waiting.take(call.sandbox.name):
        complete = await drained(courier, sandbox, asked.get("wait_seconds", PATIENCE))
    call.check_there()
    await do_due(sandbox, call.server.sandboxes.worker)
    deliveries = counts(courier, sandbox)
    answer = {"now": iso(sandbox.clock.now), "complete": complete, "released": released, "deliveries": deliveries}
    return reply.value(answer)


async def _release_deliveries(call: Call) -> int:
    """Make the deliveries due that are held back. Returns how many there were."""
    sandboxes = call.server.sandboxes
    released = await sandboxes.worker.in_slices(count_kept_back(call.sandbox))
    call.check_there()
    sandbox, held = call.sandbox, call.sandbox.held_before
    sandbox.held_before = 0
    try:
        await sandboxes.persistence.store_row(sandbox)
    except Unavailable:
        sandbox.held_before = held
        raise
    sandbox.timers.put_back(sandbox.timers.on_hold)
    return released
