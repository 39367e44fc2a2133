"""How many attempts are under way at once: in all, and to one host, so that a dead one has no more than its share."""

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

IN_ALL = 128
PER_HOST = 16


class Places:
    """Places for attempts. Who comes first is served first."""

    def __init__(self) -> None:
        self._all = Semaphore(IN_ALL)
        self._hosts: dict[str, tuple[Semaphore, int]] = {}

    def is_free(self, url: str) -> bool:
        """Whether an attempt to an address need not wait."""
        known = self._hosts.get(_host(url))
        return not self._all.locked() and (known is None or not known[0].locked())

    @asynccontextmanager
    async def at(self, url: str) -> AsyncIterator[None]:
        """A place for one attempt to an address, until the block ends."""
        host = _host(url)
        semaphore, users = self._hosts.get(host) or (Semaphore(PER_HOST), 0)
        self._hosts[host] = semaphore, users + 1
        try:
            async with semaphore, self._all:
                yield
        finally:
            semaphore, users = self._hosts[host]
            if users == 1:
                del self._hosts[host]
            else:
                self._hosts[host] = semaphore, users - 1


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()
