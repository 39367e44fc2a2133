"""The journal: what happened to each of the newest requests, bounded in number and in bytes."""

from collections import deque
from collections.abc import Iterator
from sys import getsizeof
from time import perf_counter_ns

KEPT, KEPT_BYTES = 2_000, 1024 * 1024
LONGEST = 1_024  # characters of a path, and of a query, that are kept


class Trace:
    """One request from the first byte to the last: `step` names how far it came.

    A path or query that is longer than any of the API is kept cut.
    """

    __slots__ = (
        "at",
        "began",
        "caller",
        "code",
        "id",
        "method",
        "micros",
        "operation",
        "path",
        "query",
        "sandbox",
        "simulated",
        "status",
        "step",
    )

    def __init__(self, ident: str, at: int, method: str, path: str, query: bytes, sandbox: str) -> None:
        """`at` is the sandbox's time in ms; durations are the machine's own."""
        self.id, self.at, self.method, self.sandbox = ident, at, method, sandbox
        self.path = path if len(path) <= LONGEST else path[:LONGEST] + "…"
        self.query = query if len(query) <= LONGEST else query[:LONGEST] + "…".encode()
        self.operation: str | None = None
        self.caller: str | None = None
        self.step = "route"
        self.status = 0
        self.code: str | None = None
        self.simulated: str | None = None  # the rule or header that caused a failure or a delay
        self.began = perf_counter_ns()
        self.micros = 0

    def close(self) -> None:
        """Measure the duration."""
        self.micros = (perf_counter_ns() - self.began) // 1000


class Journal:
    """The newest requests, the oldest first. The bytes that count are those that clients choose: paths and queries."""

    __slots__ = ("_bytes", "_kept")

    def __init__(self) -> None:
        self._kept: deque[Trace] = deque()
        self._bytes = 0

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        kept = self._kept
        kept.append(trace)
        self._bytes += getsizeof(trace.path) + len(trace.query)
        while len(kept) > KEPT or self._bytes > KEPT_BYTES:
            old = kept.popleft()
            self._bytes -= getsizeof(old.path) + len(old.query)

    def __getitem__(self, place: int) -> Trace:
        return self._kept[place]

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)
