"""Work on a store beside the requests: in a thread, with a connection of its own."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ...core.problem import unwritten
from ...core.slices import BackgroundWorker
from ...storage.database import Database, Session, StoreError

T = TypeVar("T")


class Beside:
    """One connection, and one thread, in which one work is done after the other."""

    def __init__(self, store: Database) -> None:
        self._store, self._worker = store, BackgroundWorker()
        self._session: Session | None = None
        self._is_old = False

    async def run(self, work: Callable[[Session], T]) -> T:
        """Run work. Raises Unavailable."""

        def run() -> T:
            try:
                if self._is_old:
                    self.close()
                if self._session is None:
                    self._session = self._store.session()
                return work(self._session)
            except StoreError:  # which may be that the connection is broken
                self.close()
                raise
            except self._store.errors as error:
                self.close()
                raise unwritten(self._store.reason(error)) from None

        return await self._worker.beside(run)

    async def close_after(self) -> None:
        """Close the connection after the work that is under way."""
        await self._worker.beside(self.close)

    def renew(self) -> None:
        """Have the next work open another connection, whatever is under way."""
        self._is_old = True

    def close(self) -> None:
        """Close the connection; further work opens another one."""
        session, self._session, self._is_old = self._session, None, False
        if session is not None:
            session.close()


class Lines(NamedTuple):
    """What is done beside each other: a request may wait for what is read, and what is opened or
    written may be large.
    """

    reading: Beside
    opening: Beside
    writing: Beside
