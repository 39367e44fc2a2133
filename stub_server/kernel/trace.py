"""The journal's entry for one request."""

from time import perf_counter_ns


class Trace:
    """What happened to one request. `step` is the last stage that it reached."""

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
        """`at` is the sandbox's time in ms; `micros` is measured with the machine's clock."""
        self.id, self.at, self.method, self.path, self.query, self.sandbox = ident, at, method, path, query, sandbox
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
