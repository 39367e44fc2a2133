"""How a server is seen to have ended that no test has started itself."""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    """Wait until something is so; whether it was in time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def answers(url: str) -> bool:
    """Whether somebody listens at an address of this machine."""
    parts = urlsplit(url)
    try:
        socket.create_connection((str(parts.hostname), parts.port or 80), timeout=5).close()
    except OSError:
        return False
    return True
