"""What a store is: a database with sandboxes, one per server, or one that many servers use.

Statements are those of `sql.py`. They take a session, which any thread may have.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..core.problem import UnusableInput


class StoreError(UnusableInput):
    """A store that cannot be used, with the reason."""


class Damage(StoreError):
    """Something in a store is not as it was written, or is not there."""


class Kept(NamedTuple):
    """The row of a sandbox, whose number is `id`. Times are ms of the machine.

    `next_due` is when a delivery is due, `newest` the number of its newest step. `about` is JSON:
    what else the server knows of it, and what lists show of it.
    """

    id: int
    name: str
    created_at: int
    expires_at: int | None
    last_used_at: int
    next_due: int | None
    newest: int
    about: str


class KeptState(NamedTuple):
    """A whole state after a step, how many bytes its parts have, and their checksum.

    `id` is the time at which it was written (ns). A sandbox's own has the name "", that of a
    snapshot has the snapshot's, and `about` is JSON.
    """

    id: int
    name: str
    about: str
    step: int
    size: int
    checksum: int


Values = tuple[Any, ...]
"""The values of a row, or those for the places of a statement."""
Statement = tuple[str, Values]
"""One whose places are `?`, and the values."""


@dataclass(slots=True, eq=False)
class Change:
    """What is stored of one sandbox at once: all of it or nothing.

    `row` is its row as it is to be, unless it `ends`. `before` is the number of its newest step in
    the store, None for a sandbox that is new. `statements` go with that.
    """

    number: int
    before: int | None = None
    row: Kept | None = None
    ends: bool = False
    statements: list[Statement] = field(default_factory=list)


class Session(Protocol):
    """A connection to a database."""

    def run(self, statement: str, *values: Any) -> list[Values]:
        """Send a statement, and return its rows."""

    def transaction(self) -> AbstractContextManager[object]:
        """Within it, all is done or nothing."""

    def close(self) -> None:
        """Close the connection."""


class Database(Protocol):
    """A database with these tables, one per server. What is given here is that of a database of one
    server.

    `seed` is that of the server that began it; what it raises is in `errors`. `others` has the
    addresses and settings of the other servers that use it, and `living` is SQL that selects the
    ids of all; this server's id is `holder`. `lease_left` is for how many seconds no other server
    takes over sandboxes of this one; None without others.
    """

    name: str
    advice: str
    secret: bytes
    seed: int
    errors: type[Exception]
    is_shared: bool = False
    holder: int = 0
    living: str = "0"
    others: Sequence[tuple[str, Mapping[str, str]]] = ()

    @property
    def lease_left(self) -> float | None:
        return None

    def session(self) -> Session:
        """A new connection."""

    def reason(self, error: Exception) -> str:
        """The text of an error for clients."""

    def start(self, lost: Callable[[], None]) -> None:
        """Once it serves: `lost` is called when this server may no longer use its sandboxes."""
        return

    async def commit(self, changes: Sequence[Change]) -> Collection[int]:
        """Commit changes, beside the requests; returns the numbers of those that could not be
        made.
        """
        return await asyncio.to_thread(self._commit, changes)

    def _commit(self, changes: Sequence[Change]) -> Collection[int]: ...

    async def recover(self) -> None:
        """Wait until no commit is under way of which the end is unknown."""
        return

    def claim(self, session: Session, name: str) -> str | None:
        """Take a sandbox for this server, if it is there; returns the address of the running server
        that has it.

        Or of the one that is creating it.
        """
        return None

    def announce(self, session: Session, name: str) -> None:
        """Let other servers know that this one is creating a sandbox."""
        return

    def end_announcement(self, session: Session, name: str) -> None:
        """Let them know that this one no longer is."""
        return

    def close(self) -> None:
        """Give up the sandboxes, and close the database."""


def one_line(error: Exception) -> str:
    """The text of an error in one line: it may quote a database."""
    return " ".join(str(error).split())
