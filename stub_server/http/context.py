"""RequestContext: what every request begins and ends with: its headers, its trace for the journal, its answer."""

from __future__ import annotations

from asyncio import CancelledError

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, MOST_WARNINGS, Call
from ..calls.server import Server
from ..contract.secrets import Secrets
from ..kernel.problem import Unavailable
from ..worlds.catching_up import catch_up
from ..worlds.keeping import unwritten
from .access import VARY, Origins, answer_headers, lets_read
from .bodies import read_late
from .connection import WHOLE, SendWhole, hang_up
from .headers import HeaderReader
from .hosts import Hosts
from .journal_entry import JournalWriter, changes_something
from .refusals import Headers, render
from .selection import turn_back
from .streaming import send_pieces


class RequestContext:
    """The outermost layer. Those below it raise refusals and leave answers in the call; it alone sends anything."""

    def __init__(self, app: ASGIApp, server: Server, hosts: Hosts, origins: Origins) -> None:
        """`origins` are the pages that may read the API."""
        self.app, self._server, self._origins = app, server, origins
        secrets = Secrets(server.document, server.control, admin_key=server.admin_key)
        self._read_headers, self._journal = HeaderReader(hosts, secrets), JournalWriter(secrets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await (self._live(receive, send) if scope["type"] == "lifespan" else _close(send))
            return
        extensions = scope.get("extensions") or {}
        # Taken out: it holds what holds the scope, and a cycle would stay in memory until the collector comes.
        whole: SendWhole | None = extensions.pop(WHOLE, None)
        scope["extensions"] = {**extensions}  # Connexion writes into it
        head = self._read_headers(scope["headers"])
        default = self._server.sandboxes.default
        call = Call(scope["method"], scope["path"], scope["query_string"], head, default, self._server)
        call.client, call.warnings = scope.get("client"), head.warnings
        scope[CALL] = call
        try:
            await self.app(scope, receive, send)
            await self._answer(call, whole, scope, receive, send)
        except CancelledError:  # the server stops, and what this request waits for takes longer
            await hang_up(scope, receive, unsent=True)
        except ConnectionResetError:
            raise
        except Exception as error:
            if call.has_begun and call.trace.status:  # nothing can be said any more: the server cuts the connection
                raise
            await self._refuse(error, call, receive)
            call.stream = None
            await self._answer(call, whole, scope, receive, send)
        finally:
            self._end(call)

    async def _refuse(self, error: Exception, call: Call, receive: Receive) -> None:
        """Have a refusal be the answer."""
        if not call.has_begun:
            call.begin()
        asked = call.sandbox.name
        if call.pending is not None or call.created is not None:
            turn_back(call)
        status, headers, body = render(error, call.trace, asked)
        if not call.path.startswith(CONTROL):
            await read_late(call, receive)
        call.answer = status, headers, (body,), body

    async def _answer(self, call: Call, whole: SendWhole | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what the call has for an answer, in one go where the server can."""
        if call.stream is not None:
            await self._send_stream(call, scope, receive, send)
            return
        trace, answer, kept = call.trace, call.answer, None
        if call.warnings and not call.is_preflight:
            answer[1].append(_warnings(call))
        if call.faults is not None:
            whole, injection, call.faults = None, call.faults, None
            try:
                damaged = await injection.damage(answer)
            finally:
                injection.end()
            if damaged is None:
                await hang_up(scope, receive, unsent=True)
                return
            answer, kept = damaged
        status, headers, parts, body = answer
        if (self._server.sandboxes.keeper.is_behind or call.sandbox.undone_at > trace.began) and status < 500:
            await self._settle(call)
        self._complete(call, status, headers)
        if call.method == "HEAD":
            parts, body = (b"",), b""
        elif kept is not None:
            parts = (body[:kept],)
        trace.parts, trace.length = parts, len(body)
        lines = None if whole is None else whole(status, headers, body)
        if lines is not None:
            trace.sent = lines
            return
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if kept is not None:
            await send({"type": "http.response.body", "body": body[:kept], "more_body": True})
            await hang_up(scope, receive, unsent=False)
            return
        await send({"type": "http.response.body", "body": body})

    async def _send_stream(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        reply = call.stream
        assert reply is not None
        await self._settle(call)
        headers: Headers = [*reply.headers]
        if call.warnings:
            headers.append(_warnings(call))
        headers.append((b"content-type", reply.media))
        self._complete(call, reply.status, headers)
        call.trace.answer = b""
        await send_pieces(reply, headers, scope, receive, send)

    async def _settle(self, call: Call) -> None:
        """Wait until the store has what a call did or saw. Raises Unavailable where it was undone."""
        trace, keeper = call.trace, self._server.sandboxes.keeper
        try:
            if keeper.is_behind:
                await keeper.settled(call.sandbox)
            if call.sandbox.undone_at > trace.began:
                raise keeper.failure or unwritten("it could not be for a moment")
        except Unavailable:
            trace.after, trace.events, trace.deliveries = None, (), ()
            raise

    def _complete(self, call: Call, status: int, headers: Headers) -> None:
        """Add the headers of every answer."""
        trace, origin = call.trace, call.head.origin
        trace.status = status
        headers.append((b"x-request-id", trace.id.encode()))
        if not call.is_preflight:
            headers += (VARY, *call.limits)
            if origin is not None and lets_read(call, origin, self._origins):
                headers += answer_headers(origin)
        call.sent_headers = headers

    def _end(self, call: Call) -> None:
        """Have the journal keep the request, and the terminal show it."""
        if not call.has_begun:
            call.begin()
        trace, is_control = call.trace, call.path.startswith(CONTROL)
        if call.faults is not None:  # the request was cancelled
            call.faults.end()
            call.faults = None  # it holds the call
        trace.close()
        if call.pending is not None or (call.created is not None and trace.status >= 400):
            turn_back(call)
        if is_control:
            trace.is_control = True
        if call.is_kept and (not is_control or changes_something(call)):
            self._journal.write(call)
        else:
            self._journal.pass_by(call)
        for listener in self._server.listeners:
            listener(trace, trace.warnings)

    async def _live(self, receive: Receive, send: Send) -> None:
        """What is done when the server starts and when it stops: deliveries are sent in between."""
        server = self._server
        sandboxes = server.sandboxes
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await catch_up(sandboxes.worlds(), server.closing)
                sandboxes.keeper.start(sandboxes.lane)
                server.courier.start(sandboxes.worlds())
            else:
                await server.courier.stop(server.closing.since)
                await sandboxes.keeper.stop()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return


async def _close(send: Send) -> None:
    """There are no WebSockets here."""
    await send({"type": "websocket.close", "code": 1000})


def _warnings(call: Call) -> tuple[bytes, bytes]:
    """The header that says what was odd about a request."""
    return b"x-sandbox-warnings", ", ".join(call.warnings[:MOST_WARNINGS]).encode("latin-1", "replace")
