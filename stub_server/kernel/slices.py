"""Work that is too long for one turn of the event loop: done in slices, with other requests served between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any, TypeVar

SLICE = 0.01  # seconds
T = TypeVar("T")


class Lane:
    """Long work takes its turn here, one after the other: many slices side by side would be a long one again."""

    __slots__ = ("_beside", "_slices")

    def __init__(self) -> None:
        self._slices, self._beside = asyncio.Lock(), asyncio.Lock()

    async def in_slices(self, work: Generator[None, None, T]) -> T:
        """Run a generator to its end; where it yields, others may be served. Answers what it returns."""
        async with self._slices:
            until = perf_counter() + SLICE
            while True:
                try:
                    next(work)
                except StopIteration as end:
                    result: T = end.value
                    return result
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + SLICE

    async def beside(self, work: Callable[[], T]) -> T:
        """Run a function in a thread: for work on data that nobody else can reach yet."""
        async with self._beside:
            return await _in_thread(work)


def at_once(work: Generator[None, None, T]) -> T:
    """Run a generator to its end without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


async def _in_thread(work: Callable[[], T]) -> T:
    # A daemon: a server that is told to stop does not wait for a world that nobody will see.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[Any], None], outcome: object) -> None:
        if not done.cancelled():
            settle(outcome)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            settle: tuple[Callable[[Any], None], object] = (done.set_exception, error)
        else:
            settle = (done.set_result, result)
        try:
            loop.call_soon_threadsafe(tell, *settle)
        except RuntimeError:  # the loop has been closed meanwhile: nobody waits
            return

    threading.Thread(target=run, name="beside", daemon=True).start()
    return await done
