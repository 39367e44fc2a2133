"""A client's connection, as answers need it."""

import asyncio
from typing import Any


class Written:
    """What uvicorn writes to a connection.

    It writes the head and the body of an answer one by one, which would be two packets. If
    `head_waits`, what is written next is sent together with what follows it.
    """

    def __init__(self, link: asyncio.Transport) -> None:
        self._link, self._head = link, b""
        self.head_waits = False
        self.is_closing = link.is_closing  # asked after every answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def write(self, data: bytes) -> None:
        """Send these bytes, or keep them for a moment."""
        if self.head_waits:
            self._head, self.head_waits = data, False
            return
        whole, self._head = self._head + data, b""
        self._link.write(whole)


class Connection:
    """One connection; `HttpProtocol` has what becomes of it."""

    link: asyncio.Transport
    written: Written
