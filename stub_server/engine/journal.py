"""The journal of a sandbox: its newest requests, bounded in number and bytes. It is not part of the state.

A request is kept as the bytes that came and went; text is made when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

from ..kernel.clock import wall_ms
from .bounded import Bounded, Budget

KEPT = 2_000
MOST_BYTES = 32 * 1024 * 1024
LONGEST = 1_024  # characters of a path, and of a query, that are kept
Pairs: TypeAlias = "Sequence[tuple[bytes, bytes]]"
HEADER = 150  # bytes of a header that is kept, besides its name and value
STAGES: Final = ("route", "auth", "validate", "rule", "respond")


class Trace:
    """One request.

    Set by the layers: `operation` (its id), `caller` (a `calls.call.Caller`, also of a credential that was recognised
    and refused), `code` of a refusal, `simulated` (the rule or header that caused a failure or a delay), and `before`
    and `after`, the newest step before its first change and after its last; `after` is None where it changed nothing.
    `events` and `deliveries` are the ids of what these changes raised. `auth_at` and so on are when a stage began, in
    ns of the machine's counter, 0 for a stage that was not entered.

    Set when it ends, without secrets: `request_headers`, `body`, `response_headers`, and `parts`, the answer's body of
    `length` bytes. A body is None where none was kept: the journal keeps none, it was never read, or the connection
    ended without an answer; `status` is then 0. `size` is about how many bytes all of it keeps alive.

    `refused_origin` is the origin of a page that may not read the answer. `is_prefixed` says that the path was sent
    with the sandbox's prefix, which is not in `path`; `is_control` that it is one of the control surface. A path or
    query that is longer than any of the API is cut.
    """

    # Defaults of the class: to set all of them for every request would take longer.
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
    parts: Sequence[bytes] | None = None
    refused_origin: str | None = None
    request_headers: Pairs = ()
    respond_at: int = 0
    response_headers: Pairs = ()
    rule_at: int = 0
    simulated: str | None = None
    size: int = 0
    status: int = 0
    validate_at: int = 0
    warnings: Sequence[str] = ()

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
        """The headers received, names in lower case; values of one name are joined."""
        found: dict[bytes, bytes] = {}
        for name, value in self.request_headers:
            found[name] = found[name] + b", " + value if name in found else value
        return _decoded(found.items())

    @property
    def answer_headers(self) -> list[tuple[str, str]]:
        """The headers of the answer."""
        return _decoded(self.response_headers)

    @property
    def reached(self) -> str:
        """The last stage that it entered."""
        return self.stages()[-1][0]

    def stages(self) -> list[tuple[str, int]]:
        """The stages that it entered, each with its microseconds."""
        begun = (self.began, self.auth_at, self.validate_at, self.rule_at, self.respond_at)
        reached = [(name, at) for name, at in zip(STAGES, begun, strict=True) if at]
        ends = [at for _, at in reached[1:]] + [self.began + self.micros * 1000]
        return [(name, max(0, end - at) // 1000) for (name, at), end in zip(reached, ends, strict=True)]


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def encoded_headers(headers: Iterable[tuple[str, str]]) -> Pairs:
    """Headers as a request has them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def size_of(headers: Pairs) -> int:
    """About how many bytes headers keep alive."""
    return sum([HEADER + len(name) + len(value) for name, value in headers])


class Journal(Bounded[Trace]):
    """The newest requests, the oldest first.

    A request counts with its path, query, headers and bodies. Those to the control surface have as many places again,
    so that they take none from the API.
    """

    __slots__ = ("_cleared", "_controls", "_forgotten", "_most", "keeps_bodies")

    def __init__(self, most: int = KEPT, budget: Budget | None = None) -> None:
        """`most` requests are kept; 0 keeps no bodies, and as many requests as usual. `budget` is the server's."""
        super().__init__(budget or Budget())
        self._most, self.keeps_bodies = most or KEPT, most > 0
        self._forgotten = self._cleared = 0
        self._controls = 0  # requests to the control surface

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        self._add(trace)
        if trace.is_control:
            self._controls += 1
        self._bound(self._most + min(self._controls, self._most), MOST_BYTES)

    def _drop(self) -> Trace:
        trace = super()._drop()
        self._forgotten += 1
        if trace.is_control:
            self._controls -= 1
        return trace

    @property
    def is_whole(self) -> bool:
        """Whether every request since the last clearing is still there."""
        return self._forgotten == self._cleared

    def clear(self) -> None:
        """Delete every request."""
        while self._items:
            self._drop()
        self._cleared = self._forgotten

    @property
    def appended(self) -> int:
        """How many requests there ever were."""
        return self._forgotten + len(self._items)

    def find(self, ident: str) -> Trace | None:
        """The request with an id, if it is still kept."""
        return next((trace for trace in reversed(self._items) if trace.id == ident), None)

    def __getitem__(self, place: int) -> Trace:
        return self._items[place]

    def fresh(self) -> Journal:
        """An empty journal of the same bounds, with which a fork begins."""
        return Journal(self._most if self.keeps_bodies else 0, self.budget)
