"""Names and addresses that mean this machine."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address

_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)*localhost").fullmatch


def is_local(name: str | None) -> bool:
    """Whether a host name means this machine. `127.0.0.1.example.com` does not, nor what is no name: `a/.localhost`."""
    if name is None:
        return False
    if _LOCAL_NAME(name):
        return True
    try:
        return unmapped(ip_address(name)).is_loopback
    except ValueError:
        return False


def unmapped(address: Address) -> Address:
    """The IPv4 address that `::ffff:192.0.2.1` stands for; any other as it is."""
    return getattr(address, "ipv4_mapped", None) or address
