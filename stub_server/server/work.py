"""One request and the sandbox that it is for, which exists or is created by its first accepted
request: what handlers read with and write through.
"""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from starlette.types import Scope

from ..contract.lifecycles import Lifecycle
from ..core.clock import iso
from ..core.problem import Forbidden, NotFound, gone, reference_not_found, undone
from ..core.record import Body, Record, Row
from ..core.slices import Sliced
from ..domain.callers import Caller
from ..engine.draft import Draft
from ..engine.kept import Trace
from ..engine.lists import Saved
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.step import Cause
from ..engine.tables.store import Store
from .request import CONTROL, Request
from .sandboxes.entry import Entry
from .sandboxes.sandboxes import Sandboxes
from .server import Server

T = TypeVar("T")


class Work:
    """One request, and the sandbox that it works in: the first argument of every handler, which
    reads through `store` and writes to `draft` only.

    `path` is the one in the sandbox, `prefix` the `/s/{name}` before it, or empty. The sandbox is
    chosen when the request has begun; a handler may go on in a past of it, in what has taken its
    place, and, before a draft has begun, with the `store` of another merchant. One that is
    `pending` does not exist yet: a request that is refused creates none. `upload` is the file in
    the body, while it is processed. `scope` has the client's connection. `drafted` is the step that
    is prepared, if any.
    """

    server: Server
    request: Request
    scope: Scope
    prefix = ""
    path: str
    sandbox: Sandbox
    store: Store
    trace: Trace
    generation: str  # of the sandbox, when the request began
    is_chosen: bool | None = None  # until the request has begun
    pending: Sandbox | None = None
    _created: Entry | None = None  # what this request has created
    caller: Caller | None = None
    upload: bytes | bytearray = b""
    drafted: Draft | None = None
    is_of_stranger = False  # whether it was refused before its sender was known

    def begin(self, sandbox: Sandbox) -> Trace:
        """Begin in a sandbox, with the trace that its journal will have."""
        request = self.request
        self.is_chosen, self.sandbox = True, sandbox
        if self.prefix:
            self.prefix = f"/s/{sandbox.name}"
        self.generation = sandbox.origin.generation
        self.trace = trace = Trace(  # by position: by keyword it takes half as long again
            sandbox.ids.request(),
            sandbox.clock.now,
            request.method,
            self.path or "/",
            request.query,
            sandbox.name,
            sandbox.log.number,
            request.head.without_effect,
            request.began,
            request.received_at,
        )
        return trace

    def begin_unchosen(self) -> Trace:
        """Begin a request for which no sandbox of this server is chosen: the default one only has
        it in its journal.
        """
        self.prefix, self.path = "", self.request.path
        trace = self.begin(self.sandboxes.default)
        self.is_chosen = False
        return trace

    async def create(self) -> None:
        """Create the sandbox of an accepted request, if it does not exist."""
        pending = self.pending
        if pending is None:
            return
        sandbox = await self.sandboxes.register(pending)
        if sandbox is pending:
            self._created = self.sandboxes.entry(sandbox.name)
        else:  # another request created it first
            self.trace.id = sandbox.ids.request()
            if self.sandbox is pending:  # and not its past
                self.sandbox = sandbox
        self.pending = None

    def undo(self) -> None:
        """Delete the sandbox that a failed request created, if any, unless others have used it
        meanwhile.

        A request whose sandbox does not exist is in the default one's journal, with its whole path
        and an id of the default one.
        """
        sandboxes, created, trace = self.sandboxes, self._created, self.trace
        if self.pending is None and created is None:
            return
        if created is not None and not sandboxes.take_back(created):
            return
        default = self.sandbox = sandboxes.default
        self.pending, self._created, self.is_chosen = None, None, False
        trace.id, trace.at = default.ids.request(), default.clock.read()
        trace.before, trace.after = default.log.number, None
        trace.sandbox, trace.path = DEFAULT, self.prefix + trace.path
        self.prefix = ""

    @property
    def sandboxes(self) -> Sandboxes:
        """Those of the server."""
        return self.server.sandboxes

    @property
    def entry(self) -> Entry:
        """The sandbox with what the server knows of it. Raises NotFound."""
        return self.sandboxes.entry(self.sandbox.name)

    @property
    def now(self) -> int:
        """The sandbox's time for this request, in ms."""
        return self.sandbox.clock.now

    @property
    def now_text(self) -> str:
        """The same as the contract writes it."""
        return iso(self.now)

    @property
    def who(self) -> Caller:
        """The caller, in an operation that requires a credential."""
        assert self.caller is not None
        return self.caller

    @property
    def projects(self) -> frozenset[str] | None:
        """The only projects that the caller may use; None for all."""
        return None if self.caller is None else self.caller.projects

    def lifecycle(self, resource: str) -> Lifecycle:
        """The states and moves of a resource."""
        return self.sandbox.rules.lifecycles[resource]

    # -- records

    def find(self, table: str, ident: str, what: str) -> Record:
        """The target of the request. Raises NotFound."""
        record = self.store.tables[table].find(ident)
        if record is None:
            raise self.not_found(what)
        return record

    def find_allowed(self, table: str, ident: str, what: str) -> Record:
        """The target of the request, of a project that the caller may use.

        Raises NotFound, Forbidden.
        """
        record = self.find(table, ident, what)
        if self.projects is not None:
            self.allow_project(self.store.tables[table].parse(record).project)
        return record

    def open_allowed(self, table: str, ident: str, what: str) -> Row:
        """The same, parsed."""
        return self.store.tables[table].parse(self.find_allowed(table, ident, what))

    def project_named(self, ident: str) -> Body:
        """The project that the body of the request names, or one of its records.

        Raises Forbidden, Conflict.
        """
        self.allow_project(ident)
        project: Body | None = self.store.projects.peek(ident)
        if project is None:
            raise reference_not_found("projectId", "project")
        return project

    def open_of_any(self, table: str, ident: str, what: str) -> Row:
        """A record of any merchant of the sandbox, for whom this works from now on.

        Raises NotFound.
        """
        for store in self.sandbox.stores.values():
            row = store.tables[table].open(ident)
            if row is not None:
                self.store = store
                return row
        raise self.not_found(what)

    def not_found(self, what: str) -> NotFound:
        """404 for the target of the request."""
        return NotFound(f"There is no {what} with this id. List them to see the ids that exist.")

    def sees_customer(self, ident: str) -> bool:
        """Whether the caller sees a customer: a key with `allowed_projects` sees those of
        its projects.
        """
        return self.projects is None or self.store.sees_customer(self.projects, ident)

    def allow_project(self, project_id: str | None) -> None:
        """Raises Forbidden for an API key that is restricted to other projects."""
        if self.projects is None or project_id in self.projects:
            return
        raise Forbidden.at(
            "allowed_projects",
            "This API key is restricted to other projects (allowed_projects).",
            "project_not_allowed",
            where="header",
        )

    # -- change

    @property
    def cause(self) -> Cause:
        """The cause that the steps of this request record."""
        return Cause(
            "control" if self.trace.path.startswith(CONTROL) else "request",
            self.trace.id,
            self.trace.operation or "",
        )

    @property
    def draft(self) -> Draft:
        """The step that is prepared.

        It is recorded once the response has been checked against the contract.
        """
        if self.drafted is None:
            self.drafted = Draft(self.sandbox, self.store, self.cause)
        return self.drafted

    def commit(self, saved: Saved | None = None) -> None:
        """Record the draft. `saved` is the reply to save for an Idempotency-Key.

        Raises Unavailable if the sandbox was deleted meanwhile.
        """
        self.check_there()
        step = self.draft.record(saved)
        if step is not None:
            self.trace.note(step)
        self.drafted = None

    async def in_slices(self, search: Sliced[T]) -> T:
        """Run a generator that reads the sandbox. Others are served meanwhile."""
        with self.waiting():
            return await self.sandboxes.worker.in_slices(search, self.sandbox.name)

    def waiting(self) -> AbstractContextManager[None]:
        """A place among the requests that wait; what a page asks has its own. Raises Limited."""
        if self.request.is_internal:
            return nullcontext()
        return self.server.waiting.take(self.sandbox.name)

    async def next_turn(self) -> None:
        """Go on when those of the sandbox have their turn again: many may have waited.

        Refused strangers wait for each other, and nobody in the sandbox does.
        """
        of = "" if self.is_of_stranger else self.sandbox.name
        while not self.server.waiting.turns.admits(of):
            await asyncio.sleep(0)

    def check_there(self) -> None:
        """Raises Unavailable if the sandbox was reset or deleted, or has undone steps, while the
        request waited.
        """
        if self.sandbox.status.is_gone:
            raise gone()
        if self.trace.after is not None and self.sandbox.status.is_undone:
            raise undone()
