"""What happened to one request: the journal's entry."""

from time import perf_counter_ns


class Trace:
    """One request from the first byte to the last: `step` names how far it came."""

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
        self.id, self.at, self.method, self.path, self.query, self.sandbox = ident, at, method, path, query, sandbox
        self.operation: str | None = None
        self.caller: str | None = None
        self.step = "route"
        self.status = 0
        self.code: str | None = None
        self.simulated: str | None = None  # what asked for a failure or a delay
        self.began = perf_counter_ns()
        self.micros = 0

    def close(self) -> None:
        """Stop the watch."""
        self.micros = (perf_counter_ns() - self.began) // 1000
