"""The journal of a world: its newest requests, bounded in number and in bytes. It is the observer's, and no state.

A request is kept by reference, from its first byte to its last: text is made for its readers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from time import perf_counter_ns
from typing import Any, Final

from ..kernel.clock import wall_ms
from .log import Budget

KEPT = 2_000
MOST_BYTES = 32 * 1024 * 1024
MOST_BYTES_IN_ALL = 256 * 1024 * 1024
_UNTOLD = 64 * 1024  # bytes that a journal may grow by before the budget learns of them
LONGEST = 1_024  # characters of a path, and of a query, that are kept
STAGES: Final = ("route", "auth", "validate", "rule", "respond")


class Trace:
    """One request.

    Set by the layers as it passes them: `operation` (its id), `caller` (a `calls.call.Caller`, also of a credential
    that was recognised and refused), `code` of a refusal, `simulated` (the rule or header that caused a failure or a
    delay), and `before` and `after`, the step of the world before the first change of its own and after the last,
    None where it changed nothing. `events` and `deliveries` are the ids of what these changes raised. `auth_at` and
    so on say when a stage began, in ns of the machine's counter, 0 for one that was not reached.

    Set when it ends, secrets left out: `packed` (the headers, names and then values) and `body` as they came,
    `sent` (the headers, a line each) and `parts`, which make up the answer of `length` bytes, as they went.
    A body is None where none was kept: the journal keeps none, it was never read, or the connection ended without an
    answer, whose `status` is then 0. `size` is about how many bytes all of it keeps alive.

    `refused_origin` is what the terminal says of a page whose origin may not read the answer.

    `is_prefixed` says that the sandbox stood before the path, which is the one within it; `is_control` that the path is
    one of the control surface.

    A path or query that is longer than any of the API is kept cut.
    """

    # What was never set. To set it for every request would cost more than slots save.
    after: int | None = None
    auth_at: int = 0
    body: bytes | None = None
    caller: Any = None
    code: str | None = None
    deliveries: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    micros: int = 0
    is_control: bool = False
    is_prefixed: bool = False
    length: int = 0
    operation: str | None = None
    packed: bytes = b""
    parts: Sequence[bytes] | None = None
    refused_origin: str | None = None
    respond_at: int = 0
    rule_at: int = 0
    sent: bytes = b""
    simulated: str | None = None
    size: int = 0
    status: int = 0
    validate_at: int = 0
    warnings: Sequence[str] = ()
    is_of_another: bool = False  # what it says of steps is about a state that an import has replaced

    def __init__(
        self, ident: str, at: int, method: str, path: str, query: bytes, sandbox: str, before: int = 0
    ) -> None:
        """`at` is the sandbox's time in ms and `before` its step; `received` and durations are the machine's."""
        self.id, self.at, self.method, self.sandbox, self.before = ident, at, method, sandbox, before
        self.path = path if len(path) <= LONGEST else path[:LONGEST] + "…"
        self.query = query if len(query) <= LONGEST else query[:LONGEST] + "…".encode()
        self.began, self.received = perf_counter_ns(), wall_ms()

    @property
    def answer(self) -> bytes | None:
        """The body of the answer."""
        return None if self.parts is None else b"".join(self.parts)

    @answer.setter
    def answer(self, body: bytes | None) -> None:
        self.parts, self.length = (None, 0) if body is None else ((body,), len(body))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers as they came, names in lower case."""
        parts = self.packed.decode("latin-1").split("\n") if self.packed else []
        half = len(parts) // 2
        return list(zip(parts[:half], parts[half:], strict=False))

    @property
    def answer_headers(self) -> list[tuple[str, str]]:
        """The headers as they went."""
        lines = (line.partition(": ") for line in self.sent.decode("latin-1").split("\r\n") if line)
        return [(name, value) for name, _, value in lines]

    @property
    def step(self) -> str:
        """How far it came: the stage that it reached last."""
        return self.stages()[-1][0]

    def stages(self) -> list[tuple[str, int]]:
        """The stages that it reached, each with its microseconds."""
        begun = (self.began, self.auth_at, self.validate_at, self.rule_at, self.respond_at)
        reached = [(name, at) for name, at in zip(STAGES, begun, strict=True) if at]
        ends = [at for _, at in reached[1:]] + [self.began + self.micros * 1000]
        return [(name, max(0, end - at) // 1000) for (name, at), end in zip(reached, ends, strict=True)]


class Journal:
    """The newest requests, the oldest first.

    A request counts with its path, query, headers and bodies. Those to the control surface have as many places again,
    so that they take none of the API.
    """

    __slots__ = (
        "__weakref__", "_alarm", "_budget", "_cleared", "_controls", "_forgotten", "_kept", "_most", "_room", "_told",
        "keeps_bodies", "size",
    )  # fmt: skip

    def __init__(self, most: int = KEPT, budget: Budget | None = None) -> None:
        """`most` requests are kept; 0 keeps no bodies, and as many requests as usual. `budget` is shared by worlds."""
        self._most, self.keeps_bodies = most or KEPT, most > 0
        self._budget = budget or Budget(MOST_BYTES_IN_ALL)
        self._kept: deque[Trace] = deque()
        self.size = self._forgotten = self._cleared = 0
        self._controls = 0  # requests to the control surface
        self._room = self._most  # how many requests may be kept with them
        self._told = 0  # bytes that the budget knows of
        self._alarm = 0  # bytes at which bounds are looked at: every request appends

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        kept = self._kept
        kept.append(trace)
        size = self.size + trace.size
        if trace.is_control:
            self._count_control(1)
        while len(kept) > self._room:
            size -= self._oldest().size
        self.size = size
        if size > self._alarm:
            self._look()

    def _look(self) -> None:
        """Keep to the bounds in bytes."""
        if not self._told:
            self._budget.join(self)
        while self.size > MOST_BYTES:
            self._forget()
        self._tell()
        if self._budget.used > self._budget.most:
            self._budget.make_room()

    def _forget(self) -> None:
        self.size -= self._oldest().size

    def _oldest(self) -> Trace:
        """Take the oldest request away."""
        trace = self._kept.popleft()
        self._forgotten += 1
        if trace.is_control:
            self._count_control(-1)
        return trace

    def _count_control(self, more: int) -> None:
        self._controls += more
        self._room = self._most + min(self._controls, self._most)

    def forget(self, size: int) -> None:
        """Let the oldest requests of about so many bytes go, at most half of what there is and at least one."""
        goal = max(self.size // 2, self.size - size)
        self._forget()
        while self.size > goal:
            self._forget()
        self._tell()

    def _tell(self) -> None:
        """Have the budget know how much it is by now."""
        self._budget.used += self.size - self._told
        self._told = self.size
        self._alarm = min(MOST_BYTES, self.size + _UNTOLD)

    @property
    def is_whole(self) -> bool:
        """Whether every request since the last clearing is still there."""
        return self._forgotten == self._cleared

    def clear(self) -> None:
        """Forget every request."""
        self._forgotten += len(self._kept)
        self._cleared = self._forgotten
        self._kept.clear()
        self._controls, self._room = 0, self._most
        self.size = 0
        self._tell()

    @property
    def appended(self) -> int:
        """How many requests there ever were."""
        return self._forgotten + len(self._kept)

    def find(self, ident: str) -> Trace | None:
        """The request of an id, if it is still kept."""
        return next((trace for trace in reversed(self._kept) if trace.id == ident), None)

    def __getitem__(self, place: int) -> Trace:
        return self._kept[place]

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[Trace]:
        return reversed(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def fresh(self) -> Journal:
        """An empty journal of the same bounds, as a fork begins with."""
        return Journal(self._most if self.keeps_bodies else 0, self._budget)
