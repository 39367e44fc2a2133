"""Forwarding: a request whose sandbox another server of the store has is answered by that server, over one hop.

A request is written while its answer is read. A pool of httpcore's reads no answer before a request is written whole:
a rejected upload would be sent to its end, and `Expect: 100-continue` would have no effect.
"""

import asyncio
import hmac
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from enum import Enum
from time import monotonic, time
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.server import Server
from ..kernel.problem import BadRequest, Refusal, Unavailable
from .answers import hang_up
from .http1 import PIECE, Broken, Head, Side, connected

T = TypeVar("T")
CONNECT = 2.0  # seconds
KEPT, KEPT_FOR = 32, 30.0  # idle connections to a server, and seconds, fewer than the server leaves them open
HOP = b"x-sandbox-hop"  # the last header of a forwarded request; in an answer to one it is one of the words below
VALID = 30  # seconds by which the clocks of two servers may differ
AVOIDED = 2.0  # seconds in which a server that is about to stop is asked nothing: its end would cut requests off
SLOW = 1.0  # seconds after which a request counts as one that waits
LOOKS = 5.0  # seconds of silence after which this server checks that the other one still has the sandbox
REPEATABLE = 262_144  # bytes of a body that can be sent again
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", HOP)
)
_OF_ANSWERS = frozenset((b"connection", b"date", b"transfer-encoding"))  # this server sends its own
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


class Word(Enum):
    """What a server answers to another one, and to no client."""

    ELSEWHERE = b"elsewhere"  # nothing was done: the server does not have the sandbox
    STOPPING = b"stopping"  # nothing was done: the server is about to stop
    DROPPED = b"dropped"  # a fault rule drops the client's connection without an answer


class Hops:
    """Requests from server to server of one store, which share the secret: connections, and the signed header."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, HOP, "sha256")
        self._idle: defaultdict[str, list[Side]] = defaultdict(list)  # kept open for the next request, by address
        self.said = {word: hmac.digest(self._key, word.value, "sha256").hex().encode() for word in Word}
        """The words as they are sent. They are secret: a fault rule may add any header to an answer."""
        self._stopping: dict[str, float] = {}  # until when a server is asked nothing, by address
        self.words = {said: word for word, said in self.said.items()}

    async def connect(self, address: str) -> Side:
        """A connection to `http://host:port`. Raises OSError."""
        if self._stopping.get(address, 0.0) > monotonic():
            raise OSError("it is about to stop")
        idle = self._idle[address]
        while idle:
            side = idle.pop()
            if await side.may_be_used(KEPT_FOR):
                return side
            side.abort()
        parts = urlsplit(address)
        return await connected(str(parts.hostname), parts.port or 80, CONNECT)

    def give_back(self, address: str, side: Side) -> None:
        """Keep a connection for the next request."""
        idle = self._idle[address]
        if len(idle) < KEPT:
            side.rested = monotonic()
            idle.append(side)
        else:
            side.abort()

    def avoid(self, address: str) -> None:
        """Ask a server nothing for a while, since it is about to stop."""
        self._stopping[address] = monotonic() + AVOIDED

    def close(self) -> None:
        """Close the idle connections."""
        for idle in self._idle.values():
            while idle:
                idle.pop().abort()

    def header(self, scope: Scope) -> tuple[bytes, bytes]:
        """The header of a request that is forwarded: the time, its client, and the signature of both and the target."""
        host, port = scope.get("client") or ("-", 0)
        claim = b"%d %b %d" % (time(), host.encode("latin-1", "replace"), port)
        return HOP, b"%b %b" % (claim, self._signature(scope, claim))

    def take(self, scope: Scope) -> tuple[str, int] | None:
        """Remove the header of another server from a request; returns the client's address and port.

        A header that is not the last one, or is forged or old, stays and is ignored here.
        """
        headers = scope["headers"]
        if not headers or headers[-1][0] != HOP:
            return None
        claim, _, signature = headers[-1][1].rpartition(b" ")
        if not hmac.compare_digest(self._signature(scope, claim), signature):
            return None
        at, _, client = claim.decode("latin-1").partition(" ")
        host, _, port = client.rpartition(" ")  # a proxy may have sent anything as the host
        if abs(time() - int(at)) > VALID:
            return None
        scope["headers"] = headers[:-1]
        return host, int(port)

    def _signature(self, scope: Scope, claim: bytes) -> bytes:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        signed = (scope["method"].encode(), _target(scope), host, claim)
        return hmac.digest(self._key, b"\n".join(signed), "sha256").hex().encode()


class NotThere(Unavailable):
    """503: the server that should have the sandbox has done nothing.

    `receive` gives the body from its start; None where the body is too large to be sent again.
    """

    code = "store_unavailable"

    def __init__(self, receive: Receive | None, said: bytes | None = None) -> None:
        """`said` is a word for the server that sent the request."""
        headers = {"Retry-After": "1"} if said is None else {"Retry-After": "1", HOP.decode(): said.decode()}
        super().__init__("The server that has this sandbox cannot be reached. Send the request again.", headers=headers)
        self.receive = receive


class Forwarding:
    """Sends a request to the server that has its sandbox. Only with a shared store."""

    def __init__(self, app: ASGIApp, server: Server, hops: Hops) -> None:
        self.app, self._server, self._hops = app, server, hops

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if HOP in call.headers:
            message = f"{HOP.decode()} is a header between servers. Leave it out."
            raise BadRequest(message)
        if call.is_hop and self._server.closing.is_set():
            call.is_kept = False
            raise NotThere(receive, self._hops.said[Word.STOPPING])
        if call.holder is None:
            return self.app(scope, receive, send)
        return self._forward(call, call.holder, scope, receive)

    async def _forward(self, call: Call, holder: str, scope: Scope, receive: Receive) -> None:
        """Send the request on, and leave the answer in the call as its passage. Raises NotThere."""
        call.begin().sandbox = call.holder_sandbox
        if call.is_hop:
            raise NotThere(receive, self._hops.said[Word.ELSEWHERE])
        try:
            side = await self._hops.connect(holder)
        except OSError:
            raise NotThere(receive) from None
        passage = Passage(call, side, self._server, self._hops)
        try:
            await passage.begin(scope, receive)
        except BaseException:
            passage.close()
            raise
        call.passage = passage.send


class Passage:
    """A request on its way to the server that has its sandbox, and the answer on its way back."""

    word: Word | None = None  # what the other server says to this one
    _answer: Head | None = None
    _upload: asyncio.Task[None] | None = None
    _has_left = _is_sent = _is_lost = _has_place = False
    _patience = SLOW

    def __init__(self, call: Call, side: Side, server: Server, hops: Hops) -> None:
        self._call, self._side, self._hops = call, side, hops
        self._waiting, self._residence = server.waiting, server.sandboxes.residence
        self._continues = asyncio.Event()  # set when the other server wants the body, or has answered
        self._place = ExitStack()

    async def begin(self, scope: Scope, receive: Receive) -> None:
        """Send the request until the head of an answer has been read. Raises NotThere, Unavailable, Limited."""
        call = self._call
        self._head, self._is_chunked = _head(scope, call.headers, self._hops.header(scope))
        body = RepeatableBody(receive)
        self._upload = asyncio.create_task(self._send_body(body, waits=b"expect" in call.headers))
        await asyncio.sleep(0)  # what has arrived of the body is sent with the head
        self._write(b"")
        answer = self._answer = await self._read(lambda: self._side.answer(call.method, self._go_on))
        if answer is None:
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
        self.word = self._hops.words.get(answer.named(HOP))
        if self.word is Word.STOPPING:
            self._hops.avoid(str(self._call.holder))
        if self.word in (Word.STOPPING, Word.ELSEWHERE):
            self._upload.cancel()
            raise NotThere(body.again())
        if self.word is None and not answer.ends and answer.left is None:
            self._take_place()

    async def _send_body(self, receive: Receive, *, waits: bool) -> None:
        """Send the body piece by piece, and close the connection if the client leaves."""
        more = True
        if waits:
            self._write(b"")
            await self._continues.wait()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._has_left = True
                self._lose()
                return
            if more:
                piece, more = message.get("body", b""), message.get("more_body", False)
                if self._is_chunked:
                    piece = (b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + (b"" if more else b"0\r\n\r\n")
                self._write(piece)
                self._is_sent = not more
                with suppress(OSError):  # found when the answer is read
                    await self._side.writer.drain()

    async def _go_on(self, _: bytes) -> None:
        self._continues.set()

    def _write(self, data: bytes) -> None:
        head, self._head = self._head, b""
        if (head or data) and not self._is_lost:
            self._side.writer.write(head + data)

    def _lose(self) -> None:
        self._is_lost = True
        self._side.abort()

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T | None:
        """What is read of the answer; None if the connection is lost. Raises Limited if too many requests wait."""
        while not self._is_lost:
            try:
                async with asyncio.timeout(self._patience):
                    return await read()
            except TimeoutError:
                self._patience = LOOKS
                if self._answer is None:
                    self._take_place()
                if not await self._has_sandbox():
                    self._lose()
            except Broken:
                self._lose()
        return None

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

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer as it is read, cut off where the other server cuts it off."""
        try:
            if self._has_left:
                return
            if self.word is Word.DROPPED:
                await self._hang_up(scope, receive, unsent=True)
            else:
                await self._send(scope, receive, send)
        finally:
            self.close()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer, body = self._answer, b""
        assert answer is not None
        self._call.trace.status = answer.status
        headers = [header for header in answer.headers if header[0] not in _OF_ANSWERS]
        is_small = answer.left is not None and answer.left <= PIECE
        while is_small and not answer.ends and not self._is_lost:
            body += await self._more(answer)
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        self._continues.set()  # the body is not wanted any more, and the client may leave
        while not answer.ends:
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            body = await self._more(answer)
            if self._is_lost:
                await self._hang_up(scope, receive, unsent=False)
                return
        await send({"type": "http.response.body", "body": body})

    async def _more(self, answer: Head) -> bytes:
        """More of the body of the answer, empty if the connection is lost."""
        data, content = await self._read(lambda: self._side.body(answer)) or (b"", b"")
        if not data:
            self._lose()
        return content

    async def _hang_up(self, scope: Scope, receive: Receive, *, unsent: bool) -> None:
        assert self._upload is not None
        self._upload.cancel()  # one task at a time may wait for the client to leave
        if not self._has_left:
            await hang_up(scope, receive, unsent=unsent)

    def close(self) -> None:
        """Keep the connection for another request, if it can have one."""
        if self._upload is not None:
            self._upload.cancel()
        self._place.close()
        answer = self._answer
        if self._is_sent and answer is not None and answer.ends and answer.stays and not self._is_lost:
            self._hops.give_back(str(self._call.holder), self._side)
        else:
            self._side.abort()


class RepeatableBody:
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
    lines = [b"%b %b HTTP/%b" % (scope["method"].encode(), _target(scope), scope["http_version"].encode())]
    lines += [b"%b: %b" % header for header in scope["headers"] if header[0] not in _HOP_BY_HOP]
    is_chunked = b"transfer-encoding" in headers
    if is_chunked:
        lines.append(b"transfer-encoding: chunked")
    return b"\r\n".join((*lines, b"%b: %b" % hop, b"", b"")), is_chunked


def _target(scope: Scope) -> Any:
    """Path and query of a request as they were sent; a layer may have changed them in the scope."""
    query = scope["query_string"]
    return scope["raw_path"] + (b"?" + query if query else b"")
