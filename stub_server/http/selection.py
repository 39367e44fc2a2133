"""The sandbox that a request is for.

SandboxSelection chooses it: by the path's prefix, the header, the credential, else the default one. DueJobs brings it
up to date. TimeTravel replaces it by what it was (`X-Sandbox-As-Of`), FirstUse creates one that does not exist yet.
"""

import asyncio
import re
from collections import deque
from collections.abc import Container
from time import monotonic, perf_counter_ns
from typing import Any
from weakref import ref

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import ADMIN_KEY, CALL, CONTROL, Call
from ..calls.server import Server
from ..domain.api_keys import digest
from ..engine.history import check_kept, state_at, step_at
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.scheduler import do_due_until, do_some_due
from ..kernel.clock import parse_iso
from ..kernel.problem import BadRequest, NotFound, Unavailable, broken, detail
from ..sandboxes.entry import folded
from .access import OPEN_CONTROL, Hosts, check_control, is_from_elsewhere
from .hops import NotThere

ABOUT_THE_SERVER = frozenset(f"{CONTROL}/{name}" for name in ("health", "metrics", "ready"))
SERVED_WHEN_BROKEN = ABOUT_THE_SERVER | {f"{CONTROL}/reset"}
AS_OF = b"x-sandbox-as-of"
NAME = "X-Sandbox-As-Of"
PAST_STATES = 4  # earlier states that are cached, of all sandboxes; each may have tables of its own
_STEP = re.compile(r"[0-9]{1,15}").fullmatch
CREDENTIALS = f"{CONTROL}/credentials"
_OTHERS = f"{CONTROL}/sandboxes/"
_LOCAL = OPEN_CONTROL | {f"{CONTROL}/sandboxes"}
PATIENCE, PAUSE = 3.0, 0.1  # seconds for which a sandbox is looked for whose server is gone, and between two looks


class SandboxSelection:
    """Chooses the sandbox, removes its prefix from the path, and begins the request's trace."""

    def __init__(self, app: ASGIApp, server: Server, hosts: Hosts, pages: Container[str]) -> None:
        """`pages` are paths that need no credential."""
        self.app, self._hosts, self._pages = app, hosts, pages
        self._sandboxes, self._tokens, self._loopback = server.sandboxes, server.tokens, server.settings.loopback
        self._is_public = server.settings.is_public
        self._residence = server.sandboxes.residence

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        rest, name = None, _named(call)
        if call.path.startswith("/s/"):
            name, slash, rest = call.path[3:].partition("/")
            rest = slash + rest
        elif name is None:
            authorization = call.headers.get(b"authorization")
            name = None if authorization is None else self._sandbox_of(call, authorization)
            if name == DEFAULT and self._residence is None:
                name = None
        if self._residence is not None:
            return self._resident(name, rest, scope, receive, send)
        if name is not None:
            sandbox = self._sandboxes.choose(name)
            if sandbox is None:
                return self._first(name, rest, scope, receive, send)
            _select(call, sandbox, rest)
        return self._go_on(call, scope, receive, send)

    def _resident(self, name: str | None, rest: str | None, scope: Scope, receive: Receive, send: Send) -> Any:
        """The same with a store, where a sandbox may not be in memory, or be on another server."""
        call: Call = scope[CALL]
        path = call.path if rest is None else rest
        if path.startswith(_OTHERS):  # the server that has this sandbox answers, whichever one the request names
            return self._open(name, rest, scope, receive, send, path[len(_OTHERS) :].partition("/")[0])
        sandbox = self._sandboxes.choose(name or DEFAULT)
        if sandbox is not None and (name is not None or b"authorization" not in call.headers):
            _select(call, sandbox, rest)
        elif rest is not None or name not in (None, DEFAULT) or not (path in _LOCAL or path in self._pages):
            return self._open(name, rest, scope, receive, send)
        return self._go_on(call, scope, receive, send)

    async def _open(
        self, name: str | None, rest: str | None, scope: Scope, receive: Receive, send: Send, other: str = ""
    ) -> None:
        call, residence = scope[CALL], self._residence
        assert residence is not None
        if name is None and not other:
            key = _key_in(call.headers.get(b"authorization", b""))
            name = None if key is None else await residence.sandbox_of(key)
        began, wanted = monotonic(), other or name or DEFAULT
        while isinstance(found := await residence.locate(wanted), str):
            call.holder, call.holder_sandbox, call.is_kept = found, wanted, False
            try:
                return await self.app(scope, receive, send)
            except NotThere as error:
                residence.forget(wanted)
                if call.is_hop or error.receive is None or monotonic() - began > PATIENCE:
                    raise
                receive = error.receive
            call.holder, call.is_kept = None, True
            with call.server.waiting.take():
                await asyncio.sleep(PAUSE)
        if other:
            found = self._sandboxes.choose(name or DEFAULT) or self._sandboxes.default
        if found is not None:
            _select(call, found, rest)
            await self._go_on(call, scope, receive, send)
        else:
            await self._first(wanted, rest, scope, receive, send)

    def _go_on(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Any:
        call.begin()
        call.is_chosen = True
        scope["path"] = call.path
        if not call.path:
            return _to_the_pages(call)
        return self.app(scope, receive, send)

    def _sandbox_of(self, call: Call, authorization: bytes) -> str | None:
        """The sandbox that a credential belongs to. Security looks at the credential later."""
        call.token = self._tokens.caller_in(authorization)
        if call.token is not None:
            return str(call.token.claims["sandbox"])
        key = _key_in(authorization)
        return None if key is None else self._sandboxes.keyring.get(key)

    async def _first(self, name: str, rest: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the first request to a sandbox. Raises NotFound for one that only reads the control surface."""
        call: Call = scope[CALL]
        headers = call.headers
        # A foreign page must not create sandboxes in a developer's server: their number is limited.
        if self._loopback and (is_from_elsewhere(headers) or not self._hosts.admits(headers.get(b"host"))):
            raise NotFound("There is no such sandbox.", code="sandbox_not_found")
        path = call.path if rest is None else rest
        is_control = path.startswith(CONTROL)
        if is_control and call.method != "OPTIONS":
            check_control(call, path, None)
        if call.method in ("GET", "HEAD") and (not path or path in self._pages):
            _select(call, await self._sandboxes.register(await self._sandboxes.pending_sandbox(name)), rest)
        else:
            only_reads = is_control and call.method in ("GET", "HEAD") and path != CREDENTIALS
            suggests = not self._is_public or call.server.knows_admin(headers.get(ADMIN_KEY))
            sandbox = await self._sandboxes.pending_sandbox(name, creates=not only_reads, suggests=suggests)
            _select(call, sandbox, rest)
            if self._sandboxes.find(sandbox.name) is not sandbox:
                call.pending = sandbox
        await self._go_on(call, scope, receive, send)


def _key_in(authorization: bytes) -> str | None:
    """What an API key is found by: the digest of a private one, or a public one."""
    start, key = authorization[:9].lower(), authorization[7:].decode("latin-1").strip()
    return digest(key) if start == b"bearer sk" else key if start == b"bearer pk" else None


def _select(call: Call, sandbox: Sandbox, rest: str | None) -> None:
    """Set the sandbox of a request; `rest` is the path below its prefix, if it has one."""
    call.sandbox = sandbox
    if rest is not None:
        call.prefix, call.path = f"/s/{sandbox.name}", rest
        named = _named(call)
        if named is not None and folded(named) != sandbox.name:
            call.warn("x_sandbox_ignored")


def _named(call: Call) -> str | None:
    """The sandbox that the header names."""
    named = call.headers.get(b"x-sandbox")
    return None if named is None else named.decode("latin-1")


async def _to_the_pages(call: Call) -> None:
    """Redirect to the pages of a sandbox, which are below `/s/{name}/`, with the slash."""
    location = call.prefix.encode() + b"/" + (b"?" + call.query_string if call.query_string else b"")
    call.answer, call.is_kept = (307, [(b"location", location)], (b"",), b""), False


class DueJobs:
    """Runs the jobs that are due in the sandbox, in slices of time, and refuses a sandbox that cannot be served."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self._waiting, self._sandboxes = app, server.waiting, server.sandboxes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        sandbox = call.sandbox
        if not sandbox.is_broken:
            is_due = not sandbox.clock.latch(sandbox.timers.jobs, stands=sandbox.is_advancing)
            if is_due and (until := do_some_due(sandbox)) is not None:
                return self._later(until, scope, receive, send)
        return self._go_on(scope, receive, send)

    async def _later(self, until: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Run what takes longer: this request waits, and those to other sandboxes do not."""
        call: Call = scope[CALL]
        with self._waiting.take(call.sandbox.name):
            await do_due_until(call.sandbox, self._sandboxes.worker, until)
        call.trace.began = perf_counter_ns()
        await self._go_on(scope, receive, send)

    def _go_on(self, scope: Scope, receive: Receive, send: Send) -> Any:
        """Raises Unavailable where the sandbox is broken, except for requests that end that state."""
        call: Call = scope[CALL]
        sandbox = call.sandbox
        call.trace.at, call.trace.before = sandbox.clock.now, sandbox.log.number
        if sandbox.is_broken and call.path not in SERVED_WHEN_BROKEN:
            raise broken(sandbox.name)
        return self.app(scope, receive, send)


class TimeTravel:
    """Answers an accepted GET as the sandbox was after a step or at an instant, with today's credential."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._past: deque[tuple[ref[Sandbox], int, Sandbox]] = deque(maxlen=PAST_STATES)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if AS_OF in call.headers:
            return self._go_back(scope, receive, send)
        return self.app(scope, receive, send)

    async def _go_back(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        if call.endpoint.base:
            raise _impossible(f"it is for the API only, and {call.trace.path[:60]} always shows the present")
        if call.method not in ("GET", "HEAD"):
            raise _impossible(f"it is for GET only, not {call.method[:20]}: the past cannot be changed")
        sandbox = call.sandbox
        step, instant = _asked(call.headers[AS_OF].decode("latin-1").strip())
        number = step_at(sandbox, instant, NAME) if step is None else step
        check_kept(sandbox.log, number, NAME)
        then = await self._state(call, sandbox, number)
        then.clock.now = instant if step is None else then.recorded_clock.now
        call.sandbox, call.store = then, then.store_of(call.store.merchant.id)
        await self.app(scope, receive, send)

    async def _state(self, call: Call, sandbox: Sandbox, number: int) -> Sandbox:
        """A copy of the sandbox as it was after a step."""
        for known, step, past in self._past:
            if step == number and known() is sandbox:
                return past
        with call.server.waiting.take(call.sandbox.name):
            state: Sandbox = await call.server.sandboxes.worker.in_line(state_at(sandbox, number, sandbox.name))
        state.journal = sandbox.journal
        self._past.append((ref(sandbox, self._forget), number, state))
        return state

    def _forget(self, deleted: ref[Sandbox]) -> None:
        self._past = deque((past for past in self._past if past[0] is not deleted), PAST_STATES)


def _asked(text: str) -> tuple[int | None, int]:
    """The number of a step, or None and an instant (ms). Raises BadRequest for anything else."""
    if _STEP(text):
        return int(text), 0
    try:
        return None, parse_iso(text)
    except ValueError:
        why = f"{text[:60]!r} is neither the number of a step nor a date-time such as 2026-11-20T14:32:05Z"
        raise _impossible(why) from None


def _impossible(why: str) -> BadRequest:
    message = f"{NAME}: {why}."
    return BadRequest(message, details=[detail(NAME, "as_of", message, "header")])


class FirstUse:
    """Creates the sandbox of a request that has been accepted."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        if scope[CALL].pending is None:
            return self.app(scope, receive, send)
        return self._create(scope, receive, send)

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        await create_pending(scope[CALL])
        await self.app(scope, receive, send)


async def create_pending(call: Call) -> None:
    """Create the sandbox of an accepted request, if it does not exist. Raises Unavailable."""
    pending, sandboxes = call.pending, call.server.sandboxes
    if pending is None:
        return
    sandbox = await sandboxes.register(pending)
    if sandbox is pending:
        call.created = sandboxes.entry(sandbox.name)
    else:  # another request created it first
        store = sandbox.stores.get(call.store.merchant.id)
        if store is None:
            raise Unavailable(
                "The sandbox has just been created. Send the request again.", headers={"Retry-After": "0"}
            )
        call.trace.id = sandbox.ids.request()
        if call.sandbox is pending:  # and not its past
            call.sandbox, call.store = sandbox, store
    call.pending = None


def undo_creation(call: Call) -> None:
    """Delete the sandbox that a failed request created, if any, unless others have used it meanwhile.

    A request whose sandbox does not exist is in the default one's journal, with its whole path and an id of the
    default one.
    """
    sandboxes = call.server.sandboxes
    if call.pending is None and (call.created is None or not sandboxes.take_back(call.created)):
        return
    trace, default = call.trace, sandboxes.default
    call.sandbox, call.pending, call.created, call.is_chosen = default, None, None, False
    trace.after = None
    trace.id, trace.at, trace.before = default.ids.request(), default.clock.read(), default.log.number
    trace.sandbox, trace.path, call.prefix = DEFAULT, call.prefix + trace.path, ""
