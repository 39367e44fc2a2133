"""Connections to receivers, kept for the next delivery."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import httpx2

from .addresses import Resolve

if TYPE_CHECKING:
    from httpcore2 import AsyncConnectionPool

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""
PER_HOST = 32
IDLE_SECONDS = 3.0  # less than servers commonly wait, so that none closes a connection as it is used again
ORIGINS = 64  # whose connections are kept


class Connections:
    """The connections of one sender.

    Kept ones belong to the event loop that called `keep`; on another one, or before, each use has a connection of its
    own, closed at its end.
    """

    def __init__(self, *, local: bool, resolve: Resolve) -> None:
        """`local` opens this machine and private networks."""
        self._local, self._resolve = local, resolve
        self._pools: OrderedDict[Origin, AsyncConnectionPool] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    def keep(self) -> None:
        """Keep connections from now on, until `aclose`."""
        self._loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def to(self, origin: Origin) -> AsyncIterator["AsyncConnectionPool"]:
        """The pool of a scheme, host and port."""
        if self._loop is not asyncio.get_running_loop():
            async with self._pool(origin) as pool:
                yield pool
            return
        known = self._pools.get(origin)
        if known is None:
            known = self._pools[origin] = self._pool(origin)
            await self._let_go()
        else:
            self._pools.move_to_end(origin)
        yield known

    def _pool(self, origin: Origin) -> "AsyncConnectionPool":
        from httpcore2 import AsyncConnectionPool

        from .streams import Guard

        return AsyncConnectionPool(
            # Certificates are checked only where there are any.
            ssl_context=authorities() if origin[0] == "https" else None,
            max_connections=PER_HOST,
            max_keepalive_connections=PER_HOST,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=Guard(local=self._local, resolve=self._resolve),
        )

    async def _let_go(self) -> None:
        """Of too many origins the one longest unused has its connections closed, if they all are idle."""
        for origin, pool in list(self._pools.items()):
            if len(self._pools) <= ORIGINS:
                return
            if all(connection.is_idle() or connection.is_closed() for connection in pool.connections):
                del self._pools[origin]
                await pool.aclose()

    async def aclose(self) -> None:
        """Close what is kept."""
        self._loop = None
        pools, self._pools = list(self._pools.values()), OrderedDict()
        for pool in pools:
            await pool.aclose()


@cache
def authorities() -> ssl.SSLContext:
    """Whom this machine trusts to sign certificates. Reading them takes a while: they are read once."""
    return httpx2.create_ssl_context(trust_env=False)
