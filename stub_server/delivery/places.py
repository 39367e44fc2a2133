"""How many attempts are under way at once: in all, and to one host, so that a dead one has no more than its share."""

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import urlsplit

IN_ALL = 128
SLOW = IN_ALL // 2  # of them for receivers that are known to be slow, however many there are
PER_HOST = 16


class Places:
    """Places for attempts. Who comes first is served first."""

    def __init__(self) -> None:
        self._all, self._slow = Semaphore(IN_ALL), Semaphore(SLOW)
        self._hosts: dict[str, tuple[Semaphore, int]] = {}

    def is_free(self, url: str, *, slow: bool) -> bool:
        """Whether an attempt to an address, whose receiver may be known to be slow, need not wait."""
        known = self._hosts.get(_host(url))
        is_host_free = known is None or not known[0].locked()
        return is_host_free and not self._all.locked() and not (slow and self._slow.locked())

    @asynccontextmanager
    async def at(self, url: str, *, slow: bool) -> AsyncIterator[None]:
        """A place for one attempt to an address, until the block ends."""
        host = _host(url)
        semaphore, users = self._hosts.get(host) or (Semaphore(PER_HOST), 0)
        self._hosts[host] = semaphore, users + 1
        try:
            async with self._slow if slow else nullcontext(), semaphore, self._all:
                yield
        finally:
            semaphore, users = self._hosts[host]
            if users == 1:
                del self._hosts[host]
            else:
                self._hosts[host] = semaphore, users - 1


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()
