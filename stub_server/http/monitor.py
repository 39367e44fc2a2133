"""Deadlines and the limit of connections, checked by one sweep a second instead of a timer per request."""

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Wait(Enum):
    """What a connection is waiting for."""

    REQUEST = "a first request"
    NEXT = "a further request"
    HEAD = "the rest of a request's headers"
    BODY = "the rest of a body"
    READER = "a client that does not read its answer"
    END = "the other side to hang up"
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
        """How long a wait may last, in seconds. ANSWER has no limit, because of delays and streams."""
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


class Connection(Protocol):
    """What the watch needs of a connection."""

    rested: float
    """When it was opened or its last response was sent: monotonic seconds, finer than the loop's milliseconds."""

    def waits_for(self) -> tuple[Wait, object]:
        """What the connection waits for, and a mark that changes whenever it makes progress."""

    def give_up(self, wait: Wait) -> None:
        """The wait has exceeded its limit: refuse or close."""

    def drop(self) -> None:
        """Close at once, to free a place for another connection."""

    def turn_away(self) -> None:
        """Refuse the connection, as the limit is reached."""


@dataclass(slots=True)
class _Seen:
    wait: Wait | None = None
    mark: object = None
    lasted: float = 0.0


class ConnectionMonitor:
    """The connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: dict[Connection, _Seen] = {}
        self._oldest: deque[tuple[float, Connection]] = deque()
        self._sweeping = False
        self._swept = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Make room for a new connection, or turn it away."""
        while len(self._open) >= self.limits.connections:
            if not self._make_room():
                connection.turn_away()
                break
        self._open[connection] = _Seen()
        if not self._sweeping:
            self._sweeping, self._swept = True, loop.time()
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def closed(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        self._open.pop(connection, None)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Time in which the loop was blocked does not count: data that came meanwhile has yet to be read.
        passed = min(loop.time() - self._swept, 2 * self.limits.sweep)
        self._swept = loop.time()
        for connection, seen in list(self._open.items()):
            wait, mark = connection.waits_for()
            # Marks of READER are sizes and compared by value, the others by identity: two requests may be equal.
            same = mark == seen.mark if wait is Wait.READER else mark is seen.mark
            if wait is not seen.wait or not same:
                seen.wait, seen.mark, seen.lasted = wait, mark, 0.0
                continue
            seen.lasted += passed
            if seen.lasted >= self.limits.allowed(wait):
                connection.give_up(wait)
        if len(self._open) < self.limits.connections:
            self._oldest.clear()
        self._sweeping = bool(self._open)
        if self._sweeping:
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def _make_room(self) -> bool:
        """Drop the connection that has been idle longest; if none is, one that sends or reads slowly."""
        # The queue is built once for many new connections, so that a flood does not sort all of them every time.
        for _ in range(2):
            while self._oldest:
                rested, connection = self._oldest.popleft()
                if connection in self._open and connection.rested == rested and connection.waits_for()[0] in _IDLE:
                    self._drop(connection)
                    return True
            self._oldest.extend(self._by_age(_IDLE))
        for _, connection in self._by_age(_SLOW):
            self._drop(connection)
            return True
        return False

    def _by_age(self, waits: tuple[Wait, ...]) -> list[tuple[float, Connection]]:
        found = [(c.rested, c) for c in self._open if c.waits_for()[0] in waits]
        return sorted(found, key=lambda pair: pair[0])

    def _drop(self, connection: Connection) -> None:
        del self._open[connection]
        connection.drop()


_IDLE = (Wait.REQUEST, Wait.NEXT, Wait.HEAD, Wait.END)
_SLOW = (Wait.BODY, Wait.READER)
