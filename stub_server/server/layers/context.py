"""RequestContext, the outermost layer: says what arrived, sends the answer, and writes the
journal, without secrets.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from time import perf_counter_ns
from urllib.parse import unquote

from starlette.types import Receive, Scope, Send

from ...contract.redaction import Redactor
from ...contract.secrets import REDACTED, SECRET_HEADERS
from ...core.clock import iso, wall_ms
from ...core.problem import NotFound, Refusal, Unavailable, gone, undone
from ...core.slices import SHORT
from ...engine.kept import Trace, head_of
from ..reply import DROPPED, Answer, HungUp, Said, hang_up, render
from ..request import COMMAND, CONTROL, MOST_WARNINGS, Head, Request, Sent, by_name, has_body
from ..server import Server
from .access import VARY, answer_headers
from .hops import HOP, Hops
from .hosts import MOST_HEADERS, inbox_at
from .injection import Injection
from .inside import FROM_A_PAGE
from .selection import ABOUT_THE_SERVER
from .time_travel import AS_OF
from .way import Layer, Way

BODY_COMES_IN = 0.1  # seconds that the body of a refused request is waited for
_WITHHELD = {name.encode(): REDACTED.encode() for name in SECRET_HEADERS}
OVERHEAD, EACH = 700, 80  # bytes of a request besides its messages, and of an id
_CACHED = 64  # heads of requests, and of answers, that are remembered
_UNKNOWN = ("route", "auth")  # stages in which a request may be of anybody
_READING = ("GET", "HEAD", "OPTIONS")


class RequestContext:
    """The outermost layer. Others raise refusals or return answers, which this one sends.

    Forwarding alone sends by itself, up to the end, what another server answers.
    """

    def __init__(self, app: Layer, server: Server, hops: Hops | None) -> None:
        """`hops` recognises requests of other servers of the store."""
        self.app, self._server, self._hops = app.__call__, server, hops
        self._persistence = server.sandboxes.persistence
        self._is_shared = self._persistence.is_shared
        self._turns = server.waiting.turns
        self._redactor = Redactor(
            server.document, server.control, own=(server.guard.admin_key, server.settings.secret)
        )
        self._head_of = lru_cache(maxsize=_CACHED)(self._read_head)
        self._shared = lru_cache(maxsize=_CACHED)(head_of)  # thousands of traces have few

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._live(receive, send)
            return
        forwarded_for = None if self._hops is None else self._hops.take(scope)
        request = request_of(scope, self._head_of, forwarded_for)
        way = Way(self._server, request, scope, receive, send)
        answer: Answer | None = None
        try:
            try:
                answer = await self.app(way)
            except Exception as error:
                answer = await self._refusal(error, way)
            if way.faults is not None:
                answer = self._damaged(answer, way, way.faults)
            try:
                send_it = self._send_long if answer.is_long else self._send
                await send_it(answer, way)
            except HungUp:
                raise
            except Exception as error:
                if way.trace.status:  # an answer has begun: the server closes the connection
                    raise
                await answer.abandon()
                answer = await self._refusal(error, way)
                await self._send(answer, way)
        except asyncio.CancelledError:  # the server stops before the request has ended
            await hang_up(scope, receive, send, unsent=True)
        finally:
            self._end(way, answer)

    async def _refusal(self, error: Exception, way: Way) -> Answer:
        """The answer of a refusal, or of a defect."""
        if way.is_chosen is None:
            way.begin_unchosen()
        trace, sandbox = way.trace, way.sandbox
        if trace.reached in _UNKNOWN:
            way.is_of_stranger = True
            await way.next_turn()
        has_gone = sandbox.status.is_gone and way.is_chosen  # while the request was served
        if isinstance(error, NotFound) and has_gone and self._is_shared:
            error = gone()  # another server may have it
        if isinstance(error, NotFound | Unavailable) and sandbox.status.is_undone:
            error = (self._persistence.failure or undone()).again()
        way.undo()
        answer = render(error, trace, sandbox.name)
        if trace.is_kept and not way.path.startswith(CONTROL) and sandbox.journal.keeps_bodies:
            await _read_late(way)
        return answer

    def _damaged(self, answer: Answer, way: Way, faults: Injection) -> Answer:
        """What fault rules make of an answer.

        Where that cannot be sent, the refusal in its place is left whole.
        """
        damaged = answer if answer.is_final else faults.damaged(answer)
        # the connection is the other server's
        if damaged is DROPPED and way.request.is_hop:
            assert self._hops is not None
            return Said(503, [(HOP, self._hops.dropped)])
        return damaged

    async def _send(self, answer: Answer, way: Way) -> None:
        """Complete an answer and send it, once what it tells is stored."""
        if not answer.is_final:
            if self._is_shared and answer.status != 503 and way.path not in ABOUT_THE_SERVER:
                self._persistence.check_lease()
            is_unsettled = self._persistence.committing or way.sandbox.status.is_undone
            if is_unsettled and answer.status < 500:
                await self._settled(way)
            if perf_counter_ns() - self._turns.began > SHORT:  # many may have waited
                await way.next_turn()
            self._complete(answer, way)
        await answer.send(way.scope, way.receive, way.send)

    async def _send_long(self, answer: Answer, way: Way) -> None:
        """Send an answer that is kept until its client has read it. What has changed something is
        always answered. Raises Limited.
        """
        if way.request.method == "GET":
            with way.server.waiting.take(way.sandbox.name, for_anybody=True):
                await self._send(answer, way)
        else:
            await self._send(answer, way)

    async def _settled(self, way: Way) -> None:
        """Wait until what a request has changed or read is stored.

        Raises Unavailable where it was undone.
        """
        persistence, sandbox = self._persistence, way.sandbox
        try:
            if persistence.committing:
                await persistence.settled(sandbox)
            if sandbox.status.is_undone:
                raise persistence.failure or undone()
        except Unavailable as error:
            way.trace.lose()
            raise error.again() from None

    def _complete(self, answer: Answer, way: Way) -> None:
        """Add the headers of every answer."""
        trace = way.trace
        if way.pending is not None:  # the request has not used the sandbox
            way.undo()
        headers = answer.headers
        if trace.warnings:
            listed = ", ".join(trace.warnings[:MOST_WARNINGS])
            headers.append((b"x-sandbox-warnings", listed.encode("latin-1", "replace")))
        headers.append(VARY)
        if way.limits is not None:
            headers += way.limits
        origin = way.headers.get(b"origin")
        if origin is not None:
            headers += answer_headers(way, origin)
        if way.request.method == "HEAD":
            answer.body, answer.parts = b"", (b"",)
        trace.status, trace.parts = answer.status, answer.parts
        trace.sent_head = self._shared(tuple(headers))
        headers.append((b"x-request-id", trace.id.encode()))
        now = None
        if way.is_chosen:
            is_at_once = AS_OF not in way.headers and not way.path.startswith(CONTROL)
            now = trace.at if is_at_once else way.now
            headers.append((b"x-sandbox-now", iso(now).encode()))
        if now != trace.at:  # of others the trace has both headers as its id and instant
            trace.sent_head = head_of(headers)

    def _end(self, way: Way, answer: Answer | None) -> None:
        """Have the journal and the listeners learn of a request, whose answer has been sent."""
        if way.is_chosen is None:
            way.begin_unchosen()
        trace = way.trace
        way.faults = None  # they would hold each other
        trace.micros = (perf_counter_ns() - trace.began) // 1000
        if way.pending is not None or trace.status >= 400:
            way.undo()
        if way.request.is_internal:
            return
        self._keep(way, answer)
        for listener in self._server.listeners:
            listener(trace)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start the parts of the server that work beside requests, and stop them when the
        server stops.
        """
        server, sandboxes = self._server, self._server.sandboxes
        await receive()
        sandboxes.start()
        server.courier.start(sandboxes.sandboxes())
        await send({"type": "lifespan.startup.complete"})
        # imports what signs: too long for a turn of the event loop
        await asyncio.to_thread(server.tokens.signed, {})
        await receive()
        sandboxes.stop()
        await server.courier.stop(server.closing.since)
        await self._persistence.stop()
        await send({"type": "lifespan.shutdown.complete"})

    # -- the journal

    def _keep(self, way: Way, answer: Answer | None) -> None:
        """Take the secrets out of a trace, and write it to the journal; it has the
        answer's parts already.

        Of the control surface, what may change something is kept; an inbox itself stores what it
        receives.
        """
        request, trace, path = way.request, way.trace, way.path
        is_control = trace.is_control = path.startswith(CONTROL)
        has_secrets = False
        # The path alone of an operation of the API that succeeded names records, and nothing else.
        is_plain = trace.operation is not None and 200 <= trace.status < 300 and not is_control
        if not is_plain or trace.query or trace.warnings:
            has_secrets = self._redact_line(trace)
        # what only reads, and messages to an inbox, which has them
        changes_nothing = is_control and (
            request.method in _READING or inbox_at(request.method, path) is not None
        )
        if changes_nothing or not trace.is_kept:
            return
        trace.by_command = way.headers.get(b"user-agent") == COMMAND.encode()
        trace.is_prefixed = way.prefix != ""
        size = OVERHEAD + 4 * len(trace.path) + EACH * (len(trace.events) + len(trace.deliveries))
        size += len(way.headers.get(b"authorization", b""))  # the trace keeps its claims
        journal = way.sandbox.journal
        if not journal.keeps_bodies:
            trace.body, trace.parts, trace.sent_head = None, None, b""
        else:
            if trace.body is not None:
                trace.body, body_has_secrets = self._redactor.kept(trace.body, way.headers)
                has_secrets = has_secrets or body_has_secrets
                size += len(trace.body or b"")
            if answer is not None:
                trace.received_head = request.head.kept
                has_secrets = has_secrets or request.head.has_secrets
                size += len(trace.received_head) + len(trace.sent_head) + len(answer.body)
            if has_secrets or trace.operation in self._redactor.operations:
                self._redact_messages(trace)
        trace.size = size
        journal.append(trace)

    def _read_head(self, sent: Sent) -> Head:
        """The headers of a request, and what is kept of them."""
        kept = head_of([(name, _WITHHELD.get(name, value)) for name, value in sent[:MOST_HEADERS]])
        has_secrets = self._redactor.suspects_line(kept.decode("latin-1"))
        return by_name(sent)._replace(kept=kept, has_secrets=has_secrets)

    def _redact_messages(self, trace: Trace) -> None:
        """Remove secrets from headers and bodies."""
        line = self._redactor.line
        trace.received_head = b"\n".join(map(line, trace.received_head.split(b"\n")))
        trace.sent_head = b"\n".join(map(line, trace.sent_head.split(b"\n")))
        trace.body, trace.answer = self._redactor.messages(trace.body, trace.answer)

    def _redact_line(self, trace: Trace) -> bool:
        """Remove secrets from the request line, and from warnings; returns whether there may be
        some.
        """
        redactor = self._redactor
        line = "\n".join((trace.path, *trace.warnings))
        if not redactor.suspects_line(line) and not redactor.suspects(trace.query):
            return False
        trace.path = redactor.line(trace.path.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )
        trace.query = redactor.query(trace.query.decode("latin-1")).encode("latin-1")
        trace.warnings = [redactor.text(warning) for warning in trace.warnings]
        return True


def request_of(
    scope: Scope, read: Callable[[Sent], Head] = by_name, forwarded_for: str | None = None
) -> Request:
    """What arrived. `read` reads its headers.

    `forwarded_for` is the client of another server, which has sent the request on.
    """
    sent = tuple(scope["headers"])
    path = _path(scope) if b"%" in (scope.get("raw_path") or b"") else scope["path"]
    if path[:1] != "/":  # a target such as `*/x`: no rule about paths would see what it begins with
        path = f"/{path}"
    head = read(sent)
    return Request(
        scope["method"],
        path,
        scope["query_string"],
        sent,
        head.headers,
        head,
        scope.get("client") if forwarded_for is None else (forwarded_for, 0),
        perf_counter_ns(),
        wall_ms(),
        forwarded_for is not None,
        *scope.get(FROM_A_PAGE, ()),
    )


def _path(scope: Scope) -> str:
    """The decoded path, in which `%2F` stays: it is a character of a segment and separates none."""
    raw: bytes = scope["raw_path"]
    if b"%2f" not in raw.lower():
        return str(scope["path"])
    return unquote(raw.decode("ascii").replace("%2f", "%252F").replace("%2F", "%252F"))


async def _read_late(way: Way) -> None:
    """Read the body of a request that was refused before anybody read it, if it comes soon.

    The journal needs it to explain the refusal.
    """
    headers, trace = way.headers, way.trace
    if has_body(headers) and trace.reached in _UNKNOWN and b"expect" not in headers:
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(BODY_COMES_IN):
                body = bytes(await way.request.read(way.receive))
                await way.next_turn()
                trace.body = body
