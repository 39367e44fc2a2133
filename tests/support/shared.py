"""What the tests of a process share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, TypeVar

from . import postgres, stores
from .live import FROZEN, Live, running

T = TypeVar("T")


class Shared:
    """Things that are made when they are first asked for, and last as long as the run."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._made: dict[tuple[str, str], Any] = {}

    def once(
        self, name: str, make: Callable[[], AbstractContextManager[T]], store: str | None = None
    ) -> T:
        """The thing of a name for the store that servers are given now, unless it is for one that
        is named.
        """
        key = name, stores.current() if store is None else store
        if key not in self._made:
            self._made[key] = self._stack.enter_context(make())
        thing: T = self._made[key]
        return thing

    @property
    def live(self) -> Live:
        """The server that most tests share: the clock frozen at 2026-11-20T14:32:05.123Z."""
        return self.once("live", partial(running, FROZEN))

    @property
    def postgres(self) -> postgres.Postgres:
        """A PostgreSQL of this process, of 40 MB: it starts sooner than processes would
        agree upon one.
        """
        return self.once("postgres", postgres.running, store="any")
