"""What the layers know of a connection, and how they end one without an answer or in the middle of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from starlette.types import Receive, Scope

REFUSED = "stub_server.refused"
"""Where a scope has the protocol's refusal of its request."""
TRANSPORT = "stub_server.transport"
"""Where the state in a scope has the connection's transport; a scope without a socket has none."""
WHOLE = "stub_server.whole"
"""The extension of a scope by which a whole response is sent."""
Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]
SendWhole: TypeAlias = Callable[[int, Pairs, bytes], bytes | None]
"""Takes status, headers and body; returns the headers as they were sent, a line each, None where it sent nothing."""


async def hang_up(scope: Scope, receive: Receive, *, unsent: bool) -> None:
    """Close the connection, `unsent` without what is still to be sent.

    Raises ConnectionResetError where there is none, as a client in the same process would see it.
    """
    transport = scope.get("state", {}).get(TRANSPORT)
    if transport is None:
        raise ConnectionResetError("a fault rule of the sandbox dropped the connection")
    if unsent:
        transport.abort()
    else:
        transport.close()
    while (await receive())["type"] != "http.disconnect":
        pass


def has_left(scope: Scope) -> bool:
    """Whether the client has closed its connection."""
    transport = scope.get("state", {}).get(TRANSPORT)
    return transport is not None and bool(transport.is_closing())


def sent_lines(headers: Pairs) -> bytes:
    """Headers, a line each."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])
