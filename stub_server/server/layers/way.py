"""What layers hand on: a request, and what each of them has found out about it."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from starlette.types import Receive, Scope, Send

from ...core.record import Body
from ...domain.callers import Caller
from ...engine.kept import Trace
from ..reply import Answer, Headers
from ..request import Request
from ..work import Target
from .endpoint import Endpoint
from .injection import Injection


class Holder(NamedTuple):
    """Another server of the store, by its address, and the name of the sandbox that it has."""

    address: str
    sandbox: str


@dataclass(slots=True, eq=False)
class Arguments:
    """What a handler is given, validated: the ids of the path, and query and body by name, if it
    takes them.

    `upload` is a file in the body, while it is processed.
    """

    ids: Final[tuple[str, ...]]
    named: Final[Body]
    upload: bytes | bytearray = b""

    @property
    def body(self) -> Any:
        """The body, None without one."""
        return self.named.get("body")


class Way:
    """One request. What a layer has not found out yet is not there, or None."""

    # by SandboxSelection, which also finds out whose token chose the sandbox, or which other
    # server has it
    target: Target
    trace: Trace
    has_target = False
    token: Caller | None = None
    holder: Holder | None = None
    limits: Headers | None = None  # headers about the rate limit, by RateLimit
    # by Routing, with the values of the path
    endpoint: Endpoint
    values: tuple[str, ...]
    faults: Injection | None = None  # what may happen to it, by FaultInjection
    caller: Caller | None = None  # by Security
    arguments: Arguments  # of the handler, by Validation

    def __init__(self, scope: Scope, receive: Receive, send: Send, request: Request) -> None:
        self.scope, self.receive, self.send, self.request = scope, receive, send, request

    def begin(self, target: Target) -> Trace:
        """Begin the trace that the journal will have, of a request for a target."""
        self.target, self.has_target = target, True
        self.trace = target.begin(self.request)
        return self.trace


class Layer(Protocol):
    """A layer as the one before it sees it. It leaves sending to the outermost.

    That one stores its `__call__`, because Python calls a method in half the time of an object.
    """

    def __call__(self, way: Way, /) -> Awaitable[Answer]:
        """Answer a request, or pass it on."""
