"""Reads the bodies of requests: whole and bounded; of a refused one as much as comes in a moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import Receive

from ..calls.call import LARGEST_BODY, Call
from ..kernel.problem import Malformed, Refusal, TooLarge

PATIENCE = 0.1  # seconds that the body of a refused request is waited for
_BEFORE_THE_BODY = ("route", "auth")


async def read_body(receive: Receive, length: bytes | None) -> bytes:
    """The whole body, however it is chunked. Raises TooLarge as soon as it is."""
    if length is not None and length.isdigit() and int(length) > LARGEST_BODY:
        raise _too_large()
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _cut_short()
    data: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(data) > LARGEST_BODY:
            raise _too_large()
        return data
    parts, size = [data], len(data)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _cut_short()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise _too_large()
    return b"".join(parts)


def _cut_short() -> Malformed:
    """The client has gone: half a request is not executed."""
    return Malformed("The client left before its body was complete.")


def _too_large() -> TooLarge:
    return TooLarge(f"The body is larger than {LARGEST_BODY} bytes, the most that the sandbox reads.")


async def read_late(call: Call, receive: Receive) -> None:
    """Read the body of a request that was refused before anybody read it, if it comes in a moment.

    Without it nobody could tell what would have become of the request.
    """
    trace, headers = call.trace, call.headers
    length = headers.get(b"content-length")
    comes = (length is not None and length != b"0") or b"transfer-encoding" in headers
    if comes and trace.step in _BEFORE_THE_BODY and b"expect" not in headers and call.sandbox.journal.keeps_bodies:
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(PATIENCE):
                call.body_bytes = await read_body(receive, length)
