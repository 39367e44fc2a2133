"""Deadlines of connections and their maximum number, checked once a second instead of by a timer per request."""

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .connection import Connection


class Wait(Enum):
    """What a connection is waiting for."""

    REQUEST = "a first request"
    NEXT = "a further request"
    HEAD = "the rest of a request's headers"
    BODY = "the rest of a body"
    READER = "a client that does not read its answer"
    END = "the client to close the connection"
    ANSWER = "the application"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for clients. Times are seconds; a deadline is exact to two sweeps, of a second or less each."""

    connections: int = 512
    head: float = 10
    body: float = 30
    keep_alive: float = 60
    unread: float = 30
    end: float = 2

    def allowed(self, wait: Wait) -> float:
        """How many seconds a wait may last. ANSWER has no limit, because of delays and streams."""
        return {
            Wait.REQUEST: self.head,
            Wait.HEAD: self.head,
            Wait.BODY: self.body,
            Wait.NEXT: self.keep_alive,
            Wait.READER: self.unread,
            Wait.END: self.end,
            Wait.ANSWER: float("inf"),
        }[wait]

    @property
    def sweep(self) -> float:
        """The seconds between two sweeps."""
        return min(1.0, min(self.head, self.body, self.keep_alive, self.unread, self.end) / 4)


class ConnectionMonitor:
    """The connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # What each connection waited for at the last sweep, its mark, and how long it has done so.
        self._open: dict[Connection, tuple[Wait | None, int, float]] = {}
        self._sweeping = False
        self._swept = 0.0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether no connection has a request, or a stream, that goes on."""
        return all(connection.waits_for()[0] in IDLE for connection in self._open)

    def opened(self, connection: "Connection", loop: asyncio.AbstractEventLoop) -> None:
        """Register a connection: free a place for it, or refuse it."""
        while len(self._open) >= self.limits.connections:
            if not self._make_room():
                connection.turn_away()
                break
        self._open[connection] = None, 0, 0.0
        if not self._sweeping:
            self._sweeping, self._swept = True, loop.time()
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def closed(self, connection: "Connection") -> None:
        self._open.pop(connection, None)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Time in which the loop was blocked does not count: data that arrived meanwhile is still unread.
        passed = min(loop.time() - self._swept, 2 * self.limits.sweep)
        self._swept = loop.time()
        for connection, (waited, seen, lasted) in list(self._open.items()):
            wait, mark = connection.waits_for()
            lasted = lasted + passed if (wait, mark) == (waited, seen) else 0.0
            self._open[connection] = wait, mark, lasted
            if lasted >= self.limits.allowed(wait):
                connection.give_up(wait)
        self._sweeping = bool(self._open)
        if self._sweeping:
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest; if none is idle, one that sends or reads slowly."""
        for waits in (IDLE, _SLOW):
            found = [connection for connection in self._open if connection.waits_for()[0] in waits]
            if found:
                oldest = min(found, key=lambda connection: connection.rested)
                del self._open[oldest]
                oldest.drop()
                return True
        return False


IDLE = (Wait.REQUEST, Wait.NEXT, Wait.HEAD, Wait.END)
_SLOW = (Wait.BODY, Wait.READER)
