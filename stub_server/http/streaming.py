"""Sends a body that goes on, to a reader who may leave or stop reading: nobody else waits for him."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope, Send

from ..calls.reply import Streamed
from .connection import hang_up
from .refusals import Headers

PATIENCE = 5.0  # seconds that a reader may take none of what is sent


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
        await reply.chunks.aclose()  # type: ignore[attr-defined]  # a generator is one in all but name


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
