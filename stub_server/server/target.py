"""The sandbox that a request is for: one that exists, or one that its first accepted
request creates.
"""

from functools import lru_cache

from ..core.text import nearest, warning_of
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.trace import Trace
from .request import MOST_WARNINGS, Request
from .sandboxes.entry import Entry
from .sandboxes.sandboxes import Sandboxes

_OURS = "x-sandbox"
_ENDINGS = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")


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

    def __init__(self, sandboxes: Sandboxes, sandbox: Sandbox, path: str, prefix: str = "") -> None:
        """`sandboxes` are those of the server."""
        self.sandbox, self.path, self.prefix = sandbox, path, prefix
        self.pending: Sandbox | None = None
        self.was_gone = sandbox.status.is_gone  # deleted before the request began
        self.is_chosen = True
        self._sandboxes = sandboxes
        self._created: Entry | None = None  # what this request has created

    @classmethod
    def unchosen(cls, sandboxes: Sandboxes, path: str) -> "Target":
        """The target of a request for which no sandbox is chosen: the default one has it in its
        journal.
        """
        target = cls(sandboxes, sandboxes.default, path)
        target.is_chosen = False
        return target

    def begin(self, request: Request) -> Trace:
        """Begin the trace of the request that is for it."""
        sandbox = self.sandbox
        return Trace(  # by position: by keyword it takes half as long again
            sandbox.ids.request(),
            sandbox.clock.now,
            request.method,
            self.path or "/",
            request.query,
            sandbox.name,
            sandbox.log.number,
            _without_effect(tuple(request.headers)),
            request.began,
            request.received_at,
        )

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
        sandboxes, created = self._sandboxes, self._created
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


@lru_cache(maxsize=64)  # clients send the same ones again and again
def _without_effect(headers: tuple[bytes, ...]) -> tuple[str, ...]:
    """Warnings of headers, by their names, that have no effect: X-Sandbox headers that this server
    does not know may be misspelt.
    """
    found = []
    if b"if-match" in headers:
        found.append("if_match_ignored")
    for header in headers:
        name = header.decode("latin-1")
        ending = name.removeprefix(_OURS)
        if ending == name or ending in _ENDINGS:
            continue
        guess = nearest(ending, _ENDINGS)
        if guess is not None:
            guess = _OURS + guess
        found.append(warning_of("unknown_sandbox_header", name, guess))
        if len(found) == MOST_WARNINGS:
            break
    return tuple(found)
