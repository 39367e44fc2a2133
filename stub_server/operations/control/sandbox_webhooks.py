"""What waits to be delivered: wait until it is, or send what is held back."""

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...delivery.courier import held_back
from ...delivery.passage import drained
from ...engine.scheduler import tick
from ...kernel.clock import iso
from ...kernel.record import Body

PATIENCE = 30.0  # seconds that a call waits for deliveries unless told


async def drain_webhooks(call: Call, body: Body | None) -> Reply:
    """200 when nothing is due any more, or when the time is over; `complete` tells which."""
    sandbox, courier = call.sandbox, call.server.courier
    courier.ring(sandbox)
    complete = await drained(courier, sandbox, (body or {}).get("wait_seconds", PATIENCE))
    call.check_there()
    if not sandbox.is_broken:
        tick(sandbox)
    return reply.value({"now": iso(sandbox.clock.now), "complete": complete, "deliveries": courier.queue(sandbox)})


async def resume_webhooks(call: Call) -> Reply:
    """200 with how many deliveries were held and are due now."""
    sandboxes = call.server.sandboxes
    resumed = await sandboxes.lane.in_slices(held_back(call.sandbox))
    call.check_there()
    call.server.courier.resume(call.sandbox)
    sandboxes.keeper.note(sandboxes.entry(call.sandbox.name))
    return reply.value({"resumed": resumed})
