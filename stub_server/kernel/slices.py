"""Work that is too long for one turn of the event loop: done in slices, with other requests served between."""

import asyncio
import threading
from asyncio import wrap_future
from collections.abc import Callable, Generator
from concurrent.futures import Future
from queue import SimpleQueue
from time import perf_counter
from typing import Any, TypeAlias, TypeVar
from weakref import finalize

SLICE = 0.005  # seconds
T = TypeVar("T")
Tasks: TypeAlias = SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]


class BackgroundWorker:
    """Long work takes turns here: many slices side by side would be a long one again."""

    __slots__ = ("__weakref__", "_line", "_tasks", "_thread", "_turn")

    def __init__(self) -> None:
        self._turn, self._line = asyncio.Lock(), asyncio.Lock()
        self._tasks: Tasks = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def in_slices(self, work: Generator[None, None, T]) -> T:
        """Run a generator to its end; where it yields, others may be served. Returns its result.

        After each slice, other long work and requests have their turn.
        """
        try:
            while True:
                async with self._turn:
                    until = perf_counter() + SLICE
                    while perf_counter() < until:
                        next(work)
                await asyncio.sleep(0)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            work.close()  # its caller may have been cancelled

    async def in_line(self, work: Generator[None, None, T]) -> T:
        """The same for work on copies of sandboxes, one after the other: each copy takes memory."""
        async with self._line:
            return await self.in_slices(work)

    async def beside(self, work: Callable[[], T]) -> T:
        """Run a function in a thread, after earlier ones: for work on data that nobody else can reach yet."""
        if self._thread is None:  # one for all: starting a thread takes a while
            # A daemon: a server that stops does not wait for a sandbox that nobody will use.
            self._thread = threading.Thread(target=_serve, args=(self._tasks,), name="long work", daemon=True)
            self._thread.start()
            finalize(self, self._tasks.put, None)
        # Neither the future nor the work has a name here. An error refers to the frames that it went through: what the
        # work was given, such as an upload, would be freed by the garbage collector only.
        return await wrap_future(self._put(work))

    def _put(self, work: Callable[[], T]) -> Future[T]:
        result = Future[T]()
        result.set_running_or_notify_cancel()  # it is done even if its caller is cancelled
        self._tasks.put((work, result))
        return result


def at_once(work: Generator[None, None, T]) -> T:
    """Run a generator to its end without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def _serve(tasks: Tasks) -> None:
    while (task := tasks.get()) is not None:
        work, result = task
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)
        del task, work, result  # before the next one comes
