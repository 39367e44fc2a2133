"""What fell due while no server ran: done before the first request is, in slices, so that a signal is heard."""

import asyncio
import logging
from collections.abc import Iterable

from ..engine.sandbox import Sandbox
from ..engine.scheduler import run_due

LOT = 20  # jobs between two looks at signals
log = logging.getLogger("stub_server")


async def catch_up(worlds: Iterable[Sandbox]) -> None:
    """Do the jobs that running clocks have passed, each at its own instant. Attempts to deliver are the courier's."""
    for world in worlds:
        try:
            while (due := world.timers.next_due()) is not None and due <= world.clock.read():
                run_due(world, world.clock.read(), LOT)
                await asyncio.sleep(0)
        except Exception:
            log.exception("defect in a job of sandbox %s; its clock waits at %d", world.name, world.clock.now)
