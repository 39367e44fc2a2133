"""The snapshots of a sandbox: states with a name, which stay when the log drops steps; bounded in number and bytes."""

from collections.abc import Iterable

from ..engine.bounded import Budget
from ..files.package import BadFile
from ..files.state import Snapshot
from ..kernel.problem import Conflict, NotFound

MOST = 20  # also of a file
MOST_BYTES = 256 * 1024 * 1024
MOST_BYTES_IN_ALL = 1024 * 1024 * 1024


class Snapshots:
    """The snapshots of one sandbox by name; `budget` is shared by those of a server."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._snapshots: dict[str, Snapshot] = {}

    def get(self, name: str) -> Snapshot:
        """A snapshot. Raises NotFound."""
        found = self._snapshots.get(name)
        if found is None:
            raise NotFound(f"There is no snapshot {name[:63]} in this sandbox.", code="snapshot_not_found")
        return found

    def all(self) -> list[Snapshot]:
        """All of them, in the order in which they were made."""
        return list(self._snapshots.values())

    def check_room(self, name: str, size: int = 0) -> None:
        """Check that there is room for one more snapshot of so many bytes. Raises Conflict."""
        old = self._snapshots.get(name)
        if old is None and len(self._snapshots) >= MOST:
            raise _too_many(f"A sandbox has at most {MOST} snapshots.")
        self._check_bytes(size if old is None else size - old.size)

    def check_room_instead(self, snapshots: Iterable[Snapshot]) -> None:
        """Check that the snapshots of a file fit in the place of all of these. Raises BadFile."""
        try:
            self._check_bytes(_size(snapshots) - _size(self.all()))
        except Conflict as error:
            raise BadFile("too_large", error.message) from None

    def _check_bytes(self, more: int) -> None:
        if _size(self.all()) + more > MOST_BYTES:
            raise _too_many(f"The snapshots of a sandbox have at most {MOST_BYTES >> 20} MiB together.")
        if self.budget.used + more > self.budget.most:
            raise _too_many(f"The snapshots of all sandboxes have at most {self.budget.most >> 20} MiB together.")

    def keep(self, *snapshots: Snapshot) -> None:
        """Keep snapshots for which there is room, each in place of the one of the same name."""
        for snapshot in snapshots:
            self.drop(snapshot.name)
            self._snapshots[snapshot.name] = snapshot
            self.budget.used += snapshot.size

    def drop(self, name: str) -> None:
        """Delete a snapshot, if it is there."""
        gone = self._snapshots.pop(name, None)
        if gone is not None:
            self.budget.used -= gone.size

    def clear(self) -> None:
        for name in list(self._snapshots):
            self.drop(name)


def _size(snapshots: Iterable[Snapshot]) -> int:
    return sum([snapshot.size for snapshot in snapshots])


def _too_many(message: str) -> Conflict:
    return Conflict.at("name", message, "too_many_snapshots", advice="DELETE /_sandbox/snapshots/NAME frees one.")
