"""The sandbox that a request is for: chosen by the path's prefix, the header, the credential, else
the default one.
"""

import asyncio
from collections.abc import Container
from time import monotonic

from ...core.problem import NotFound, Unauthenticated, broken
from ...core.slices import SHORT
from ...domain.api_keys import digest
from ...engine.sandbox import DEFAULT, Sandbox
from ...engine.scheduler import do_due
from ..reply import Answer, Answering
from ..request import ADMIN_KEY, CONTROL
from ..sandboxes.entry import folded
from ..server import Server
from .access import check_control, is_from_elsewhere
from .hops import NotThere
from .hosts import OPEN_CONTROL, Hosts
from .way import Holder, Layer, Way

ABOUT_THE_SERVER = frozenset(f"{CONTROL}/{name}" for name in ("health", "metrics", "ready"))
SERVED_WHEN_BROKEN = ABOUT_THE_SERVER | {f"{CONTROL}/reset"}
CREDENTIALS = f"{CONTROL}/credentials"
_OTHERS = f"{CONTROL}/sandboxes/"
_LOCAL = OPEN_CONTROL | {f"{CONTROL}/sandboxes", f"{CONTROL}/metrics"}
# seconds for which a sandbox is looked for whose server is gone, and between two looks
PATIENCE, PAUSE = 3.0, 0.1


class SandboxSelection:
    """Chooses the sandbox, removes its prefix from the path, brings it up to date, and begins the
    request's trace.

    Jobs that are due are done in slices of time. A sandbox that cannot be served is refused.
    """

    def __init__(self, app: Layer, server: Server, hosts: Hosts, pages: Container[str]) -> None:
        """`pages` are paths that need no credential."""
        self.app, self._admits, self._pages = app.__call__, hosts, pages
        self._turns = server.waiting.turns
        self._sandboxes = server.sandboxes
        self._has_store = server.sandboxes.persistence.has_store

    def __call__(self, way: Way) -> Answering:
        sandboxes, has_store, headers = self._sandboxes, self._has_store, way.headers
        path = way.path
        name: str | None = way.prefix.removeprefix("/s/")
        if not way.prefix:
            name = _named(way)
            if name is None and b"authorization" in headers:
                name = self._sandbox_of(way, headers[b"authorization"])
                if name == DEFAULT and not has_store:
                    name = None
        if name is None and not has_store:
            return self._go_on(sandboxes.default, way)
        # the server that has this sandbox answers, whichever one the request names
        if has_store and path.startswith(_OTHERS):
            return self._open(name, way, other=path[len(_OTHERS) :].partition("/")[0])
        sandbox = sandboxes.choose(DEFAULT if name is None else name)
        # the store may know of a credential which sandbox it is for
        if sandbox is not None and (name is not None or b"authorization" not in headers):
            return self._go_on(sandbox, way)
        is_unnamed = not way.prefix and name in (None, DEFAULT)
        if is_unnamed and (path in _LOCAL or path in self._pages):
            return self._go_on(sandboxes.default, way)
        return self._open(name, way)

    async def _open(self, name: str | None, way: Way, *, other: str = "") -> Answer:
        """Load the sandbox from the store, or have the server answer that has it.

        `other` is the sandbox that a control is about, which that server must have.
        """
        sandboxes = self._sandboxes
        if name is None and not other:
            key = _key_in(way.headers.get(b"authorization", b""))
            name = None if key is None else await sandboxes.sandbox_of(key)
        if name is None:
            name = DEFAULT
        began, wanted = monotonic(), other or name
        while isinstance(found := await sandboxes.locate(wanted), str):
            way.holder = Holder(found, wanted)
            try:
                return await self.app(way)
            except NotThere as error:
                sandboxes.forget_holder(wanted)
                _begin_again(way, error, began)
            with way.server.waiting.take():
                await asyncio.sleep(PAUSE)
        if other:
            found = sandboxes.choose(name) or sandboxes.default
        if found is None:
            return await self._first(wanted, way)
        return await self._go_on(found, way)

    async def _first(self, name: str, way: Way) -> Answer:
        """Serve the first request to a sandbox.

        Raises NotFound for one that only reads the control surface.
        """
        server, sandboxes, path = way.server, self._sandboxes, way.path
        headers = way.headers
        # A foreign page must not create sandboxes in a developer's server: their number is limited.
        if server.settings.loopback and (
            is_from_elsewhere(headers) or not self._admits(headers.get(b"host"))
        ):
            raise NotFound("There is no such sandbox.", code="sandbox_not_found")
        is_control, reads = path.startswith(CONTROL), way.request.method in ("GET", "HEAD")
        if is_control and way.request.method != "OPTIONS":
            check_control(way, path, None)
        if reads and (not path or path in self._pages):
            sandbox = await sandboxes.register(await sandboxes.pending_sandbox(name))
        else:
            sandbox = await sandboxes.pending_sandbox(
                name,
                creates=not (is_control and reads) or path == CREDENTIALS,
                suggests=not server.settings.is_public
                or server.guard.knows_admin(headers.get(ADMIN_KEY)),
            )
        if sandboxes.find(sandbox.name) is not sandbox:
            way.pending = sandbox
        return await self._go_on(sandbox, way)

    def _go_on(self, sandbox: Sandbox, way: Way) -> Answering:
        is_busy = way.request.began - self._turns.began > SHORT
        if is_busy and not self._turns.admits(sandbox.name):
            return self._later(sandbox, way)
        status = sandbox.status
        is_up_to_date = status.is_broken or sandbox.clock.latch(
            way.request.received_at, sandbox.timers.jobs, stands=status.is_advancing
        )
        way.begin(sandbox)
        if not is_up_to_date:
            return self._brought_up(way)
        if status.is_broken or way.prefix:
            return self._serve(way)
        return self.app(way)

    async def _later(self, sandbox: Sandbox, way: Way) -> Answer:
        way.sandbox = sandbox
        await way.next_turn()
        return await self._go_on(sandbox, way)

    async def _brought_up(self, way: Way) -> Answer:
        """Do what is due first: this request waits, and those to other sandboxes do not."""
        sandbox = way.sandbox
        with way.waiting():
            await do_due(sandbox, self._sandboxes.worker)
        way.trace.begin(sandbox.clock.now, sandbox.log.number)
        return await self._serve(way)

    def _serve(self, way: Way) -> Answering:
        """Raises Unavailable where the sandbox is broken, except for requests that
        end that state.
        """
        name = way.sandbox.name
        if way.sandbox.status.is_broken and way.path not in SERVED_WHEN_BROKEN:
            raise broken(name)
        if way.prefix:
            named = _named(way)
            if named is not None and folded(named) != name:
                way.trace.warn(("x_sandbox_ignored",))
            if not way.path:
                return _to_the_pages(way)
        return self.app(way)

    def _sandbox_of(self, way: Way, authorization: bytes) -> str | None:
        """The sandbox that a credential belongs to. Security looks at the credential later."""
        if authorization[:9].lower() == b"bearer ey":
            try:
                caller = way.token = way.server.tokens.verified(authorization)
            except Unauthenticated:
                return None
            claims = caller.identity.claims
            return None if claims is None else claims["sandbox"]
        key = _key_in(authorization)
        return None if key is None else self._sandboxes.owner(key)


def _begin_again(way: Way, error: NotThere, began: float) -> None:
    """Undo what layers handed on of a request with which another server has done nothing. It can be
    received again.

    Raises the error where it is not tried again.
    """
    if way.request.is_hop or error.receive is None or monotonic() - began > PATIENCE:
        raise error
    way.receive, way.holder, way.is_chosen = error.receive, None, None
    way.separate_prefix()


def _key_in(authorization: bytes) -> str | None:
    """What an API key is found by: the digest of a private one, or a public one."""
    start, key = authorization[:9].lower(), authorization[7:].decode("latin-1").strip()
    if start == b"bearer sk":
        return digest(key)
    return key if start == b"bearer pk" else None


def _named(way: Way) -> str | None:
    """The sandbox that the header names."""
    named = way.headers.get(b"x-sandbox")
    return None if named is None else named.decode("latin-1")


async def _to_the_pages(way: Way) -> Answer:
    """Redirect to the pages of a sandbox, which are below `/s/{name}/`, with the slash."""
    query = way.request.query
    way.trace.is_kept = False
    return Answer(
        307, [(b"location", way.prefix.encode() + b"/" + (b"?" + query if query else b""))]
    )
