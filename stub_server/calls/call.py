"""One request: its headers, body, caller and sandbox, and the methods that handlers use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..contract.document import Lifecycle
from ..contract.secrets import KEY_HEADERS
from ..engine.draft import Draft
from ..engine.journal import Trace
from ..engine.sandbox import Sandbox
from ..engine.step import Cause, ReplyKey, Saved, Step
from ..kernel.clock import iso
from ..kernel.problem import BadRequest, Forbidden, NotFound, Refusal, gone, reference_not_found, undone
from ..kernel.record import Body, Record, Row
from ..sandboxes.entry import Entry
from ..store.memory import Store
from ..store.table import Table

if TYPE_CHECKING:
    from .reply import Streamed
    from .server import Server

CALL = "stub_server.call"  # where the scope of a request has its Call
INTERNAL = "stub_server.internal"  # in the scope of a request that this server itself sends to show a page
PERMITTED = "stub_server.permitted"
"""In the same: pairs of method and path of the control surface that the page may request without a key."""
CONTROL = "/_sandbox"
ADMIN_KEY, CONTROL_KEY = (name.encode() for name in KEY_HEADERS)
Answer: TypeAlias = tuple[int, list[tuple[bytes, bytes]], Sequence[bytes], bytes]
"""Status, headers, and the body in parts and joined: the journal refers to the parts, which the store has anyway."""
LARGEST_BODY = 1_048_576  # bytes
_MOST_KEPT = 50  # warnings of one request
MOST_WARNINGS = 20  # of one answer


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller: a JWT's user or an API key. `kind` is jwt, private_key or public_key.

    `projects` is None if every project is allowed, `networks` empty if every address is; a key may have expired or be
    switched off. `claims` are those of a JWT.
    """

    kind: str
    subject: str
    merchant_id: str
    scopes: frozenset[str]
    key_id: str | None = None
    projects: frozenset[str] | None = None
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    expires_at: str | None = None
    is_active: bool = True
    claims: Any = field(default=None, compare=False)

    def may(self, scope: str) -> bool:
        """Whether the caller has a scope, by name or (JWT only) by wildcard."""
        scopes = self.scopes
        return scope in scopes or "*" in scopes or scope.partition(":")[0] + ":*" in scopes


class Call:
    """The first argument of every handler, which reads through `store` and writes to `draft` only.

    It is created when a request arrives. What a layer of `http/` adds is below the layer's name. `sandbox` and `store`
    are set by SandboxSelection and Security, and replaced by FirstUse and TimeTravel.
    """

    # SandboxSelection
    token: Caller | None = None  # whom the token that chose the sandbox is for
    trace: Trace
    store: Store
    is_chosen = False  # whether its sandbox was chosen, and it was not one that the refused request would have created
    has_begun = False  # whether it has a trace: not if it was refused before a sandbox was chosen
    prefix = ""  # the `/s/{name}` that was removed from the path, or empty
    holder: str | None = None  # the address of another server that has the sandbox
    holder_sandbox = ""  # the name of that sandbox
    is_of_none = False  # whether its sandbox had been deleted before the request began
    pending: Sandbox | None = None  # its sandbox until that is created: a request that is refused creates none
    # Forwarding
    passage: Callable[..., Awaitable[None]] | None = None  # what sends the end of that server's answer
    # RateLimit
    limits: Sequence[tuple[bytes, bytes]] = ()  # headers of its answer about the rate limit
    # Pages
    is_kept = True  # whether the journal stores it: no pages and no preflights
    # Routing
    path_values: tuple[str, ...] = ()
    endpoint: Any  # what the layers have compiled of the operation: an `http.dispatch.Endpoint`
    # FaultInjection
    faults: Any = None  # the faults of this request: an `http.fault_injection.Injection`, or None
    # Security
    caller: Caller | None = None
    # Validation
    body_bytes = b""
    upload: bytes | bytearray = b""  # the file in its body, while it is processed
    values: tuple[str, ...] = ()  # the ids in its path, validated
    arguments: Mapping[str, Any] = MappingProxyType({})  # the query and body, if its handler takes them
    # FirstUse
    created: Entry | None = None  # the sandbox that it created, which is deleted again if the request fails
    # Idempotency
    reply_key: tuple[ReplyKey, bytes] | None = None  # the key under which its reply is saved, and its fingerprint
    # The layer that answers, and RequestContext for a refusal
    answer: Answer  # what RequestContext sends
    stream: "Streamed | None" = None  # what is sent instead, piece by piece
    is_preflight = False  # whether the answer is a preflight's, which has no further headers
    # RequestContext
    sent_headers: Sequence[tuple[bytes, bytes]] = ()  # the headers of its answer, for the journal

    client: tuple[str, int] | None = None
    is_internal = False  # whether this server asks, to show a page: it is not journaled, limited or made to fail
    is_foreign = False  # whether a page of another machine has sent it
    is_hop = False  # whether another server of the store has forwarded it
    warnings: tuple[str, ...] = ()
    has_recorded = False  # whether it has recorded a step
    drafted: Draft | None = None  # the step that it prepares

    def __init__(
        self,
        method: str,
        path: str,
        query_string: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        sandbox: Sandbox,
        server: "Server",
    ) -> None:
        """`path` is the path in its sandbox; `sandbox` is the one that refuses the request where none is chosen.

        `headers` are those that were received, names in lower case.
        """
        self.method, self.path, self.query_string, self.received = method, path, query_string, headers
        self.headers, self.sandbox, self.server = dict(headers), sandbox, server

    def begin(self) -> Trace:
        """Start the trace of the request in the sandbox that was chosen."""
        sandbox = self.sandbox
        if sandbox.is_gone:
            self.is_of_none = True
        self.store, self.has_begun = sandbox.stores[sandbox.home], True
        ident, now, step = sandbox.ids.request(), sandbox.clock.now, sandbox.log.number
        self.trace = Trace(ident, now, self.method, self.path or "/", self.query_string, sandbox.name, step)
        return self.trace

    @property
    def entry(self) -> Entry:
        """The sandbox with what the server knows of it. Raises NotFound."""
        return self.server.sandboxes.entry(self.sandbox.name)

    @property
    def peer(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def now(self) -> int:
        """The sandbox's time for this call, in ms."""
        return self.sandbox.clock.now

    @property
    def now_text(self) -> str:
        return iso(self.sandbox.clock.now)

    @property
    def who(self) -> Caller:
        """The caller, in an operation that requires a credential."""
        assert self.caller is not None
        return self.caller

    def warn(self, *codes: str) -> None:
        """Add codes to X-Sandbox-Warnings, for what is accepted but may be a mistake."""
        if codes and len(self.warnings) < _MOST_KEPT:  # each new one is compared with all
            self.warnings = tuple(dict.fromkeys(self.warnings + codes))

    def lifecycle(self, resource: str) -> Lifecycle:
        return self.sandbox.rules.lifecycles[resource]

    def find(self, table: Table, ident: str, what: str) -> Record:
        """The target of the request. Raises NotFound."""
        record = table.find(ident)
        if record is None:
            raise self.not_found(what)
        return record

    def find_allowed(self, table: Table, ident: str, what: str) -> Record:
        """The target of the request, of a project that the caller may use. Raises NotFound, Forbidden."""
        record = self.find(table, ident, what)
        if self.caller is not None and self.caller.projects is not None:
            row = table.parse(record)
            of_others = row.public.get("projectId", row.hidden.get("projectId"))
            self.allow_project(ident if table.name == "projects" else of_others)
        return record

    def open_allowed(self, table: Table, ident: str, what: str) -> Row:
        return table.parse(self.find_allowed(table, ident, what))

    def project_named(self, ident: str) -> Body:
        """The project that the body of the request names, or one of its records. Raises Forbidden, Conflict."""
        self.allow_project(ident)
        project: Body | None = self.store.projects.peek(ident)
        if project is None:
            raise reference_not_found("projectId", "project")
        return project

    def open_of_any(self, table: str, ident: str, what: str) -> Row:
        """A record of any merchant of the sandbox, whose store this call then uses. Raises NotFound."""
        for store in self.sandbox.stores.values():
            row = store.tables[table].open(ident)
            if row is not None:
                self.store = store
                return row
        raise self.not_found(what)

    def not_found(self, what: str) -> NotFound:
        return NotFound(f"There is no {what} with this id. List them to see the ids that exist.")

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
        raise Forbidden.at("allowed_projects", message, "project_not_allowed", where="header")

    async def read(self, receive: Callable[[], Awaitable[Any]], most: int = LARGEST_BODY) -> bytes | bytearray:
        """The whole body. Raises a 413 as soon as more than `most` bytes have come, BadRequest if the client leaves.

        Pieces are added in place: to join hundreds of megabytes would delay all other requests.
        """
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > most:
            raise _too_large(most)
        message = await receive()
        body: bytes | bytearray = message.get("body", b"")
        if message.get("more_body"):
            body = bytearray(body)
        while message.get("more_body") and len(body) <= most:
            message = await receive()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise BadRequest("The client left before its body was complete.")
        if len(body) > most:
            raise _too_large(most)
        return body

    # -- change

    @property
    def cause(self) -> Cause:
        """The cause that the steps of this call record."""
        kind = "control" if self.trace.path.startswith(CONTROL) else "request"
        return Cause(kind, self.trace.id, self.trace.operation or "")

    @property
    def draft(self) -> Draft:
        """The step that this call prepares. It is recorded once the response has been checked against the contract."""
        if self.drafted is None:
            self.drafted = Draft(self.sandbox, self.store, self.cause)
        return self.drafted

    def record(self, saved: tuple[ReplyKey, Saved] | None = None) -> None:
        """Record the draft. `saved` is the reply to save for an Idempotency-Key.

        Raises Unavailable if the sandbox was deleted meanwhile.
        """
        self.check_there()
        step = self.draft.record(saved)
        if step is not None:
            self.note(step)
        self.drafted = None

    @property
    def is_undone(self) -> bool:
        """Whether the sandbox was unloaded, as its newest steps could not be stored."""
        return self.sandbox.is_undone

    def check_there(self) -> None:
        """Raises Unavailable if the sandbox was reset or deleted, or has undone steps, while the request waited."""
        if self.sandbox.is_gone:
            raise gone()
        if self.has_recorded and self.is_undone:
            raise undone()

    def note(self, step: Step) -> None:
        """Add a recorded step, its events and deliveries to the trace."""
        trace, number, events = self.trace, step.number, step.events
        if not self.has_recorded:
            trace.before, self.has_recorded = number - 1, True
        trace.after = number
        if events:
            trace.events += tuple([event.id for event in events])
            changes = step.changes
            trace.deliveries += tuple([c.id for c in changes if c.before is None and c.table == "webhook_logs"])

    def defaults(self, schema: str) -> Body:
        """The initial values of a new resource, in contract order."""
        return dict(self.sandbox.rules.defaults[schema])


def _too_large(most: int) -> Refusal:
    message = f"The body is larger than {most} bytes, the most that the sandbox reads."
    return Refusal(message, status=413, code="payload_too_large")
