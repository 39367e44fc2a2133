"""A target whose every byte a test chooses, and a proxy in front of a target, in a thread
of its own.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn

from stub_server.tools.verify.observed import Watching
from stub_server.tools.verify.proxy import Proxy


def received(connection: socket.socket, end: bytes = b"\r\n\r\n") -> bytes:
    """What comes until certain bytes have come."""
    data = b""
    while end not in data:
        piece = connection.recv(65_536)
        if not piece:
            break
        data += piece
    return data


class Proxied(NamedTuple):
    """A proxy that runs. `lines` are those of the terminal."""

    port: int
    watching: Watching
    lines: list[str]


@contextmanager
def proxying(target: str) -> Iterator[Proxied]:
    """A proxy in front of a target until the block ends.

    Then `watching.finish()` has everything.
    """
    lines: list[str] = []
    watching = Watching(target, lines.append)
    server = uvicorn.Server(Proxy(target, watching.passed, watching.archive).config())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield Proxied(listening.getsockname()[1], watching, lines)
        finally:
            server.should_exit = True
            thread.join(10)


def connected(proxied: Proxied) -> socket.socket:
    """A connection to a proxy."""
    return socket.create_connection(("127.0.0.1", proxied.port), timeout=10)
