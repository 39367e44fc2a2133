"""How many attempts are under way at once: in all, of one sandbox and to one host, so that nobody takes every place."""

from asyncio import CancelledError, Future, get_running_loop
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import NamedTuple
from urllib.parse import urlsplit

IN_ALL = 128
SLOW = NEW = 48  # of them for receivers that are known to be slow, and that have yet to prove themselves
PER_HOST = 16


class Receiver(Enum):
    """What is known of a receiver by its latest attempt."""

    PROVED, NEW, SLOW = "answers at once", "has had no attempt", "answers late or not at all"


class Place(NamedTuple):
    """What an attempt needs a place for. A sandbox has half of the places at most, and half of those of each kind."""

    sandbox: int
    host: str
    receiver: Receiver

    def limits(self) -> Iterator[tuple[Hashable, int]]:
        """What there are places of, and how many."""
        kind = {Receiver.PROVED: IN_ALL, Receiver.NEW: NEW, Receiver.SLOW: SLOW}[self.receiver]
        yield None, IN_ALL
        yield self.sandbox, IN_ALL // 2
        yield self.host, PER_HOST
        yield self.receiver, kind
        yield (self.sandbox, self.receiver), kind // 2


class Places:
    """Places for attempts. Sandboxes take turns, and of one sandbox who comes first is served first."""

    def __init__(self) -> None:
        self._taken: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[int, deque[tuple[Place, Future[None]]]] = OrderedDict()

    def is_free(self, place: Place) -> bool:
        """Whether an attempt need not wait."""
        return all(self._taken[of] < most for of, most in place.limits())

    @asynccontextmanager
    async def at(self, place: Place) -> AsyncIterator[None]:
        """A place for one attempt, until the block ends."""
        if self.is_free(place):
            self._take(place)
        else:
            await self._wait(place)
        try:
            yield
        finally:
            self._free(place)

    async def _wait(self, place: Place) -> None:
        given: Future[None] = get_running_loop().create_future()
        waiting = place, given
        self._waiting.setdefault(place.sandbox, deque()).append(waiting)
        try:
            await given
        except CancelledError:
            if given.cancelled():
                self._waiting[place.sandbox].remove(waiting)
            else:
                self._free(place)
            raise

    def _take(self, place: Place) -> None:
        for of, _ in place.limits():
            self._taken[of] += 1

    def _free(self, place: Place) -> None:
        """Give a place back, and to the next one whom it fits: a sandbox that was given one goes behind the others."""
        for of, _ in place.limits():
            self._taken[of] -= 1
            if not self._taken[of]:
                del self._taken[of]
        for sandbox, queue in list(self._waiting.items()):
            following = next((one for one in queue if self.is_free(one[0])), None)
            if following is not None:
                queue.remove(following)
                self._waiting.move_to_end(sandbox)
                self._take(following[0])
                following[1].set_result(None)
            if not queue:
                del self._waiting[sandbox]
            if following is not None:
                return


def host_of(url: str) -> str:
    """The host of an address, with its port."""
    return urlsplit(url).netloc.lower()
