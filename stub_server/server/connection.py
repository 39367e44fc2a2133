"""One connection as the monitor and the application see it: what it waits for, and how it ends."""

import asyncio
import secrets
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from time import monotonic
from typing import ClassVar

from starlette.types import Message, Receive, Send

from ..core.problem import Refusal
from ..engine.journal import Trace
from .layers.answers import render
from .monitor import ConnectionMonitor, Wait


class Part(Enum):
    """What of a request comes next on a connection."""

    NOTHING = "the head of the next request, which is collected until it is whole"
    HEAD = "the head that the parser is given"
    BODY = "the body"
    OVER = "bytes that are dropped: the connection is closed after the answer"


NOTHING, HEAD, BODY, OVER = Part  # a member is found faster by its own name, and these are asked for all the time


class Connection:
    """The state of a connection. `HttpProtocol` keeps it."""

    monitor: ClassVar[ConnectionMonitor]

    link: asyncio.Transport
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
        """How the application receives a body that is still to come: if it is refused, as if the client had left."""

        async def receive_unless_refused() -> Message:
            message = await receive()
            return {"type": "http.disconnect"} if self.is_refused else message

        return receive_unless_refused

    def sender(self, send: Send) -> Send:
        """How it answers such a request, or the last one: what comes after it may or may not be a request."""
        self.has_begun_answer = False

        async def send_unless_refused(message: Message) -> None:
            if self.is_refused:
                return
            if message["type"] == "http.response.start":
                self.has_begun_answer = True
                if self.part is OVER or (self.part is BODY and self.expects):
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
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
        if self.part is BODY and self.link.is_reading():  # not while the application is slow to read it
            return Wait.BODY, self.begun
        if self.is_answering:
            return Wait.ANSWER, self.begun
        if self.unread:
            return Wait.HEAD, self.begun
        return (Wait.NEXT if self.begun else Wait.REQUEST), self.begun

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

    def drop(self) -> None:
        self.link.abort()

    def turn_away(self) -> None:
        message = f"All {self.monitor.limits.connections} connections are in use."
        self.refuse(Refusal(message, status=503, code="too_many_connections", headers={"Retry-After": "1"}))

    def refuse(self, refusal: Refusal) -> None:
        """Answer what never became a whole request, and wait for the client to close."""
        self.is_refused, self.part = True, OVER
        trace = Trace("req_" + secrets.token_hex(12), 0, "", "", b"", "")
        answer = render(refusal, trace)
        status, headers, body = answer.status, answer.headers, answer.body
        headers += [(b"date", formatdate(usegmt=True).encode()), (b"x-request-id", trace.id.encode())]
        headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        lines += [b"%b: %b" % header for header in headers]
        self.link.write(b"\r\n".join([*lines, b"", body]))
        self.link.write_eof()
