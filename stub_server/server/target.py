"""The sandbox that a request is for: one that exists, or one that its first accepted
request creates.
"""

from collections.abc import Mapping

from ..core.text import nearest, warning_of
from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT, Sandbox
from .request import MOST_WARNINGS, Request
from .sandboxes.entry import Entry
from .sandboxes.sandboxes import Sandboxes

_OURS = b"x-sandbox"
_ENDINGS = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")
_KNOWN = frozenset(_OURS + ending.encode() for ending in _ENDINGS)
_USUAL = _KNOWN | frozenset(
    b"accept accept-encoding authorization connection content-length content-type host"
    b" idempotency-key user-agent".split()
)
"""Headers of which there is nothing to say. A request that has others is looked at."""


class Target:
    """Which sandbox a request is for, and the path in it.

    `prefix` is the `/s/{name}` that was removed from the path, or empty. One that is `pending` does
    not exist yet: a request that is refused creates none.
    """

    __slots__ = (
        "_created",
        "_sandboxes",
        "is_chosen",
        "path",
        "pending",
        "prefix",
        "sandbox",
        "was_gone",
    )

    def __init__(
        self,
        sandboxes: Sandboxes,
        sandbox: Sandbox,
        path: str,
        prefix: str = "",
        *,
        is_pending: bool = False,
        is_chosen: bool = True,
    ) -> None:
        """`sandboxes` are those of the server.

        Where none is chosen, the default one has the request in its journal.
        """
        self.sandbox, self.path, self.prefix = sandbox, path, prefix
        self.pending = sandbox if is_pending else None
        self.was_gone = sandbox.status.is_gone  # deleted before the request began
        self.is_chosen = is_chosen
        self._sandboxes = sandboxes
        self._created: Entry | None = None  # what this request has created

    def begin(self, request: Request) -> Trace:
        """Begin the trace of the request that is for it."""
        sandbox = self.sandbox
        trace = Trace(
            sandbox.ids.request(),
            sandbox.clock.now,
            request.method,
            self.path or "/",
            request.query,
            sandbox=sandbox.name,
            before=sandbox.log.number,
            began=request.began,
            received=request.received_at,
        )
        if not _USUAL.issuperset(request.headers):
            trace.warnings = _without_effect(request.headers)
        return trace

    def move_to(self, sandbox: Sandbox) -> None:
        """Go on in the sandbox that has taken the place of this one, or in what it was."""
        self.sandbox = sandbox

    async def create(self, trace: Trace) -> None:
        """Create the sandbox of an accepted request, if it does not exist."""
        pending = self.pending
        if pending is None:
            return
        sandbox = await self._sandboxes.register(pending)
        if sandbox is pending:
            self._created = self._sandboxes.entry(sandbox.name)
        else:  # another request created it first
            trace.id = sandbox.ids.request()
            if self.sandbox is pending:  # and not its past
                self.sandbox = sandbox
        self.pending = None

    def undo(self, trace: Trace) -> None:
        """Delete the sandbox that a failed request created, if any, unless others have used it
        meanwhile.

        A request whose sandbox does not exist is in the default one's journal, with its whole path
        and an id of the default one.
        """
        sandboxes = self._sandboxes
        if self.pending is None and (
            self._created is None or not sandboxes.take_back(self._created)
        ):
            return
        default = self.sandbox = sandboxes.default
        self.pending, self._created, self.is_chosen = None, None, False
        trace.after = None
        trace.id, trace.at, trace.before = (
            default.ids.request(),
            default.clock.read(),
            default.log.number,
        )
        trace.sandbox, trace.path = DEFAULT, self.prefix + trace.path
        self.prefix = ""


def _without_effect(headers: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Warnings of headers that have no effect:

    X-Sandbox headers that this server does not know may be misspelt.
    """
    found = ["if_match_ignored"] if b"if-match" in headers else []
    unknown = [name for name in headers if name.startswith(_OURS) and name not in _KNOWN]
    for name in unknown[:MOST_WARNINGS]:
        ending = name[len(_OURS) :].decode("latin-1")
        guess = nearest(ending, _ENDINGS)
        found.append(
            warning_of(
                "unknown_sandbox_header", f"x-sandbox{ending}", guess and f"x-sandbox{guess}"
            )
        )
    return tuple(found)
