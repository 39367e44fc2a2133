"""What a request is answered: answers of layers, among them refusals in one shape and connections
closed on purpose, and replies of handlers, which insert stored records as the JSON they are.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from ..core.log import log
from ..core.problem import Refusal
from ..engine.kept import Trace
from ..engine.sandbox import DEFAULT
from .work import Work

Pairs = Sequence[tuple[bytes, bytes]]
Headers = list[tuple[bytes, bytes]]
Passage = Callable[[Scope, Receive, Send], Awaitable[None]]
CONNECTION = "stub_server.connection"
"""Where the state in a scope has its Connection; a scope without a socket has none."""
JSON = (b"content-type", b"application/json")
UNBUFFERED = (b"x-accel-buffering", b"no")
"""Tells nginx, and proxies that follow it, to send each piece on at once."""
PATIENCE = 5.0  # seconds that a reader may take none of what is sent
LONG = 256 * 1024  # bytes of a body
_DEFECT = (
    "The sandbox failed by a defect of its own. Its log has the request id; the request may work"
    " after a reset."
)


def render(error: Exception, trace: Trace, sandbox: str | None = None) -> "Answer":
    """The answer of a refusal. One that is no Refusal is logged as a defect.

    `sandbox` is what the request was for, if not what its trace is of.
    """
    refusal = error if isinstance(error, Refusal) else Refusal(_DEFECT)
    named = sandbox or trace.sandbox
    if refusal is not error:
        log.error("defect in %s %r (%s)", trace.method, trace.path, trace.id, exc_info=error)
    trace.code = refusal.code
    body = orjson.dumps(
        {
            "error": True,
            "message": refusal.shown("" if named == DEFAULT else f"/s/{named}"),
            "code": refusal.code,
            "status": refusal.status,
            "request_id": trace.id,
            "details": refusal.details,
        }
    )
    headers: Headers = [JSON, (b"content-length", b"%d" % len(body))]
    headers += [
        (name.lower().encode(), text.encode("latin-1", "replace"))
        for name, text in refusal.headers.items()
    ]
    return Answer(refusal.status, headers, body)


def not_allowed(method: str, allow: str) -> Refusal:
    """405 for a path that supports other methods, which `allow` lists."""
    return Refusal(
        f"This path supports {allow}, not {method[:20]}.",
        status=405,
        code="method_not_allowed",
        headers={"Allow": allow},
    )


async def options(allow: str) -> "Answer":
    """The answer to OPTIONS: the methods of the path."""
    return Answer(204, [(b"allow", allow.encode())])


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
    """A client's connection, as answers need it; `HttpProtocol` has what becomes of it."""

    link: asyncio.Transport
    written: Written


def connection_of(scope: Scope) -> Connection | None:
    """The client's connection; None for a request in this process."""
    connection: Connection | None = scope.get("state", {}).get(CONNECTION)
    return connection


class HungUp(ConnectionResetError):
    """A fault rule dropped the connection of a client in this process, which has no
    socket to close.
    """


async def hang_up(scope: Scope, receive: Receive, send: Send, *, unsent: bool) -> None:
    """Close the connection; if `unsent`, without what is still to be sent.

    Raises HungUp without a socket.
    """
    connection = connection_of(scope)
    if connection is None:
        raise HungUp("a fault rule of the sandbox dropped the connection")
    if unsent:
        connection.link.abort()
    else:
        connection.link.close()
    await left(receive)


async def left(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def has_left(scope: Scope) -> bool:
    """Whether the client has closed its connection."""
    connection = connection_of(scope)
    return connection is not None and connection.link.is_closing()


class Answer:
    """A whole answer. Layers return one; the outermost adds headers, and has it sent.

    The body is there in `parts`, to which the journal refers, since the store has them anyway, and
    joined.
    """

    is_final = False  # whether it is sent as it is
    is_long = False  # whether it takes a millisecond or more, and much memory until it is read
    parts: Sequence[bytes]

    def __init__(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.status, self.headers, self.body = status, headers, body
        self.parts = (body,)
        self.is_long = len(body) > LONG

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, in one packet where it has a body; of a long one this waits until the
        client has read most.
        """
        connection = connection_of(scope)
        if connection is not None and self.body and not self.is_long:
            connection.written.head_waits = True
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": self.is_long})
        if self.is_long:
            await send({"type": "http.response.body", "body": b""})

    async def abandon(self) -> None:
        """Release what it holds: it is not sent."""


Answering = Awaitable[Answer]


class Cut(Answer):
    """An answer whose connection ends within the body."""

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await hang_up(scope, receive, send, unsent=False)


class Said(Answer):
    """What a server answers to another one, and to no client."""

    is_final = True


class Forwarded(Answer):
    """What another application answers: `passage` sends it, or its end, as it comes."""

    is_final = True

    def __init__(self, passage: Passage) -> None:
        super().__init__(0, [])
        self._passage = passage

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._passage(scope, receive, send)


DROPPED = Forwarded(partial(hang_up, unsent=True))
"""No answer: the connection ends."""


# -- what handlers reply


class Reply(Answer):
    """What a handler answers: a status, a body in parts, and headers.

    `shape` names the constant JSON around stored records: it is checked against the contract when
    it first occurs, and records when they are written. A body without a shape is checked every
    time.
    """

    def __init__(
        self,
        status: int,
        parts: Sequence[bytes],
        shape: object = None,
        headers: Pairs = (),
        media: bytes = JSON[1],
    ) -> None:
        self.status, self.parts, self.shape = status, parts, shape
        self.headers, self.media = [*headers], media

    def created(self, work: Work, path: str) -> "Reply":
        """Make it a 201 with a Location, the `path` below the sandbox. Returns the reply itself."""
        self.status = 201
        self.headers.append((b"location", f"{work.prefix}{path}".encode()))
        return self

    def complete(self) -> None:
        """Add the headers about the joined body; a 204 has neither."""
        if self.status != 204:
            size = len(self.body)
            if size > LONG:
                self.is_long = True
            self.headers += (
                (b"content-type", self.media),
                (b"content-length", b"%d" % size),
            )


class Streamed(Reply):
    """A 200 whose `chunks` are sent as they come, until they end or the reader leaves. Async
    operations answer so.

    A reader who does not read is cut off. An empty piece is not sent: it is an opportunity to
    notice that the reader has left.
    """

    def __init__(self, chunks: AsyncGenerator[bytes], media: bytes, headers: Pairs = ()) -> None:
        of_streams = (
            (b"cache-control", b"no-store"),
            *headers,
            (b"content-type", media),
            UNBUFFERED,
        )
        super().__init__(200, (), None, of_streams, media)
        self._chunks, self.body = chunks, b""

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(left(receive))
        try:
            await send(
                {"type": "http.response.start", "status": self.status, "headers": self.headers}
            )
            if scope["method"] != "HEAD":
                async for chunk in self._chunks:
                    if leaving.done():
                        return
                    if chunk:
                        async with asyncio.timeout(PATIENCE):
                            await send(
                                {"type": "http.response.body", "body": chunk, "more_body": True}
                            )
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            leaving.cancel()
            await hang_up(scope, receive, send, unsent=True)
        finally:
            leaving.cancel()
            await self.abandon()

    async def abandon(self) -> None:
        await self._chunks.aclose()


@lru_cache(maxsize=512)
def around(message: str, member: str, in_data: bool) -> tuple[bytes, bytes]:
    """The JSON before and after the value of a member."""
    text, name = orjson.dumps(message), orjson.dumps(member)
    if in_data:
        return b'{"error":false,"data":{' + name + b":", b'},"message":' + text + b"}"
    return b'{"error":false,"message":' + text + b"," + name + b":", b"}"


def enveloped(message: str, member: str, record: bytes, *, in_data: bool = False) -> Reply:
    """`{error, message, <member>: record}`; `in_data`, for Projects, `{error, data: {<member>:
    record}, message}`.
    """
    before, after = shape = around(message, member, in_data)
    return Reply(200, (before, record, after), shape)


def bare(record: bytes) -> Reply:
    """The record itself, as in the Orders group."""
    return Reply(200, (record,), "bare")


def value(body: Any, status: int = 200) -> Reply:
    """A body that is serialised for this response."""
    return Reply(status, (orjson.dumps(body),))


def message(text: str, **members: Any) -> Reply:
    """`{error: false, message, ...members}`."""
    return value({"error": False, "message": text, **members})
