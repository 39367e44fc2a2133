"""One call of an operation: its caller, its sandbox, and the methods that handlers use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Any, TypeAlias

from ..contract.document import Lifecycle, Operation
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.step import Cause, ReplyKey, Saved, Step
from ..kernel.clock import iso
from ..kernel.problem import Forbidden, Missing, Unavailable, detail
from ..kernel.record import Body, Record, Row
from ..kernel.trace import Trace
from ..store.memory import Store
from ..store.table import Table
from ..worlds.entry import Entry
from .head import Head

CONTROL = "/_sandbox"
Answer: TypeAlias = tuple[int, list[tuple[bytes, bytes]], Sequence[bytes], bytes]
"""Status, headers, and the body in parts and joined: the journal keeps the parts, which the store has anyway."""
LARGEST_BODY = 1_048_576  # bytes
_MOST_WARNINGS = 50
_GONE = "The sandbox was reset or deleted while this request waited, and nothing was changed. Send it again."


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller: a JWT's user or an API key. `kind` is jwt, private_key or public_key.

    `projects` is None if every project is allowed, `networks` empty if every address is; `claims` are those of a JWT.
    """

    kind: str
    subject: str
    merchant_id: str
    scopes: frozenset[str]
    key_id: str | None = None
    projects: frozenset[str] | None = None
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    claims: Mapping[str, Any] | None = field(default=None, compare=False)

    def may(self, scope: str) -> bool:
        """Whether the caller has a scope, by name or (JWT only) by wildcard."""
        scopes = self.scopes
        return scope in scopes or "*" in scopes or scope.partition(":")[0] + ":*" in scopes


class Call:
    """The first argument of every handler, which reads through `store` and writes to `draft` only.

    It is made when a request arrives, and every layer adds what it knows: the edge `sandbox` and `prefix`, then `trace`
    and `store`; the router `operation` and `path_values`; the gate `caller`.
    """

    trace: Trace
    store: Store
    prefix = ""
    """The `/s/{name}` that was taken off the path, or empty."""
    client: tuple[str, int] | None = None
    caller: Caller | None = None
    operation: Operation | None = None
    path_values: tuple[str, ...] = ()
    body_bytes = b""
    upload: bytes | bytearray = b""
    """The file that came as its body, while it is dealt with."""
    answer: Answer | None = None
    """What the operation answers, until the edge sends it. What comes in pieces is sent by who makes them."""
    sent_headers: Sequence[tuple[bytes, bytes]] = ()
    """Those of its answer, until the journal has packed them."""
    limits: Sequence[tuple[bytes, bytes]] = ()
    """Headers of its answer that tell of the rate limit."""
    warnings: tuple[str, ...] = ()
    meant: Sandbox | None = None
    """The sandbox that does not exist yet, until the request is accepted: a request that is refused creates none."""
    made: Entry | None = None
    """The sandbox that this request created: if the request fails after all, it is deleted again."""
    body_faults: Callable[[Any], Awaitable[None]] | None = None
    """Applies the fault rules that read the body."""
    first_use: Callable[[], Awaitable[None]] | None = None
    """Creates the sandbox that does not exist yet."""
    go_back: Callable[[], Awaitable[None]] | None = None
    """Turns to the past."""
    has_odd_names = False
    """Whether a map in its body may have a key that no map may have."""
    has_recorded = False
    """Whether something was done already, whatever becomes of the rest."""
    _draft: Draft | None = None

    def __init__(self, method: str, path: str, query_string: bytes, head: Head, sandbox: Sandbox, server: Any) -> None:
        """`path` is the path in its world; `sandbox` is the world that refuses the request where none is chosen.

        `server` is a `calls.server.Server`.
        """
        self.method, self.path, self.query_string, self.head = method, path, query_string, head
        self.headers, self.sandbox, self.server = head.by_name, sandbox, server

    def begin(self) -> Trace:
        """The world has been chosen: from here on there is a trace of the request in it."""
        sandbox = self.sandbox
        self.store = sandbox.store
        path = self.path or "/"
        ident, now, step = sandbox.ids.request(), sandbox.clock.now, sandbox.log.number
        self.trace = Trace(ident, now, self.method, path, self.query_string, sandbox.name, step)
        return self.trace

    @property
    def peer(self) -> str | None:
        """The address that the request came from."""
        return self.client[0] if self.client else None

    @property
    def now(self) -> int:
        """The sandbox's time for this call, in ms."""
        return self.sandbox.clock.now

    @property
    def now_text(self) -> str:
        """The sandbox's time as a date-time."""
        return iso(self.sandbox.clock.now)

    @property
    def who(self) -> Caller:
        """The caller, in an operation that requires a credential."""
        assert self.caller is not None
        return self.caller

    def warn(self, *codes: str) -> None:
        """Add codes to X-Sandbox-Warnings, for what is accepted but may be a mistake."""
        if codes and len(self.warnings) < _MOST_WARNINGS:  # bounded, as each new one is compared with all
            self.warnings = tuple(dict.fromkeys(self.warnings + codes))

    def lifecycle(self, resource: str) -> Lifecycle:
        """The contract's table of states and moves of a resource."""
        return self.sandbox.rules.lifecycles[resource]

    def find(self, table: Table, ident: str, what: str) -> Record:
        """The target of the request. Raises Missing."""
        record = table.find(ident)
        if record is None:
            raise self.missing(what)
        return record

    def open(self, table: Table, ident: str, what: str) -> Row:
        """The target of the request, parsed. Raises Missing."""
        return table.parse(self.find(table, ident, what))

    def missing(self, what: str) -> Missing:
        """404 for the id in the path."""
        return Missing(f"There is no {what} with this id. List them to see the ids that exist.")

    def sees_customer(self, ident: str) -> bool:
        """Whether the caller sees a customer: a key with `allowed_projects` sees those of its projects."""
        caller = self.caller
        return caller is None or caller.projects is None or self.store.sees_customer(caller.projects, ident)

    def allow_project(self, project_id: str | None) -> None:
        """Raises Forbidden for an API key that is restricted to other projects."""
        caller = self.caller
        if caller is None or caller.projects is None or project_id in caller.projects:
            return
        message = "This API key is restricted to other projects (allowed_projects)."
        raise Forbidden(
            message,
            code="project_not_allowed",
            details=[detail("allowed_projects", "project_not_allowed", message, "header")],
        )

    async def accept(self, body: Any) -> None:
        """The request is valid: do what waits for that. Raises refusals."""
        if self.body_faults is not None:
            await self.body_faults(body)
        if self.first_use is not None:
            await self.first_use()
        if self.go_back is not None:
            await self.go_back()

    # -- change

    @property
    def cause(self) -> Cause:
        """The cause that the steps of this call record."""
        kind = "control" if self.trace.path.startswith(CONTROL) else "request"
        return Cause(kind, self.trace.id, self.trace.operation or "")

    @property
    def draft(self) -> Draft:
        """The step that this call prepares. It is recorded once the response has been checked against the contract."""
        draft = self._draft
        if draft is None:
            draft = self._draft = Draft(self.sandbox, self.store, self.cause)
        return draft

    def record(self, saved: tuple[ReplyKey, Saved] | None = None) -> None:
        """Record the draft, if there is one. `saved` is the reply to keep for an Idempotency-Key.

        Raises Unavailable for a world that has gone meanwhile.
        """
        draft = self._draft
        if draft is None:
            if saved is None:
                return
            draft = self.draft
        self.check_there()
        step = draft.record(saved)
        if step is not None:
            self.note(step)
        self._draft = None

    def check_there(self) -> None:
        """Refuse what waited while its world was reset or deleted. Raises Unavailable."""
        if self.sandbox.is_gone:
            raise Unavailable(_GONE, headers={"Retry-After": "0"})

    def note(self, step: Step) -> None:
        """Have the journal know the step, and what it raised."""
        trace, number, events = self.trace, step.number, step.events
        if not self.has_recorded:
            trace.before, self.has_recorded = number - 1, True
        trace.after = number
        if events:
            trace.events += tuple([event.id for event in events])
            opened = [record.id for table, record, before in step.puts if before is None and table == "webhook_logs"]
            trace.deliveries += tuple(opened)

    def forget_draft(self) -> None:
        """Let go of what was drafted and not recorded."""
        self._draft = None

    def defaults(self, schema: str) -> Body:
        """The initial values of a new resource, in contract order."""
        return dict(self.sandbox.rules.defaults[schema])
