"""Reads the bodies of requests: whole and bounded, files one at a time; of a refused one what comes in a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.types import Receive

from ..calls.call import LARGEST_BODY, Call
from ..kernel.problem import Malformed, Refusal, TooLarge, Unsupported

PATIENCE = 0.1  # seconds that the body of a refused request is waited for
LARGEST_FILE = 256 * 1024 * 1024  # bytes
_BEFORE_THE_BODY = ("route", "auth")


class Uploads:
    """One per server. Who comes while a file is read and dealt with waits, as long as a body may take to come."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def taken(self, call: Call, receive: Receive, media: str) -> AsyncIterator[None]:
        """Have the file in the call until the block ends. Raises Unsupported, TooLarge."""
        told = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if told != media.encode():
            raise Unsupported(f"Send the file with Content-Type: {media}.")
        if call.head.is_coded:
            raise compressed()
        async with self._turn:
            call.upload = await _read(receive, call.headers.get(b"content-length"), LARGEST_FILE)
            try:
                yield
            finally:
                call.upload = b""


def compressed() -> Unsupported:
    """415 for a body that is compressed."""
    advice = "Send the body uncompressed, without Content-Encoding."
    return Unsupported(advice, headers={"Accept-Encoding": "identity"})  # RFC 9110, 15.5.16


async def read_body(receive: Receive, length: bytes | None) -> bytes:
    """The whole body, however it is chunked. Raises TooLarge as soon as it is."""
    whole = await _read(receive, length, LARGEST_BODY)
    return whole if isinstance(whole, bytes) else bytes(whole)


async def _read(receive: Receive, length: bytes | None, most: int) -> bytes | bytearray:
    """A body. One that comes in pieces grows in place: to join hundreds of megabytes would hold everybody up."""
    if length is not None and length.isdigit() and int(length) > most:
        raise _too_large(most)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _cut_short()
    data: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(data) > most:
            raise _too_large(most)
        return data
    whole = bytearray(data)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _cut_short()
        whole += message.get("body", b"")
        if len(whole) > most:
            raise _too_large(most)
    return whole


def _cut_short() -> Malformed:
    """The client has gone: half a request is not executed."""
    return Malformed("The client left before its body was complete.")


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"The body is larger than {most} bytes, the most that the sandbox reads.")


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
