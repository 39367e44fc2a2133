"""Names and addresses that mean this machine."""

from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address


def is_local(name: str | None) -> bool:
    """Whether a host name means this machine. A name such as `127.0.0.1.example.com` does not."""
    if name is None:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return unmapped(ip_address(name)).is_loopback
    except ValueError:
        return False


def unmapped(address: Address) -> Address:
    """The IPv4 address that `::ffff:192.0.2.1` stands for; any other as it is."""
    return getattr(address, "ipv4_mapped", None) or address
