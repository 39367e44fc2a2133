"""The snapshots of a world: states with a name, kept whatever the log forgets, bounded in number and in bytes."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from itertools import islice

from ..engine.log import Budget
from ..engine.sandbox import Sandbox
from ..files.carrying import MOST_SNAPSHOTS
from ..files.pinned import Pinned
from ..kernel.clock import wall_ms
from ..kernel.problem import Conflict, Missing, detail
from ..kernel.slices import at_once

MOST = MOST_SNAPSHOTS  # what is made here can be imported elsewhere
MOST_BYTES = 256 * 1024 * 1024
MOST_BYTES_IN_ALL = 1024 * 1024 * 1024
OVERHEAD = (
    600  # bytes of a record besides its two parts: its places in the tables, of which a snapshot may keep its own
)
_LOT = 1_000  # records measured between two pauses


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state with a name: a copy of the world that nobody changes, after step `number`.

    `created_at` is the machine's time in ms, `now` the sandbox's, `size` about how many bytes it may keep alive.
    """

    name: str
    description: str | None
    number: int
    created_at: int
    size: int
    now: int
    pinned: Sandbox

    @property
    def told(self) -> Pinned:
        """As files carry it."""
        return Pinned(self.name, self.description, self.now, self.created_at, self.pinned)

    @property
    def records(self) -> int:
        """How many records all merchants have in it."""
        return sum(sum(store.counts().values()) for store in self.pinned.stores.values())


class Snapshots:
    """The snapshots of one world by name."""

    __slots__ = ("_held", "_size", "budget")

    def __init__(self, budget: Budget) -> None:
        """`budget` is shared by the snapshots of a server."""
        self.budget = budget
        self._held: dict[str, Snapshot] = {}
        self._size = 0

    def get(self, name: str) -> Snapshot:
        """A snapshot. Raises Missing."""
        found = self._held.get(name)
        if found is None:
            raise Missing(f"There is no snapshot {name[:63]} in this sandbox.", code="snapshot_not_found")
        return found

    def oldest(self) -> list[Snapshot]:
        """All of them, in the order in which they were made."""
        return list(self._held.values())

    def newest(self) -> list[Snapshot]:
        """All of them, those made last first."""
        return list(reversed(self._held.values()))

    def check_room(self, name: str, size: int = 0) -> None:
        """Refuse a snapshot that is one too many, or of so many bytes that they do not fit. Raises Conflict."""
        old = self._held.get(name)
        given = 0 if old is None else old.size
        if old is None and len(self._held) >= MOST:
            raise _too_many(f"A sandbox has at most {MOST} snapshots.")
        if self._size - given + size > MOST_BYTES:
            raise _too_many(f"The snapshots of a sandbox have at most {MOST_BYTES >> 20} MiB together.")
        if self.budget.used - given + size > self.budget.most:
            raise _too_many(f"The snapshots of all sandboxes have at most {self.budget.most >> 20} MiB together.")

    def check_room_instead(self, snapshots: Iterable[Snapshot]) -> None:
        """Refuse snapshots that are to come in place of all of these when they do not fit. Raises Conflict."""
        size = sum([snapshot.size for snapshot in snapshots])
        if size > MOST_BYTES:
            raise _too_many(f"The snapshots of a sandbox have at most {MOST_BYTES >> 20} MiB together.")
        if self.budget.used - self._size + size > self.budget.most:
            raise _too_many(f"The snapshots of all sandboxes have at most {self.budget.most >> 20} MiB together.")

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot for which there is room, in place of the one of the same name."""
        self._let_go(snapshot.name)
        self._held[snapshot.name] = snapshot
        self._size += snapshot.size
        self.budget.used += snapshot.size

    def drop(self, name: str) -> None:
        """Let a snapshot go. Raises Missing."""
        self.get(name)
        self._let_go(name)

    def clear(self) -> None:
        """Let all of them go."""
        for name in list(self._held):
            self._let_go(name)

    def _let_go(self, name: str) -> None:
        gone = self._held.pop(name, None)
        if gone is not None:
            self._size -= gone.size
            self.budget.used -= gone.size


def taken(world: Sandbox, name: str, description: str | None) -> Generator[None, None, Snapshot]:
    """A snapshot of a world as it is at the call, measured with pauses."""
    pinned, number = world.fork(world.name), world.log.number
    size = yield from _measured(pinned)
    return Snapshot(name, description, number, wall_ms(), size, pinned.clock.now, pinned)


def snapshot_of(told: Pinned) -> Snapshot:
    """A snapshot that was made elsewhere or earlier."""
    name, description, now, created_at, pinned = told
    return Snapshot(name, description, pinned.log.number, created_at, at_once(_measured(pinned)), now, pinned)


def _measured(pinned: Sandbox) -> Generator[None, None, int]:
    size = 0
    for store in pinned.stores.values():
        for table in store.tables.values():
            records = iter(table.rows.values())
            while lot := list(islice(records, _LOT)):
                size += sum([record.size + OVERHEAD for record in lot])
                yield
    return size


def _too_many(message: str) -> Conflict:
    return Conflict(
        message,
        advice="DELETE /_sandbox/snapshots/NAME frees one.",
        code="too_many_snapshots",
        details=[detail("name", "too_many_snapshots", message)],
    )
