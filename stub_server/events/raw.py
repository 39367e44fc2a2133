"""Deliveries as no client library sends them: broken off half way, or several at the very same moment."""

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from .addresses import allowed, resolve
from .sender import Delivery
from .signing import signatures, signed_headers

_LONGEST_LINE = 1_000
_HEADSTART = 0.05  # seconds in which a receiver accepts the connections and reads
_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Route(NamedTuple):
    """How deliveries leave this server, whose version it is. `local` opens this machine and private networks."""

    version: str
    local: bool


class Unsent(Exception):
    """Nothing could be sent; the message is why, as in a delivery's `error`."""


async def send_half(route: Route, delivery: Delivery, timestamp: int, timeout: float) -> None:
    """Post the head and half of the body, and hang up. Raises Unsent."""
    try:
        async with asyncio.timeout(timeout):
            _, writer = await _connect(route, delivery.url)
            try:
                head = _head(route, delivery, timestamp)
                writer.write(head + delivery.body[: len(delivery.body) // 2])
                await writer.drain()
            finally:
                writer.close()
    except TimeoutError:
        raise Unsent("timeout") from None
    except (OSError, ValueError):
        raise Unsent("connection_failed") from None


async def send_together(
    route: Route, delivery: Delivery, timestamp: int, copies: int, timeout: float
) -> list[int | None]:
    """Post the same bytes over several open connections at once; the status of each answer. Raises Unsent."""
    lines: list[_Line] = []
    try:
        async with asyncio.timeout(timeout):
            for _ in range(copies):
                lines.append(await _connect(route, delivery.url))
            whole = _head(route, delivery, timestamp) + delivery.body
            # All but the last byte goes ahead: what is left to the receiver is to act, on all of them at once.
            for _, writer in lines:
                writer.write(whole[:-1])
            await asyncio.sleep(_HEADSTART)
        for _, writer in lines:
            writer.write(whole[-1:])
        return await asyncio.gather(*(_status(reader, timeout) for reader, _ in lines))
    except TimeoutError:
        raise Unsent("timeout") from None
    except (OSError, ValueError):
        raise Unsent("connection_failed") from None
    finally:
        for _, writer in lines:
            writer.close()


async def _connect(route: Route, url: str) -> _Line:
    """A connection to an address that a delivery may reach."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    found = await resolve(host, port)
    addresses = [one for one in found if allowed(one, local=route.local)]
    if not addresses:
        raise Unsent("blocked")
    context = ssl.create_default_context() if secure else None
    name = host if secure else None
    for address in addresses[:-1]:
        with suppress(ConnectionError):
            return await asyncio.open_connection(address, port, ssl=context, server_hostname=name, limit=_LONGEST_LINE)
    return await asyncio.open_connection(addresses[-1], port, ssl=context, server_hostname=name, limit=_LONGEST_LINE)


def _head(route: Route, delivery: Delivery, timestamp: int) -> bytes:
    parts = urlsplit(delivery.url)
    signature = signatures(delivery.keys, delivery.event_id, timestamp, delivery.body)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {target} HTTP/1.1", f"host: {parts.netloc.rpartition('@')[2]}"]
    lines += [f"content-length: {len(delivery.body)}", "connection: close"]
    headers = signed_headers(route.version, delivery.event_id, timestamp, signature, delivery.headers)
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _status(reader: asyncio.StreamReader, timeout: float) -> int | None:
    """The status of an answer; None where none comes."""
    try:
        async with asyncio.timeout(timeout):
            line = await reader.readline()
    except (OSError, ValueError, TimeoutError):
        return None
    words = line.split()
    is_status = len(words) > 1 and words[0].startswith(b"HTTP/") and len(words[1]) == 3 and words[1].isdigit()
    return int(words[1]) if is_status else None
