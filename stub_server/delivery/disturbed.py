"""One attempt as the world's fault rules have it: late, lost, twice, or with a signature that is not valid."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ..domain.deliveries import AttemptOutcome
from ..engine.attempts import LOST, wrong_keys
from ..events.sender import Delivery, Sender
from ..faults.fault_rules import Disturbance

_SECOND = 1_000  # ms


async def attempt(
    sender: Sender,
    delivery: Delivery,
    timeout: float,
    disturbed: Disturbance | None,
    limits: set[asyncio.Timeout] | None = None,
) -> AttemptOutcome:
    """Post once, or as the rules say; what came of it names them.

    A delay is real time, on the way: what is sent was decided before. Of a duplicate the first answer counts.
    """
    if disturbed is None:
        return await sender.attempt(delivery, timeout, limits)
    if disturbed.delay:
        await asyncio.sleep(disturbed.delay / _SECOND)
    if disturbed.drop:
        return AttemptOutcome(None, None, {}, disturbed.delay, LOST, {}, "", simulated=disturbed.label)
    if disturbed.bad_signature:
        delivery = replace(delivery, keys=wrong_keys(delivery.keys))
    outcome = await sender.attempt(delivery, timeout, limits)
    if disturbed.duplicate:
        await sender.attempt(delivery, timeout, limits)
    return outcome._replace(simulated=disturbed.label, duration_ms=outcome.duration_ms + disturbed.delay)
