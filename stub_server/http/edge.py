"""The outermost layer: the steps that a request passes before it has an operation, and every refusal's answer."""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import CONTROL, Answer, Call
from ..calls.server import Server
from ..contract.secrets import Secrets
from ..engine.scheduler import pass_on, tick
from ..kernel.problem import Forbidden, Malformed, NotBuilt, Unavailable, broken
from ..kernel.trace import Trace
from ..worlds.catching_up import catch_up
from ..worlds.keeping import unwritten
from . import cors
from .bodies import read_late
from .choice import Choice
from .door import OPEN_CONTROL, Bodiless, Door, check_control
from .errors import Headers, render, warning_headers
from .hangup import hang_up
from .heads import DELIVERY, Heads
from .hosts import Hosts
from .inbox import inbox_at
from .ratelimit import RateLimit
from .recording import Recorder, changes_something
from .response import WHOLE, SendWhole
from .router import CALL

_PREFLIGHT = b"access-control-request-method"
REFUSED = "stub_server.refused"
"""Where a scope has the refusal of its request, whatever it is."""
SERVED_WHEN_BROKEN = frozenset((f"{CONTROL}/health", f"{CONTROL}/reset"))

_FOREIGN_HOST = (
    "The Host header names another machine. Call the server by localhost or 127.0.0.1, or start it with --allow-host."
)


class Edge:
    """One per server. Everything below it may raise; it answers."""

    def __init__(
        self,
        api: ASGIApp,
        pages: Mapping[str, ASGIApp],
        server: Server,
        *,
        origins: cors.Origins,
        hosts: Iterable[str] = (),
        rate_limit: RateLimit | None = None,
    ) -> None:
        """`pages` are the paths beside the API, such as the contract's bytes; `server` is handed to every call.

        `hosts` are answered on loopback beside those of this machine.
        """
        self.api, self.server, self.sandboxes, self._pages = api, server, server.sandboxes, pages
        self._hosts = Hosts(hosts, loopback=server.loopback)
        self._door = Door(server, origins)
        self._choose = Choice(server.sandboxes, server.tokens, self._hosts, pages, loopback=server.loopback)
        self._rate_limit = rate_limit
        secrets = Secrets(server.document, server.control, admin_key=server.admin_key)
        self._heads, self._recorder = Heads(self._hosts, secrets), Recorder(secrets)
        self.listener: Callable[[Trace, Sequence[str]], None] | None = None  # told of every request once it is answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        extensions = scope.get("extensions") or {}
        # Taken out: it holds what holds the scope, and a cycle would stay in memory until the collector comes.
        whole = extensions.pop(WHOLE, None)
        scope["extensions"] = {**extensions}  # Connexion writes into it
        call = self._arrived(scope)
        refusal: BaseException | None = None
        waiting: Awaitable[None] | None = None
        try:
            waiting = self._enter(call, scope)
            if waiting is not None:
                await waiting
            if REFUSED in scope:
                raise scope.pop(REFUSED)  # left in it, the refusal's traceback and the scope would hold each other
            until = self._pass_time(call)
            if until is not None:
                with self.server.waiting.with_sandbox(call):
                    await pass_on(call.sandbox, self.sandboxes.lane, until)
            if call.sandbox.is_broken and call.path not in SERVED_WHEN_BROKEN:
                raise broken(call.sandbox.name)
        # Refused, a defect in seeding or in a due job, or the server stops: each is answered below.
        except (Exception, CancelledError) as error:
            refusal = error
        trace = call.begin()
        path = scope["path"] = call.path or "/"
        is_control, is_kept = path.startswith(CONTROL), True
        try:
            if refusal is not None:
                raise refusal
            early = self._answer_early(call, is_control=is_control)
            if early is not None:
                trace.status, is_kept, stamp = early.status, False, (b"x-request-id", trace.id.encode())
                await send({"type": "http.response.start", "status": early.status, "headers": [*early.headers, stamp]})
                await send({"type": "http.response.body", "body": b""})
                return
            if self._rate_limit is not None and not is_control:
                call.limits = self._rate_limit.take(trace.sandbox, call.headers.get(b"authorization"), call.peer)
            page = self._pages.get(path)
            if page is not None:
                is_kept = False
            await (self.api if page is None else page)(scope, receive, partial(self._pass_on, call, send))
            if call.answer is not None:
                await self._send(call, call.answer, whole, send)
        except CancelledError:  # the server stops, and what this request waits for takes longer
            await hang_up(scope, receive, unsent=True)
        except Exception as error:
            if trace.status:  # the answer has begun: nothing can be said any more, the server cuts the connection
                raise
            asked = trace.sandbox
            if waiting is not None:
                self._choose.turn_back(call)
            status, headers, body = render(error, trace, asked)
            headers += warning_headers(call)
            if not is_control:
                await read_late(call, receive)
            await self._send(call, (status, headers, (body,), body), whole, send)
        finally:
            refusal = call.body_faults = call.first_use = call.go_back = None  # each holds this frame or the call
            trace.close()
            if waiting is not None and (call.meant is not None or trace.status >= 400):
                self._choose.turn_back(call)
            if is_control:
                trace.is_control = True
            if is_kept and (not is_control or changes_something(call)):
                self._recorder.record(call)
            else:
                self._recorder.pass_by(call)
            if self.listener is not None:
                self.listener(trace, trace.warnings)

    async def _send(self, call: Call, answer: Answer, whole: SendWhole | None, send: Send) -> None:
        """Send an answer, in one go where the server can."""
        status, headers, parts, body = answer
        trace, keeper = call.trace, self.sandboxes.keeper
        if (keeper.is_behind or call.sandbox.undone_at > trace.began) and status < 500:
            await self._settle(call)
        self._complete(call, status, headers)
        if trace.method == "HEAD":
            parts, body = (b"",), b""
        trace.parts, trace.length = parts, len(body)
        lines = None if whole is None else whole(status, headers, body)
        if lines is not None:
            trace.sent = lines
        else:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _settle(self, call: Call) -> None:
        """Wait until the store has what a call did or saw. Raises Unavailable where it was undone."""
        trace, keeper = call.trace, self.sandboxes.keeper
        try:
            if keeper.is_behind:
                await keeper.settled(call.sandbox)
            if call.sandbox.undone_at > trace.began:
                raise keeper.failure or unwritten("it could not be for a moment")
        except Unavailable:
            trace.after, trace.events, trace.deliveries = None, (), ()
            raise

    async def _pass_on(self, call: Call, send: Send, message: Message) -> None:
        """Send a message of what answers piece by piece: a page, a stream, an inbox."""
        if message["type"] == "http.response.start":
            if message["status"] < 500:
                await self._settle(call)
            headers = message["headers"] = [*message["headers"]]
            self._complete(call, message["status"], headers)
        else:
            call.trace.answer = message.get("body")  # of pieces the last one, which is empty
        await send(message)

    def _complete(self, call: Call, status: int, headers: Headers) -> None:
        """Add what stands on every answer."""
        trace, origin = call.trace, call.head.origin
        trace.status = status
        headers += ((b"x-request-id", trace.id.encode()), cors.VARY, *call.limits)
        if origin is not None and self._door.lets_read(call, origin):
            headers += cors.answer_headers(origin)
        call.sent_headers = headers

    async def _live(self, receive: Receive, send: Send) -> None:
        """What is done when the server starts and when it stops: deliveries are sent in between."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await catch_up(self.sandboxes.worlds(), self.server.closing)
                self.sandboxes.keeper.start(self.sandboxes.lane)
                self.server.courier.start(self.sandboxes.worlds())
            else:
                await self.server.courier.stop(self.server.closing.since)
                await self.sandboxes.keeper.stop()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _arrived(self, scope: Scope) -> Call:
        """The call that all layers find in the scope."""
        head, world = self._heads(scope["headers"]), self.sandboxes.default
        call = Call(scope["method"], scope["path"], scope["query_string"], head, world, self.server)
        call.client, call.warnings = scope.get("client"), head.warnings
        scope[CALL] = call
        return call

    def _enter(self, call: Call, scope: Scope) -> Awaitable[None] | None:
        """The first steps: no header twice, the host, no delivery, the world, which may be awaited. Raises refusals."""
        if not call.head.is_ordinary:
            self._look_at(call, scope)
        return self._choose(call)

    def _look_at(self, call: Call, scope: Scope) -> None:
        """Raises Malformed, NotBuilt and Forbidden for headers that no request may have."""
        head = call.head
        if not head.has_host and scope["http_version"] == "1.1":
            raise Malformed("An HTTP/1.1 request has a Host header.", code="malformed_request")
        if head.coding:
            raise NotBuilt("The transfer coding is not known. Send the body whole, or with Transfer-Encoding: chunked.")
        if head.repeated is not None:
            raise Malformed(f"The request has more than one {head.repeated} header.", code="malformed_request")
        if not self._hosts.admits(head.by_name.get(b"host")) and not _is_open(call.path):
            raise Forbidden(_FOREIGN_HOST, code="host_not_allowed")
        if DELIVERY in head.by_name:
            _refuse_delivery(call)

    def _pass_time(self, call: Call) -> int | None:
        """The last of these steps: what is due in the world is done, or else up to when it must be, as `tick` says.

        Raises Unavailable for one that is not served.
        """
        keeper = self.sandboxes.keeper
        if keeper.unknown and call.path not in SERVED_WHEN_BROKEN:
            keeper.check(call.sandbox)
        return None if call.sandbox.is_broken else tick(call.sandbox)

    def _answer_early(self, call: Call, *, is_control: bool) -> Bodiless | None:
        """The steps before the API: a bare prefix, a preflight, the control surface's door. Raises refusals."""
        path = call.path
        if not path:
            return _to_the_pages(call)
        origin = call.head.origin
        if origin is not None and call.method == "OPTIONS" and _PREFLIGHT in call.headers:
            return self._door.preflight(call, origin)
        if is_control:
            check_control(call, path, call.sandbox.name)
        return None


def _refuse_delivery(call: Call) -> None:
    """A webhook's delivery reaches nothing of this server but an inbox: it could act, or ask for more of its kind.

    Raises Forbidden.
    """
    if inbox_at(call.method, _in_world(call.path)) is None:
        message = f"A webhook delivery reaches nothing of this server but an inbox, /s/SANDBOX{CONTROL}/inbox/NAME."
        raise Forbidden(message, code="delivery_not_allowed")


def _to_the_pages(call: Call) -> Bodiless:
    """The pages of a world stand below `/s/{name}/`, with the slash."""
    location = call.prefix.encode() + b"/" + (b"?" + call.query_string if call.query_string else b"")
    return Bodiless(307, [(b"location", location), cors.VARY])


def _is_open(path: str) -> bool:
    """Whether a path, with or without a sandbox's prefix, is one that everybody may ask for."""
    return _in_world(path) in OPEN_CONTROL


def _in_world(path: str) -> str:
    """A path without a sandbox's prefix."""
    return path[path.find("/", 3) :] if path.startswith("/s/") else path
