"""Places in the code at which a process can be made to end, as if it was killed there."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stub_server.files.directory import Directory
from stub_server.files.states import States
from stub_server.files.steps import StepTables

from stub_server.worlds import keeping


def die() -> None:
    """End this process at once: nothing is cleaned up and nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def _around(owner: Any, name: str, *, after: bool) -> Callable[[int], None]:
    def plant(count: int) -> None:
        real, left = getattr(owner, name), [count]

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
    """In the middle of what a generator gives, so many items after its beginning."""

    def plant(count: int) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any) -> Iterator[Any]:
            for number, item in enumerate(real(*args)):
                if number == count:
                    die()
                yield item

        setattr(owner, name, wrapped)

    return plant


def _in_a_state(count: int) -> None:
    """In the middle of a state that is being written."""
    real, left = States.write_base, [2 + count % 4]

    def write(self: States, name: str, lines: Iterable[bytes]) -> int:
        left[0] -= 1

        def cut() -> Iterator[bytes]:
            for number, line in enumerate(lines):
                if not left[0] and number == 5 + count:
                    die()
                yield line

        return real(self, name, cut())

    States.write_base = write  # type: ignore[method-assign]  # the process ends here on purpose: nobody puts it back


PLACES: dict[str, Callable[[int], None]] = {
    "before a step is told of": _around(Directory, "append", after=False),
    "before steps are written": _around(Directory, "flush", after=False),
    "after steps were written": _around(Directory, "flush", after=True),
    "within a state": _in_a_state,
    "before a file is synced": _around(os, "fsync", after=False),
    "after a file was synced": _around(os, "fsync", after=True),
    "before a world comes": _around(Directory, "enter", after=False),
    "while a world comes": _around(StepTables, "create", after=False),
    "after a world came": _around(Directory, "enter", after=True),
    "before a world goes": _around(Directory, "drop", after=False),
    "after a world went": _around(Directory, "drop", after=True),
    "before a later state counts": _around(Directory, "rebase", after=False),
    "after a later state counts": _around(Directory, "rebase", after=True),
    "while steps are deleted": _between(Directory, "tidied"),
    "before a world is written anew": _around(keeping, "capture", after=False),
}
