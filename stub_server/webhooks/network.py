"""Requests to receivers: which addresses are allowed, the connections, and the exchange of one
attempt.

Only `sender.py` imports this module, when something is sent: importing httpcore2 takes 15 ms.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Coroutine, Iterable
from contextlib import aclosing, suppress
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, connect_tcp
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from ..core.signing import HeaderPairs
from ..core.slices import BackgroundWorker
from ..domain.deliveries import Delivery, Failed, kept_headers

Address = IPv4Address | IPv6Address
Received = tuple[int, dict[str, str], str]
"""The status of an answer, and what is kept of its headers and body."""

KEPT_BYTES = 4096  # of an answer's body
# Bytes read at once, which may be many interim answers, chunks or TLS records, and how often for
# one exchange: it may never end.
PIECE = 512
MOST_READS = 256
_NAT64 = IPv6Network("64:ff9b::/96")
_PUBLIC6 = IPv6Network("2000::/3")
# Link-local networks, and prefixes behind which a translator of the network's own may put any IPv4
# address.
_CLOSED = tuple(
    map(ip_network, ("169.254.0.0/16", "fe80::/10", "64:ff9b:1::/48", "::ffff:0:0:0/96"))
)
# Where clouds serve a machine's own credentials outside the link-local networks, from each
# provider's documentation.
_METADATA = frozenset(
    map(
        ip_address,
        (
            "fd00:ec2::254",  # AWS, instance metadata
            "fd00:ec2::23",  # AWS, EKS Pod Identity agent
            "fd20:ce::254",  # Google Cloud, metadata server
            "fd00:c1::a9fe:a9fe",  # Oracle Cloud, instance metadata
            "192.0.0.192",  # Oracle Cloud, instance metadata of older shapes
            "fd00:42::42",  # Scaleway, instance metadata
            "100.100.100.200",  # Alibaba Cloud, instance metadata
            "168.63.129.16",  # Azure, WireServer
        ),
    )
)
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.InvalidURL,
    OSError,
    ValueError,
)


# -- addresses


def allowed(text: str, *, local: bool) -> bool:
    """Whether the server may connect to an address; `local` allows this machine and private
    networks.

    An IPv6 address that stands for an IPv4 one (mapped, 6to4, NAT64, compatible) is judged as that
    one.
    """
    address: Address = ip_address(text)
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and (address in _NAT64 or 1 < int(address) < 1 << 32):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or address
    if address in _METADATA or any(address in network for network in _CLOSED):
        return False
    if isinstance(address, IPv6Address) and address not in _PUBLIC6:
        return local
    return local or (address.is_global and not address.is_multicast)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises OSError or ValueError for a name without any.

    Each name is looked up in its own thread, so that a resolver that does not answer delays neither
    other names nor the end of the server.
    """

    def look_up() -> list[str]:
        return [
            str(address[0])
            for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        ]

    return await BackgroundWorker().beside(look_up)


class _Stream(httpcore2.AsyncNetworkStream, ByteStream):
    """A connection for httpcore that sends head and body together, and for anyio's TLS.

    A receiver with many connections may answer one, or drop it, before a body that comes later is
    there. A little is read at once, and only so often: the end of what it sends is the receiver's
    to decide, and TLS may read records for ever that are no answer.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._head = b""
        self._reads = 0

    async def receive(self, max_bytes: int = PIECE) -> bytes:
        """Wait for bytes. Raises anyio.BrokenResourceError."""
        self._reads += 1
        if self._reads > MOST_READS:
            raise BrokenResourceError
        return await self._stream.receive(min(max_bytes, PIECE))

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Wait for bytes. Raises httpcore2.ReadError."""
        try:
            return await self.receive(max_bytes)
        except EndOfStream:
            return b""
        except (BrokenResourceError, ClosedResourceError) as error:
            raise httpcore2.ReadError("the connection was reset, or does not end") from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; a head waits for what follows it. Raises httpcore2.WriteError."""
        if buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
            return
        head = self._head
        self._head = b""
        try:
            await self.send(head + buffer)
        except (BrokenResourceError, ClosedResourceError) as error:
            raise httpcore2.WriteError("the connection was reset") from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises httpcore2.ConnectError."""
        try:
            secured = await TLSStream.wrap(
                self,
                ssl_context=ssl_context,
                hostname=server_hostname,
                standard_compatible=False,
            )
        except (BrokenResourceError, EndOfStream, ssl.SSLError) as error:
            await self.aclose()
            raise httpcore2.ConnectError("there is no TLS") from error
        return _Stream(secured)

    def get_extra_info(self, info: str) -> Any:
        """httpcore asks for what each connection has once; nothing of it is needed for one
        exchange.
        """
        return None


class Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections to allowed addresses only.

    A name is resolved once, and the address that was checked is connected to: the name cannot
    change in between.
    """

    def __init__(self, *, local: bool) -> None:
        """`local` allows this machine and private networks."""
        self._local = local

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that accepts. Raises Failed, httpcore2.ConnectError."""
        try:
            found = await resolve(host, port)
        except (OSError, ValueError) as error:
            raise Failed("dns") from error
        addresses = [address for address in found if allowed(address, local=self._local)]
        if not addresses:
            raise Failed("blocked" if found else "dns")
        for address in addresses[:-1]:
            with suppress(OSError):
                return _Stream(await connect_tcp(address, port))
        try:
            return _Stream(await connect_tcp(addresses[-1], port))
        except OSError as error:
            raise httpcore2.ConnectError("no address accepts") from error


# -- the exchange


@cache
def authorities(cacert: Path | None) -> ssl.SSLContext:
    """The certificate authorities of this machine, or of SSL_CERT_FILE, and those in a file. They
    are read once.

    A receiver may ask for a handshake with numbers of 10,000 bits, for which the event loop would
    stand still: only the usual elliptic curve is offered. Raises Failed where they cannot be read.
    """
    try:
        context = httpx2.create_ssl_context()
        context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
        context.set_ecdh_curve("prime256v1")
        if cacert is not None:
            context.load_verify_locations(cacert)
    except OSError as error:
        raise Failed("tls") from error
    return context


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all exchanges, in a thread of its own.

    A receiver decides how much a handshake costs, and TLS reads what is no answer without an end:
    requests of others must not wait for that.
    """
    loop = asyncio.SelectorEventLoop()
    threading.Thread(target=loop.run_forever, name="deliveries", daemon=True).start()
    return loop


async def beside(exchanging: Coroutine[Any, Any, Received]) -> Received:
    """Wait for an exchange in that loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(exchanging, _loop()))


async def exchange(
    delivery: Delivery,
    headers: HeaderPairs,
    timeout: float,
    *,
    local: bool,
    cacert: Path | None,
) -> Received:
    """Send once, through a connection of its own. Raises Failed.

    Where only the head of the answer comes in time, the head is the answer.
    """
    is_secure = delivery.url[:6].lower() == "https:"
    context = None
    response = None
    received = b""
    if is_secure:
        context = authorities(cacert)  # reading them takes a while
    try:
        async with (
            asyncio.timeout(timeout),
            httpcore2.AsyncConnectionPool(
                ssl_context=context, network_backend=Guard(local=local)
            ) as connections,
        ):
            response = await connections.handle_async_request(request_of(delivery, headers))
            async with aclosing(response):
                async for part in response.aiter_stream():
                    received += part[: KEPT_BYTES - len(received)]
                    if len(received) >= KEPT_BYTES:
                        break
    except (TimeoutError, httpcore2.TimeoutException):
        if response is None:
            raise Failed("timeout") from None
    except _FAILURES as error:
        if response is None:
            raise Failed(_kind(error)) from error
    assert response is not None
    text = received.decode("utf-8", "replace").replace("\x00", "\ufffd")
    names = httpx2.Headers(response.headers, encoding="latin-1").multi_items()
    return response.status, kept_headers(names), text


def request_of(delivery: Delivery, headers: HeaderPairs) -> httpcore2.Request:
    """Raises Failed for an address without a host, httpx2.InvalidURL."""
    url = httpx2.URL(delivery.url)
    if not url.host or not (url.port is None or 0 < url.port < 65_536):
        raise Failed("dns")
    target = httpcore2.URL(scheme=url.scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    fields = [(b"host", url.netloc), (b"content-length", b"%d" % len(delivery.body))]
    fields += httpx2.Headers(headers, encoding="utf-8").raw
    return httpcore2.Request(
        delivery.method,
        target,
        headers=fields,
        content=delivery.body if delivery.pieces is None else delivery.pieces(),
    )


def _kind(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused"
        cause = cause.__cause__ or cause.__context__
    return "connection_failed"
