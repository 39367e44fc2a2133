"""Work on a store beside the requests: in a thread, with a connection of its own."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ...core.problem import unwritten
from ...core.slices import BackgroundWorker
from ...storage.database import Database, Session

T = TypeVar("T")


class Beside:
    """One connection, and one thread, in which one work is done after the other."""

    def __init__(self, store: Database) -> None:
        self._store, self._worker = store, BackgroundWorker()
        self._idle: Session | None = None  # the connection while no work has it

    async def run(self, work: Callable[[Session], T]) -> T:
        """Run work. Raises Unavailable. A connection that has failed is not used again."""

        def run() -> T:
            try:
                session, self._idle = self._idle or self._store.session(), None
                try:
                    result = work(session)
                except BaseException:
                    session.close()
                    raise
            except self._store.errors as error:
                raise unwritten(self._store.reason(error)) from None
            self._idle = session
            return result

        return await self._worker.beside(run)

    async def ended(self) -> None:
        """Close the connection after the work that is under way."""
        await self._worker.beside(self.close)

    def close(self) -> None:
        """Close the connection that no work has; further work opens another one."""
        session, self._idle = self._idle, None
        if session is not None:
            session.close()


class Lines(NamedTuple):
    """What is done beside each other: a request may wait for what is read, and what is opened or
    written may be large.
    """

    reading: Beside
    opening: Beside
    writing: Beside
