"""Network streams for the HTTP client, opened to checked addresses alone.

A request goes out in one piece, and looking at a kept one costs nothing.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

from .addresses import Resolve, allowed

PIECE = 8_192  # bytes read at once
MOST_READS = 64  # of one answer, of whose body little is wanted


class Stream(httpcore2.AsyncNetworkStream):
    """A connection of asyncio's. Deadlines are kept by whoever uses it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unsent: list[bytes] = []
        self._received = 0

    @classmethod
    async def to(cls, address: str, port: int) -> "Stream":
        """Connect to an IP address. Raises httpcore2.ConnectError."""
        try:
            return cls(*await asyncio.open_connection(address, port))
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Send what was written, and wait for bytes; none at the end. Raises httpcore2.ReadError."""
        try:
            if self._unsent:
                data, self._unsent = b"".join(self._unsent), []
                self._received = 0
                self._writer.write(data)
                await self._writer.drain()
        except OSError:
            pass  # it may have answered before it closed
        try:
            self._received += 1
            if self._received > MOST_READS:
                raise httpcore2.ReadError("the answer does not end")
            await asyncio.sleep(0)  # what is there already is read without waiting: others are served in between
            return await self._reader.read(min(max_bytes, PIECE))
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Keep bytes until an answer is waited for: head and body go out together."""
        if buffer:
            self._unsent.append(buffer)

    async def aclose(self) -> None:
        """Close it, at once: nobody waits for the other side's farewell."""
        self._writer.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt it from now on. Raises httpcore2.ConnectError."""
        try:
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except OSError as error:  # ssl.SSLError is one
            await self.aclose()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        """What the pool asks: whether an idle connection has ended, and what was agreed on in TLS."""
        if info == "is_readable":
            return self._reader.at_eof() or self._reader.exception() is not None or self._writer.is_closing()
        return self._writer.get_extra_info(info)


class Unreachable(Exception):
    """There is no address that may be connected to. `error` says why: `dns` or `blocked`."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections. A name is resolved once, checked, and the very address that was checked is connected to.

    So it cannot mean something else a moment later. `local` opens this machine and private networks.
    """

    def __init__(self, *, local: bool, resolve: Resolve) -> None:
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
