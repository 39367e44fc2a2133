"""What fell due while no server ran: done before the first request is, in slices, so that a signal is heard."""

from collections.abc import Generator, Iterable
from threading import Event

from ..engine.sandbox import Sandbox
from ..engine.scheduler import ticking
from ..kernel.slices import Lane


async def catch_up(worlds: Iterable[Sandbox], closing: Event) -> None:
    """Do the jobs that running clocks have passed, each at its own instant, until the server is `closing`.

    Attempts to deliver are the courier's.
    """

    def work() -> Generator[None, None, None]:
        for world in worlds:
            for _ in ticking(world, world.clock.read()):
                if closing.is_set():
                    return
                yield

    await Lane().in_slices(work())
