"""The outermost layer: the steps that a request passes before it has an operation, and every refusal's answer."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import CONTROL, Call
from ..calls.server import Server
from ..engine.sandbox import BROKEN
from ..engine.scheduler import tick
from ..kernel.problem import Forbidden, Unavailable
from ..kernel.trace import Trace
from . import cors
from .arrival import Arrival, Bodiless
from .choice import Choice
from .door import OPEN_CONTROL, Door
from .errors import Headers, render
from .hosts import Hosts
from .inbox import inbox_at
from .ratelimit import RateLimit
from .router import CALL

_PREFLIGHT = b"access-control-request-method"
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
        cors_origins: Iterable[str] = (),
        hosts: Iterable[str] = (),
        rate_limit: RateLimit | None = None,
    ) -> None:
        """`pages` are the paths beside the API, such as the contract's bytes; `server` is handed to every call.

        `hosts` are answered on loopback beside those of this machine.
        """
        self.api, self.server, self.sandboxes, self._pages = api, server, server.sandboxes, pages
        self._hosts = Hosts(hosts, loopback=server.loopback)
        self._door = Door(server, cors.Origins(cors_origins, loopback=server.loopback))
        self._choose = Choice(server.sandboxes, server.tokens, self._hosts, loopback=server.loopback)
        self._rate_limit = rate_limit
        self.listener: Callable[[Trace, Sequence[str]], None] | None = None  # told of every request once it is answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        arrival = Arrival(scope, self.sandboxes.default)
        refusal: Exception | None = None
        try:
            waiting = self._enter(arrival)
            if waiting is not None:
                await waiting
            _pass_time(arrival)
        except Exception as error:  # refused, or a defect in seeding or in a due job: both are answered below
            refusal = error
        call = self._call(scope, arrival)
        trace = call.trace
        stamp = (b"x-request-id", trace.id.encode())
        origin, limits = arrival.origin, Headers()

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
                message["headers"] += (stamp, cors.VARY, *limits)
                if origin is not None and self._door.lets_read(arrival, origin):
                    message["headers"].extend(cors.answer_headers(origin))
            await send(message)

        try:
            if refusal is not None:
                raise refusal
            early = self._answer_early(arrival)
            if early is not None:
                trace.status = early.status
                await send({"type": "http.response.start", "status": early.status, "headers": [*early.headers, stamp]})
                await send({"type": "http.response.body", "body": b""})
                return
            if self._rate_limit is not None and not arrival.path.startswith(CONTROL):
                limits += self._rate_limit.take(trace.sandbox, arrival.headers.get(b"authorization"), call.peer)
            page = self._pages.get(arrival.path)
            await (self.api if page is None else page)(scope, receive, reply)
        except Exception as error:
            if trace.status:  # the answer has begun: nothing can be said any more, the server cuts the connection
                raise
            status, headers, body = render(error, trace)
            await reply({"type": "http.response.start", "status": status, "headers": headers})
            await reply({"type": "http.response.body", "body": b"" if arrival.method == "HEAD" else body})
        finally:
            trace.close()
            call.sandbox.journal.append(trace)
            if self.listener is not None:
                self.listener(trace, call.warnings)

    async def _live(self, receive: Receive, send: Send) -> None:
        """What is done when the server starts and when it stops: deliveries are sent in between."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.server.courier.start(self.sandboxes.worlds())
            else:
                await self.server.courier.stop()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _enter(self, arrival: Arrival) -> Awaitable[None] | None:
        """The first steps before there is a call: the host, no delivery, the world, which may have to be waited for.

        Raises refusals.
        """
        if not self._hosts.admits(arrival.headers.get(b"host")) and not _is_open(arrival.path):
            raise Forbidden(_FOREIGN_HOST, code="host_not_allowed")
        _refuse_delivery(arrival)
        return self._choose(arrival)

    def _answer_early(self, arrival: Arrival) -> Bodiless | None:
        """The steps before the API: a bare prefix, a preflight, the control surface's door. Raises refusals."""
        path = arrival.path
        if not path:
            return _to_the_pages(arrival)
        if arrival.origin is not None and arrival.method == "OPTIONS" and _PREFLIGHT in arrival.headers:
            return self._door.preflight(arrival, arrival.origin)
        if path.startswith(CONTROL):
            self._door.control(arrival)
        return None

    def _call(self, scope: Scope, arrival: Arrival) -> Call:
        """The call that the layers below find in the scope, whose path is that of the world from here on."""
        sandbox, headers = arrival.sandbox, arrival.headers
        scope["path"] = path = arrival.path or "/"
        trace = Trace(sandbox.ids.request(), sandbox.clock.now, arrival.method, path, arrival.query, sandbox.name)
        call = Call(trace, sandbox, headers, arrival.prefix, self.server)
        client = scope.get("client")
        call.peer = client[0] if client else None
        call.is_foreign = arrival.origin is not None and not cors.is_local_origin(arrival.origin)
        scope[CALL] = call
        scope["extensions"] = {**scope["extensions"]} if "extensions" in scope else {}
        return call


def _refuse_delivery(arrival: Arrival) -> None:
    """A webhook's delivery reaches nothing of this server but an inbox: it could act, or ask for more of its kind.

    Raises Forbidden.
    """
    if b"webhook-id" in arrival.headers and inbox_at(arrival.method, _in_world(arrival.path)) is None:
        message = f"A webhook delivery reaches nothing of this server but an inbox, {CONTROL}/inbox/NAME."
        raise Forbidden(message, code="delivery_not_allowed")


def _to_the_pages(arrival: Arrival) -> Bodiless:
    """The pages of a world stand below `/s/{name}/`, with the slash."""
    location = arrival.prefix.encode() + b"/" + (b"?" + arrival.query if arrival.query else b"")
    return Bodiless(307, [(b"location", location), cors.VARY])


def _pass_time(arrival: Arrival) -> None:
    """The last of these steps: what is due in the world is done. Raises Unavailable for one that must be reset."""
    sandbox = arrival.sandbox
    if not sandbox.is_broken:
        tick(sandbox)
    if sandbox.is_broken and arrival.path not in SERVED_WHEN_BROKEN:
        raise Unavailable(BROKEN.format(sandbox.name))


def _is_open(path: str) -> bool:
    """Whether a path, with or without a sandbox's prefix, is one that everybody may ask for."""
    return _in_world(path) in OPEN_CONTROL


def _in_world(path: str) -> str:
    """A path without a sandbox's prefix."""
    return path[path.find("/", 3) :] if path.startswith("/s/") else path
