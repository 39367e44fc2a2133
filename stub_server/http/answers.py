"""What answers are made of: refusals in one shape, streams piece by piece, and connections closed on purpose."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import orjson
from starlette.types import Receive, Scope, Send

from ..calls.call import Answer
from ..calls.reply import Streamed
from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT
from ..kernel.problem import Refusal

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("stub_server")

Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]
Headers = list[tuple[bytes, bytes]]
CONNECTION = "stub_server.connection"
"""Where the state in a scope has its Connection; a scope without a socket has none."""
JSON = (b"content-type", b"application/json")
PATIENCE = 5.0  # seconds that a reader may take none of what is sent
_DEFECT = "The sandbox failed by a defect of its own. Its log has the request id; the request may work after a reset."


def render(error: Exception, trace: Trace, sandbox: str | None = None) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a refusal. One that is no Refusal is logged as a defect.

    `sandbox` is what the request was for, if not what its trace is of.
    """
    refusal = error if isinstance(error, Refusal) else Refusal(_DEFECT)
    named = sandbox or trace.sandbox
    if refusal is not error:
        log.error("defect in %s %r (%s)", trace.method, trace.path, trace.id, exc_info=error)
    trace.code = refusal.code
    body = orjson.dumps(
        {
            "error": True,
            "message": refusal.shown("" if named == DEFAULT else f"/s/{named}"),
            "code": refusal.code,
            "status": refusal.status,
            "request_id": trace.id,
            "details": refusal.details,
        }
    )
    headers: Headers = [JSON, (b"content-length", b"%d" % len(body))]
    headers += [(name.lower().encode(), text.encode("latin-1", "replace")) for name, text in refusal.headers.items()]
    return refusal.status, headers, body


def not_allowed(method: str, allow: str) -> Refusal:
    message = f"This path supports {allow}, not {method[:20]}."
    return Refusal(message, status=405, code="method_not_allowed", headers={"Allow": allow})


def options(allow: str) -> Answer:
    return 204, [(b"allow", allow.encode())], (b"",), b""


def connection_of(scope: Scope) -> "Connection | None":
    connection: Connection | None = scope.get("state", {}).get(CONNECTION)
    return connection


class HungUp(ConnectionResetError):
    """A fault rule dropped the connection of a client in this process, which has no socket to close."""


async def hang_up(scope: Scope, receive: Receive, *, unsent: bool) -> None:
    """Close the connection; if `unsent`, without what is still to be sent. Raises HungUp without a socket."""
    connection = connection_of(scope)
    if connection is None:
        raise HungUp("a fault rule of the sandbox dropped the connection")
    if unsent:
        connection.link.abort()
    else:
        connection.link.close()
    await left(receive)


async def left(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def has_left(scope: Scope) -> bool:
    """Whether the client has closed its connection."""
    connection = connection_of(scope)
    return connection is not None and connection.link.is_closing()


async def send_pieces(reply: Streamed, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    """Send pieces until they end or the reader leaves. A reader who does not read is cut off.

    An empty piece is not sent: it is an opportunity to notice that the reader has left.
    """
    leaving = asyncio.ensure_future(left(receive))
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if scope["method"] != "HEAD":
            async for chunk in reply.chunks:
                if leaving.done():
                    return
                if chunk:
                    async with asyncio.timeout(PATIENCE):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        leaving.cancel()
        await hang_up(scope, receive, unsent=True)
    finally:
        leaving.cancel()
        await reply.chunks.aclose()
