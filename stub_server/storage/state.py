"""The state of a sandbox as plain data: captured from it, changed by steps without rules or
indexes, built into one.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.record import Body, Record, without
from ..engine.sandbox import Sandbox
from ..engine.step import Part, Step
from ..engine.tables.store import Store, Usages
from ..engine.tables.table import size_of

# bytes of a record besides its two parts: its places in the tables, which a snapshot may keep
OVERHEAD = 600


@dataclass(slots=True, eq=False)
class Owned(Usages):
    """The data of one merchant: usage of API keys, and records by table and key."""

    rows: dict[str, dict[int, Record]] = field(default_factory=dict)

    def change(self, part: Part) -> None:
        """Apply the changes of one part of a step."""
        for name, before, after in part.changes:
            rows = self.rows.setdefault(name, {})
            if after is not None:
                rows[after.key] = after
            elif before is not None:
                del rows[before.key]
        for key, usage, _ in part.used:
            self.set_usage(key, usage)


@dataclass(slots=True)
class SandboxState:
    """Everything that steps change in a sandbox, and what it was seeded with: a sandbox without
    stores, and their data.

    The private halves of keys are in no state: those of seeded keys follow from the server's
    secret.
    """

    sandbox: Sandbox
    owned: dict[str, Owned] = field(default_factory=dict)

    def fold(self, step: Step) -> None:
        """Apply a step, which must be the next one, and log it."""
        self._change(step)
        self.sandbox.log.append(step)

    def unfold(self, step: Step) -> None:
        """Undo the newest step."""
        self._change(step.mirrored)
        self.sandbox.log.number -= 1

    def _change(self, step: Step) -> None:
        for part in step.parts:
            self.owned.setdefault(part.merchant.id, Owned(part.merchant)).change(part)
            if part.closes:
                del self.owned[part.merchant.id]
        self.sandbox.fold_rest(step)


def capture(sandbox: Sandbox) -> SandboxState:
    """A sandbox's state after its newest step.

    Nothing that it shares with the sandbox changes any more.
    """
    twin = sandbox.fork(sandbox.name, with_stores=False)
    twin.clock.set(sandbox.clock.recorded)
    owned = {}
    for ident, store in sandbox.stores.items():
        owned[ident] = Owned(store.merchant, dict(store.usage), dict(store.unrecorded))
        owned[ident].forget_unrecorded()
        for name, table in store.tables.items():
            if table.rows:
                owned[ident].rows[name] = table.rows.copy()
    return SandboxState(twin, owned)


def build(state: SandboxState) -> Sandbox:
    """The sandbox of a state, with stores.

    Raises KeyError, TypeError or ValueError for records that lack what an index reads.
    """
    sandbox = state.sandbox
    sandbox.stores = {}
    for ident, owned in state.owned.items():
        store = sandbox.stores[ident] = Store(owned.merchant, sandbox.rules.layout)
        store.rebuild(owned.rows)
        store.usage = dict(owned.usage)
    return sandbox


class Snapshot(NamedTuple):
    """A state with a name: a copy of a sandbox that nobody changes.

    `now` is the instant (ms) that its clock showed, `created_at` the machine's. `size` is about how
    many bytes it may keep in memory.
    """

    name: str
    description: str | None
    now: int
    created_at: int
    sandbox: Sandbox
    size: int

    @property
    def head(self) -> Body:
        """What is stored of it besides the state."""
        return without(self._asdict(), "sandbox", "size")


def measured(
    name: str, description: str | None, now: int, created_at: int, sandbox: Sandbox
) -> Snapshot:
    """A snapshot with its size, for which all records are looked at."""
    size = 0
    for table in sandbox.tables():
        size += sum(size_of(record) + OVERHEAD for record in table.rows.values())
    return Snapshot(name, description, now, created_at, sandbox, size)
