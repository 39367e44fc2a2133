"""A request from its first byte to its last, as the journal keeps it: by reference, text is made for its readers."""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, Final

from .clock import wall_ms

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

    def close(self) -> None:
        """Measure the duration."""
        self.micros = (perf_counter_ns() - self.began) // 1000

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
