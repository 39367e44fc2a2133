"""The sockets of a server: on every address of its host, all with one port."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ..core.problem import UnusableInput
from ..settings import Settings

BACKLOG = 2048
# a machine without IPv6 may have names with such addresses
NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


@contextmanager
def listen(settings: Settings) -> Iterator[list[socket.socket]]:
    """Sockets that listen on every address of the host, all with one port. Raises UnusableInput."""
    with ExitStack() as opened:
        try:
            listeners = [opened.enter_context(listener) for listener in _listeners(settings)]
        except UnicodeError:
            raise UnusableInput("--host is no name that a machine can have.") from None
        except OSError as error:
            hint = "Give --host a name or address of this machine."
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                hint = "--port 0 picks a free one."
            where = f"{settings.host}:{settings.port}"
            raise UnusableInput(
                f"cannot listen on {where}: {error.strerror or error}. {hint}"
            ) from None
        yield listeners


def _listeners(settings: Settings) -> Iterator[socket.socket]:
    """A socket for each address, without those of a family that this machine does not have. Raises
    OSError.

    Where the machine chose the port, an address at which it is not free is left out.
    """
    found = socket.getaddrinfo(settings.host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses: list[tuple[Any, ...]] = list(dict.fromkeys(address for *_, address in found))
    # a second socket, as to one alone the callers of IPv4 have addresses of IPv6
    if addresses[0][0] == "::":
        addresses.append(("0.0.0.0", 0))  # noqa: S104 - asked for
    if settings.also_ipv6:
        addresses.append(("::1", 0))
    bound = 0
    for host, _, *scope in addresses:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        place = (host, bound or settings.port, *scope)
        try:
            listener = socket.create_server(place, family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno in NO_SUCH_FAMILY or (bound and not settings.port):
                continue
            raise
        bound = listener.getsockname()[1]
        yield listener
    if not bound:
        raise OSError(errno.EADDRNOTAVAIL, "this machine has no such address")


def with_port(settings: Settings, listener: socket.socket) -> Settings:
    """The settings with the port that the machine has chosen."""
    return replace(settings, port=listener.getsockname()[1])
