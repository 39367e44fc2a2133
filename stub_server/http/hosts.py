"""Host names: which mean this machine, and which a server on loopback accepts.

With DNS rebinding, a foreign page whose host name resolves to this machine is same-origin with the server. Only the
Host header, which holds the foreign name, shows it.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from ..kernel.hosts import is_local, unmapped

Network = IPv4Network | IPv6Network

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?").fullmatch
_MAPPED = IPv6Network("::ffff:0:0/96")
_REMEMBERED, _LONGEST = 64, 256


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case and without the port; None for any other text."""
    found = _HOST(header)
    if found is None:
        return None
    literal, name = found.groups()
    if literal is None:
        return str(name).lower().removesuffix(".") or None
    try:
        return str(IPv6Address(literal))
    except ValueError:
        return None


def network_of(text: str) -> Network:
    """A network or a single address, host bits ignored, as IPv4 where it is IPv4 written as IPv6."""
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((unmapped(network.network_address), network.prefixlen - 96))
    return network


class Hosts:
    """The hosts that a server accepts: those of this machine and those that the user names."""

    def __init__(self, named: Iterable[str], *, loopback: bool) -> None:
        """`named` are as in a Host header. Off loopback every host is accepted: there the credential decides."""
        self._named = {host_name(text) for text in named} - {None}
        self._everyone = not loopback
        self._known: set[bytes | None] = {None}  # browsers always send the header

    def admits(self, header: bytes | None) -> bool:
        """Whether a request with this Host header is accepted."""
        if self._everyone or header in self._known:
            return True
        assert header is not None
        name = host_name(header.decode("latin-1").strip())
        if not is_local(name) and name not in self._named:
            return False
        if len(self._known) < _REMEMBERED and len(header) < _LONGEST:
            self._known.add(header)
        return True
