"""Places in the code at which a process can be made to end, as if it was killed there."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from stub_server.server.sandboxes import commits
from stub_server.storage import sql
from stub_server.storage.sqlite import SqliteSession


def die() -> None:
    """End this process at once: nothing is cleaned up and nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def _around(owner: Any, name: str, *, after: bool, times: int = 1) -> Callable[[int], None]:
    """Before or after a call, so many `times` a number of calls after the beginning."""

    real = getattr(owner, name)  # now: a name that is gone is missed with every run

    def plant(count: int) -> None:
        left = [count * times]

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if not left[0] and not after:
                die()
            result = real(*args, **kwargs)
            if not left[0]:
                die()
            return result

        setattr(owner, name, wrapped)

    return plant


def _between(owner: Any, name: str) -> Callable[[int], None]:
    """In the middle of what a generator gives, so many items after the beginning."""

    real = getattr(owner, name)

    def plant(count: int) -> None:
        left = [count]

        def wrapped(*args: Any) -> Iterator[Any]:
            for item in real(*args):
                left[0] -= 1
                if not left[0]:
                    die()
                yield item

        setattr(owner, name, wrapped)

    return plant


PLACES: dict[str, Callable[[int], None]] = {
    "before a statement": _around(SqliteSession, "run", after=False, times=4),
    "after a statement": _around(SqliteSession, "run", after=True, times=4),
    "before a commit": _around(sql, "commit", after=False),
    "after a commit": _around(sql, "commit", after=True),
    "within a state": _between(commits, "parts_of"),
    "after a state was written": _around(sql, "write_state", after=True),
    "before a sandbox comes": _around(sql, "keys_entered", after=False),
    "before a state comes": _around(sql, "state_entered", after=False),
    "before the log is synced": _around(os, "fsync", after=False),
    "after the log was synced": _around(os, "fsync", after=True),
    "after what nobody needs was deleted": _around(sql, "delete_unused", after=True),
    "before a state is taken": _around(commits, "capture", after=False),
}
