"""What a connection waits for and how it ends; and deadlines of connections and their maximum
number.

The monitor checks them once a second, instead of by a timer per request.
"""

import asyncio
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Any, ClassVar

from starlette.types import Message, Receive, Send

from ..core.problem import Refusal


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
    """Limits for clients.

    Times are seconds; a deadline is exact to two sweeps, of a second or less each.
    """

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


class Part(Enum):
    """What of a request comes next on a connection."""

    NOTHING = "the head of the next request, which is collected until it is whole"
    HEAD = "the head that the parser is given"
    BODY = "the body"
    OVER = "bytes that are dropped: the connection is closed after the answer"


# a member is found faster by its own name, and these are asked for all the time
NOTHING, HEAD, BODY, OVER = Part


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
    """The state of a connection. `HttpProtocol` keeps it."""

    monitor: ClassVar["ConnectionMonitor"]

    link: asyncio.Transport
    written: Written
    rested = 0.0  # when it was opened or its last request was answered: monotonic seconds
    part = NOTHING
    begun = 0  # requests
    is_answering = False
    is_refused = False
    has_begun_answer = False
    unread = b""  # bytes that the parser has not been given
    expects = False  # whether the client waits for "100 Continue" before it sends the body

    def read_on(self) -> None:
        """Read what has arrived behind a request that has been answered."""
        raise NotImplementedError

    def end_body(self) -> None:
        """Let the application go on as if the whole body had come."""
        raise NotImplementedError

    # -- for the application

    def receiver(self, receive: Receive) -> Receive:
        """How the application receives a body that is still to come: if it is refused, as if the
        client had left.
        """

        async def receive_unless_refused() -> Message:
            message = await receive()
            if self.is_refused:
                return {"type": "http.disconnect"}
            return message

        return receive_unless_refused

    def sender(self, send: Send) -> Send:
        """How it answers such a request, or the last one: what comes after it may or may
        not be a request.
        """
        self.has_begun_answer = False

        async def send_unless_refused(message: Message) -> None:
            if self.is_refused:
                return
            if message["type"] == "http.response.start":
                self.has_begun_answer = True
                if self.part is OVER or (self.part is BODY and self.expects):
                    message = {
                        **message,
                        "headers": [*message["headers"], (b"connection", b"close")],
                    }
            await send(message)

        return send_unless_refused

    def answered(self) -> None:
        """Go on with the next request."""
        self.is_answering, self.rested = False, monotonic()
        if self.part is OVER:
            self.link.close()
        elif self.unread and not self.link.is_closing():
            self.link.resume_reading()
            self.read_on()

    # -- for the monitor

    def waits_for(self) -> tuple[Wait, int]:
        """What it waits for, and a number that changes whenever it makes progress."""
        if unsent := self.link.get_write_buffer_size():
            return Wait.READER, unsent
        if self.is_refused:
            return Wait.END, self.begun
        # not while the application is slow to read it
        if self.part is BODY and self.link.is_reading():
            return Wait.BODY, self.begun
        if self.is_answering:
            return Wait.ANSWER, self.begun
        if self.unread:
            return Wait.HEAD, self.begun
        if self.begun:
            return Wait.NEXT, self.begun
        return Wait.REQUEST, self.begun

    def give_up(self, wait: Wait) -> None:
        """Refuse the request that has begun, with 408, or close."""
        if wait is Wait.HEAD:
            self.refuse(self._too_late(wait, "headers"))
        elif wait is Wait.BODY and self.is_answering and not self.has_begun_answer:
            self.end_body()
            self.refuse(self._too_late(wait, "body"))
        elif wait in (Wait.REQUEST, Wait.NEXT, Wait.BODY):
            self.link.close()
        else:
            self.link.abort()

    def _too_late(self, wait: Wait, what: str) -> Refusal:
        limit = self.monitor.limits.allowed(wait)
        message = f"The rest of the request's {what} did not arrive within {limit:g} seconds."
        return Refusal(message, status=408, code="request_timeout")

    def turn_away(self) -> None:
        """Answer 503, as all connections are in use."""
        message = f"All {self.monitor.limits.connections} connections are in use."
        self.refuse(
            Refusal(message, status=503, code="too_many_connections", headers={"Retry-After": "1"})
        )

    def refuse(self, refusal: Refusal) -> None:
        """Answer what never became a whole request, and wait for the client to close."""
        raise NotImplementedError


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

    def opened(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Register a connection: free a place for it, or refuse it."""
        while len(self._open) >= self.limits.connections:
            if not self._make_room():
                connection.turn_away()
                break
        self._open[connection] = None, 0, 0.0
        if not self._sweeping:
            self._sweeping, self._swept = True, loop.time()
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Time in which the loop was blocked does not count: data that arrived meanwhile is still
        # unread.
        passed = min(loop.time() - self._swept, 2 * self.limits.sweep)
        self._swept = loop.time()
        for connection, (waited, seen, lasted) in list(self._open.items()):
            wait, mark = connection.waits_for()
            lasted += passed
            if (wait, mark) != (waited, seen):
                lasted = 0.0
            self._open[connection] = wait, mark, lasted
            if lasted >= self.limits.allowed(wait):
                connection.give_up(wait)
        self._sweeping = bool(self._open)
        if self._sweeping:
            loop.call_later(self.limits.sweep, self._sweep, loop)

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest; if none is idle, one that
        sends or reads slowly.
        """
        for waits in (IDLE, _SLOW):
            found = [connection for connection in self._open if connection.waits_for()[0] in waits]
            if found:
                oldest = min(found, key=lambda connection: connection.rested)
                del self._open[oldest]
                oldest.link.abort()
                return True
        return False


IDLE = (Wait.REQUEST, Wait.NEXT, Wait.HEAD, Wait.END)
_SLOW = (Wait.BODY, Wait.READER)
