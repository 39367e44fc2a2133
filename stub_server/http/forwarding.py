"""Forwarding: a request whose sandbox another server of the store has is answered by that server, over one hop."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.server import Server
from ..kernel.problem import BadRequest, Refusal, Unavailable
from .answers import REFUSED, SendWhole, hang_up
from .peers import HOP, Connection, Hops, Word, target_of

SLOW = 1.0  # seconds after which a request counts as one that waits
LOOKS = 5.0  # seconds of silence after which this server checks that the other one still has the sandbox
REPEATABLE = 262_144  # bytes of a body that can be sent again
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", HOP)
)
_OF_ANSWERS = frozenset((b"connection", b"date", b"transfer-encoding"))  # this server sends its own
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


class NotThere(Unavailable):
    """503: the server that should have the sandbox has done nothing. `receive` gives the body from its start."""

    code = "store_unavailable"

    def __init__(self, receive: Receive, said: bytes | None = None) -> None:
        """`said` is a word for the server that sent the request."""
        headers = {"Retry-After": "1"} if said is None else {"Retry-After": "1", HOP.decode(): said.decode()}
        super().__init__("The server that has this sandbox cannot be reached. Send the request again.", headers=headers)
        self.receive = receive


class Forwarding:
    """Only with a store that several servers share."""

    def __init__(self, app: ASGIApp, server: Server, hops: Hops) -> None:
        self.app, self._server, self._hops = app, server, hops

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if HOP in call.headers:
            message = f"{HOP.decode()} is a header between servers. Leave it out."
            raise BadRequest(message, code="malformed_request")
        if call.is_hop and self._server.closing.is_set():
            call.is_kept = False
            raise NotThere(receive, self._hops.said[Word.ELSEWHERE])
        if call.holder is None:
            return self.app(scope, receive, send)
        return self._forward(call, call.holder, scope, receive)

    async def _forward(self, call: Call, holder: str, scope: Scope, receive: Receive) -> None:
        """Send the request on, and leave the answer in the call as its passage. Raises NotThere."""
        call.begin().sandbox = call.holder_sandbox
        if REFUSED in scope:
            raise scope.pop(REFUSED)
        if call.is_hop:
            raise NotThere(receive, self._hops.said[Word.ELSEWHERE])
        try:
            connection = await self._hops.connect(holder)
        except OSError:
            raise NotThere(receive) from None
        passage = Passage(call, connection, self._server, self._hops)
        try:
            await passage.begin(scope, receive)
        except BaseException:
            passage.close()
            raise
        call.passage = passage.send


class Passage:
    """A request on its way to the server that has its sandbox, and the answer on its way back."""

    word: Word | None = None  # what the other server says to this one
    _upload: asyncio.Task[None] | None = None
    _has_left = _is_sent = _has_place = False
    _patience = SLOW

    def __init__(self, call: Call, connection: Connection, server: Server, hops: Hops) -> None:
        self._call, self._connection, self._hops = call, connection, hops
        self._waiting, self._residence = server.waiting, server.sandboxes.residence
        self._place = ExitStack()

    async def begin(self, scope: Scope, receive: Receive) -> None:
        """Send the request until the head of an answer has been read. Raises NotThere, Unavailable, Limited."""
        call, connection = self._call, self._connection
        self._head, self._is_chunked = _head(scope, call.headers, self._hops.header(scope))
        connection.begin(call.method)
        body = Body(receive)
        self._upload = asyncio.create_task(self._send_body(body, waits=b"expect" in call.headers))
        await asyncio.sleep(0)  # what has arrived of the body is sent with the head
        self._write(b"")
        while not connection.status and not connection.is_lost:
            await self._more()
        if not connection.status:
            if self._has_left:
                return
            again = body.again()
            if call.method in _SAFE and again is not None:
                raise NotThere(again)
            raise Unavailable(
                "The server that has this sandbox stopped before its answer. Read the sandbox to see what was done.",
                code="store_unavailable",
                headers={"Retry-After": "1"},
            )
        headers = dict(connection.headers)
        self.word = self._hops.words.get(headers.get(HOP, b""))
        if self.word is Word.ELSEWHERE:
            self._upload.cancel()
            raise NotThere(body.again() or receive)
        if not connection.is_whole and b"content-length" not in headers:
            self._take_place()

    async def _send_body(self, receive: Receive, *, waits: bool) -> None:
        """Send the body piece by piece, and close the connection if the client leaves."""
        connection, more = self._connection, True
        if waits:
            self._write(b"")
            await connection.continues.wait()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._has_left = True
                connection.abort()
                return
            if more:
                piece, more = message.get("body", b""), message.get("more_body", False)
                if self._is_chunked:
                    piece = (b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + (b"" if more else b"0\r\n\r\n")
                self._write(piece)
                self._is_sent = not more
                await connection.drain()

    def _write(self, data: bytes) -> None:
        head, self._head = self._head, b""
        if head or data:
            self._connection.write(head + data)

    async def _more(self) -> None:
        """Read more of the answer. Raises Limited where too many requests wait already."""
        connection = self._connection
        try:
            async with asyncio.timeout(self._patience):
                await connection.more()
        except TimeoutError:
            self._patience = LOOKS
            if not connection.status:
                self._take_place()
            if not await self._has_sandbox():
                connection.abort()

    def _take_place(self) -> None:
        """Count as a request that waits. Raises Limited."""
        if not self._has_place:
            self._has_place = True
            self._place.enter_context(self._waiting.take())

    async def _has_sandbox(self) -> bool:
        """Whether the other server still has the sandbox, as far as the store can say."""
        assert self._residence is not None
        try:
            return await self._residence.locate(self._call.holder_sandbox) == self._call.holder
        except Refusal:
            return True

    async def send(self, whole: SendWhole | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer as it is read, cut off where the other server cuts it off."""
        try:
            if self._has_left:
                return
            if self.word is Word.DROPPED:
                await self._hang_up(scope, receive, unsent=True)
            else:
                await self._send(whole, scope, receive, send)
        finally:
            self.close()

    async def _send(self, whole: SendWhole | None, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self._connection
        self._call.trace.status = connection.status
        headers = [header for header in connection.headers if header[0] not in _OF_ANSWERS]
        body, is_whole = connection.take(), connection.is_whole
        if is_whole and whole is not None and whole(connection.status, headers, body) is not None:
            return
        await send({"type": "http.response.start", "status": connection.status, "headers": headers})
        connection.continues.set()  # the body is not wanted any more, and the client may leave
        while not is_whole:
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            elif connection.is_lost:
                await self._hang_up(scope, receive, unsent=False)
                return
            else:
                await self._more()
            body, is_whole = connection.take(), connection.is_whole
        await send({"type": "http.response.body", "body": body})

    async def _hang_up(self, scope: Scope, receive: Receive, *, unsent: bool) -> None:
        assert self._upload is not None
        self._upload.cancel()  # one task at a time may wait for the client to leave
        if not self._has_left:
            await hang_up(scope, receive, unsent=unsent)

    def close(self) -> None:
        if self._upload is not None:
            self._upload.cancel()
        self._place.close()
        if self._is_sent:
            self._hops.give_back(self._connection)
        else:
            self._connection.abort()


class Body:
    """The body of a request, as it is received. A small one can be received again."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0
        self._kept: list[Message] = []

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size <= REPEATABLE:
            self._kept.append(message)
        return message

    def again(self) -> Receive | None:
        """Gives all messages again; None where the body is too large."""
        if self._size > REPEATABLE:
            return None
        kept = iter(self._kept)

        async def receive() -> Message:
            for message in kept:
                return message
            return await self._receive()

        return receive


def _head(scope: Scope, headers: Mapping[bytes, bytes], hop: tuple[bytes, bytes]) -> tuple[bytes, bool]:
    """The head of a request as it came, without what is about the connection; and whether its body is chunked."""
    lines = [b"%b %b HTTP/%b" % (scope["method"].encode(), target_of(scope), scope["http_version"].encode())]
    lines += [b"%b: %b" % header for header in scope["headers"] if header[0] not in _HOP_BY_HOP]
    is_chunked = b"transfer-encoding" in headers
    if is_chunked:
        lines.append(b"transfer-encoding: chunked")
    return b"\r\n".join((*lines, b"%b: %b" % hop, b"", b"")), is_chunked
