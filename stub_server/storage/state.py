"""A state of a sandbox: a copy of it that nobody changes, and one with a name."""

from typing import NamedTuple

from ..core.record import Body, without
from ..engine.sandbox import Sandbox
from ..engine.step import OVERHEAD_EACH

# bytes of a record besides its two parts: its places in the tables, which a snapshot may keep
OVERHEAD = 600
MOST_SNAPSHOTS = 20  # of a sandbox, and of a file


def capture(sandbox: Sandbox) -> Sandbox:
    """A copy of a sandbox after its newest step, which nobody else has."""
    twin = sandbox.fork(sandbox.name)
    twin.clock.set(sandbox.clock.recorded)
    for store in twin.stores.values():
        store.forget_unrecorded()
    return twin


class Snapshot(NamedTuple):
    """A state with a name: a copy of a sandbox that nobody changes.

    `now` is the instant (ms) that its clock showed, `created_at` the machine's.
    """

    name: str
    description: str | None
    now: int
    created_at: int
    sandbox: Sandbox

    @property
    def head(self) -> Body:
        """What is stored of it besides the state."""
        return without(self._asdict(), "sandbox")

    @property
    def size(self) -> int:
        """About how many bytes it may keep in memory; its events, replies and timers may be its own
        too.
        """
        sandbox = self.sandbox
        size = sandbox.events.size + sandbox.replies.size + OVERHEAD_EACH * len(sandbox.timers)
        for table in sandbox.tables():
            size += table.size + OVERHEAD * len(table)
        return size
