"""The outermost layer: which world, request id, journal, CORS, the door of the control surface, and every refusal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import CONTROL, Call
from ..calls.tokens import Tokens
from ..domain.api_keys import digest
from ..engine.sandbox import BROKEN, DEFAULT, Sandbox
from ..engine.scheduler import tick
from ..kernel.problem import Forbidden, Missing, Unavailable
from ..kernel.trace import Trace
from ..worlds.sandboxes import Sandboxes
from . import cors
from .errors import Headers, render
from .hosts import Hosts
from .router import CALL

OPEN_CONTROL = frozenset((f"{CONTROL}/health", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png"))
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
        sandboxes: Sandboxes,
        tokens: Tokens,
        server: Any,
        *,
        loopback: bool,
        cors_origins: Iterable[str] = (),
        hosts: Iterable[str] = (),
    ) -> None:
        """`pages` are the paths beside the API (the contract's bytes); `server` is handed to every call.

        `hosts` are answered on loopback beside those of this machine.
        """
        self._origins = cors.Origins(cors_origins, loopback=loopback)
        self.api, self.sandboxes, self._pages, self._tokens, self.server = api, sandboxes, pages, tokens, server
        self._loopback = loopback
        self._hosts = Hosts(hosts, loopback=loopback)

        self.listener: Callable[[Trace, Sequence[str]], None] | None = None  # told of every request once it is answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path: str = scope["path"]
        prefix, sandbox = "", self.sandboxes.default
        refusal: Exception | None = None
        try:
            if not self._hosts.admits(headers.get(b"host")) and not _is_open(path):
                raise Forbidden(_FOREIGN_HOST, code="host_not_allowed")
            prefix, path, sandbox = self._choose(path, headers)
            if not sandbox.is_broken:
                tick(sandbox)
            if sandbox.is_broken and path not in SERVED_WHEN_BROKEN:
                raise Unavailable(BROKEN.format(sandbox.name))
        except Exception as error:  # refused, or a defect in seeding or in a due job: both are answered below
            refusal = error
        is_bare = refusal is None and not path  # a world's prefix without the slash that its pages stand below
        path = path or "/"
        scope["path"] = path
        trace = Trace(
            sandbox.ids.request(), sandbox.clock.now, scope["method"], path, scope["query_string"], sandbox.name
        )
        call = Call(trace, sandbox, headers, prefix, self.server)
        client = scope.get("client")
        call.peer = client[0] if client else None
        call.is_foreign = b"origin" in headers and not cors.is_local_origin(headers[b"origin"])
        scope[CALL] = call
        scope["extensions"] = {**scope["extensions"]} if "extensions" in scope else {}
        stamp = (b"x-request-id", trace.id.encode())
        origin = headers.get(b"origin")

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
                message["headers"] += (stamp, cors.VARY)
                if origin is not None and self._readable(path, origin, headers):
                    message["headers"].extend(cors.answer_headers(origin))
            await send(message)

        try:
            if refusal is not None:
                raise refusal
            if is_bare:
                await _redirect(prefix + "/", scope["query_string"], reply)
                return
            if origin is not None and scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                answer = self._preflight(path, origin, headers)
                trace.status = 204
                await send({"type": "http.response.start", "status": 204, "headers": [*answer, stamp]})
                await send({"type": "http.response.body", "body": b""})
                return
            if path.startswith(CONTROL) and path not in OPEN_CONTROL:
                self._check_admin(headers, origin)
            page = self._pages.get(path)
            await (self.api if page is None else page)(scope, receive, reply)
        except Exception as error:
            if trace.status:  # the answer has begun: nothing can be said any more, the server cuts the connection
                raise
            status, answer, body = render(error, trace)
            await reply({"type": "http.response.start", "status": status, "headers": answer})
            await reply({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
        finally:
            trace.close()
            call.sandbox.journal.append(trace)
            if self.listener is not None:
                self.listener(trace, call.warnings)

    def _choose(self, path: str, headers: Mapping[bytes, bytes]) -> tuple[str, str, Sandbox]:
        """Which world: the path's prefix, else the header, else the credential, else the default one."""
        if path.startswith("/s/"):
            name, slash, rest = path[3:].partition("/")
            sandbox = self._named(name, headers)
            return f"/s/{sandbox.name}", slash + rest, sandbox
        header = headers.get(b"x-sandbox")
        if header is not None:
            return "", path, self._named(header.decode("latin-1"), headers)
        authorization = headers.get(b"authorization")
        if authorization is not None:
            world = self._world_of(authorization)
            if world is not None and world != DEFAULT:
                return "", path, self._named(world, headers)
        return "", path, self.sandboxes.default

    def _world_of(self, authorization: bytes) -> str | None:
        """The world that a credential is of. Nobody is let in by that: the gate looks at the credential itself."""
        start = authorization[:9].lower()
        if start == b"bearer ey":
            return self._tokens.sandbox_named(authorization)
        if start == b"bearer sk":
            return self.sandboxes.keyring.world_of(digest(authorization[7:].decode("latin-1").strip()))
        if start == b"bearer pk":
            return self.sandboxes.keyring.world_of(authorization[7:].decode("latin-1").strip())
        return None

    def _named(self, name: str, headers: Mapping[bytes, bytes]) -> Sandbox:
        # A page of a stranger must not make worlds in a developer's server: there is room for so many only.
        is_new = self._loopback and self.sandboxes.find(name) is None
        if is_new and (cors.is_from_elsewhere(headers) or not self._hosts.admits(headers.get(b"host"))):
            raise Missing("There is no such sandbox.", code="sandbox_not_found")
        return self.sandboxes.choose(name)

    def _check_admin(self, headers: Mapping[bytes, bytes], origin: bytes | None) -> None:
        """The control surface: with a key where one is set, else only for this machine and pages from it."""
        if b"webhook-id" in headers:
            raise _closed("A webhook delivery cannot reach the control surface.")
        if self.server.admin_key is not None:
            if self.server.knows_admin(headers.get(b"x-sandbox-admin-key")):
                return
            raise _closed("Send the server's admin key as X-Sandbox-Admin-Key.")
        if not self._loopback:
            raise _closed("The control surface is closed: the server is reachable from outside and has no --admin-key.")
        if not cors.is_local_host(headers.get(b"host")) or (origin is not None and not cors.is_local_origin(origin)):
            raise _closed("The control surface answers pages of this machine alone. Start with --admin-key for others.")

    def _readable(self, path: str, origin: bytes, headers: Mapping[bytes, bytes]) -> bool:
        if path in OPEN_CONTROL:
            return True
        if not path.startswith(CONTROL):
            return self._origins.may_read(origin)
        return cors.is_local_origin(origin) or b"x-sandbox-admin-key" in headers

    def _preflight(self, path: str, origin: bytes, headers: Mapping[bytes, bytes]) -> Headers:
        """What a preflight is told. A stranger's page gets through to the control surface with the admin key only."""
        guarded = path.startswith(CONTROL) and path not in OPEN_CONTROL
        if guarded and self.server.admin_key is None and not cors.is_local_origin(origin):
            raise _closed("The control surface answers pages of this machine alone. Start with --admin-key for others.")
        if not guarded and path not in OPEN_CONTROL and not self._origins.may_read(origin):
            return [cors.VARY]  # nothing is allowed, and the browser keeps the page from it
        return cors.preflight_headers(origin, headers.get(b"access-control-request-headers"))


def _is_open(path: str) -> bool:
    """Whether a path, with or without a sandbox's prefix, is one that everybody may ask for."""
    return (path[path.find("/", 3) :] if path.startswith("/s/") else path) in OPEN_CONTROL


async def _redirect(to: str, query: bytes, send: Send) -> None:
    location = to.encode() + (b"?" + query if query else b"")
    await send({"type": "http.response.start", "status": 307, "headers": [(b"location", location)]})
    await send({"type": "http.response.body", "body": b""})


def _closed(message: str) -> Forbidden:
    return Forbidden(message, code="admin_key_required")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
