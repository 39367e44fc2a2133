"""The sandbox that a request is for: chosen by the path's prefix, the header, the credential, else
the default one.
"""

import asyncio
from collections.abc import Awaitable, Container
from time import monotonic

from starlette.types import Receive, Scope, Send

from ...core.problem import NotFound, Unauthenticated, broken
from ...domain.api_keys import digest
from ...engine.sandbox import DEFAULT, Sandbox
from ...engine.scheduler import do_due
from ..reply import Answer, Layer
from ..request import ADMIN_KEY, CONTROL, Request
from ..sandboxes.entry import folded
from ..server import Server
from ..work import Target
from .access import check_control, is_from_elsewhere
from .hops import NotThere
from .hosts import OPEN_CONTROL, Hosts
from .way import HOLDER, REQUEST, TARGET, TOKEN, TRACE, Holder

ABOUT_THE_SERVER = frozenset(f"{CONTROL}/{name}" for name in ("health", "metrics", "ready"))
SERVED_WHEN_BROKEN = ABOUT_THE_SERVER | {f"{CONTROL}/reset"}
CREDENTIALS = f"{CONTROL}/credentials"
_OTHERS = f"{CONTROL}/sandboxes/"
_LOCAL = OPEN_CONTROL | {f"{CONTROL}/sandboxes"}
# seconds for which a sandbox is looked for whose server is gone, and between two looks
PATIENCE, PAUSE = 3.0, 0.1


class SandboxSelection:
    """Chooses the sandbox, removes its prefix from the path, brings it up to date, and begins the
    request's trace.

    Jobs that are due are done in slices of time. A sandbox that cannot be served is refused.
    """

    def __init__(self, app: Layer, server: Server, hosts: Hosts, pages: Container[str]) -> None:
        """`pages` are paths that need no credential."""
        self.app, self._server = app.__call__, server
        self._hosts, self._pages = hosts, pages
        self._sandboxes, self._tokens = server.sandboxes, server.tokens
        self._has_store = server.sandboxes.persistence.has_store

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Answer]:
        request: Request = scope[REQUEST]
        rest: str | None = None
        name: str | None = None
        if b"x-sandbox" in request.headers:
            name = _named(request)
        if request.path.startswith("/s/"):
            name, slash, rest = request.path[3:].partition("/")
            rest = slash + rest
        elif name is None:
            authorization = request.headers.get(b"authorization")
            name = None if authorization is None else self._sandbox_of(scope, authorization)
            if name == DEFAULT and not self._has_store:
                name = None
        if self._has_store:
            return self._resident(name, rest, scope, receive, send)
        sandbox = self._sandboxes.default if name is None else self._sandboxes.choose(name)
        if sandbox is None:
            return self._first(str(name), rest, scope, receive, send)
        return self._go_on(sandbox, rest, scope, receive, send)

    def _resident(
        self, name: str | None, rest: str | None, scope: Scope, receive: Receive, send: Send
    ) -> Awaitable[Answer]:
        """The same with a store, where a sandbox may not be in memory, or be on another server."""
        request: Request = scope[REQUEST]
        path = request.path if rest is None else rest
        # the server that has this sandbox answers, whichever one the request names
        if path.startswith(_OTHERS):
            other = path[len(_OTHERS) :].partition("/")[0]
            return self._open(name, rest, scope, receive, send, other=other)
        sandbox = self._sandboxes.choose(name or DEFAULT)
        if sandbox is None or (name is None and b"authorization" in request.headers):
            names_another = rest is not None or name not in (None, DEFAULT)
            needs_no_sandbox = path in _LOCAL or path in self._pages
            if names_another or not needs_no_sandbox:
                return self._open(name, rest, scope, receive, send)
            sandbox = self._sandboxes.default
        return self._go_on(sandbox, rest, scope, receive, send)

    async def _open(
        self,
        name: str | None,
        rest: str | None,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        other: str = "",
    ) -> Answer:
        """Load the sandbox from the store, or have the server answer that has it.

        `other` is the sandbox that a control is about, which that server must have.
        """
        request: Request = scope[REQUEST]
        sandboxes = self._sandboxes
        if name is None and not other:
            key = _key_in(request.headers.get(b"authorization", b""))
            name = None if key is None else await sandboxes.sandbox_of(key)
        began, wanted = monotonic(), other or name or DEFAULT
        while isinstance(found := await sandboxes.locate(wanted), str):
            scope[HOLDER] = Holder(found, wanted)
            try:
                return await self.app(scope, receive, send)
            except NotThere as error:
                sandboxes.forget_holder(wanted)
                receive = _take_back(scope, error, began)
            with self._server.waiting.take():
                await asyncio.sleep(PAUSE)
        if other:
            found = sandboxes.choose(name or DEFAULT) or sandboxes.default
        if found is None:
            return await self._first(wanted, rest, scope, receive, send)
        return await self._go_on(found, rest, scope, receive, send)

    async def _first(
        self, name: str, rest: str | None, scope: Scope, receive: Receive, send: Send
    ) -> Answer:
        """Serve the first request to a sandbox.

        Raises NotFound for one that only reads the control surface.
        """
        request, settings, sandboxes = scope[REQUEST], self._server.settings, self._sandboxes
        headers = request.headers
        # A foreign page must not create sandboxes in a developer's server: their number is limited.
        if settings.loopback and (
            is_from_elsewhere(headers) or not self._hosts.admits(headers.get(b"host"))
        ):
            raise NotFound("There is no such sandbox.", code="sandbox_not_found")
        path = request.path if rest is None else rest
        is_control, reads = path.startswith(CONTROL), request.method in ("GET", "HEAD")
        if is_control and request.method != "OPTIONS":
            check_control(self._server, request, path, None)
        if reads and (not path or path in self._pages):
            sandbox = await sandboxes.register(await sandboxes.pending_sandbox(name))
        else:
            suggests = not settings.is_public or self._server.guard.knows_admin(
                headers.get(ADMIN_KEY)
            )
            only_reads = is_control and reads and path != CREDENTIALS
            sandbox = await sandboxes.pending_sandbox(
                name, creates=not only_reads, suggests=suggests
            )
        is_pending = sandboxes.find(sandbox.name) is not sandbox
        return await self._go_on(sandbox, rest, scope, receive, send, is_pending=is_pending)

    def _go_on(
        self,
        sandbox: Sandbox,
        rest: str | None,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        is_pending: bool = False,
    ) -> Awaitable[Answer]:
        """`rest` is the path below the prefix of a sandbox, if the request has one."""
        request: Request = scope[REQUEST]
        is_up_to_date = sandbox.status.is_broken or sandbox.clock.latch(
            request.received_at, sandbox.timers.jobs, stands=sandbox.status.is_advancing
        )
        prefix, path = ("", request.path) if rest is None else (f"/s/{sandbox.name}", rest)
        target = Target(self._sandboxes, sandbox, path, prefix, is_pending=is_pending)
        scope[TARGET], scope[TRACE] = target, target.begin(request)
        if not is_up_to_date:
            return self._later(target, scope, receive, send)
        if sandbox.status.is_broken or target.prefix:
            return self._serve(target, scope, receive, send)
        return self.app(scope, receive, send)

    async def _later(self, target: Target, scope: Scope, receive: Receive, send: Send) -> Answer:
        """Do what is due first: this request waits, and those to other sandboxes do not."""
        sandbox = target.sandbox
        with self._server.waiting.take(sandbox.name):
            await do_due(sandbox, self._sandboxes.worker)
        scope[TRACE].begin(sandbox.clock.now, sandbox.log.number)
        return await self._serve(target, scope, receive, send)

    def _serve(
        self, target: Target, scope: Scope, receive: Receive, send: Send
    ) -> Awaitable[Answer]:
        """Raises Unavailable where the sandbox is broken, except for requests that
        end that state.
        """
        sandbox = target.sandbox
        if sandbox.status.is_broken and target.path not in SERVED_WHEN_BROKEN:
            raise broken(sandbox.name)
        if target.prefix:
            named = _named(scope[REQUEST])
            if named is not None and folded(named) != sandbox.name:
                scope[TRACE].warn(("x_sandbox_ignored",))
            if not target.path:
                return _to_the_pages(scope, target)
        return self.app(scope, receive, send)

    def _sandbox_of(self, scope: Scope, authorization: bytes) -> str | None:
        """The sandbox that a credential belongs to. Security looks at the credential later."""
        if authorization[:9].lower() == b"bearer ey":
            try:
                caller = scope[TOKEN] = self._tokens.verified(authorization)
            except Unauthenticated:
                return None
            return None if caller.claims is None else caller.claims["sandbox"]
        key = _key_in(authorization)
        return None if key is None else self._sandboxes.keyring.get(key)


def _take_back(scope: Scope, error: NotThere, began: float) -> Receive:
    """Undo what layers handed on of a request with which another server has done nothing.

    Returns what receives it again. Raises the error where it is not tried again.
    """
    if scope[REQUEST].is_hop or error.receive is None or monotonic() - began > PATIENCE:
        raise error
    for handed in (HOLDER, TRACE, TARGET):
        scope.pop(handed, None)
    return error.receive


def _key_in(authorization: bytes) -> str | None:
    """What an API key is found by: the digest of a private one, or a public one."""
    start, key = authorization[:9].lower(), authorization[7:].decode("latin-1").strip()
    if start == b"bearer sk":
        return digest(key)
    return key if start == b"bearer pk" else None


def _named(request: Request) -> str | None:
    """The sandbox that the header names."""
    named = request.headers.get(b"x-sandbox")
    return None if named is None else named.decode("latin-1")


async def _to_the_pages(scope: Scope, target: Target) -> Answer:
    """Redirect to the pages of a sandbox, which are below `/s/{name}/`, with the slash."""
    query = scope[REQUEST].query
    scope[TRACE].is_kept = False
    return Answer(
        307, [(b"location", target.prefix.encode() + b"/" + (b"?" + query if query else b""))]
    )
