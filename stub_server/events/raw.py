"""Deliveries as no client library sends them: cut off half way, or several at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from httpcore2 import AsyncNetworkStream, NetworkError

from .network import Guard, authorities
from .sender import Delivery, Failed, Sender
from .signing import signatures, signed_headers

_LONGEST_LINE = 1_000
_HEADSTART = 0.05  # seconds in which a receiver accepts the connections and reads


async def send_half(sender: Sender, delivery: Delivery, timestamp: int, timeout: float) -> None:
    """Post the head and half of the body, then close the connection. Raises Failed."""
    async with _connections(sender, delivery, 1, timeout) as (stream,):
        await stream.write(_head(sender, delivery, timestamp) + delivery.body[: len(delivery.body) // 2])


async def send_together(
    sender: Sender, delivery: Delivery, timestamp: int, copies: int, timeout: float
) -> list[int | None]:
    """Post the same bytes over several open connections at once; the status of each answer. Raises Failed."""
    async with _connections(sender, delivery, copies, 2 * timeout) as streams:
        whole = _head(sender, delivery, timestamp) + delivery.body
        # The last byte is sent separately, so that the receiver gets all copies complete at the same moment.
        for stream in streams:
            await stream.write(whole[:-1])
        await asyncio.sleep(_HEADSTART)
        for stream in streams:
            await stream.write(whole[-1:])
        return await asyncio.gather(*(_status(stream, timeout) for stream in streams))


@asynccontextmanager
async def _connections(
    sender: Sender, delivery: Delivery, copies: int, limit: float
) -> AsyncIterator[list[AsyncNetworkStream]]:
    """Open connections to the receiver, closed at the end. Raises Failed, also for what fails while they are used."""
    streams: list[AsyncNetworkStream] = []
    try:
        async with asyncio.timeout(limit):
            for _ in range(copies):
                streams.append(await _connect(sender, delivery.url))
            yield streams
    except TimeoutError:
        raise Failed("timeout") from None
    except (OSError, ValueError, NetworkError):
        raise Failed("connection_failed") from None
    finally:
        for stream in streams:
            await stream.aclose()


async def _connect(sender: Sender, url: str) -> AsyncNetworkStream:
    """A connection to an allowed address."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    stream = await Guard(local=sender.local).connect_tcp(parts.hostname or "", parts.port or (443 if secure else 80))
    return await stream.start_tls(authorities(), parts.hostname) if secure else stream


def _head(sender: Sender, delivery: Delivery, timestamp: int) -> bytes:
    parts = urlsplit(delivery.url)
    signature = signatures(delivery.keys, delivery.event_id, timestamp, delivery.body)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {target} HTTP/1.1", f"host: {parts.netloc.rpartition('@')[2]}"]
    lines += [f"content-length: {len(delivery.body)}", "connection: close"]
    headers = signed_headers(sender.version, delivery.event_id, timestamp, signature, delivery.headers)
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _status(stream: AsyncNetworkStream, timeout: float) -> int | None:
    """The status of an answer; None where none comes."""
    line = b""
    try:
        async with asyncio.timeout(timeout):
            while b"\n" not in line and len(line) < _LONGEST_LINE and (part := await stream.read(_LONGEST_LINE)):
                line += part
    except (OSError, NetworkError, TimeoutError):
        return None
    words = line.partition(b"\n")[0].split() if b"\n" in line else []
    is_status = len(words) > 1 and words[0].startswith(b"HTTP/") and len(words[1]) == 3 and words[1].isdigit()
    return int(words[1]) if is_status else None
