"""The messages of a connection: bodies are read whole and bounded, pieces sent, connections ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

from ..calls.call import Call
from ..calls.reply import Streamed
from ..kernel.problem import Refusal, Unsupported
from .refusals import Headers

REFUSED = "stub_server.refused"
"""Where a scope has the protocol's refusal of its request."""
TRANSPORT = "stub_server.transport"
"""Where the state in a scope has the connection's transport; a scope without a socket has none."""
WHOLE = "stub_server.whole"
"""The extension of a scope by which a whole response is sent."""
Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]
SendWhole: TypeAlias = Callable[[int, Pairs, bytes], bytes | None]
"""Takes status, headers and body; returns the headers as they were sent, a line each, None where it sent nothing."""

BODY_COMES_IN = 0.1  # seconds that the body of a refused request is waited for
LARGEST_FILE = 256 * 1024 * 1024  # bytes
_BEFORE_THE_BODY = ("route", "auth")
PATIENCE = 5.0  # seconds that a reader may take none of what is sent


class HungUp(ConnectionResetError):
    """The connection was closed on purpose, and there is none to close: a client in the same process sees this."""


async def hang_up(scope: Scope, receive: Receive, *, unsent: bool) -> None:
    """Close the connection, `unsent` without what is still to be sent.

    Raises HungUp where there is none.
    """
    transport = scope.get("state", {}).get(TRANSPORT)
    if transport is None:
        raise HungUp("a fault rule of the sandbox dropped the connection")
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


class Uploads:
    """One per server. Who comes while a file is read and dealt with waits, as long as a body may take to come."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def taken(self, call: Call, receive: Receive, media: Sequence[str]) -> AsyncIterator[None]:
        """Have the file, of such a media type, in the call until the block ends. Raises Unsupported, TooLarge."""
        told = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if told.decode("latin-1") not in media:
            raise Unsupported(f"Send the file with Content-Type: {media[0]}.")
        if call.head.is_coded:
            raise compressed()
        async with self._turn:
            call.upload = await call.read(receive, LARGEST_FILE)
            try:
                yield
            finally:
                call.upload = b""


def compressed() -> Unsupported:
    """415 for a body that is compressed."""
    advice = "Send the body uncompressed, without Content-Encoding."
    return Unsupported(advice, headers={"Accept-Encoding": "identity"})  # RFC 9110, 15.5.16


async def read_late(call: Call, receive: Receive) -> None:
    """Read the body of a request that was refused before anybody read it, if it comes in a moment.

    Without it nobody could tell what would have become of the request.
    """
    trace, headers = call.trace, call.headers
    length = headers.get(b"content-length")
    comes = (length is not None and length != b"0") or b"transfer-encoding" in headers
    if comes and trace.step in _BEFORE_THE_BODY and b"expect" not in headers and call.sandbox.journal.keeps_bodies:
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(BODY_COMES_IN):
                call.body_bytes = bytes(await call.read(receive))


async def send_pieces(reply: Streamed, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
    """Send what comes until it ends or the reader leaves. One who does not read is cut off.

    An empty chunk is not sent: it gives the chance to notice that the reader has
    left.
    """
    left: asyncio.Future[None] = asyncio.ensure_future(_left(receive))
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if scope["method"] != "HEAD":
            async for chunk in reply.chunks:
                if left.done():
                    return
                if chunk:
                    async with asyncio.timeout(PATIENCE):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        left.cancel()
        await hang_up(scope, receive, unsent=True)
    finally:
        left.cancel()
        await reply.chunks.aclose()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
