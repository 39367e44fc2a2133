"""What layers hand on: a request, and what each of them has found out about it."""

from typing import Any, NamedTuple, Protocol

from starlette.types import Receive, Scope, Send

from ...core.record import Body
from ...domain.callers import Caller
from ..reply import Answering, Headers
from ..request import LARGEST_BODY, Request
from ..server import Server
from ..work import Work
from .endpoint import Endpoint
from .injection import Injection


class Holder(NamedTuple):
    """Another server of the store, by its address, and the name of the sandbox that it has."""

    address: str
    sandbox: str


class Way(Work):
    """The work of one request, with what only layers look at.

    What a layer has not found out yet is not there, or None.
    """

    # by SandboxSelection, which begins the request in a sandbox and also finds out whose token
    # chose it, or which other server has it
    token: Caller | None = None
    holder: Holder | None = None
    limits: Headers | None = None  # headers about the rate limit, by RateLimit
    # by Routing, with the values of the path, which Validation replaces by ids
    endpoint: Endpoint
    values: tuple[str, ...]
    faults: Injection | None = None  # what may happen to it, by FaultInjection
    named: Body  # query and body, if the handler takes them, by Validation

    def __init__(
        self, server: Server, request: Request, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self.server, self.request, self.scope = server, request, scope
        self.receive, self.send = receive, send
        self.headers = request.headers
        self.separate_prefix()

    def separate_prefix(self) -> None:
        """Tell the prefix of a sandbox from the path in it."""
        self.path = self.request.path
        if self.path.startswith("/s/"):
            name, slash, rest = self.path[3:].partition("/")
            self.prefix, self.path = f"/s/{name}", slash + rest

    @property
    def body(self) -> Any:
        """The valid body, None without one."""
        return self.named.get("body")

    async def read(self, most: int = LARGEST_BODY) -> bytes:
        """The whole body, when the sandbox has its turn again. Raises as `Request.read` does."""
        body = bytes(await self.request.read(self.receive, most))
        await self.next_turn()
        return body


class Layer(Protocol):
    """A layer as the one before it sees it. It leaves sending to the outermost.

    That one stores its `__call__`, because Python calls a method in half the time of an object.
    """

    def __call__(self, way: Way, /) -> Answering:
        """Answer a request, or pass it on."""
