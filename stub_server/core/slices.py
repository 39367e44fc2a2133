"""Work that is too long for one turn of the event loop: done in slices, with other
requests served between.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from time import perf_counter, perf_counter_ns
from typing import TypeVar
from weakref import WeakValueDictionary, finalize

SLICE = 0.005  # seconds
SHORT = 5_000_000  # ns of a turn in which nobody is counted
AT_ONCE = 500  # items that a search looks at before it pauses
T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
Sliced = Generator[None, None, T]
"""Work that yields wherever others may be served, and returns its result."""


class BackgroundWorker:
    """Long work takes turns here: many slices side by side would be a long one again."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._line = asyncio.Lock()
        self._own = WeakValueDictionary[str, asyncio.Lock]()  # of those who wait for the line
        self._turns = WeakValueDictionary[str, asyncio.Lock]()  # of those who wait for a slice
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def in_slices(self, work: Sliced[T], of: str) -> T:
        """Run a generator to its end; where it yields, others may be served. Returns its result.

        After each slice, requests and other long work have their turn. `of` is a sandbox's name:
        one slice of each is waited for, so that much work of one delays no other.
        """
        own = self._turns.setdefault(of, asyncio.Lock())
        try:
            while True:
                async with own, self._turn:
                    until = perf_counter() + SLICE
                    while perf_counter() < until:
                        next(work)
                    await asyncio.sleep(0)  # or all who wait would have a slice in this turn
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            work.close()  # its caller may have been cancelled

    async def in_line(self, work: Sliced[T], of: str) -> T:
        """Run a generator on copies of a sandbox to its end, after earlier ones: each copy
        takes memory.

        `of` is the sandbox's name. One of each is in the line, so that many of one delay no other.
        """
        async with self.own(of), self._line:
            return await self.in_slices(work, of)

    def own(self, of: str) -> asyncio.Lock:
        """What those who copy the sandbox of a name hold one after the other."""
        return self._own.setdefault(of, asyncio.Lock())

    async def beside(self, work: Callable[[], T]) -> T:
        """Run a function in a thread, after earlier ones: for work on data that nobody else can
        reach yet.
        """
        self._start()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        # An error refers to the frames that it went through. If `failed` kept it, this would be a
        # cycle, and what the work was given, such as an upload, would be freed by the garbage
        # collector only.
        made = []
        failed = []

        def settle() -> None:
            if not done.done():  # else the caller was cancelled
                done.set_result(None)

        def run() -> None:
            try:
                made.append(work())
            except BaseException as error:
                failed.append(error)
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(settle)

        self._work.put(run)
        await done
        if failed:
            raise failed.pop()
        return made.pop()

    def _start(self) -> None:
        """Start the thread with the first work: that takes a while."""
        if self._thread is None:
            # A daemon: a server that stops does not wait for a sandbox that nobody will use.
            self._thread = threading.Thread(
                target=_serve, args=(self._work,), name="long work", daemon=True
            )
            self._thread.start()
            finalize(self, self._work.put, None)


class Turns:
    """The turns of the event loop, shared by the requests of sandboxes: in one that is long, those
    of a sandbox are served until they have used a few milliseconds. Many of one, however short each
    is, would hold up those of others.
    """

    def __init__(self) -> None:
        self.began = 0  # when a turn ended that was long (ns)
        self._used: dict[str, int] = {}  # ns in this turn, by sandbox
        self._last, self._at = "", 0  # who was served last, and since when (ns)

    def admits(self, sandbox: str) -> bool:
        """Whether a request is served in this turn."""
        now = perf_counter_ns()
        if now - self.began <= SHORT:
            return True
        used = self._used
        if used:
            used[self._last] += now - self._at
        else:
            asyncio.get_running_loop().call_soon(self._end)
        self._at = now
        if used.setdefault(sandbox, 0) > SHORT:
            return False
        self._last = sandbox
        return True

    def _end(self) -> None:
        self._used.clear()
        self.began = perf_counter_ns()


def filtered(items: Iterable[T], accepts: Callable[[T], bool]) -> Sliced[list[T]]:
    """The items that are accepted, with pauses."""
    found: list[T] = []
    left = iter(items)
    while some := list(islice(left, AT_ONCE)):
        found += filter(accepts, some)
        if len(some) == AT_ONCE:
            yield
    return found


def collected(items: Iterable[H]) -> Sliced[set[H]]:
    """The different items, with pauses."""
    found = set[H]()
    left = iter(items)
    while some := list(islice(left, AT_ONCE)):
        found.update(some)
        yield
    return found


def batched(items: Collection[T]) -> Iterator[list[T]]:
    """The items as they are now, some at a time: between two batches others may be served."""
    left = list(items)
    for begin in range(0, len(left), AT_ONCE):
        yield left[begin : begin + AT_ONCE]


def at_once(work: Sliced[T]) -> T:
    """Run a generator to its end without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def _serve(work: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := work.get()) is not None:
        task()
        del task  # frees its result before the next one comes
