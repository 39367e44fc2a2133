"""Connections that end without an answer, or in the middle of one, on this side or on the other."""

from __future__ import annotations

from starlette.types import Receive, Scope

TRANSPORT = "stub_server.transport"
"""Where the state in a scope has the connection's transport; a scope without a socket has none."""


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
