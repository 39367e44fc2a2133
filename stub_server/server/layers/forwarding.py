"""Forwarding: a request whose sandbox another server of the store has is answered by that server,
over one hop.

Only a server that shares its store imports this module: importing httpcore2 takes 15 ms.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing, suppress
from functools import partial

import httpcore2
from starlette.types import Message, Receive, Scope, Send

from ...core.problem import BadRequest, Refusal, Unavailable
from ..reply import Answer, Answering, Forwarded, Passage, hang_up, left
from ..request import OF_CONNECTIONS, has_body
from ..server import Waiting
from .hops import HOP, Hops, NotThere, target_of
from .way import Holder, Layer, Way

CONNECT = 2.0  # seconds
KEPT = 32  # idle connections
# seconds for which an idle connection is kept, fewer than the server leaves it open
KEPT_FOR = 30.0
LOOKS = 5.0  # seconds after which this server checks that the other one still has the sandbox
REPEATABLE = 262_144  # bytes of a body that can be sent again
_OF_ANSWERS = frozenset((b"connection", b"date", b"transfer-encoding"))  # this server sends its own
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_UNREACHED = (httpcore2.ConnectError, httpcore2.ConnectTimeout)
# Of a connection that the other server reset, uvloop has no socket, and looking at it raises one of
# the first two.
LOST = (
    AttributeError,
    ValueError,
    TimeoutError,
    *_UNREACHED,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
)


class Forwarding:
    """Sends a request to the server that has its sandbox, and sends the answer on as it comes."""

    def __init__(self, app: Layer, hops: Hops) -> None:
        self.app, self._hops = app.__call__, hops
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=None, max_keepalive_connections=KEPT, keepalive_expiry=KEPT_FOR
        )

    def __call__(self, way: Way) -> Answering:
        request = way.request
        if HOP in request.headers:
            raise BadRequest(f"{HOP.decode()} is a header between servers. Leave it out.")
        if request.is_hop and way.server.closing.is_set():
            way.begin_unchosen().is_kept = False
            raise NotThere(way.receive, self._hops.stopping)
        if way.holder is None:
            return self.app(way)
        return self._forward(way.holder, way)

    async def _forward(self, holder: Holder, way: Way) -> Answer:
        """Send the request on and its answer back: what is left to be sent is the end of it. The
        other server has it in its journal.

        Raises NotThere, Unavailable, Limited, BadRequest.
        """
        request, trace = way.request, way.begin_unchosen()
        trace.is_kept, trace.sandbox = False, holder.sandbox
        if request.is_hop:
            raise NotThere(way.receive, self._hops.elsewhere)
        if self._hops.avoids(holder.address):
            raise NotThere(way.receive)
        client = Client(way.receive, way.server.waiting)
        try:
            with client.place:
                if not has_body(request.headers):  # it is whole when its head is sent
                    client.wait()
                forwarded = self._request(way, holder, client)
                return Forwarded(await self._exchange(holder, way, forwarded, client))
        except httpcore2.LocalProtocolError as error:  # such as HTTP/1.0 without a Host
            raise BadRequest(
                f"The server that has this sandbox cannot be asked this: {error}."
            ) from None
        except LOST as error:
            if not client.has_left and not trace.status:
                raise _unanswered(request.method, client, error) from None
            return Forwarded(partial(hang_up, unsent=False))

    def _request(self, way: Way, holder: Holder, client: "Client") -> httpcore2.Request:
        """The request as it came, without what is about the connection."""
        request = way.request
        headers = [
            (name, value.strip()) for name, value in request.sent if name not in OF_CONNECTIONS
        ]
        if b"transfer-encoding" in request.headers:
            headers.append((b"transfer-encoding", b"chunked"))
        return httpcore2.Request(
            request.method,
            holder.address,
            headers=[*headers, self._hops.header(way.scope)],
            content=client.body(),
            extensions={"target": target_of(way.scope), "timeout": {"connect": CONNECT}},
        )

    async def _exchange(
        self, holder: Holder, way: Way, request: httpcore2.Request, client: "Client"
    ) -> Passage:
        """What sends the end of the answer, once the rest has been sent on.

        Raises NotThere, and those of `LOST`.
        """
        async with asyncio.timeout(None) as limit:
            supervising = asyncio.create_task(_supervise(holder, way, client, limit))
            try:
                async with aclosing(await self._pool.handle_async_request(request)) as answer:
                    return await self._pass_back(holder, way, answer, client)
            finally:
                supervising.cancel()

    async def _pass_back(
        self, holder: Holder, way: Way, answer: httpcore2.Response, client: "Client"
    ) -> Passage:
        headers = [(name.lower(), value) for name, value in answer.headers]
        word = dict(headers).get(HOP)
        if word == self._hops.dropped:
            return partial(hang_up, unsent=True)
        if word == self._hops.stopping:
            self._hops.avoid(holder.address)
        if word in (self._hops.stopping, self._hops.elsewhere):
            raise NotThere(client.again)
        way.trace.status = answer.status
        if b"content-length" in dict(headers):  # a stream has none
            client.place.close()
        headers = [header for header in headers if header[0] not in _OF_ANSWERS]
        await way.send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for piece in answer.aiter_stream():
            await way.send({"type": "http.response.body", "body": piece, "more_body": True})
        return _end


async def _supervise(holder: Holder, way: Way, client: "Client", limit: asyncio.Timeout) -> None:
    """End the exchange when the client has left, or the other server does not have the sandbox any
    more.
    """
    while True:
        try:
            async with asyncio.timeout(LOOKS):
                await client.leaves()
            break
        except TimeoutError:
            with suppress(Refusal):  # the store may not say
                if await way.sandboxes.locate(holder.sandbox) != holder.address:
                    break
    limit.reschedule(0)


class Client:
    """Who sent a request. A small body can be received again.

    `place` is that of a request that waits: for the other server, not for its client.
    """

    has_left = False

    def __init__(self, receive: Receive, waiting: Waiting) -> None:
        self._receive, self._size = receive, 0
        self._waiting: Waiting | None = waiting
        self.place = ExitStack()
        self._kept: list[Message] = []
        self._is_received = asyncio.Event()  # whether the whole body has come

    async def body(self) -> AsyncGenerator[bytes]:
        """The body piece by piece.

        Raises httpcore2.NetworkError where the client leaves before its end, Limited where too many
        requests wait.
        """
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.has_left = True
                raise httpcore2.NetworkError("the client has left")
            piece, more = message.get("body", b""), message.get("more_body", False)
            self._size += len(piece)
            if not more:
                self.wait()
            if self._size <= REPEATABLE:
                self._kept.append(message)
            if piece:
                yield piece
        self._is_received.set()

    def wait(self) -> None:
        """Take the place, before the other server has the whole request. Raises Limited."""
        if self._waiting is not None:
            self.place.enter_context(self._waiting.take())
            self._waiting = None

    async def leaves(self) -> None:
        """Wait until the client has left."""
        await self._is_received.wait()
        await left(self._receive)
        self.has_left = True

    @property
    def again(self) -> Receive | None:
        """What receives the whole body again; None where it is too large."""
        return None if self._size > REPEATABLE else self._receive_again

    async def _receive_again(self) -> Message:
        return self._kept.pop(0) if self._kept else await self._receive()


def _unanswered(method: str, client: Client, error: Exception) -> Unavailable:
    """Why there is no answer: NotThere where the request can be sent again."""
    if isinstance(error, _UNREACHED) or (method in _SAFE and client.again is not None):
        return NotThere(client.again)
    return Unavailable(
        "The server that has this sandbox stopped before its answer. Read the sandbox to see what"
        " was done.",
        code="store_unavailable",
        headers={"Retry-After": "1"},
    )


async def _end(scope: Scope, receive: Receive, send: Send) -> None:
    """End an answer that was sent on whole."""
    await send({"type": "http.response.body", "body": b""})
