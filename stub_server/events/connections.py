"""Connections to receivers: opened to checked addresses alone, and kept for the next delivery."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeAlias

import httpcore2
import httpx2

from .addresses import allowed, resolve
from .streams import Stream

Resolve = Callable[[str, int], Awaitable[list[str]]]
Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""
PER_HOST = 32
IDLE_SECONDS = 3.0  # less than servers commonly wait, so that none closes a connection as it is used again
ORIGINS = 64  # whose connections are kept


class Unreachable(Exception):
    """There is no address that may be connected to. `error` says why: `dns` or `blocked`."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections. A name is resolved once, checked, and the very address that was checked is connected to.

    So it cannot mean something else a moment later. `local` opens this machine and private networks.
    """

    def __init__(self, *, local: bool, resolve: Resolve = resolve) -> None:
        self._local, self._resolve = local, resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that takes a connection. Raises Unreachable, httpcore2.ConnectError."""
        addresses = await self._addresses(host, port)
        for address in addresses[:-1]:
            try:
                return await Stream.to(address, port)
            except httpcore2.ConnectError:
                continue
        return await Stream.to(addresses[-1], port)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except (OSError, ValueError, OverflowError) as error:
            raise Unreachable("dns") from error
        open_ones = [address for address in found if allowed(address, local=self._local)]
        if not open_ones:
            raise Unreachable("blocked" if found else "dns")
        return open_ones


class Connections:
    """The connections of one sender.

    Kept ones belong to the event loop that called `keep`; on another one, or before, each use has a connection of its
    own, closed at its end.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._pools: OrderedDict[Origin, httpcore2.AsyncConnectionPool] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    def keep(self) -> None:
        """Keep connections from now on, until `aclose`."""
        self._loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def to(self, origin: Origin) -> AsyncIterator[httpcore2.AsyncConnectionPool]:
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

    def _pool(self, origin: Origin) -> httpcore2.AsyncConnectionPool:
        return httpcore2.AsyncConnectionPool(
            # Certificates are checked only where there are any.
            ssl_context=authorities() if origin[0] == "https" else None,
            max_connections=PER_HOST,
            max_keepalive_connections=PER_HOST,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=self._guard,
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
