"""RequestContext, the outermost layer: reads headers, sends answers, writes the journal."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import perf_counter_ns
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, INTERNAL, MOST_WARNINGS, Call
from ..calls.server import Server
from ..contract.secrets import LEFT_OUT, REDACTED, SECRET_HEADERS, Secrets
from ..engine.journal import HEADER, size_of
from ..kernel.problem import NotFound, Refusal, Unavailable, gone, undone
from ..kernel.text import nearest, warning_of
from .access import MOST_HEADERS, VARY, Origins, answer_headers, inbox_at
from .answers import Headers, HungUp, hang_up, render, send_pieces
from .hops import HOP, Hops, Word
from .selection import ABOUT_THE_SERVER, undo_creation

_OURS = b"x-sandbox"
_ENDINGS = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")
_KNOWN = frozenset(_OURS + ending.encode() for ending in _ENDINGS)
_WITHHELD = {name.encode(): (name.encode(), REDACTED.encode()) for name in SECRET_HEADERS}
OVERHEAD, EACH = 1_000, 80  # bytes of a request besides its messages, and of an id
_READING = ("GET", "HEAD", "OPTIONS")
_BEFORE_THE_BODY = ("route", "auth")
BODY_COMES_IN = 0.1  # seconds that the body of a refused request is waited for


class RequestContext:
    """The outermost layer. Others raise refusals or leave answers in the call, which this one sends.

    Forwarding alone sends by itself, up to the end, what another server answers.
    """

    def __init__(self, app: ASGIApp, server: Server, origins: Origins, hops: Hops | None = None) -> None:
        """`origins` are the pages that may read the API; `hops` recognises requests of other servers of the store."""
        self.app, self._server, self._origins, self._hops = app, server, origins, hops
        self._sandboxes, self._persistence = server.sandboxes, server.sandboxes.persistence
        self._is_shared = self._persistence.is_shared
        self._secrets = Secrets(server.document, server.control, own=(server.admin_key, server.settings.secret))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._live(receive, send)
            return
        forwarded_for = None if self._hops is None else self._hops.take(scope)
        default = self._sandboxes.default
        call = Call(scope["method"], _path(scope), scope["query_string"], scope["headers"], default, self._server)
        call.client, call.warnings = scope.get("client"), _without_effect(call.headers)
        if forwarded_for is not None:
            call.client, call.is_hop = (forwarded_for, 0), True
        if INTERNAL in scope:
            call.is_internal = True
        scope[CALL] = call
        try:
            try:
                await self.app(scope, receive, send)
                if call.pending is not None:  # the request has not used the sandbox
                    undo_creation(call)
            except Exception as error:
                await self._refuse(error, call, receive)
            while True:
                try:
                    await self._answer(call, scope, receive, send)
                    break
                except HungUp:
                    raise
                except Exception as error:
                    if call.trace.status:  # an answer has begun: the server closes the connection
                        raise
                    await self._refuse(error, call, receive)
        except asyncio.CancelledError:  # the server stops before the request has ended
            await hang_up(scope, receive, unsent=True)
        finally:
            self._end(call)
            del scope[CALL]  # an idle connection keeps its last scope

    async def _refuse(self, error: Exception, call: Call, receive: Receive) -> None:
        if not call.has_begun:
            call.begin()
        if isinstance(error, NotFound) and call.sandbox.is_gone and not call.is_of_none and self._is_shared:
            error = gone()  # another server may have it
        if isinstance(error, NotFound | Unavailable) and call.is_undone:
            error = (self._persistence.failure or undone()).again()
        if call.stream is not None:
            await call.stream.chunks.aclose()
        asked = call.sandbox.name
        undo_creation(call)
        status, headers, body = render(error, call.trace, asked)
        if call.is_kept and not call.path.startswith(CONTROL):
            await _read_late(call, receive)
        call.answer, call.stream = (status, headers, (body,), body), None

    async def _answer(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer of a call."""
        if call.stream is not None:
            await self._send_stream(call, scope, receive, send)
            return
        if call.passage is not None:
            await call.passage(scope, receive, send)
            return
        trace, answer, kept = call.trace, call.answer, None
        if call.warnings and not call.is_preflight:
            answer[1].append(_warnings(call))
        if call.faults is not None:
            damaged, call.faults = call.faults.damage(answer), None
            if damaged is None and call.is_hop:  # the connection is the other server's
                assert self._hops is not None
                dropped = [(HOP, self._hops.said[Word.DROPPED])]
                await send({"type": "http.response.start", "status": 503, "headers": dropped})
                await send({"type": "http.response.body", "body": b""})
                return
            if damaged is None:
                await hang_up(scope, receive, unsent=True)
                return
            answer, kept = damaged
        status, headers, parts, body = answer
        if self._is_shared and status != 503 and call.path not in ABOUT_THE_SERVER:
            self._persistence.check_lease()
        if (self._persistence.committing or call.is_undone) and status < 500:
            await self._settle(call)
        self._complete(call, status, headers)
        if call.method == "HEAD":
            parts, body = (b"",), b""
        elif kept is not None:
            parts = (body[:kept],)
        trace.parts, trace.length = parts, len(body) if kept is None else kept
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if kept is not None:
            await send({"type": "http.response.body", "body": body[:kept], "more_body": True})
            await hang_up(scope, receive, unsent=False)
            return
        await send({"type": "http.response.body", "body": body})

    async def _send_stream(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        reply = call.stream
        assert reply is not None
        self._persistence.check_lease()
        await self._settle(call)
        headers: Headers = [*reply.headers]
        if call.warnings:
            headers.append(_warnings(call))
        headers.append((b"content-type", reply.media))
        self._complete(call, reply.status, headers)
        call.trace.answer = b""
        await send_pieces(reply, headers, scope, receive, send)

    async def _settle(self, call: Call) -> None:
        """Wait until what a call did or saw is stored. Raises Unavailable where it was undone."""
        trace, persistence = call.trace, self._persistence
        try:
            if persistence.committing:
                await persistence.settled(call.sandbox)
            if call.is_undone:
                raise persistence.failure or undone()
        except Unavailable as error:
            trace.after, trace.events, trace.deliveries = None, (), ()
            raise error.again() from None

    def _complete(self, call: Call, status: int, headers: Headers) -> None:
        """Add the headers of every answer."""
        trace, origin = call.trace, call.headers.get(b"origin")
        trace.status = status
        headers.append((b"x-request-id", trace.id.encode()))
        if not call.is_preflight:
            if call.is_chosen:
                headers.append((b"x-sandbox-now", call.now_text.encode()))
            headers += (VARY, *call.limits)
            if origin is not None:
                headers += answer_headers(call, origin, self._origins)
        call.sent_headers = headers

    def _end(self, call: Call) -> None:
        if not call.has_begun:
            call.begin()
        trace, is_control = call.trace, call.path.startswith(CONTROL)
        trace.micros = (perf_counter_ns() - trace.began) // 1000
        if call.pending is not None or (call.created is not None and trace.status >= 400):
            undo_creation(call)
        if call.is_internal:
            return
        if is_control:
            trace.is_control = True
        # Of the control surface, what may change something; an inbox itself stores what it receives.
        is_wanted = not is_control or (call.method not in _READING and inbox_at(call.method, call.path) is None)
        line = trace.path
        if call.warnings:
            trace.warnings = call.warnings
            line = "\n".join((line, *call.warnings))
        is_suspect = self._secrets.suspects_line(line, trace.query)
        if is_suspect:
            self._redact_line(call)
        if call.is_kept and is_wanted:
            self._store(call, is_suspect=is_suspect)
        for listener in self._server.listeners:
            listener(trace, trace.warnings)

    def _store(self, call: Call, *, is_suspect: bool) -> None:
        """Write a request that has ended to the journal, without secrets."""
        trace, journal = call.trace, call.sandbox.journal
        if call.prefix:
            trace.is_prefixed = True
        trace.size = OVERHEAD + 4 * len(trace.path) + len(trace.query)
        if journal.keeps_bodies:
            self._keep_messages(call, is_suspect=is_suspect)
        else:
            trace.answer = None
        journal.append(trace)

    def _keep_messages(self, call: Call, *, is_suspect: bool) -> None:
        """Keep headers and bodies."""
        trace, secrets, body = call.trace, self._secrets, call.body_bytes
        received = [_WITHHELD.get(header[0], header) for header in call.received[:MOST_HEADERS]]
        sent, texts = call.sent_headers, b"\n".join([text for header in received for text in header])
        is_suspect = is_suspect or secrets.suspects_headers(texts) or (body != b"" and secrets.suspects(body))
        if is_suspect or trace.operation in secrets.operations:
            received, sent = self._clean(received), self._clean(sent)
            body_left, trace.answer = secrets.without(body, trace.answer)
            body = body_left or b""
        media = call.headers.get(b"content-type", b"")
        if body and b"=" in media and secrets.suspects_encoded(media, body):
            body = LEFT_OUT
        if body:
            trace.body = body
        trace.request_headers, trace.response_headers = received, sent
        size = len(texts) + HEADER * len(received) + len(body) + trace.length
        if call.has_recorded:
            size += EACH * (len(trace.events) + len(trace.deliveries))
        if trace.simulated is not None:  # with headers of a rule, which clients choose
            size += size_of(sent)
        trace.size += size

    def _clean(self, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        line = self._secrets.line
        return [(line(name), line(value)) for name, value in headers]

    def _redact_line(self, call: Call) -> None:
        """Remove secrets from the request line, and from warnings, which may repeat it."""
        trace, secrets = call.trace, self._secrets
        trace.path = secrets.line(trace.path.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        trace.query = secrets.query(trace.query.decode("latin-1")).encode("latin-1")
        trace.warnings = [secrets.text(warning) for warning in call.warnings]

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start the parts of the server that work beside requests, and stop them when the server stops."""
        server, sandboxes = self._server, self._sandboxes
        await receive()
        self._persistence.start()
        server.courier.start(sandboxes.sandboxes())
        if sandboxes.residence is not None:
            sandboxes.residence.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if sandboxes.residence is not None:
            sandboxes.residence.stop()
        await server.courier.stop(server.closing.since)
        await self._persistence.stop()
        await send({"type": "lifespan.shutdown.complete"})


async def _read_late(call: Call, receive: Receive) -> None:
    """Read the body of a request that was refused before anybody read it, if it comes soon.

    The journal needs it to explain the refusal.
    """
    trace, headers = call.trace, call.headers
    comes = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if comes and trace.reached in _BEFORE_THE_BODY and b"expect" not in headers and call.sandbox.journal.keeps_bodies:
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(BODY_COMES_IN):
                call.body_bytes = bytes(await call.read(receive))


def _path(scope: Scope) -> str:
    """The decoded path, in which `%2F` stays: it is a character of a segment and separates none."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%" not in raw or b"%2f" not in raw.lower():
        return str(scope["path"])
    return unquote(re.sub("%2f", "%252F", raw.decode("ascii"), flags=re.IGNORECASE))


def _warnings(call: Call) -> tuple[bytes, bytes]:
    """The header that lists what may be a mistake in a request."""
    return b"x-sandbox-warnings", ", ".join(call.warnings[:MOST_WARNINGS]).encode("latin-1", "replace")


def _without_effect(headers: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Warnings of headers that have no effect: X-Sandbox headers that this server does not know may be misspelt."""
    found = ["if_match_ignored"] if b"if-match" in headers else []
    unknown = [name for name in headers if name.startswith(_OURS) and name not in _KNOWN]
    for name in unknown[:MOST_WARNINGS]:
        ending = name[len(_OURS) :].decode("latin-1")
        guess = nearest(ending, _ENDINGS)
        found.append(warning_of("unknown_sandbox_header", f"x-sandbox{ending}", guess and f"x-sandbox{guess}"))
    return tuple(found)
