"""Where deliveries may go: the guard against using the server as a way into networks that it alone can reach."""

import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from threading import BoundedSemaphore

from ..kernel.slices import BackgroundWorker

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

_NAT64 = IPv6Network("64:ff9b::/96")
_PUBLIC6 = IPv6Network("2000::/3")
# Link-local networks, and prefixes behind which a translator of the network's own may put any IPv4 address.
_CLOSED = tuple(map(ip_network, ("169.254.0.0/16", "fe80::/10", "64:ff9b:1::/48", "::ffff:0:0:0/96")))
# Where clouds answer a machine's own credentials outside the link-local networks, each by its provider's documentation.
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
MOST_ASKED = 256  # names at once: a resolver that does not answer holds a thread for each
_asking = BoundedSemaphore(MOST_ASKED)


def meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for (mapped, 6to4, NAT64, compatible), else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (address in _NAT64 or 1 < int(address) < 1 << 32):
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


def allowed(text: str, *, local: bool) -> bool:
    """Whether an address may be connected to; `local` opens this machine and private networks."""
    address = meant(ip_address(text))
    if address in _METADATA or any(address in network for network in _CLOSED):
        return False
    if isinstance(address, IPv6Address) and address not in _PUBLIC6:
        return local
    return local or (address.is_global and not address.is_multicast)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, asked once. Raises OSError or ValueError for a name that has none.

    Each name is asked for in a thread of its own: no other waits for a resolver that does not answer, nor does the
    server when it stops.
    """
    if not _asking.acquire(blocking=False):
        raise OSError(f"{MOST_ASKED} names are asked for already")

    def ask() -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(entry[4][0]) for entry in found))
        finally:
            _asking.release()

    return await BackgroundWorker().beside(ask)
