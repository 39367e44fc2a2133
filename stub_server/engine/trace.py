"""What a journal keeps of a request: who asked what, what it changed, and how long each stage took.

A request is kept as the bytes that came and went. Text is made when somebody reads it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter_ns
from typing import Final

from ..core.clock import wall_ms
from ..core.signing import HeaderPairs
from ..domain.callers import Caller
from .step import Step

LONGEST = 1_024  # characters of a path, and of a query, that are kept
STAGES: Final = ("route", "auth", "validate", "rule", "respond")
_MOST_WARNINGS = 50  # of one request


@dataclass(slots=True, eq=False)
class Trace:
    """What the journal has of one request.

    Layers note in it what they find out; `server/layers/context.py` completes it.

    `at` is the sandbox's time in ms and `before` its step; `began`, `received` and durations are
    the machine's. `operation` is an id, `by_command` says that the command `stub-server` sent it,
    `caller` is a `domain.callers.Caller`, also of a credential that was recognised and refused,
    `code` that of a refusal, `simulated` the rule or header that caused a failure or a delay.
    `before` and `after` are the newest step before its first change and after its last; `after` is
    None where it changed nothing. `events` and `deliveries` are the ids of what these changes
    raised. `auth_at` and so on are when a stage began, by the same counter as `began` (ns), 0 for a
    stage that was not entered.

    When it has ended there are no secrets in it: `received_head`, `body`, and of the answer
    `sent_head` and the body's `parts`. A head is all headers as one text (`head_of`), because
    thousands of requests are kept. A body is None where none was kept: the journal keeps none, it
    was never read, or the connection ended without an answer; `status` is then 0. `size` is about
    how many bytes all of it keeps alive.

    `refused_origin` is the origin of a page that may not read the answer. `is_prefixed` says that
    the path was sent with the sandbox's prefix, which is not in `path`. What is not `is_kept` is
    not written to the journal: pages and preflights. A path or query that is longer than any of the
    API is cut.
    """

    id: str
    at: int
    method: str
    path: str
    query: bytes
    sandbox: str = ""
    before: int = 0
    warnings: Sequence[str] = ()
    began: int = field(default_factory=perf_counter_ns)
    received: int = field(default_factory=wall_ms)
    after: int | None = None
    auth_at: int = 0
    body: bytes | None = None
    by_command: bool = False
    caller: Caller | None = None
    code: str | None = None
    deliveries: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    is_control: bool = False
    is_kept: bool = True
    is_prefixed: bool = False
    micros: int = 0
    operation: str | None = None
    parts: Sequence[bytes] | None = None
    received_head: bytes = b""
    refused_origin: str | None = None
    respond_at: int = 0
    rule_at: int = 0
    sent_head: bytes = b""
    simulated: str | None = None
    size: int = 0
    status: int = 0
    validate_at: int = 0

    def __post_init__(self) -> None:
        if len(self.path) > LONGEST:
            self.path = self.path[:LONGEST] + "…"
        if len(self.query) > LONGEST:
            self.query = self.query[:LONGEST] + "…".encode()

    def begin(self, at: int, before: int) -> None:
        """Begin only now, at the sandbox's time in ms and its step: the request had to wait."""
        self.at, self.before, self.began = at, before, perf_counter_ns()

    def warn(self, codes: Iterable[str]) -> None:
        """Add codes to X-Sandbox-Warnings, for what is accepted but may be a mistake."""
        if len(self.warnings) < _MOST_WARNINGS:  # each new one is compared with all
            self.warnings = tuple(dict.fromkeys((*self.warnings, *codes)))

    def note(self, step: Step) -> None:
        """Add a step that it recorded, with its events and deliveries."""
        if self.after is None:
            self.before = step.number - 1
        self.after = step.number
        events = step.events
        if events:
            self.events += tuple([event.id for event in events])
            for change in step.changes:
                if change.before is None and change.table == "webhook_logs":
                    self.deliveries += (change.id,)

    def lose(self) -> None:
        """Forget the steps, which were undone."""
        self.after, self.events, self.deliveries = None, (), ()

    @property
    def answer(self) -> bytes | None:
        """The body of the answer."""
        return None if self.parts is None else b"".join(self.parts)

    @answer.setter
    def answer(self, body: bytes | None) -> None:
        """The body of the answer, joined; None where none was kept."""
        self.parts = None if body is None else (body,)

    @property
    def headers(self) -> HeaderPairs:
        """The headers received, names in lower case."""
        return [*headers_of(self.received_head)]

    @property
    def answer_headers(self) -> HeaderPairs:
        """The headers of the answer."""
        return [*headers_of(self.sent_head)]

    @property
    def reached(self) -> str:
        """The last stage that it entered."""
        return self.stages()[-1][0]

    def stages(self) -> list[tuple[str, int]]:
        """The stages that it entered, each with its microseconds."""
        begun = (self.began, self.auth_at, self.validate_at, self.rule_at, self.respond_at)
        reached = [(name, at) for name, at in zip(STAGES, begun, strict=True) if at]
        ends = [at for _, at in reached[1:]] + [self.began + self.micros * 1000]
        return [
            (name, max(0, end - at) // 1000) for (name, at), end in zip(reached, ends, strict=True)
        ]


def head_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as one text: names and values in turn, a line each."""
    return b"\n".join(chain.from_iterable(headers))


def headers_of(head: bytes) -> Iterator[tuple[str, str]]:
    """The headers of such a text. None of them has a line break."""
    lines = iter(head.decode("latin-1").split("\n") if head else ())
    return zip(lines, lines, strict=False)
